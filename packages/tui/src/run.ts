/**
 * `runTerminal`: the terminal host from start to end.
 *
 * Takes the terminal, boots the terminal facets of the manifest over the presentation half of a connection, shows the first
 * screen and completes when the person quits or the process is told to stop. The terminal is restored before anything else
 * is closed, on every way out. pi-tui is loaded here and not before, so that a command without a screen does not pay for it.
 */
import type { PresentationHalf, PresentationItem } from "@bezel/core/host"
import { type HostFailed, Kernel, type PluginFailure, type PluginSource, type Registered } from "@bezel/core/kernel"
import type { Terminal } from "@earendil-works/pi-tui"
import * as Effect from "effect/Effect"
import type { TuiContext } from "./context.ts"
import type { TerminalEnd } from "./host/facilities.ts"
import type { FullScreenOptions } from "./host/full-screen.ts"
import type { TerminalItem } from "./host/registry.ts"

export interface RunTerminalOptions<Item = PresentationItem> {
  /** What `makePresentation` gives for the connection. */
  readonly presentation: PresentationHalf<Item>
  /** The terminal facets, in manifest order. */
  readonly plugins: ReadonlyArray<PluginSource<TuiContext>>
  /** Id of the screen to begin with; default `chat`. */
  readonly screen?: string
  /** The whole terminal, which shows what was before once this ends; default: its main screen and its own history. */
  readonly fullScreen?: FullScreenOptions | null
  /** Id of the theme; default `terminal`. */
  readonly theme?: string
  /** Keys by command from the settings: `{ "ctrl+t": "thinking.cycle" }`. They win over what facets bind. */
  readonly keybindings?: { readonly [key: string]: string }
  /** Shown when the first screen is there: what a person should know of how everything started. */
  readonly warnings?: ReadonlyArray<string>
  /** Default: this process's terminal. */
  readonly terminal?: Terminal
  /** Told of each plugin that did not start; the person sees it too. */
  readonly report?: (failure: PluginFailure) => Effect.Effect<void>
}

const isTerminalItem = <Item>(registered: Registered<Item | TerminalItem>): registered is Registered<TerminalItem> =>
  typeof registered.item === "object" && registered.item !== null && "terminal" in registered.item

const isOther = <Item>(registered: Registered<Item | TerminalItem>): registered is Registered<Item> =>
  !isTerminalItem(registered)

/**
 * Runs the terminal host until it ends. Fails with `HostFailed` if a required facet fails, with the terminal restored.
 * Interrupting it restores the terminal too.
 */
export const runTerminal = <Item>(options: RunTerminalOptions<Item>): Effect.Effect<TerminalEnd, HostFailed> =>
  Effect.scoped(Effect.gen(function*() {
    const { makeTerminalHost } = yield* Effect.promise(() => import("./host/facilities.ts"))
    const host = yield* makeTerminalHost({
      ...(options.terminal === undefined ? {} : { terminal: options.terminal }),
      ...(options.theme === undefined ? {} : { theme: options.theme }),
      fullScreen: options.fullScreen ?? null,
      keybindings: options.keybindings ?? {}
    })
    const first = options.screen ?? "chat"
    let isOpen = false
    const boot = Kernel.make<TuiContext, Item | TerminalItem>({
      host: "tui",
      plugins: options.plugins,
      makeContext: (facet, kernel) => ({
        ...options.presentation.makeContext(facet, kernel),
        ...host.facilities(facet)
      }),
      bind: {
        check: (current, plugins) => options.presentation.check(current.filter(isOther), plugins),
        dependents: (current, plugins) => options.presentation.dependents?.(current.filter(isOther), plugins) ?? [],
        apply: (change) =>
          Effect.gen(function*() {
            const presented = options.presentation.apply({
              current: change.current.filter(isOther),
              added: change.added.filter(isOther),
              removed: change.removed.filter(isOther)
            })
            const shown = host.apply(change.current.filter(isTerminalItem))
            if (isOpen) return yield* Effect.andThen(presented, shown)
            // The screen stands before the session comes to it, which keeps the process busy when it is a long one.
            yield* shown
            isOpen = yield* host.show(first)
            yield* host.draw
            yield* presented
          })
      },
      report: (failure) =>
        Effect.andThen(
          host.notify(failure.message, "error"),
          options.report?.(failure) ?? Effect.logWarning(failure.message, failure.cause)
        )
    })
    return yield* Effect.raceFirst(
      host.ended,
      Effect.andThen(
        boot,
        Effect.gen(function*() {
          if (!isOpen && !(yield* host.show(first))) {
            yield* host.notify(`No plugin provides the screen "${first}". Press ctrl+c to leave.`, "error")
          }
          for (const warning of [...options.warnings ?? [], ...host.unknownNames()]) {
            yield* host.notify(warning, "warning")
          }
          return yield* host.ended
        })
      )
    ).pipe(Effect.ensuring(host.restore))
  }))
