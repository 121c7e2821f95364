/** Plugins from outside that take part in every kind of host, and which of them a coordinator loads. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Home, makeHome } from "./command.ts"
import { hostsOf, startServer } from "./serve-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const contract = `
import * as Schema from "effect/Schema"
import { RemoteService } from "@bezel/core"
export const Fleet = RemoteService.make("acme.fleet")({ state: { secret: Schema.String, sessions: Schema.Finite } })
export const Shown = RemoteService.make("acme.shown")({ state: { sessions: Schema.Finite } })
`

/** The coordinator counts sessions, the session host passes the number on, the terminal shows it. */
const packageOf = (home: Home) => {
  const folder = ".config/bezel/plugins/node_modules/bezel-plugin-fleet"
  home.write(
    `${folder}/package.json`,
    JSON.stringify({
      name: "bezel-plugin-fleet",
      version: "1.0.0",
      type: "module",
      exports: { "./coordinator": "./coordinator.js", "./session": "./session.js", "./tui": "./tui.js" }
    })
  )
  home.write(`${folder}/contract.js`, contract)

  home.write(
    `${folder}/coordinator.js`,
    `
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Fleet } from "./contract.js"
export default (ctx) => Effect.gen(function*() {
  const sessions = yield* ctx.state(Schema.Finite, -1)
  yield* ctx.provide(Fleet, { secret: yield* ctx.state(Schema.String, "of the fleet"), sessions })
  yield* ctx.onActivate(Effect.orDie(Effect.flatMap(ctx.fleet.records.list({}), (page) => sessions.set(40 + page.sessions.length))))
})`
  )
  home.write(
    `${folder}/session.js`,
    `
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Fleet, Shown } from "./contract.js"
export default (ctx) => Effect.gen(function*() {
  const fleet = yield* ctx.upstream.use(Fleet)
  const sessions = yield* ctx.state(Schema.Finite, -1)
  yield* ctx.provide(Shown, { sessions })
  yield* ctx.onActivate(Effect.forkScoped(Stream.runForEach(fleet.sessions.changes, (count) => sessions.set(count))))
})`
  )
  home.write(
    `${folder}/tui.js`,
    `
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Shown } from "./contract.js"
export default (ctx) => Effect.gen(function*() {
  const shown = yield* ctx.use(Shown)
  yield* ctx.onActivate(Effect.forkScoped(
    Stream.runForEach(Stream.filter(shown.sessions.changes, (count) => count >= 40), (count) =>
      ctx.ui.notify("the fleet has " + (count - 40) + " session(s)"))
  ))
})`
  )
}

const witness = (path: string, id: string) => `
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { Plugin } from "@bezel/core"
const note = (host) => () => Effect.sync(() => writeFileSync(${JSON.stringify(path)} + host, ""))
export default Plugin.define({ id: "${id}", coordinator: note("coordinator"), session: note("session"), tui: note("tui") })
`

describe("plugins from outside with a part for the coordinator", { timeout: 60_000 }, () => {
  it("take part in it through the package's entry point, and reach a terminal through their session part", async () => {
    const home = makeHome()
    packageOf(home)
    home.settings({ plugins: ["bezel-plugin-fleet"] })
    await home.run(["run", "hello"])
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/the fleet has [12] session\(s\)/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })

  it("are loaded there if they are the user's own, and never if a project brings them, trusted or not", async () => {
    const home = makeHome()
    const seen = (who: string, host: string) => existsSync(join(home.folder, `${who}-${host}`))
    home.write(".config/bezel/plugins/mine.mjs", witness(join(home.folder, "mine-"), "acme.mine"))
    home.write("work/.bezel/plugins/theirs.mjs", witness(join(home.folder, "theirs-"), "acme.theirs"))
    const terminal = runInTerminal(home, "bezel --trust")
    await terminal.shows(/bezel\/offline/)
    terminal.type("hello\r")
    await terminal.shows(/I am bezel\/offline/)
    terminal.type("\u0004")
    await terminal.ended
    expect(["coordinator", "session", "tui"].map((host) => seen("mine", host))).toEqual([true, true, true])
    expect(["coordinator", "session", "tui"].map((host) => seen("theirs", host))).toEqual([false, true, true])
  })

  it("are imported by each process for its own host only: the server, the session's host and the terminal", async () => {
    const home = makeHome()
    const folder = ".config/bezel/plugins/node_modules/bezel-plugin-split"
    const hosts = ["coordinator", "session", "tui"]
    home.write(
      `${folder}/package.json`,
      JSON.stringify({
        name: "bezel-plugin-split",
        version: "1.0.0",
        type: "module",
        exports: Object.fromEntries(hosts.map((host) => [`./${host}`, `./${host}.js`]))
      })
    )
    const loaded = (host: string) => join(home.folder, `loaded-${host}`)
    for (const host of hosts) {
      home.write(
        `${folder}/${host}.js`,
        `import { appendFileSync } from "node:fs"
import * as Effect from "effect/Effect"
appendFileSync(${JSON.stringify(loaded(host))}, process.pid + " ")
export default () => Effect.void`
      )
    }
    home.settings({ plugins: ["bezel-plugin-split"] })
    const server = await startServer(home)
    const session = await server.create()
    await server.prompt(session, "hello")
    const pids = (host: string) =>
      existsSync(loaded(host)) ? readFileSync(loaded(host), "utf8").trim().split(" ").map(Number) : []
    expect(pids("coordinator")).toEqual([server.first["pid"]])
    expect(pids("session")).toEqual(hostsOf(home))
    expect(pids("session")).not.toContain(server.first["pid"])
    expect(pids("tui")).toEqual([])
    server.process.kill("SIGTERM")
    await server.ended
  })

  it("can be named on the command line of a server, whose hosts load them too", async () => {
    const home = makeHome()
    const file = home.write("elsewhere/both.mjs", witness(join(home.folder, "both-"), "acme.both"))
    const server = await startServer(home, ["--set", `plugins=${JSON.stringify([file])}`])
    await server.prompt(await server.create(), "hello")
    const seen = ["coordinator", "session"].map((host) => existsSync(join(home.folder, `both-${host}`)))
    expect(seen).toEqual([true, true])
    server.process.kill("SIGTERM")
    await server.ended
  })

  it("that fail there take nothing else with them, and are named in the log", async () => {
    const home = makeHome()
    home.write(
      ".config/bezel/plugins/bad.mjs",
      `import * as Effect from "effect/Effect"
import { Plugin } from "@bezel/core"
export default Plugin.define({ id: "acme.bad", coordinator: () => Effect.fail(new Error("no fleet for me")) })`
    )
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/Plugin acme\.bad failed in the coordinator host during setup: no fleet\s+for me/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })
})
