/**
 * The facilities of the terminal, as facets get them, over the registries, the dialogs and the stage.
 *
 *     terminal input → dialog, if one is open → overlay → key bindings → the screen's editor
 *
 * On the full screen the mouse's wheel, and in a dialog the keys for pages, go to the viewport first.
 *
 * Everything that a facet contributed runs guarded: a render function that throws becomes a line that names its plugin, a
 * command that fails becomes a notice. What a contribution runs belongs to the facet's scope and ends with it.
 */
import type { Registration } from "@bezel/core/harness"
import { causeMessage, type FacetScope, type Registered } from "@bezel/core/kernel"
import type { Terminal } from "@earendil-works/pi-tui"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Scope from "effect/Scope"
import type { Block } from "../block.ts"
import { toolCard } from "../card.ts"
import type { TerminalFacilities } from "../context.ts"
import type { EditorHandle, EditorOptions, ScreenContent, Theme } from "../contributions.ts"
import { type Layout, makeLayout } from "../layout.ts"
import { darkTheme, lightTheme, makePainter, type Painter, terminalTheme } from "../paint.ts"
import { AskedByPerson, makeDialogs } from "./dialogs.ts"
import { type HostEditor, makeEditor } from "./editor.ts"
import { guarded, makeFrame } from "./frame.ts"
import type { FullScreenOptions } from "./full-screen.ts"
import { boundKeys, pressed } from "./keys.ts"
import { isSaid, makeNotices } from "./notices.ts"
import { makePanel, type Panel } from "./panel.ts"
import { makeRegistries, type RegistryName, type TerminalItem, type Visible } from "./registry.ts"
import { openStage, type StopSignal } from "./stage.ts"
import { unknownNames } from "./unknown-names.ts"
import { makeViewport } from "./viewport.ts"

/** Why the terminal host ended. */
export type TerminalEnd = { readonly type: "quit" } | { readonly type: "signal"; readonly signal: StopSignal }

export interface TerminalOptions {
  /** Default: this process's terminal. */
  readonly terminal?: Terminal
  /** Default: the main screen. */
  readonly fullScreen?: FullScreenOptions | null
  /** Id of the theme to begin with; default `terminal`. */
  readonly theme?: string
  /** Commands by key, before what facets bind. */
  readonly keybindings?: { readonly [key: string]: string }
  /** Default: by the environment (`NO_COLOR`). */
  readonly color?: boolean
}

/** The terminal host without its plugins: what a kernel needs to make facets' contexts, and what the host itself does. */
export interface TerminalHost {
  /** Facilities that belong to one facet. */
  readonly facilities: (facet: Pick<FacetScope<TerminalItem>, "entry" | "scope" | "register">) => TerminalFacilities
  /** Makes a set of registrations visible, in manifest order. */
  readonly apply: (items: ReadonlyArray<Registered<TerminalItem>>) => Effect.Effect<void>
  readonly notify: TerminalFacilities["ui"]["notify"]
  /** What the options name that nobody has registered: the theme, commands of keys. One sentence each. */
  readonly unknownNames: () => ReadonlyArray<string>
  /** Shows a screen; `false` when nobody registered it. */
  readonly show: (id: string) => Effect.Effect<boolean>
  /** Draws what there is now, without waiting for anything. */
  readonly draw: Effect.Effect<void>
  /** Completes when the person quits or the process is told to stop; the terminal is restored by then. */
  readonly ended: Effect.Effect<TerminalEnd>
  /** Gives the terminal back now; idempotent. Closing the scope does the same. */
  readonly restore: Effect.Effect<void>
  /** Frames that had to redraw everything, the first included. For tests and diagnosis. */
  readonly fullRedraws: () => number
}

interface Overlay {
  readonly panel: Panel
  readonly closeKeys: ReadonlyArray<string>
  readonly close: () => void
}

interface OpenScreen {
  readonly id: string
  readonly plugin: string
  readonly content: ScreenContent
}

const builtinThemes: { readonly [id: string]: Theme } = { terminal: terminalTheme, dark: darkTheme, light: lightTheme }

