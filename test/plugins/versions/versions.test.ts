/** Versions of plugins, from the coordinator to the person. */
import { makePresentation, Plugin } from "@bezel/core/host"
import { mismatchTexts } from "@bezel/core/rpc"
import { RemoteService } from "@bezel/core/service"
import { testCoordinator, testSessionHost } from "@bezel/core/testing"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { testTerminal } from "../../tui/memory-terminal.ts"

class Ping extends RemoteService.make("acme.ping")({ version: 2, methods: { ping: {} } }) {}
class OldPing extends RemoteService.make("acme.ping")({ version: 1, methods: { ping: {} } }) {}

/** One plugin in one version, whose session facet uses what its coordinator facet provides. */
const acme = (version: string, ping: typeof Ping | typeof OldPing = Ping) =>
  Plugin.define({
    id: "acme.review",
    version,
    coordinator: (ctx) => ctx.provide(ping, { ping: () => Effect.void }),
    session: (ctx) => Effect.asVoid(Effect.ignore(ctx.upstream.use(ping))),
    tui: () => Effect.void
  })

const warnings = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") lines.push(String(message))
  })
  return { lines, recorded: Effect.provide(Logger.layer([logger])) }
}

interface Versions {
  readonly coordinator?: ReturnType<typeof acme>
  readonly session: ReturnType<typeof acme>
  readonly terminal: ReturnType<typeof acme>
}

const screenOf = ({ coordinator, session, terminal }: Versions) =>
  Effect.gen(function*() {
    const above = coordinator === undefined ? undefined : yield* testCoordinator([coordinator])
    const host = yield* testSessionHost([session], above === undefined ? {} : { coordinator: above })
    const { id } = yield* host.session.create()
    const plugins = [...builtinTerminalPlugins("test"), ...Plugin.sources("tui", [terminal])]
    const connection = yield* host.connect(id, plugins.map(({ entry }) => entry))
    const presentation = yield* makePresentation({ connection, location: host.location })
    return yield* testTerminal({ presentation, plugins })
  })

const flat = (text: string) => text.replace(/\s+/g, " ")

describe("a plugin whose versions differ", () => {
  it.live("between terminal and session host is told to the person, and in the logs of both", () =>
    Effect.gen(function*() {
      const { lines, recorded } = warnings()
      yield* Effect.gen(function*() {
        const screen = yield* screenOf({ session: acme("1.0.0"), terminal: acme("2.0.0") })
        yield* screen.until(/acme\.review has/)
        expect(flat(yield* screen.text)).toContain(
          "Plugin acme.review has version 2.0.0 here and 1.0.0 on the side of the session's host: restart both, or " +
            "install one version."
        )
      }).pipe(recorded)
      expect(lines.filter((line) => line.includes("acme.review"))).toHaveLength(2)
    }).pipe(Effect.scoped))

  it.live("is not told of where they are the same", () =>
    Effect.gen(function*() {
      const screen = yield* screenOf({
        coordinator: acme("1.0.0"),
        session: acme("1.0.0"),
        terminal: acme("1.0.0")
      })
      yield* screen.until(/bezel-test-/)
      expect(yield* screen.text).not.toContain("acme.review")
    }).pipe(Effect.scoped))

  it.live("between session host and coordinator is told to the person in front of the terminal, with what to do", () =>
    Effect.gen(function*() {
      const screen = yield* screenOf({
        coordinator: acme("3.0.0"),
        session: acme("2.0.0"),
        terminal: acme("2.0.0")
      })
      yield* screen.until(/Session's host: Plugin/)
      expect(flat(yield* screen.text)).toContain(
        "Session's host: Plugin acme.review has version 2.0.0 here and 3.0.0 on the side of the coordinator: restart " +
          "both, or install one version."
      )
    }).pipe(Effect.scoped))

  it.live("is told by the coordinator too, naming the host", () =>
    Effect.gen(function*() {
      const { lines, recorded } = warnings()
      const host = yield* Effect.gen(function*() {
        const coordinator = yield* testCoordinator([acme("3.0.0")])
        const host = yield* testSessionHost([acme("2.0.0")], { coordinator })
        yield* (yield* host.connect()).catalogue
        return host
      }).pipe(recorded)
      expect(lines).toContain(
        `Plugin acme.review has version 3.0.0 here and 2.0.0 on the side of the client "the session host of ` +
          `${host.location.directory}": restart both, or install one version.`
      )
    }).pipe(Effect.scoped))
})

describe("plugins of a program that was updated on one side", () => {
  it("are told in one sentence for each pair of versions, however many they are", () => {
    const differing = (id: string, here: string, there: string) => ({ kind: "plugin" as const, id, here, there })
    expect(mismatchTexts([
      ...["a", "b", "c", "d", "e", "f"].map((id) => differing(`bezel.${id}`, "0.2.0", "0.1.0")),
      differing("acme.x", "1", "2")
    ], "the server")).toEqual([
      "Plugins bezel.a, bezel.b, bezel.c and 3 more have version 0.2.0 here and 0.1.0 on the side of the server: restart " +
      "both, or install one version.",
      "Plugin acme.x has version 1 here and 2 on the side of the server: restart both, or install one version."
    ])
  })
})

describe("a contract whose versions differ", () => {
  it.live("between session host and coordinator is told to the person, and what fits of it goes on", () =>
    Effect.gen(function*() {
      const screen = yield* screenOf({
        coordinator: acme("1.0.0", Ping),
        session: acme("1.0.0", OldPing),
        terminal: acme("1.0.0")
      })
      yield* screen.until(/contract of service acme\.ping/)
      expect(flat(yield* screen.text)).toContain(
        "The contract of service acme.ping has version 1 here and 2 on the side of the coordinator: update the older side."
      )
    }).pipe(Effect.scoped))
})
