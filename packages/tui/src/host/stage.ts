/**
 * The stage: pi-tui's renderer on a terminal, for the life of a scope, with the terminal restored on every way out.
 *
 * Restoring is synchronous, happens once and comes first: when the scope closes (quit, failure, interruption), on SIGTERM,
 * SIGHUP and SIGINT before anything else is closed, before an uncaught error is reported, and when the process exits
 * without any of these. Only SIGKILL leaves a terminal as it was; `reset` helps there.
 */
import { isKeyRelease, ProcessTerminal, type Terminal, type TUI } from "@earendil-works/pi-tui"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { sanitizeLine } from "../sanitize.ts"
import { captureConsole, type ConsoleLevel } from "./console.ts"
import type { Frame } from "./frame.ts"
import { FullScreen, type FullScreenOptions } from "./full-screen.ts"
import { InlineScreen } from "./inline-screen.ts"
import { type InputTarget, makeInput } from "./input.ts"

/** Why the terminal's owner was told to stop from outside. */
export type StopSignal = "SIGTERM" | "SIGHUP" | "SIGINT"

export interface StageOptions {
  /** Default: this process's terminal. */
  readonly terminal?: Terminal
  /** Default: the main screen, with the terminal's own history. */
  readonly fullScreen?: FullScreenOptions | null
  readonly root: Frame
  readonly input: InputTarget
  /** Called once, with the terminal already restored. */
  readonly onSignal: (signal: StopSignal) => void
  /** Called right before the last frame, which stays on the main screen. */
  readonly beforeLastFrame: () => void
  /** Takes what is printed to the console while the screen is open. */
  readonly onConsole: (level: ConsoleLevel, line: string) => void
}

export interface Stage {
  readonly tui: TUI & { readonly beginAnother: () => void }
  readonly size: () => { readonly columns: number; readonly rows: number }
  readonly restore: () => void
  /** Waits for key releases that are still on their way, so that the shell does not get them. */
  readonly drain: () => Promise<void>
  /** Rings, or hands a message to the terminal, in between two frames. */
  readonly attention: (message: string | null) => void
  /** Hands a text to the terminal for its clipboard; `false` when it is longer than terminals take. */
  readonly copy: (text: string) => boolean
  /** Gives the terminal to another program; what it returns takes it again. */
  readonly handOver: () => () => void
  /** Gives the terminal to the shell until the process is continued, as ctrl+z does elsewhere. */
  readonly suspend: () => void
}

/** How long a slow line may take to bring the last key release. */
const drainMillis = 300

/** Bytes, encoded, that every terminal with a clipboard takes. */
const maxCopied = 74_994

/** Characters of a message that a terminal is handed. */
const maxMessage = 200

/**
 * Milliseconds after another program gave the terminal back in which an interrupt is still that program's. The key interrupts both, and nothing says
 * that its end is told after the signal. No key of ours is lost by it: ours send no signals.
 */
const lateInterruptMillis = 500

const signals: ReadonlyArray<StopSignal> = ["SIGTERM", "SIGHUP", "SIGINT"]

