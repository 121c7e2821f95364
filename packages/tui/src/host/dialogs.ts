/**
 * Dialogs: questions to the person, one at a time, in the place of the editor.
 *
 * A dialog belongs to the effect that asks: interrupting that effect takes the dialog away, wherever it stands in the
 * queue. One that opens by itself while somebody types swallows keys until the typing has paused, and says so meanwhile, so
 * that a line on its way to the editor never answers a question that was not yet read. One that waited behind another does
 * the same when that goes, by an answer or by itself: a key that was meant for the one never answers the other. What the
 * effect of an answered dialog asks next comes before those that wait.
 */
import { CURSOR_MARKER, getKeybindings, Input } from "@earendil-works/pi-tui"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type Block, group, row, rule, type Span, span, text } from "../block.ts"
import type { SelectAction, SelectOption, Ui } from "../contributions.ts"
import { sanitizeLine } from "../sanitize.ts"
import { harmless } from "./editor.ts"
import { pressed } from "./keys.ts"

/** True within what the person has just asked for: its dialogs are expected, and take keys at once. */
export const AskedByPerson = Context.Reference<boolean>("@bezel/tui/AskedByPerson", { defaultValue: () => false })

/** How recent a key must be for a dialog to count as opened into somebody's typing. */
const typingMillis = 1_000
/** How long the keys must rest before it listens. */
const pauseMillis = 600

interface Dialog {
  readonly blocks: () => ReadonlyArray<Block>
  /** Rows below the blocks that are not made of blocks: an input line. */
  readonly rows?: (width: number) => ReadonlyArray<string>
  readonly key: (sequence: string) => void
  readonly paste: (text: string) => void
  listensAt: number
}

export interface Dialogs extends Pick<Ui, "select" | "input" | "confirm"> {
  readonly isOpen: () => boolean
  readonly blocks: () => ReadonlyArray<Block>
  readonly rows: (width: number) => ReadonlyArray<string>
  readonly key: (sequence: string) => void
  readonly paste: (text: string) => void
  /** A key went elsewhere: somebody is typing. */
  readonly typed: () => void
}

/** How much of a secret there is, and the cursor behind it. Where the cursor stands within it nobody needs to know. */
const secretRow = (length: number, width: number): string =>
  `› ${"•".repeat(Math.max(0, Math.min(length, width - 4)))}${CURSOR_MARKER}`

