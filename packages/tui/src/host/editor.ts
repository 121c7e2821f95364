/**
 * The editor: pi-tui's multi-line editor behind a handle, with `/` commands and `@` mentions completed, and nothing harmful
 * shown or pasted.
 */
import {
  type AutocompleteItem,
  type AutocompleteProvider,
  type AutocompleteSuggestions,
  Editor,
  type TUI
} from "@earendil-works/pi-tui"
import type { SpanStyle } from "../block.ts"
import type { EditorHandle } from "../contributions.ts"
import type { Painter } from "../paint.ts"
import { sanitizeLine } from "../sanitize.ts"
import { fit } from "../width.ts"

export interface SlashCommand {
  readonly name: string
  readonly description: string
  readonly argument: string | null
}

export interface HostEditor extends EditorHandle {
  readonly render: (width: number) => ReadonlyArray<string>
  readonly key: (sequence: string) => void
  readonly paste: (text: string) => void
  readonly setFocused: (focused: boolean) => void
  readonly invalidate: () => void
}

/** Control characters that a paste may not bring into the text. */
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ud800-\udfff]/gu

/** What the editor shows of characters that would act on the terminal; one column each, as far as it is wide. */
// eslint-disable-next-line no-control-regex
const hidden = /[\u0080-\u009f\u00ad\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu

/** A row of pi-tui's with what was typed or pasted into it: it has that library's own sequences, and no others. */
export const harmless = (row: string): string => row.replace(hidden, "\ufffd")

/** A name that nobody could type; put into the text, it would act on the terminal. */
const isUntypable = (name: string): boolean => name.replace(controls, "") !== name

/** What a word that begins with `@` may become. */
export interface MentionItem {
  /** Without the `@`; one that ends with a slash can be gone into. */
  readonly value: string
  readonly description?: string
}

/** A word that begins with `@`, as far as it is typed; quotes hold a name with spaces together. */
const mentionWord = /(?:^|[\s([{<`])(@(?:"([^"]*)|([^\s"]*)))$/u

type Suggest = (typed: string, line: number) => Promise<AutocompleteSuggestions | null>

const slashSuggestions = (commands: () => ReadonlyArray<SlashCommand>): Suggest => (typed, line) => {
  if (line !== 0 || !/^\/\S*$/.test(typed)) return Promise.resolve(null)
  const items: Array<AutocompleteItem> = commands()
    .filter(({ name }) => name.startsWith(typed.slice(1)) && !isUntypable(name))
    .map((command) => ({
      value: `/${command.name} `,
      label: sanitizeLine(`/${command.name}${command.argument === null ? "" : ` ${command.argument}`}`),
      description: sanitizeLine(command.description)
    }))
  return Promise.resolve(items.length === 0 ? null : { items, prefix: typed })
}

const mentionSuggestions =
  (mentions: (word: string) => Promise<ReadonlyArray<MentionItem>>): Suggest => async (typed) => {
    const match = mentionWord.exec(typed)
    const prefix = match?.[1]
    if (prefix === undefined) return null
    const found = (await mentions(match?.[2] ?? match?.[3] ?? "")).filter(({ value }) => !isUntypable(value))
    const items = found.map(({ description, value }): AutocompleteItem => {
      const isFolder = value.endsWith("/")
      const isOdd = /[\s"]/.test(value)
      return {
        value: isOdd ? `@"${value}${isFolder ? "" : '" '}` : `@${value}${isFolder ? "" : " "}`,
        label: sanitizeLine(value),
        ...(description === undefined ? {} : { description: sanitizeLine(description) })
      }
    })
    return items.length === 0 ? null : { items, prefix }
  }

/** The first that has something to offer. `offered` is told the text that an open menu stands for. */
const completion = (
  suggests: ReadonlyArray<Suggest>,
  offered: (prefix: string) => void
): AutocompleteProvider => ({
  getSuggestions: async (lines, cursorLine, cursorColumn) => {
    const typed = (lines[cursorLine] ?? "").slice(0, cursorColumn)
    for (const suggest of suggests) {
      const found = await suggest(typed, cursorLine)
      if (found === null) continue
      offered(found.prefix)
      return found
    }
    return null
  },
  applyCompletion: (lines, cursorLine, cursorColumn, item, prefix) => {
    const line = lines[cursorLine] ?? ""
    // A menu may be of what was typed before the newest keys.
    if (!line.slice(0, cursorColumn).endsWith(prefix)) return { lines, cursorLine, cursorCol: cursorColumn }
    const before = line.slice(0, cursorColumn - prefix.length) + item.value
    const next = [...lines]
    next[cursorLine] = before + line.slice(cursorColumn).replace(/^ /, item.value.endsWith(" ") ? "" : " ")
    return { lines: next, cursorLine, cursorCol: before.length }
  },
  shouldTriggerFileCompletion: () => false
})

export const makeEditor = (options: {
  readonly tui: TUI
  readonly painter: () => Painter
  readonly slashCommands: (() => ReadonlyArray<SlashCommand>) | null
  readonly mentions: ((word: string) => Promise<ReadonlyArray<MentionItem>>) | null
  readonly onPaste: (pasted: string) => string
  readonly onSubmit: (text: string) => void
  readonly changed: () => void
}): HostEditor => {
  const { changed, painter, tui } = options
  let border: SpanStyle = { color: "border" }
  const as = (style: SpanStyle) => (painted: string) => painter().style(painted, style)
  const editor = new Editor(tui, {
    borderColor: (painted) => painter().style(painted, border),
    selectList: {
      selectedPrefix: as({ color: "accent" }),
      selectedText: as({ color: "accent" }),
      description: as({ color: "muted" }),
      scrollInfo: as({ color: "muted" }),
      noMatch: as({ color: "muted" })
    }
  })
  let offered = ""
  const provider = completion(
    [
      ...(options.slashCommands === null ? [] : [slashSuggestions(options.slashCommands)]),
      ...(options.mentions === null ? [] : [mentionSuggestions(options.mentions)])
    ],
    (prefix) => {
      offered = prefix
    }
  )
  editor.setAutocompleteProvider(provider)
  /** What is typed fast can leave a menu behind that is of less than is there; a key that takes from it is then for the text. */
  const closeStaleMenu = () => {
    if (!editor.isShowingAutocomplete()) return
    const { col, line } = editor.getCursor()
    const typed = (editor.getLines()[line] ?? "").slice(0, col)
    if (!typed.endsWith(offered) || (offered.startsWith("/") && typed !== offered)) {
      editor.setAutocompleteProvider(provider)
    }
  }
  editor.onSubmit = (text) => options.onSubmit(text)
  editor.onChange = () => changed()
  return {
    text: () => editor.getExpandedText(),
    setText: (text) => {
      editor.setText(text.replace(controls, ""))
      changed()
    },
    addToHistory: (text) => editor.addToHistory(text.replace(controls, "")),
    completing: () => editor.isShowingAutocomplete(),
    setBorder: (style) => {
      border = style
      changed()
    },
    // The rows hold pi-tui's own cursor marks, so they cannot pass the sanitizer as a whole.
    render: (width) => editor.render(Math.max(2, width)).map((row) => fit(harmless(row), width)),
    key: (sequence) => {
      if (sequence === "\r" || sequence === "\t") closeStaleMenu()
      editor.handleInput(sequence)
      changed()
    },
    paste: (text) => {
      const clean = options.onPaste(sanitizeBreaks(text).replace(controls, "")).replace(controls, "")
      if (clean !== "") editor.handleInput(`\x1b[200~${clean}\x1b[201~`)
      changed()
    },
    setFocused: (focused) => {
      editor.focused = focused
    },
    invalidate: () => editor.invalidate()
  }
}

/** A terminal sends a line break of a paste as a carriage return. */
const sanitizeBreaks = (text: string): string => text.replace(/\r\n?/g, "\n")
