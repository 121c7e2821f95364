/**
 * What terminal facets contribute, as types: commands, key bindings, renderers, slots, screens and themes.
 *
 * Every registration belongs to the facet's scope and is removed with it; the `Registration` that it returns removes it
 * earlier, any number of times. What is registered during setup is visible to others only once the host has bound all
 * facets. When two facets register one key, the later in manifest order is used and `list` tells whom it hides; when it
 * goes, the earlier one is back.
 */
import type { Registration, ViewEntry, ViewToolStatus } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Block, Span, SpanStyle, ThemeColor } from "./block.ts"

/** Who contributed something, and whose contribution under the same key it hides. */
export interface Contributed<A> {
  readonly key: string
  readonly value: A
  readonly plugin: string
  readonly hides: ReadonlyArray<string>
}

/** A keyed registry as a facet sees it. */
export interface ContributionRegistry<A> {
  readonly register: (key: string, value: A) => Effect.Effect<Registration>
  readonly list: Effect.Effect<ReadonlyArray<Contributed<A>>>
}

export interface Command {
  /** One line for help and menus. */
  readonly description: string
  /** Name after `/` in the editor; without it the command is for key bindings and other facets only. */
  readonly slash?: string
  /** What follows the slash name, for help: `[PROVIDER/MODEL]`. */
  readonly argument?: string
  /** `argument` is what was typed after the slash name, trimmed. A failure is shown to the person in one line. */
  readonly run: (argument: string) => Effect.Effect<void, unknown>
}

export interface Commands extends ContributionRegistry<Command> {
  /** Runs a command by id; `false` when nobody registered it. */
  readonly run: (id: string, argument?: string) => Effect.Effect<boolean>
}

export interface Keybinding {
  /** Id of the command to run. */
  readonly command: string
  readonly argument?: string
  /** The binding applies only while this holds; asked for at each key press, so it must be quick. */
  readonly when?: () => boolean
}

export interface Keybindings {
  /** `key` as in settings: `ctrl+t`, `escape`, `alt+enter`. Several bindings of a key are tried from the newest. */
  readonly bind: (key: string, binding: Keybinding) => Effect.Effect<Registration>
  readonly list: Effect.Effect<
    ReadonlyArray<{ readonly key: string; readonly plugin: string; readonly binding: Keybinding }>
  >
}

/** A tool call as it is shown, from the moment the model began to write it until long after its result. */
export interface ToolCallView {
  readonly callID: string
  readonly name: string
  /** Parsed arguments, or `null` while the model still writes them or when they did not parse. */
  readonly args: JsonValue
  /** The arguments as the model wrote them so far. */
  readonly argsText: string
  readonly status: ViewToolStatus | "writing"
  /** Tail of what the tool has streamed, or the text of its result. */
  readonly output: string
  readonly progress: JsonValue
  readonly details: JsonValue
  readonly isError: boolean
}

export interface ToolRenderOptions {
  /** The person asked to see everything. */
  readonly expanded: boolean
}

export interface ToolRenderer {
  /** What stands after the status mark and the tool's name, on one row. */
  readonly title?: (call: ToolCallView) => ReadonlyArray<Span>
  /** What stands below; by default the tail of the output. */
  readonly body?: (call: ToolCallView, options: ToolRenderOptions) => ReadonlyArray<Block>
}

/** Shows a transcript entry of a kind. An entry whose renderer fails is shown by the default renderer. */
export type EntryRenderer = (entry: ViewEntry) => ReadonlyArray<Block>

/** Named places of screens that other facets may fill: `chat.header`, `chat.aboveEditor`, `chat.status`, `chat.footer`. */
export interface SlotContent {
  /** Position among the contents of one slot, ascending. */
  readonly order: number
  /** Asked for at each frame; must be quick and give the same blocks while nothing changed. */
  readonly render: () => ReadonlyArray<Block>
}

export interface Slots {
  readonly add: (slot: string, content: SlotContent) => Effect.Effect<Registration>
  /** The blocks of a slot now, for a screen to place. */
  readonly render: (slot: string) => ReadonlyArray<Block>
}

/** What a screen shows while it is open. */
export interface ScreenContent {
  /** The part that grows and scrolls away into the terminal's history. Asked for at each frame. */
  readonly body: () => ReadonlyArray<Block>
  /** Stands for so many parts of a long body, from its top, that are not written into the terminal's history. */
  readonly omitted?: (parts: number) => ReadonlyArray<Block>
  /** The part at the bottom that stays: above the editor. */
  readonly above?: () => ReadonlyArray<Block>
  /** Below the editor. */
  readonly below?: () => ReadonlyArray<Block>
  /** Takes the keys while no dialog is open. */
  readonly editor?: EditorHandle
}

export interface Screen {
  readonly title: string
  /** Opens the screen in a scope that ends when another screen is shown or the host stops. */
  readonly open: Effect.Effect<ScreenContent, unknown, Scope.Scope>
}

export interface Screens extends ContributionRegistry<Screen> {
  /** Shows a screen instead of the current one; `false` when nobody registered it. */
  readonly show: (id: string) => Effect.Effect<boolean>
}