/** `now` in milliseconds, monotonic; `changed` asks for a frame. */
export const makeDialogs = (changed: () => void, now: () => number): Dialogs => {
  const open: Array<Dialog> = []
  let lastKey = Number.NEGATIVE_INFINITY
  /** Whose dialog was in front before this one. */
  let lastAsker: object | null = null

  const ask = <A>(make: (answer: (value: A) => void) => Omit<Dialog, "listensAt">): Effect.Effect<A> =>
    Effect.withFiber((fiber) => {
      const expected = fiber.getRef(AskedByPerson)
      return Effect.callback<A>((resume) => {
        const close = (): void => {
          const index = open.indexOf(dialog)
          if (index < 0) return
          open.splice(index, 1)
          const next = front()
          if (index === 0) lastAsker = fiber
          if (index === 0 && next !== undefined) next.listensAt = Math.max(next.listensAt, now() + pauseMillis)
          changed()
          wakeUp()
        }
        const content = make((value) => {
          close()
          resume(Effect.succeed(value))
        })
        const typing = !expected && now() - lastKey < typingMillis
        const dialog: Dialog = { ...content, listensAt: typing ? lastKey + pauseMillis : 0 }
        if (lastAsker === fiber) open.unshift(dialog)
        else open.push(dialog)
        changed()
        if (typing) wakeUp()
        return Effect.sync(close)
      })
    })

  let waking: ReturnType<typeof setTimeout> | undefined

  const isListening = (): boolean => now() >= (front()?.listensAt ?? 0)

  /** Shows that the dialog in front listens, once it does. */
  const wakeUp = (): void => {
    clearTimeout(waking)
    if (isListening()) return changed()
    waking = setTimeout(wakeUp, Math.ceil((front()?.listensAt ?? 0) - now()))
    waking.unref()
  }

  const heading = (title: string, body: ReadonlyArray<Block>): ReadonlyArray<Block> => [
    rule({ color: "accent" }),
    open.length > 1
      ? row(span(title, { bold: true }), span(`1 of ${open.length}`, { color: "muted" }))
      : text(span(title, { bold: true })),
    ...body
  ]

  const waiting = "keys count as soon as you stop typing"
  const hint = (words: string): Block => text(span(words, { color: "muted" }), { wrap: "clip" })

  const select = <A>(options: {
    readonly title: string
    readonly body?: ReadonlyArray<Block>
    readonly options: ReadonlyArray<SelectOption<A>>
    readonly search?: boolean
    readonly actions?: ReadonlyArray<SelectAction<A>>
  }): Effect.Effect<A | null> =>
    ask<A | null>((answer) => {
      const { actions = [], search = false } = options
      let selected = 0
      let typed = ""
      let found = options.options
      const visible = 10
      const choose = (index: number, of = (value: A): A => value): void => {
        const option = found[index]
        if (option !== undefined) answer(of(option.value))
      }
      const narrow = (words: string): void => {
        typed = words
        selected = 0
        const wanted = words.toLowerCase().split(" ")
        found = options.options.filter(({ description = "", label }) => {
          const has = `${label} ${description}`.toLowerCase()
          return wanted.every((word) => has.includes(word))
        })
      }
      const optionBlock = (option: SelectOption<A>, index: number): Block => {
        const chosen = index === selected
        const words: Array<Span> = [span(option.label, chosen ? { color: "accent", bold: true } : {})]
        if (option.description !== undefined) words.push(span(`  ${option.description}`, { color: "muted" }))
        return text(words, {
          wrap: "clip",
          marker: span(
            `${chosen ? "› " : "  "}${index < 9 ? `${index + 1}. ` : "   "}`,
            chosen ? { color: "accent" } : {}
          )
        })
      }
      return {
        blocks: () => {
          const from = Math.max(0, Math.min(selected - Math.floor(visible / 2), found.length - visible))
          const shown = found.slice(from, from + visible)
          const more = found.length - shown.length
          const further = [
            ...actions.map(({ key, label }) => `${key} ${label}`),
            ...(search && typed === "" ? ["type to search"] : [])
          ]
          return [
            ...heading(options.title, options.body ?? []),
            ...(typed === "" ? [] : [text([span("/ ", { color: "accent" }), typed], { wrap: "clip" })]),
            ...shown.map((option, index) => optionBlock(option, from + index)),
            ...(found.length === 0 ? [hint("  nothing has these words")] : []),
            ...(more > 0 ? [hint(`  ${more} more`)] : []),
            ...(further.length === 0 ? [] : [hint(further.join(" · "))]),
            hint(isListening() ? "↑↓ move · enter choose · esc cancel" : waiting)
          ]
        },
        key: (sequence) => {
          const keys = getKeybindings()
          const count = found.length
          const action = actions.find(({ key }) => pressed(sequence, key))
          if (action !== undefined) choose(selected, action.value)
          else if (typed !== "" && pressed(sequence, "escape")) narrow("")
          else if (typed !== "" && pressed(sequence, "backspace")) narrow([...typed].slice(0, -1).join(""))
          else if (keys.matches(sequence, "tui.select.cancel")) answer(null)
          else if (keys.matches(sequence, "tui.select.confirm")) choose(selected)
          else if (count > 0 && keys.matches(sequence, "tui.select.up")) selected = (selected + count - 1) % count
          else if (count > 0 && keys.matches(sequence, "tui.select.down")) selected = (selected + 1) % count
          else if (typed === "" && /^[1-9]$/.test(sequence)) choose(Number(sequence) - 1)
          else if (search && /^[^\p{Cc}\p{Cs}]+$/u.test(sequence)) narrow(`${typed}${sequence}`.trimStart())
        },
        paste: () => {}
      }
    })

  const input: Ui["input"] = (options) => {
    const asked = ask<string | null>((answer) => {
      const line = new Input({ prompt: "› ", placeholder: sanitizeLine(options.placeholder ?? "") })
      line.focused = true
      line.onSubmit = (value) => answer(value)
      line.onEscape = () => answer(null)
      return {
        blocks: () => [
          ...heading(options.title, options.body ?? []),
          ...(options.secret === true ? [hint(isListening() ? "enter takes it · esc cancel" : waiting)] : [])
        ],
        rows: (width) =>
          options.secret === true
            ? [secretRow(line.getValue().length, width)]
            : line.render(Math.max(4, width)).map(harmless),
        key: (sequence) => line.handleInput(sequence),
        paste: (pasted) => {
          // eslint-disable-next-line no-control-regex
          line.handleInput(`\x1b[200~${pasted.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ")}\x1b[201~`)
        }
      }
    })
    return options.expected === true ? Effect.provideService(asked, AskedByPerson, true) : asked
  }

  const front = (): Dialog | undefined => open[0]

  return {
    select,
    input,
    confirm: (options) =>
      Effect.map(
        select<boolean>({
          title: options.title,
          ...(options.body === undefined ? {} : { body: options.body }),
          options: [{ value: true, label: options.yes ?? "Yes" }, { value: false, label: options.no ?? "No" }]
        }),
        (answer) => answer === true
      ),
    isOpen: () => open.length > 0,
    blocks: () => {
      const dialog = front()
      return dialog === undefined ? [] : [group(dialog.blocks())]
    },
    rows: (width) => front()?.rows?.(width) ?? [],
    key: (sequence) => {
      const dialog = front()
      if (dialog === undefined) return
      const at = now()
      if (at < dialog.listensAt) {
        dialog.listensAt = at + pauseMillis
        return wakeUp()
      }
      dialog.key(sequence)
      changed()
    },
    paste: (pasted) => {
      const dialog = front()
      if (dialog === undefined || now() < dialog.listensAt) return
      dialog.paste(pasted)
      changed()
    },
    typed: () => {
      lastKey = now()
    }
  }
}
