import { Plugin } from "@bezel/core/host"
import { call, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { Git, type GitStatus } from "@bezel/plugins/git/contract"
import { session as git } from "@bezel/plugins/git/session"
import { gitBlocks } from "@bezel/plugins/git/tui"
import { session as tools } from "@bezel/plugins/tools/session"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { parseStatus } from "../../../packages/plugins/src/git/status.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-git-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const run = (directory: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], { cwd: directory, stdio: "pipe" })

const repository = (directory: string) => {
  run(directory, "init", "-q", "-b", "main")
  fs.writeFileSync(path.join(directory, "a.txt"), "a\n")
  run(directory, "add", ".")
  run(directory, "commit", "-q", "-m", "first")
}

const world = (prepare: (directory: string) => void, ...script: Parameters<typeof scriptedModel>[0]) =>
  Effect.gen(function*() {
    const directory = yield* temporary
    prepare(directory)
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.tools", session: tools }),
      Plugin.define({ id: "bezel.git", session: git })
    ], { directory, model: scriptedModel(script), entries: { "bezel.git": { required: true } } })
    const client = yield* host.connect()
    const service = yield* client.use(Git)
    /** Completes once the status is so. */
    const until = (holds: (status: GitStatus | null) => boolean) =>
      service.status.changes.pipe(Stream.filter(holds), Stream.runHead)
    return { directory, host, service, until }
  })

describe("git", () => {
  it.live(
    "has the status of the repository once a client is there, and follows what is committed and staged",
    () =>
      Effect.gen(function*() {
        const { directory, service, until } = yield* world(repository)
        yield* until((status) => status !== null)
        expect(service.status.value).toMatchObject({ root: directory, branch: "main", staged: 0, untracked: 0 })
        const heads: Array<readonly [string | null, string | null]> = []
        let changes = 0
        const first = service.status.value?.head
        yield* Effect.forkScoped(Stream.runForEach(service.happened, (event) =>
          Effect.sync(() => {
            if (event.type === "head_changed") heads.push([event.from, event.to])
            else changes++
          })))
        fs.writeFileSync(path.join(directory, "b.txt"), "b\n")
        run(directory, "add", "b.txt")
        yield* until((status) => status?.staged === 1)
        run(directory, "commit", "-q", "-m", "second")
        const head = String(run(directory, "rev-parse", "HEAD")).trim()
        yield* until((status) => status?.head === head && status.staged === 0)
        run(directory, "checkout", "-q", "-b", "other")
        yield* until((status) => status?.branch === "other")
        while (heads.length === 0) yield* Effect.sleep("10 millis")
        expect(heads).toEqual([[first, head]])
        // Staged, committed, another branch: what is seen in one look is told once.
        expect(changes).toBeGreaterThanOrEqual(2)
      }),
    30_000
  )

  it.live("sees what a call has changed in the work tree, and what refresh is asked for", () =>
    Effect.gen(function*() {
      const { directory, host, service, until } = yield* world(
        repository,
        [call("write", { path: "new.txt", content: "x" })],
        "done"
      )
      yield* until((status) => status !== null)
      const { id } = yield* host.session.create({})
      yield* host.ask(id, "go")
      yield* until((status) => status?.untracked === 1)
      fs.writeFileSync(path.join(directory, "a.txt"), "changed\n")
      yield* service.refresh()
      yield* until((status) => status?.changed === 1 && status.untracked === 1)
      expect(service.status.status).toBe("live")
    }), 30_000)

  it.live("is nothing outside of a repository, until there is one", () =>
    Effect.gen(function*() {
      const { directory, service, until } = yield* world(() => {})
      yield* service.refresh()
      expect(service.status.value).toBeNull()
      repository(directory)
      yield* service.refresh()
      yield* until((status) => status?.branch === "main")
      expect(service.status.value).toMatchObject({ root: directory })
    }), 30_000)

  it.live("runs nothing that a repository's settings name", () =>
    Effect.gen(function*() {
      const { directory, service, until } = yield* world((at) => {
        repository(at)
        fs.writeFileSync(path.join(at, "evil"), '#!/bin/sh\ntouch "$(dirname "$0")/ran"\n', { mode: 0o755 })
        run(at, "config", "core.fsmonitor", path.join(at, "evil"))
      })
      yield* service.refresh()
      yield* until((status) => status?.branch === "main" && status.untracked === 1)
      expect(fs.existsSync(path.join(directory, "ran"))).toBe(false)
    }), 30_000)
})

describe("git status", () => {
  it.each([
    ["# branch.oid (initial)\0# branch.head main\0", { head: null, branch: "main" }],
    ["# branch.oid abc\0# branch.head (detached)\0", { head: "abc", branch: null }],
    ["# branch.upstream origin/main\0# branch.ab +2 -3\0", { upstream: "origin/main", ahead: 2, behind: 3 }],
    ["1 M. N... 1 1 1 a b x\x001 .M N... 1 1 1 a b y\x001 MM N... 1 1 1 a b z\0", { staged: 2, changed: 2 }],
    ["2 R. N... 1 1 1 a b R100 new\0? old\0? real\0", { staged: 1, untracked: 1 }],
    ["u UU N... 1 1 1 1 a b c x\0? a b.txt\0? c\0", { conflicts: 1, untracked: 2 }],
    ["", { branch: null, staged: 0 }]
  ])("is read from %j", (output, expected) => {
    expect(parseStatus("/r", output)).toMatchObject({ root: "/r", ...expected })
  })

  it("is one short text in the status row", () => {
    const status = parseStatus("/r", "# branch.oid abc\0# branch.head main\0# branch.ab +1 -0\0? x\0")
    expect(gitBlocks(status)).toMatchObject([{ spans: [{ text: "main" }, { text: " ?1 ↑1" }] }])
    expect(gitBlocks(null)).toEqual([])
    expect(gitBlocks({ ...status, branch: null, head: "0123456789abcdef" })).toMatchObject([{
      spans: [{ text: "01234567" }, {}]
    }])
  })
})
