/**
 * A command in a real pseudo terminal, and what a terminal shows of it.
 *
 * The pseudo terminal comes from `script` and its size from `stty`, which every Linux system has; nothing native is built.
 * The screen is `@xterm/headless`, which also answers the command's queries, as a person's terminal would.
 */
import xterm from "@xterm/headless"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { readFileSync } from "node:fs"

export interface TerminalOptions {
  /** The command line, run by `sh`. */
  readonly command: string
  readonly columns?: number
  readonly rows?: number
  readonly env?: { readonly [name: string]: string }
  readonly cwd?: string
}

/** How the command ended, and the state in which it left the terminal. */
export interface TerminalExit {
  /** As a shell reports it: 128 + n after signal n. */
  readonly code: number
  /** Settings of the terminal's line discipline, as `stty -a` prints them. */
  readonly stty: string
}

export class PseudoTerminal {
  readonly #child: ChildProcess
  readonly #screen: InstanceType<typeof xterm.Terminal>
  #raw = ""
  #written: Promise<void> = Promise.resolve()
  readonly #ended: Promise<void>

  private constructor(options: TerminalOptions) {
    const columns = options.columns ?? 80
    const rows = options.rows ?? 24
    this.#screen = new xterm.Terminal({ cols: columns, rows, scrollback: 100_000, allowProposedApi: true })
    // The inner shell tells its own process id, which the command takes over; the outer one looks at the terminal afterwards.
    const inner = `printf '\\033]9999;pid=%s;tty=%s\\007' $$ "$(tty)"; exec ${options.command}`
    const outer = `stty cols ${columns} rows ${rows}; sh -c ${
      quote(inner)
    }; code=$?; printf '\\033]9998;%s;%s\\007' "$code" "$(stty -a | tr '\\n' ' ')"`
    this.#child = spawn("script", ["-qfc", outer, "/dev/null"], {
      cwd: options.cwd ?? process.cwd(),
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: process.env["HOME"] ?? "/",
        TERM: "xterm-256color",
        LANG: "C.UTF-8",
        SHELL: "/bin/sh",
        ...options.env
      },
      stdio: ["pipe", "pipe", "pipe"]
    })
    this.#ended = new Promise((resolve) => this.#child.once("close", () => resolve()))
    this.#child.stdin?.on("error", () => {})
    const decoder = new TextDecoder()
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      const text = decoder.decode(chunk, { stream: true })
      this.#raw += text
      this.#written = new Promise((resolve) => this.#screen.write(text, resolve))
    })
    this.#screen.onData((answer) => this.write(answer))
  }

  static open(options: TerminalOptions): PseudoTerminal {
    return new PseudoTerminal(options)
  }

  /** Every byte that the command has written so far, decoded. */
  get raw(): string {
    return this.#raw
  }

  /** What is on the screen now, row by row, without trailing blanks. */
  screen(): ReadonlyArray<string> {
    const buffer = this.#screen.buffer.active
    return Array.from(
      { length: this.#screen.rows },
      (_, index) => buffer.getLine(buffer.viewportY + index)?.translateToString(true).trimEnd() ?? ""
    )
  }

  /** The cells of a row of the screen: what each shows, how wide it is (0: the second half of the one before), its colour. */
  cells(row: number): ReadonlyArray<{ readonly text: string; readonly width: number; readonly color: number }> {
    const buffer = this.#screen.buffer.active
    const line = buffer.getLine(buffer.viewportY + row)
    return Array.from({ length: this.#screen.cols }, (_, column) => {
      const cell = line?.getCell(column)
      return { text: cell?.getChars() ?? "", width: cell?.getWidth() ?? 1, color: cell?.getFgColor() ?? -1 }
    })
  }

  /** Rows that were longer than the terminal is wide; a terminal that gets narrower breaks what has scrolled away itself. */
  overflowing(where: "history" | "screen" = "history"): ReadonlyArray<string> {
    const buffer = this.#screen.buffer.active
    return Array.from({ length: buffer.length }, (_, index) => buffer.getLine(index)).flatMap((line, index) =>
      line?.isWrapped === true && (where === "history" || index >= buffer.baseY) ? [line.translateToString(true)] : []
    )
  }

  /** The screen and everything that has scrolled away. */
  history(): ReadonlyArray<string> {
    const buffer = this.#screen.buffer.active
    return Array.from({ length: buffer.length }, (_, index) => buffer.getLine(index)?.translateToString(true) ?? "")
  }

  /** The same as one text, with what the terminal wrapped put together again. */
  text(): string {
    const buffer = this.#screen.buffer.active
    let text = ""
    for (let index = 0; index < buffer.length; index++) {
      const line = buffer.getLine(index)
      text += `${index === 0 || line?.isWrapped === true ? "" : "\n"}${line?.translateToString(true) ?? ""}`
    }
    return text
  }

  cursor(): { readonly column: number; readonly row: number } {
    const buffer = this.#screen.buffer.active
    return { column: buffer.cursorX, row: buffer.cursorY }
  }

  modes(): { readonly bracketedPaste: boolean; readonly cursorHidden: boolean } {
    const last = (on: string, off: string): boolean => this.#raw.lastIndexOf(on) > this.#raw.lastIndexOf(off)
    return { bracketedPaste: this.#screen.modes.bracketedPasteMode, cursorHidden: last("\x1b[?25l", "\x1b[?25h") }
  }

  /** Keys, as bytes. */
  write(keys: string): void {
    this.#child.stdin?.write(keys)
  }

  resize(columns: number, rows: number): void {
    this.#screen.resize(columns, rows)
    execFileSync("stty", ["-F", this.tty(), "cols", String(columns), "rows", String(rows)])
  }

  /** The command's own process id. */
  pid(): number {
    const match = /pid=(\d+);/.exec(this.#raw)
    if (match === null) throw new Error("The command has not started yet.")
    return Number(match[1])
  }

  tty(): string {
    // eslint-disable-next-line no-control-regex
    const match = /pid=\d+;tty=([^\x07]+)\x07/.exec(this.#raw)
    if (match === null) throw new Error("The command has not started yet.")
    return match[1] ?? ""
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid(), signal)
  }

  /** The terminal goes away, as when its window is closed. */
  hangUp(): void {
    this.#child.kill("SIGKILL")
  }

  /** Waits until what is shown, or has scrolled away, fits; fails with what there is instead. */
  async until(wanted: string | RegExp | ((terminal: PseudoTerminal) => boolean), millis = 15_000): Promise<void> {
    const fits = (): boolean =>
      typeof wanted === "function"
        ? wanted(this)
        : typeof wanted === "string"
        ? this.text().includes(wanted)
        : wanted.test(this.text())
    const deadline = Date.now() + millis
    for (;;) {
      await this.#written
      if (fits()) return
      if (Date.now() > deadline) {
        throw new Error(
          `Not seen within ${millis} ms: ${String(wanted)}\n--- screen ---\n${this.screen().join("\n")}\n--- end ---\n${
            JSON.stringify(this.#raw.slice(-600))
          }`
        )
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** Nothing new arrives for a while. */
  async settled(quietMillis = 150): Promise<void> {
    for (let before = -1; before !== this.#raw.length;) {
      before = this.#raw.length
      await new Promise((resolve) => setTimeout(resolve, quietMillis))
      await this.#written
    }
  }

  async exit(): Promise<TerminalExit> {
    await this.until((terminal) => terminal.raw.includes("\x1b]9998;"))
    await this.#ended
    await this.#written
    // eslint-disable-next-line no-control-regex
    const match = /\x1b\]9998;(\d+);([^\x07]*)\x07/.exec(this.#raw)
    return { code: Number(match?.[1]), stty: match?.[2] ?? "" }
  }

  /** Ends whatever is left. */
  close(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    try {
      process.kill(this.pid(), "SIGKILL")
    } catch {
      // It has ended, or never started.
    }
    this.#child.kill("SIGKILL")
  }
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Whether a process exists and is not a zombie. */
export const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}