/** Takes the terminal. Fails only by defect: whether there is one is for the caller to find out. */
export const openStage = (options: StageOptions): Effect.Effect<Stage, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const terminal = options.terminal ?? new ProcessTerminal()
      // The terminal's own cursor, so that input methods and screen readers find it.
      const full = options.fullScreen ?? null
      const tui = full === null ? new InlineScreen(terminal, options.root.inline) : new FullScreen(terminal, full)
      const cleanups: Array<() => void> = []
      let restored = false
      let suspended = false
      /** When a SIGINT is ours again, by the monotonic clock. */
      let interruptible = 0

      const restoreWith = (lastFrame: boolean): void => {
        if (restored) return
        restored = true
        for (const cleanup of cleanups.splice(0)) cleanup()
        if (lastFrame && !suspended && full === null) {
          try {
            options.beforeLastFrame()
            tui.renderNow()
          } catch {
            // A frame that cannot be drawn must not keep the terminal from being restored.
          }
        }
        try {
          if (!suspended) tui.stop()
        } catch {
          // The terminal may be gone already.
        }
      }
      const restore = (): void => restoreWith(true)

      /** A frame that was asked for while another program had the terminal is still asked for, and would be waited for for ever. */
      const takeAgain = (): void => {
        tui.start()
        tui.renderNow()
      }

      const suspend = (): void => {
        if (restored || suspended || process.platform === "win32") return
        suspended = true
        tui.stop()
        const resume = (): void => {
          if (!suspended) return
          suspended = false
          process.off("SIGCONT", resume)
          if (restored) return
          takeAgain()
        }
        process.on("SIGCONT", resume)
        process.kill(process.pid, "SIGTSTP")
        // Without a shell that could continue it the system does not stop a process, and nothing would wake it.
        setTimeout(resume, 100)
      }
      tui.setSuspendSignalHandler(suspend)

      const handOver = () => {
        if (restored || suspended) return () => {}
        suspended = true
        interruptible = Infinity
        tui.stop()
        return () => {
          suspended = false
          interruptible = performance.now() + lateInterruptMillis
          if (restored) return
          takeAgain()
        }
      }

      for (const signal of signals) {
        const stop = (): void => {
          // The interrupt key is then meant for the program that has the terminal.
          if (signal === "SIGINT" && performance.now() < interruptible) return
          restoreWith(signal !== "SIGHUP")
          options.onSignal(signal)
        }
        process.on(signal, stop)
        cleanups.push(() => process.off(signal, stop))
      }
      const leave = (): void => restoreWith(false)
      process.on("uncaughtExceptionMonitor", leave)
      process.on("exit", leave)
      cleanups.push(() => {
        process.off("uncaughtExceptionMonitor", leave)
        process.off("exit", leave)
      })
      if (options.terminal === undefined) {
        cleanups.push(captureConsole(options.onConsole))
        // A terminal that went away answers reads and writes with errors, which would otherwise be uncaught ones. These
        // stay for the life of the process: late writes can come after the scope has closed.
        const gone = (): void => {
          if (restored) return
          restoreWith(false)
          options.onSignal("SIGHUP")
        }
        process.stdin.on("error", gone)
        process.stdin.on("end", gone)
        process.stdout.on("error", gone)
      }

      tui.addChild(options.root)
      const input = makeInput(options.input, (flush) => process.nextTick(flush), () => performance.now())
      tui.addInputListener((data) => {
        // What a terminal that draws images says about the size of its cells is for the renderer.
        if (/^\x1b\[6;\d+;\d+t$/.test(data)) return
        if (tui instanceof InlineScreen) tui.keyPressed()
        if (!isKeyRelease(data)) input(data)
        return { consume: true }
      })
      try {
        tui.start()
      } catch (error) {
        restoreWith(false)
        throw error
      }
      return {
        tui,
        size: () => ({ columns: Math.max(1, terminal.columns), rows: Math.max(1, terminal.rows) }),
        restore,
        attention: (message) => {
          if (restored || suspended) return
          // Neither moves the cursor. What ends the message cannot be in it, as no control character is.
          terminal.write(message === null ? "\x07" : `\x1b]9;${sanitizeLine(message).slice(0, maxMessage)}\x07`)
        },
        copy: (text) => {
          const encoded = Buffer.from(text).toString("base64")
          if (restored || suspended || encoded.length > maxCopied) return false
          terminal.write(`\x1b]52;c;${encoded}\x07`)
          return true
        },
        handOver,
        drain: () => restored || !terminal.kittyProtocolActive ? Promise.resolve() : terminal.drainInput(drainMillis),
        suspend
      }
    }),
    (stage) => Effect.sync(stage.restore)
  )