/** Colours by role: an index of the terminal's palette (0-255), or `#rrggbb`. Roles left out keep the terminal's own. */
export interface Theme {
  readonly colors: { readonly [role in ThemeColor]?: number | string }
}

export interface Themes extends ContributionRegistry<Theme> {
  /** Of all that can be selected, those that the terminal brings along first. */
  readonly names: Effect.Effect<ReadonlyArray<string>>
  readonly current: Effect.Effect<string>
  /** `false` when nobody registered it. */
  readonly select: (id: string) => Effect.Effect<boolean>
}

/** A multi-line text editor that a screen owns. */
export interface EditorHandle {
  readonly text: () => string
  readonly setText: (text: string) => void
  /** Adds to what the up arrow brings back. */
  readonly addToHistory: (text: string) => void
  /** True while a completion menu is open: Escape then closes the menu. */
  readonly completing: () => boolean
  readonly setBorder: (style: SpanStyle) => void
}

export interface EditorOptions {
  /** Runs when the person submits; the text has pasted blocks in full. A failure is shown in one line. */
  readonly onSubmit: (text: string) => Effect.Effect<void, unknown>
  /** Offers `/` commands; default true. */
  readonly slashCommands?: boolean
  /** What goes into the text instead of what was pasted. Must be quick. */
  readonly onPaste?: (pasted: string) => string
  /** What a word that begins with `@` may become, best first; without the `@`. A failure offers nothing. */
  readonly mentions?: (
    word: string
  ) => Effect.Effect<ReadonlyArray<{ readonly value: string; readonly description?: string }>, unknown>
}

export interface SelectOption<A> {
  readonly value: A
  readonly label: string
  readonly description?: string
}

/** Where to scroll; rows above 0 are towards the end. */
export type ScrollTarget = "pageUp" | "pageDown" | "top" | "end" | { readonly rows: number }

/** What a key does with the option that is chosen, instead of giving it: it gives another value. */
export interface SelectAction<A> {
  readonly key: string
  readonly label: string
  readonly value: (chosen: A) => A
}

/**
 * Dialogs and other facilities. A dialog waits its turn behind those already open, takes the keys while it is shown and
 * closes when the effect that asked is interrupted. `null` means that the person dismissed it.
 */
export interface Ui {
  readonly select: <A>(options: {
    readonly title: string
    readonly body?: ReadonlyArray<Block>
    readonly options: ReadonlyArray<SelectOption<A>>
    /** What is typed narrows the list to options that have each word of it. */
    readonly search?: boolean
    readonly actions?: ReadonlyArray<SelectAction<A>>
  }) => Effect.Effect<A | null>
  readonly input: (options: {
    readonly title: string
    readonly body?: ReadonlyArray<Block>
    readonly placeholder?: string
    /** What is typed or pasted is not shown, only how much of it there is. */
    readonly secret?: boolean
    /** The person waits for it, so that it takes keys at once, although what asks does not run within their command. */
    readonly expected?: boolean
  }) => Effect.Effect<string | null>
  /** Dismissing is a no. */
  readonly confirm: (options: {
    readonly title: string
    readonly body?: ReadonlyArray<Block>
    readonly yes?: string
    readonly no?: string
  }) => Effect.Effect<boolean>
  /** One line for the person, shown for a while. */
  readonly notify: (message: string, level?: "info" | "warning" | "error") => Effect.Effect<void>
  /**
   * Draws attention from outside of the screen: a message for the terminal to show (OSC 9), or, with `null`, its bell. Nothing
   * happens where the terminal knows neither.
   */
  readonly attention: (message: string | null) => Effect.Effect<void>
  /**
   * Puts a text into the person's clipboard, through their terminal (OSC 52). Only within what the person has asked for, such
   * as a command; `false` elsewhere, and where the text is longer than terminals take. Whether the terminal did it, nobody
   * can know.
   */
  readonly copy: (text: string) => Effect.Effect<boolean>
  /** Gives the terminal to another program while the effect runs, and takes it again however that ends. */
  readonly outside: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** A floating panel over the screen, for the life of the scope; any of `closeKeys` (default: escape) closes it. */
  readonly overlay: (options: {
    readonly title: string
    readonly body: () => ReadonlyArray<Block>
    readonly closeKeys?: ReadonlyArray<string>
  }) => Effect.Effect<{ readonly closed: Effect.Effect<void> }, never, Scope.Scope>
  readonly editor: (options: EditorOptions) => Effect.Effect<EditorHandle, never, Scope.Scope>
  /** Gives the keys back to the current screen's editor. */
  readonly focus: Effect.Effect<void>
  /** Tells the host that something shown has changed; frames are coalesced. */
  readonly redraw: () => void
  /**
   * Tells the host that another document is shown from now on, such as another session: it begins below the one before, which
   * stays in the terminal's history. What changes in a document is for `redraw`.
   */
  readonly redrawAll: () => void
  /** Scrolls what the screen shows; `null` where it scrolls away into the terminal's own history. */
  readonly scroll: ((to: ScrollTarget) => void) | null
  /** Asks the host to end: the terminal is restored and `runTerminal` completes. */
  readonly quit: Effect.Effect<void>
  /** Columns and rows now. */
  readonly size: () => { readonly columns: number; readonly rows: number }
}
