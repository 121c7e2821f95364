/**
 * `/plugins` shows what is loaded and what failed. `/reload`: loads the code of plugins anew, in the session's host and in this terminal. Without a name it is of all plugins
 * from outside; those that are parts of the program have no code to load. What fails leaves the old code running, and the
 * person is told. A coordinator's parts change when that is started again.
 */
import { Plugins } from "@bezel/core/host/contract"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { pluginBlocks } from "./plugin-list.ts"

type Context = Pick<TuiContext, "plugins" | "reload" | "use"> & {
  readonly commands: Pick<TuiContext["commands"], "register">
  readonly ui: Pick<TuiContext["ui"], "notify" | "overlay">
}

/** What became of one host's plugins. */
interface Outcome {
  readonly plugins: ReadonlyArray<string>
  /** Why there are no others. */
  readonly error: string | null
}

const outcomeOf = (reload: Effect.Effect<ReadonlyArray<string>, { readonly message: string }>) =>
  Effect.match(reload, {
    onSuccess: (plugins): Outcome => ({ plugins, error: null }),
    onFailure: ({ message }): Outcome => ({ plugins: [], error: message })
  })

export const tui = Effect.fn("reload/tui")(function*(ctx: Context) {
  const host = yield* ctx.use(Plugins)

  const reload = (words: string) =>
    Effect.gen(function*() {
      const wanted = words.split(/\s+/).filter((word) => word !== "")
      const there = (yield* host.list()).map(({ id }) => id)
      const here = (yield* ctx.plugins).map(({ id }) => id)
      const unknown = wanted.find((id) => !there.includes(id) && !here.includes(id))
      if (unknown !== undefined) {
        const known = [...new Set([...there, ...here])].filter((id) => !id.startsWith("bezel."))
        const hint = known.length === 0 ? "no plugin is from outside" : `from outside there are ${known.join(", ")}`
        return yield* ctx.ui.notify(`There is no plugin ${unknown}; ${hint}.`, "error")
      }
      const named = (ids: ReadonlyArray<string>) => wanted.filter((id) => ids.includes(id))
      const isForBoth = wanted.length === 0
      const session = isForBoth || named(there).length > 0
        ? yield* outcomeOf(
          Effect.map(host.reload(isForBoth ? {} : { plugins: named(there) }), ({ plugins }) => plugins)
        )
        : null
      // What the session's host has refused would not fit together with what this one would load.
      const terminal = session?.error === undefined || session.error === null
        ? isForBoth || named(here).length > 0 ? yield* outcomeOf(ctx.reload(isForBoth ? undefined : named(here))) : null
        : null
      for (const error of [session?.error, terminal?.error]) {
        if (typeof error === "string") yield* ctx.ui.notify(error, "error")
      }
      const done = new Set([...session?.plugins ?? [], ...terminal?.plugins ?? []])
      if (done.size > 0) return yield* ctx.ui.notify(`Reloaded ${[...done].join(", ")}.`)
      if (session?.error ?? terminal?.error) return
      yield* ctx.ui.notify("No plugin is from outside, so there is nothing to load anew.", "warning")
    })

  yield* ctx.commands.register("plugins.show", {
    slash: "plugins",
    description: "Show the plugins, and what is wrong with those that failed",
    run: () =>
      Effect.scoped(Effect.gen(function*() {
        const session = yield* Effect.orElseSucceed(host.list(), () => null)
        const body = pluginBlocks(session, yield* ctx.plugins)
        const overlay = yield* ctx.ui.overlay({
          title: "Plugins",
          body: () => body,
          closeKeys: ["escape", "enter", "q"]
        })
        yield* overlay.closed
      }))
  })
  yield* ctx.commands.register("plugins.reload", {
    slash: "reload",
    argument: "PLUGIN",
    description: "Load the code of plugins anew, of one or of all from outside",
    run: reload
  })
})
