/**
 * What a terminal is like after the program, whichever way that ended: from the bytes that it was sent, from the screen that
 * is left, and from the line discipline. On the main screen, on the full screen, and on that with the mouse.
 */
import { afterEach, describe, expect, it, vi } from "vitest"
import { isAlive, PseudoTerminal, type TerminalExit } from "./terminal.ts"

const opened: Array<PseudoTerminal> = []

interface StartOptions {
  readonly mode?: string
  /** The command line around the program. */
  readonly shell?: (program: string) => string
}

const open = async (screen: string, options: StartOptions): Promise<PseudoTerminal> => {
  const program = `${process.execPath} test/tui/program.ts`
  const terminal = PseudoTerminal.open({
    command: options.shell?.(program) ?? `sh -c 'echo before the program; exec ${program}'`,
    env: { TEST_SCREEN: screen, ...(options.mode === undefined ? {} : { TEST_MODE: options.mode }) }
  })
  opened.push(terminal)
  return terminal
}

const say = (terminal: PseudoTerminal, words: string): void => terminal.write(`${words}\r`)

afterEach(() => {
  for (const terminal of opened.splice(0)) terminal.close()
})

/** Modes that are set and reset by number; each is off, or on, in the end as it is in a terminal that nobody has touched. */
const isOff = (raw: string, mode: number): boolean =>
  raw.lastIndexOf(`\x1b[?${mode}l`) >= raw.lastIndexOf(`\x1b[?${mode}h`)

/** Every mode that was set is unset again, also the terminal's own second screen and its line discipline. */
const expectModesRestored = (terminal: PseudoTerminal): void => {
  expect(terminal.modes()).toEqual({ bracketedPaste: false, cursorHidden: false })
  const { raw } = terminal
  const count = (sequence: string): number => raw.split(sequence).length - 1
  for (const mode of [1049, 1000, 1002, 1003, 1004, 1006, 2004, 2026, 2031]) {
    expect([mode, isOff(raw, mode)]).toEqual([mode, true])
  }
  expect([count("\x1b[?7l"), raw.lastIndexOf("\x1b[?7h") >= raw.lastIndexOf("\x1b[?7l")]).toEqual([
    count("\x1b[?1049h"),
    true
  ])
  expect(count("\x1b[?1007r")).toBe(count("\x1b[?1007s"))
  expect(raw.lastIndexOf("\x1b[?25h")).toBeGreaterThan(raw.lastIndexOf("\x1b[?25l"))
  // The keyboard protocol is pushed and popped alike, and on the screen that it was pushed on.
  expect(count("\x1b[<u")).toBe(count("\x1b[>7u"))
  expect(raw.lastIndexOf("\x1b[>4;0m")).toBeGreaterThanOrEqual(raw.lastIndexOf("\x1b[>4;2m"))
  if (raw.includes("\x1b[?1049h")) {
    expect(raw.lastIndexOf("\x1b[<u")).toBeGreaterThan(raw.lastIndexOf("\x1b[?1049h"))
    expect(raw.lastIndexOf("\x1b[<u")).toBeLessThan(raw.lastIndexOf("\x1b[?1049l"))
    // With the cursor above all rows: tmux keeps those above it when it gives its main screen back.
    expect(raw.slice(0, raw.lastIndexOf("\x1b[?1049l")).lastIndexOf("\x1b[H")).toBeGreaterThan(
      raw.lastIndexOf("\x1b[2K")
    )
  }
}

const expectRestored = (terminal: PseudoTerminal, exit: TerminalExit): void => {
  expect(exit.stty).toMatch(/(^|\s)icanon(\s|$)/)
  expect(exit.stty).toMatch(/(^|\s)echo(\s|$)/)
  expect(exit.stty).toMatch(/(^|\s)isig(\s|$)/)
  expectModesRestored(terminal)
  expect(terminal.text()).toMatch(/^before the program\n/)
  if (!terminal.raw.includes("\x1b[?1049h")) return
  // Of the session nothing is left on the main screen.
  expect(terminal.text()).not.toContain("/help for help")
}