export const makeTerminalHost = (options: TerminalOptions): Effect.Effect<TerminalHost, never, Scope.Scope> =>
  Effect.gen(function*() {
    const fork = yield* FiberSet.makeRuntime<never>()
    const end = yield* Deferred.make<TerminalEnd>()
    const useColor = options.color ?? (process.env["NO_COLOR"] ?? "") === ""

    const viewport = (options.fullScreen ?? null) === null ? null : makeViewport()
    let themeID = options.theme ?? "terminal"
    let painter: Painter = makePainter(terminalTheme, useColor)
    // A window over the transcript would cut an image at its edge.
    const images = { images: viewport === null }
    let layout: Layout = makeLayout(painter, images)
    let screen: OpenScreen | null = null
    let screenScope: Scope.Closeable | null = null
    let overlays: ReadonlyArray<Overlay> = []
    let ending = false
    const editors = new WeakMap<EditorHandle, HostEditor>()
    let redraw = (): void => {}
    let redrawAll = (): void => {}

    const currentEditor = (): HostEditor | null => {
      const handle = screen?.content.editor
      return handle === undefined ? null : editors.get(handle) ?? null
    }
    const changed = (): void => {
      currentEditor()?.setFocused(!dialogs.isOpen() && overlays.length === 0)
      redraw()
    }
    const registries = makeRegistries(() => {
      repaint()
      changed()
    })
    const dialogs = makeDialogs(changed, () => performance.now())

    const themeNames = () => [
      ...new Set([...Object.keys(builtinThemes), ...registries.list("theme").map(({ key }) => key)])
    ]
    const themeOf = (id: string): Theme | undefined => registries.find("theme", id)?.value ?? builtinThemes[id]
    let painted: Theme | undefined
    const repaint = (): void => {
      const theme = themeOf(themeID) ?? terminalTheme
      if (theme === painted) return
      painted = theme
      painter = makePainter(theme, useColor)
      layout = makeLayout(painter, images)
      redraw()
    }
    repaint()

    const { blocks: notices, notify } = makeNotices(changed, fork)

    /** Runs what a facet contributed, in its scope; a failure becomes a notice, and what stands before it is `what`'s to say. */
    const runOwned = (
      scope: Scope.Scope,
      what: (cause: Cause.Cause<unknown>) => string,
      effect: Effect.Effect<void, unknown>
    ): Effect.Effect<void> =>
      effect.pipe(
        Effect.provideService(AskedByPerson, true),
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause) ? Effect.void : notify(`${what(cause)}${causeMessage(cause)}`, "error")
        ),
        // At once: a key that comes with the next one in the same read must find what this one has done.
        Effect.forkIn(scope, { startImmediately: true }),
        Effect.asVoid
      )

    /** For callers that wait for a promise: what a facet's effect gives, nothing if it fails or ends with its facet. */
    const promised = <A>(scope: Scope.Scope, effect: Effect.Effect<ReadonlyArray<A>, unknown>) =>
      new Promise<ReadonlyArray<A>>((resolve) => {
        fork(
          effect.pipe(
            Effect.onExit((exit) => Effect.sync(() => resolve(Exit.isSuccess(exit) ? exit.value : []))),
            Effect.ignoreCause,
            Effect.forkIn(scope)
          )
        )
      })

    const runCommand = (id: string, argument: string): Effect.Effect<boolean> =>
      Effect.suspend(() => {
        const command = registries.find("command", id)
        if (command === undefined) return Effect.succeed(false)
        // Which command it was the person knows; whose fault it is they need where something is broken.
        const what = (cause: Cause.Cause<unknown>) => isSaid(cause) ? "" : `${id}: `
        return Effect.as(runOwned(command.scope, what, Effect.suspend(() => command.value.run(argument))), true)
      })

    const slashCommands = () => registries.list("command").filter((command) => command.value.slash !== undefined)

    /** `true` when the text was a command, or should have been one. */
    const runSlash = (submitted: string, editor: HostEditor): boolean => {
      const match = /^\/(\S*)(?:\s+([\s\S]*))?$/.exec(submitted)
      if (match === null) return false
      const name = match[1] ?? ""
      const command = slashCommands().find((candidate) => candidate.value.slash === name)
      if (command !== undefined) {
        editor.addToHistory(submitted)
        fork(runCommand(command.key, (match[2] ?? "").trim()))
        return true
      }
      // A path at the beginning of a message is not a command.
      if (name.includes("/") || name === "") return false
      editor.setText(submitted)
      fork(notify(`There is no command /${name}. /help lists them.`, "warning"))
      return true
    }

    const onKey = (sequence: string): void => {
      if (pressed(sequence, "ctrl+z")) return stage.suspend()
      if (viewport?.mouse(sequence) === true) return changed()
      if (dialogs.isOpen()) return viewport?.key(sequence) === true ? changed() : dialogs.key(sequence)
      const overlay = overlays.at(-1)
      if (overlay !== undefined) {
        if (overlay.closeKeys.some((key) => pressed(sequence, key))) overlay.close()
        else overlay.panel.key(sequence)
        changed()
        return
      }
      dialogs.typed()
      for (const [key, command] of Object.entries(options.keybindings ?? {})) {
        if (pressed(sequence, key)) return runBound(key, command, "")
      }
      for (const binding of registries.all("keybinding").toReversed()) {
        if (!pressed(sequence, binding.key)) continue
        if (!holds(binding)) continue
        return runBound(binding.key, binding.value.command, binding.value.argument ?? "")
      }
      const editor = currentEditor()
      if (editor !== null) return editor.key(sequence)
      // Nothing else takes keys, so there must be a way out.
      if (pressed(sequence, "ctrl+c") || pressed(sequence, "ctrl+d")) quit()
    }

    const runBound = (key: string, command: string, argument: string): void => {
      fork(
        Effect.flatMap(
          runCommand(command, argument),
          (found) => found ? Effect.void : notify(`${key} is bound to ${command}, which does not exist.`, "warning")
        )
      )
    }

    const holds = (binding: Visible<{ readonly when?: () => boolean }>): boolean => {
      try {
        return binding.value.when?.() ?? true
      } catch {
        return false
      }
    }

    const frame = makeFrame({
      layout: () => layout,
      screen: () => screen,
      editor: currentEditor,
      dialogs,
      notices,
      panel: () => overlays.at(-1)?.panel ?? null,
      height: () => stage.size().rows,
      viewport,
      ending: () => ending
    })

    const stage = yield* openStage({
      ...(options.terminal === undefined ? {} : { terminal: options.terminal }),
      fullScreen: options.fullScreen ?? null,
      root: frame,
      input: {
        key: onKey,
        paste: (pasted) => {
          if (dialogs.isOpen()) return dialogs.paste(pasted)
          if (overlays.length > 0) return
          dialogs.typed()
          currentEditor()?.paste(pasted)
        }
      },
      onSignal: (signal) => {
        Deferred.doneUnsafe(end, Exit.succeed({ type: "signal", signal }))
      },
      beforeLastFrame: () => {
        ending = true
      },
      onConsole: (level, line) => {
        fork(notify(line, level === "error" ? "error" : level === "warn" ? "warning" : "info"))
      }
    })
    redraw = () => stage.tui.requestRender()
    redrawAll = () => stage.tui.beginAnother()

    const restore = Effect.sync(stage.restore)
    const quit = (): void => {
      fork(Effect.andThen(
        Effect.promise(stage.drain),
        Effect.sync(() => {
          stage.restore()
          Deferred.doneUnsafe(end, Exit.succeed({ type: "quit" }))
        })
      ))
    }

    const show = (id: string): Effect.Effect<boolean> =>
      Effect.suspend(() => {
        const wanted = registries.find("screen", id)
        if (wanted === undefined) return Effect.succeed(false)
        return Effect.gen(function*() {
          const scope = yield* Scope.fork(wanted.scope)
          const previous = screenScope
          screenScope = scope
          yield* Scope.addFinalizer(
            scope,
            Effect.sync(() => {
              if (screenScope !== scope) return
              screenScope = null
              screen = null
              changed()
            })
          )
          const content = yield* Effect.exit(Scope.provide(wanted.value.open, scope))
          if (Exit.isFailure(content)) {
            screenScope = previous
            yield* Scope.close(scope, content)
            yield* notify(`The screen ${wanted.value.title} did not open: ${causeMessage(content.cause)}`, "error")
            return true
          }
          screen = { id, plugin: wanted.plugin, content: content.value }
          if (previous !== null) {
            yield* Scope.close(previous, Exit.void)
            redrawAll()
          }
          changed()
          return true
        }).pipe(Effect.uninterruptible)
      })

    const makeFacetEditor = (scope: Scope.Scope, given: EditorOptions): Effect.Effect<EditorHandle> =>
      Effect.sync(() => {
        const { mentions } = given
        const editor: HostEditor = makeEditor({
          tui: stage.tui,
          painter: () => painter,
          slashCommands: given.slashCommands === false ? null : () =>
            slashCommands().map(({ value }) => ({
              name: value.slash ?? "",
              description: value.description,
              argument: value.argument ?? null
            })),
          mentions: mentions === undefined ? null : (word) => promised(scope, Effect.suspend(() => mentions(word))),
          onPaste: given.onPaste ?? ((pasted) => pasted),
          onSubmit: (submitted) => {
            if (submitted === "") return
            if (given.slashCommands !== false && runSlash(submitted, editor)) return
            editor.addToHistory(submitted)
            const back = Effect.sync(() => {
              if (editor.text() === "") editor.setText(submitted)
            })
            fork(
              runOwned(
                scope,
                () => "Not sent: ",
                Effect.suspend(() => given.onSubmit(submitted)).pipe(Effect.onError(() => back))
              )
            )
          },
          changed
        })
        editors.set(editor, editor)
        return editor
      })

    const openOverlay = (
      title: string,
      body: () => ReadonlyArray<Block>,
      closeKeys: ReadonlyArray<string>,
      plugin: string
    ) =>
      Effect.gen(function*() {
        const closed = yield* Deferred.make<void>()
        const overlay: Overlay = {
          panel: makePanel(title, () => guarded(plugin, "an overlay", body), closeKeys),
          closeKeys,
          close: () => {
            if (!overlays.includes(overlay)) return
            overlays = overlays.filter((other) => other !== overlay)
            changed()
            Deferred.doneUnsafe(closed, Exit.void)
          }
        }
        overlays = [...overlays, overlay]
        changed()
        yield* Effect.addFinalizer(() => Effect.sync(overlay.close))
        return { closed: Deferred.await(closed) }
      })

    const facilities: TerminalHost["facilities"] = ({ entry, register, scope }) => {
      const add = (item: TerminalItem): Effect.Effect<Registration> =>
        Effect.map(register(item), (unregister) => ({ unregister }))
      const list = <N extends RegistryName>(name: N) => Effect.sync(() => registries.list(name))
      return {
        ui: {
          select: dialogs.select,
          input: dialogs.input,
          confirm: dialogs.confirm,
          notify,
          attention: (message) => Effect.sync(() => stage.attention(message)),
          copy: (words) => Effect.map(AskedByPerson, (asked) => asked && stage.copy(words)),
          outside: (effect) => Effect.acquireUseRelease(Effect.sync(stage.handOver), () => effect, Effect.sync),
          overlay: (given) =>
            openOverlay(given.title, given.body, [...(given.closeKeys ?? ["escape"]), "ctrl+c"], entry.id),
          editor: (given) => makeFacetEditor(scope, given),
          focus: Effect.sync(() => {
            for (const overlay of overlays) overlay.close()
          }),
          redraw: changed,
          redrawAll: () => redrawAll(),
          scroll: viewport === null ? null : (to) => {
            viewport.scroll(to)
            changed()
          },
          quit: Effect.sync(quit),
          size: stage.size
        },
        commands: {
          register: (key, value) => add({ terminal: "command", key, value, scope }),
          list: list("command"),
          run: (id, argument = "") => runCommand(id, argument)
        },
        keybindings: {
          bind: (key, value) => add({ terminal: "keybinding", key, value, scope }),
          list: Effect.sync(() => boundKeys(options.keybindings ?? {}, registries.all("keybinding")))
        },
        toolRenderers: {
          register: (key, value) => add({ terminal: "toolRenderer", key, value, scope }),
          list: list("toolRenderer"),
          render: (call, how) => {
            const found = registries.find("toolRenderer", call.name)
            if (found !== undefined) {
              try {
                return toolCard(call, found.value, how)
              } catch {
                // The default card says as much about the call, and a broken renderer hides nothing.
              }
            }
            return toolCard(call, null, how)
          }
        },
        entryRenderers: {
          register: (key, value) => add({ terminal: "entryRenderer", key, value, scope }),
          list: list("entryRenderer"),
          render: (shown) => {
            const found = registries.find("entryRenderer", shown.kind)
            if (found === undefined) return null
            try {
              return found.value(shown)
            } catch {
              return null
            }
          }
        },
        slots: {
          add: (slot, value) => add({ terminal: "slot", key: slot, value, scope }),
          render: (slot) =>
            registries.all("slot")
              .filter((content) => content.key === slot)
              .sort((a, b) => a.value.order - b.value.order)
              .flatMap((content) => guarded(content.plugin, `slot ${slot}`, content.value.render))
        },
        screens: {
          register: (key, value) => add({ terminal: "screen", key, value, scope }),
          list: list("screen"),
          show
        },
        themes: {
          register: (key, value) => add({ terminal: "theme", key, value, scope }),
          list: list("theme"),
          names: Effect.sync(themeNames),
          current: Effect.sync(() => themeID),
          select: (id) =>
            Effect.sync(() => {
              if (themeOf(id) === undefined) return false
              themeID = id
              repaint()
              changed()
              return true
            })
        }
      }
    }

    return {
      facilities,
      apply: (items) => Effect.sync(() => registries.apply(items)),
      notify,
      unknownNames: () =>
        unknownNames({
          theme: themeID,
          themes: themeNames(),
          keybindings: options.keybindings ?? {},
          isCommand: (id) => registries.find("command", id) !== undefined
        }),
      show,
      draw: Effect.sync(() => stage.tui.renderNow()),
      ended: Deferred.await(end),
      restore,
      fullRedraws: () => stage.tui.fullRedraws
    }
  })
