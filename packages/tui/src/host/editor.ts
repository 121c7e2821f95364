/**
 * The editor: pi-tui's multi-line editor behind a handle, with `/` commands completed and nothing harmful shown or pasted.
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

const slashCompletion = (commands: () => ReadonlyArray<SlashCommand>): AutocompleteProvider => ({
  getSuggestions: (lines, cursorLine, cursorColumn): Promise<AutocompleteSuggestions | null> => {
    const typed = (lines[cursorLine] ?? "").slice(0, cursorColumn)
    if (cursorLine !== 0 || !/^\/\S*$/.test(typed)) return Promise.resolve(null)
    const items: Array<AutocompleteItem> = commands()
      .filter((command) => command.name.startsWith(typed.slice(1)))
      .map((command) => ({
        value: command.name,
        label: sanitizeLine(`/${command.name}${command.argument === null ? "" : ` ${command.argument}`}`),
        description: sanitizeLine(command.description)
      }))
    return Promise.resolve(items.length === 0 ? null : { items, prefix: typed })
  },
  applyCompletion: (lines, cursorLine, cursorColumn, item, prefix) => {
    const line = lines[cursorLine] ?? ""
    const before = `${line.slice(0, cursorColumn - prefix.length)}/${item.value} `
    const next = [...lines]
    next[cursorLine] = before + line.slice(cursorColumn)
    return { lines: next, cursorLine, cursorCol: before.length }
  },
  shouldTriggerFileCompletion: () => false
})

export const makeEditor = (options: {
  readonly tui: TUI
  readonly painter: () => Painter
  readonly slashCommands: (() => ReadonlyArray<SlashCommand>) | null
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
  if (options.slashCommands !== null) editor.setAutocompleteProvider(slashCompletion(options.slashCommands))
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
    render: (width) => editor.render(Math.max(2, width)).map((row) => fit(row.replace(hidden, "\ufffd"), width)),
    key: (sequence) => {
      editor.handleInput(sequence)
      changed()
    },
    paste: (text) => {
      const clean = sanitizeBreaks(text).replace(controls, "")
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