describe.each(["inline", "full", "mouse"] as const)(
  "every way out restores the terminal: %s",
  { timeout: 40_000 },
  (screen) => {
    const start = (options: StartOptions = {}) => open(screen, options)
    const ready = async (options: StartOptions = {}) => {
      const terminal = await start(options)
      await terminal.until((now) => now.screen().some((row) => row.endsWith("offline")))
      return terminal
    }

    it("ctrl+d on an empty editor", async () => {
      const terminal = await ready()
      terminal.write("\x04")
      const exit = await terminal.exit()
      expect(exit.code).toBe(0)
      expect(terminal.text()).toContain("ended: quit")
      expectRestored(terminal, exit)
    })

    it("ctrl+d deletes while there is text", async () => {
      const terminal = await ready()
      terminal.write("text\x04")
      await terminal.settled()
      expect(terminal.text()).not.toContain("ended:")
      terminal.write("\r")
      await terminal.until("You said: text")
    })

    it("ctrl+c twice, the first clears the editor", async () => {
      const terminal = await ready()
      terminal.write("half a thought")
      await terminal.until("half a thought")
      terminal.write("\x03")
      await terminal.until("Press ctrl+c again to quit.")
      expect(terminal.screen().join("\n")).not.toContain("half a thought")
      terminal.write("\x03")
      const exit = await terminal.exit()
      expect(exit.code).toBe(0)
      expectRestored(terminal, exit)
    })

    it("/quit", async () => {
      const terminal = await ready()
      say(terminal, "/quit")
      const exit = await terminal.exit()
      expect(exit.code).toBe(0)
      expectRestored(terminal, exit)
    })

    it.each([["SIGTERM", 143], ["SIGHUP", 129], ["SIGINT", 130]] as const)(
      "%s, in the middle of a turn",
      async (signal, code) => {
        const terminal = await ready()
        say(terminal, "hang")
        await terminal.until("esc to interrupt")
        terminal.signal(signal)
        const exit = await terminal.exit()
        expect(exit.code).toBe(code)
        expect(terminal.text()).toContain(`ended: ${signal}`)
        expectRestored(terminal, exit)
      }
    )

    it("an uncaught error, which is reported after the screen and not into it", async () => {
      const terminal = await ready()
      say(terminal, "crash")
      const exit = await terminal.exit()
      expect(exit.code).not.toBe(0)
      expect(terminal.text()).toContain("something broke deep inside")
      expectRestored(terminal, exit)
      const { raw } = terminal
      expect(raw.indexOf("something broke deep inside")).toBeGreaterThan(raw.lastIndexOf("\x1b[?2004l"))
    })

    it("an uncaught error that the program itself reports", async () => {
      const terminal = await ready({ mode: "handler" })
      say(terminal, "crash")
      const exit = await terminal.exit()
      expect(exit.code).toBe(9)
      expectRestored(terminal, exit)
      const { raw } = terminal
      expect(raw.indexOf("reported: something broke")).toBeGreaterThan(raw.lastIndexOf("\x1b[?2004l"))
    })

    it("a rejection that nobody handles", async () => {
      const terminal = await ready()
      say(terminal, "reject")
      const exit = await terminal.exit()
      expect(exit.code).not.toBe(0)
      expectRestored(terminal, exit)
    })

    it("process.exit from anywhere", async () => {
      const terminal = await ready()
      say(terminal, "exit")
      const exit = await terminal.exit()
      expect(exit.code).toBe(7)
      expectRestored(terminal, exit)
    })

    it("an interrupted host", async () => {
      const terminal = await ready({ mode: "broken" })
      say(terminal, "/interrupt-host")
      const exit = await terminal.exit()
      expect(exit.code).toBe(1)
      expectRestored(terminal, exit)
    })

    it("a required plugin that fails, which is named", async () => {
      const terminal = await start({ mode: "failing-required" })
      const exit = await terminal.exit()
      expect(exit.code).toBe(1)
      expect(terminal.text()).toContain("Plugin test.failing failed in the tui host during setup")
      expectRestored(terminal, exit)
    })

    it("ctrl+z gives it to the shell, and continuing takes it again", async () => {
      const terminal = await ready({
        shell: (program) => `sh -mc '${program}; stty -a | grep -o " icanon.*"; echo stopped; read line; fg'`
      })
      say(terminal, "before")
      await terminal.until("You said: before")
      terminal.write("\x1a")
      await terminal.until("stopped")
      expect(terminal.text()).toContain(" icanon")
      expectModesRestored(terminal)
      terminal.write("\r")
      await terminal.until((now) => now.modes().bracketedPaste)
      say(terminal, "after")
      await terminal.until("You said: after")
      expect(terminal.text()).toContain("You said: before")
      terminal.write("\x04")
      expect((await terminal.exit()).stty).toMatch(/ icanon/)
      expectModesRestored(terminal)
    })

    it("ctrl+z without a shell behind it changes nothing", async () => {
      const terminal = await ready()
      const taken = () => terminal.raw.split("\x1b[?2004h").length
      const before = taken()
      terminal.write("\x1a")
      // Given away and taken again.
      await terminal.until(() => taken() > before)
      say(terminal, "still here")
      await terminal.until("You said: still here")
      expect(terminal.modes().bracketedPaste).toBe(true)
    })

    it("leaves no process when the terminal itself goes away", async () => {
      const terminal = await ready()
      const pid = terminal.pid()
      terminal.hangUp()
      await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 10_000, interval: 10 })
    })
  }
)
