/** Saving settings, trust and keys where there is no room: on a file system that is full, and where files may be no larger. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { temporary } from "./support.ts"

const script = fileURLToPath(new URL("disk-full-process.ts", import.meta.url))

interface Way {
  readonly what: string
  /** Shell that makes "$1" a place with little room, and becomes the rest of its arguments. */
  readonly shell: string
  readonly command: ReadonlyArray<string>
  readonly fill: boolean
  readonly reason: string
}

/** Everywhere; a limit of the process, as quotas are of the user. 512 bytes are a block. */
const limited: Way = {
  what: "where a file would be larger than files may be",
  command: ["sh"],
  shell: 'ulimit -f 2; shift; exec "$@"',
  fill: false,
  reason: "it would be larger than files may be here"
}
const full: Way = {
  what: "on a full disk",
  command: ["unshare", "--map-root-user", "--mount", "sh"],
  shell: 'mount -t tmpfs -o size=64k,mode=700 none "$1" && shift && exec "$@"',
  fill: true,
  reason: "the disk is full"
}
/** Not every machine lets its users mount a file system. */
const mounts = spawnSync("unshare", ["--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /tmp"]).status === 0

describe("saving", () => {
  it.effect.each(mounts ? [full, limited] : [limited])(
    "$what leaves settings, trust and keys as they were, says so, and goes on when there is room",
    ({ command: [program = "sh", ...first], fill, reason, shell }) =>
      Effect.gen(function*() {
        const home = yield* temporary
        const projects = yield* temporary
        // So long that what is kept of it is too large on its own.
        const long = Array.from({ length: 5 }, (_, index) => String(index).repeat(250)).join("/")
        const other = fill ? "two" : long
        for (const project of ["one", other]) {
          fs.mkdirSync(path.join(projects, project), { recursive: true })
          fs.writeFileSync(path.join(projects, project, "bezel.jsonc"), '{"theme":"a"}')
        }
        const ran = spawnSync(
          program,
          [...first, "-c", shell, "sh", home, process.execPath, script, home, projects, fill ? "fill" : "no", other],
          { encoding: "utf8" }
        )
        expect([ran.status, ran.stderr]).toEqual([0, ""])
        const said = JSON.parse(ran.stdout)
        expect(said.first).toEqual({ settings: null, keys: null, trust: null })
        expect(said.filled).toBe(fill ? "ENOSPC" : null)
        expect(said.before.map(([name]: [string]) => name)).toEqual([
          "config/bezel.jsonc",
          "data/credentials.json",
          "state/trust.json"
        ])
        expect(said.refused).toEqual({
          settings: `Cannot write the settings in ${home}/config/bezel.jsonc: ${reason}.`,
          keys: `Cannot store the key in ${home}/data/credentials.json: ${reason}.`,
          trust: `Cannot remember the trusted folder in ${home}/state/trust.json: ${reason}`
        })
        expect(said.after).toEqual(said.before)
        expect(said.again).toEqual({ settings: null, keys: null, trust: null })
        expect(said.end.map(([name]: [string]) => name)).toEqual(said.before.map(([name]: [string]) => name))
        expect(JSON.stringify(said.end)).toContain("x".repeat(20))
      }).pipe(Effect.scoped)
  )
})
