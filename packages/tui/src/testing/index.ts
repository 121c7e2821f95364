/**
 * `@bezel/tui/testing`: a terminal in memory, for tests of terminal facets.
 *
 * The host, the renderer and the input handling are the real ones; only the terminal is an emulator that the test brings,
 * instead of a person's. Frames are timed by the wall clock, so run such a test without a test clock.
 */
import type { PresentationHalf, PresentationItem } from "@bezel/core/host"
import type { HostFailed, PluginSource } from "@bezel/core/kernel"
import type { Terminal } from "@earendil-works/pi-tui"
import { StdinBuffer } from "@earendil-works/pi-tui"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Block } from "../block.ts"
import type { TuiContext } from "../context.ts"
import type { TerminalEnd } from "../host/facilities.ts"
import { makeLayout } from "../layout.ts"
import { makePainter, terminalTheme } from "../paint.ts"
import { runTerminal } from "../run.ts"

/** Blocks as rows of plain text, as a terminal of this width shows them. */
export const renderBlocks = (blocks: ReadonlyArray<Block>, width = 80): ReadonlyArray<string> =>
  // eslint-disable-next-line no-control-regex
  makeLayout(makePainter(terminalTheme, false)).all(blocks, width).map((row) =>
    row.replace(/\x1b\[[0-9;]*m/g, "").trimEnd()
  )

/** What is needed of a terminal emulator; `new Terminal({ allowProposedApi: true })` of `@xterm/headless` is one. */
export interface Screen {
  readonly cols: number
  readonly rows: number
  readonly write: (data: string, drawn: () => void) => void
  readonly resize: (columns: number, rows: number) => void
  readonly buffer: {
    readonly active: {
      readonly length: number
      readonly getLine: (index: number) => { readonly translateToString: (trimRight: boolean) => string } | undefined
    }
  }
}

/** A terminal in memory: what the host writes is on its screen, what is typed goes to the host. */
export class MemoryTerminal implements Terminal {
  readonly #screen: Screen
  readonly #input = new StdinBuffer()
  #onInput: (data: string) => void = () => {}
  #onResize: () => void = () => {}
  #pending: Promise<void> = Promise.resolve()
  /** Everything written, in order. */
  written = ""
  readonly kittyProtocolActive = false

  constructor(screen: Screen) {
    this.#screen = screen
    this.#input.on("data", (sequence) => this.#onInput(sequence))
    this.#input.on("paste", (pasted) => this.#onInput(`\x1b[200~${pasted}\x1b[201~`))
  }

  get columns(): number {
    return this.#screen.cols
  }

  get rows(): number {
    return this.#screen.rows
  }

  start(onInput: (data: string) => void, onResize: () => void): void {
    this.#onInput = onInput
    this.#onResize = onResize
  }

  stop(): void {
    this.#onInput = () => {}
    this.#onResize = () => {}
    this.#input.destroy()
  }

  drainInput(): Promise<void> {
    return Promise.resolve()
  }

  write(data: string): void {
    this.written += data
    this.#pending = new Promise((resolve) => this.#screen.write(data, resolve))
  }

  /** What a person types or pastes, as a terminal sends it. */
  type(keys: string): void {
    this.#input.process(keys)
  }

  resize(columns: number, rows: number): void {
    this.#screen.resize(columns, rows)
    this.#onResize()
  }

  /** The screen and what has scrolled away, row by row. */
  lines(): ReadonlyArray<string> {
    const buffer = this.#screen.buffer.active
    return Array.from(
      { length: buffer.length },
      (_, index) => buffer.getLine(index)?.translateToString(true).trimEnd() ?? ""
    )
  }

  text(): string {
    return this.lines().join("\n")
  }

  /** Completes when everything written is on the screen. */
  get drawn(): Promise<void> {
    return this.#pending
  }

  moveBy(lines: number): void {
    if (lines !== 0) this.write(lines > 0 ? `\x1b[${lines}B` : `\x1b[${-lines}A`)
  }

  hideCursor(): void {
    this.write("\x1b[?25l")
  }

  showCursor(): void {
    this.write("\x1b[?25h")
  }

  clearLine(): void {
    this.write("\x1b[K")
  }

  clearFromCursor(): void {
    this.write("\x1b[J")
  }

  clearScreen(): void {
    this.write("\x1b[2J\x1b[H")
  }

  setTitle(): void {}

  setProgress(): void {}

  setProgramStatus(): void {}
}

export interface TestTerminal {
  readonly terminal: MemoryTerminal
  readonly type: (keys: string) => Effect.Effect<void>
  /** Waits until the screen or its history shows this; dies with what there is instead after five seconds. */
  readonly until: (wanted: string | RegExp) => Effect.Effect<void>
  readonly text: Effect.Effect<string>
  /** Waits for the host to end. */
  readonly ended: Effect.Effect<TerminalEnd, HostFailed>
}

/** Runs terminal facets on a terminal in memory until the scope closes. */
export const testTerminal = <Item = PresentationItem>(options: {
  readonly presentation: PresentationHalf<Item>
  readonly plugins: ReadonlyArray<PluginSource<TuiContext>>
  readonly screen: Screen
  /** Id of the screen to begin with; default `chat`. */
  readonly first?: string
}): Effect.Effect<TestTerminal, never, Scope.Scope> =>
  Effect.gen(function*() {
    const terminal = new MemoryTerminal(options.screen)
    const fiber = yield* Effect.forkScoped(runTerminal({
      presentation: options.presentation,
      plugins: options.plugins,
      terminal,
      ...(options.first === undefined ? {} : { screen: options.first })
    }))
    const shown = Effect.promise(() => terminal.drawn)
    const until = (wanted: string | RegExp) =>
      Effect.gen(function*() {
        const deadline = performance.now() + 5_000
        for (;;) {
          yield* shown
          const text = terminal.text()
          if (typeof wanted === "string" ? text.includes(wanted) : wanted.test(text)) return
          if (performance.now() > deadline) {
            return yield* Effect.die(new Error(`Not shown within 5 s: ${String(wanted)}\n${text}`))
          }
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
        }
      })
    return {
      terminal,
      type: (keys) => Effect.sync(() => terminal.type(keys)),
      until,
      text: Effect.map(shown, () => terminal.text()),
      ended: Fiber.join(fiber)
    }
  })
