import { afterEach, describe, expect, it } from "vitest"
import { PseudoTerminal } from "./terminal.ts"

const open: Array<PseudoTerminal> = []

interface StartOptions {
  readonly mode?: string
  readonly columns?: number
  readonly rows?: number
  /** The command line around the program. */
  readonly shell?: (program: string) => string
}

const start = async (options: StartOptions = {}): Promise<PseudoTerminal> => {
  const program = `${process.execPath} test/tui/program.ts`
  const terminal = PseudoTerminal.open({
    command: options.shell?.(program) ?? program,
    columns: options.columns ?? 80,
    rows: options.rows ?? 24,
    env: options.mode === undefined ? {} : { TEST_MODE: options.mode }
  })
  open.push(terminal)
  return terminal
}

const ready = async (options: StartOptions = {}): Promise<PseudoTerminal> => {
  const terminal = await start(options)
  await terminal.until("offline")
  return terminal
}

const say = (terminal: PseudoTerminal, words: string): void => terminal.write(`${words}\r`)

afterEach(() => {
  for (const terminal of open.splice(0)) terminal.close()
})

describe("the terminal host in a pseudo terminal", () => {
  it("shows editor, place and model at once", async () => {
    const terminal = await ready()
    await terminal.settled()
    const screen = terminal.screen().join("\n")
    expect(screen).toContain("Bezel")
    expect(screen).toMatch(/~\/project\s+bezel\/offline/)
    expect(terminal.modes().bracketedPaste).toBe(true)
    expect(terminal.screen()[terminal.cursor().row - 1]).toMatch(/^─+$/)
  })

  it("types, sends and shows the answer", async () => {
    const terminal = await ready()
    terminal.write("grüße 日本")
    await terminal.until("grüße 日本")
    terminal.write("\r")
    await terminal.until("You said: grüße 日本")
    expect(terminal.text()).toContain("› grüße 日本")
  })

  it("streams an answer taller than the screen into the scrollback without clearing anything", async () => {
    const terminal = await ready({ rows: 16 })
    await terminal.settled()
    const before = terminal.raw.length
    say(terminal, "stream 80")
    await terminal.until((now) => now.text().includes("Line 80 of many"))
    await terminal.settled()
    const bytes = terminal.raw.slice(before)
    expect(bytes).not.toContain("\x1b[2J")
    expect(bytes).not.toContain("\x1b[3J")
    const lines = terminal.history().filter((line) => /^Line \d+ of many$/.test(line))
    expect(lines).toEqual(Array.from({ length: 80 }, (_, index) => `Line ${index + 1} of many`))
  })

  it("shows thinking and tools while they happen and leaves one card for each call", async () => {
    const terminal = await ready()
    say(terminal, "think")
    await terminal.until("Done thinking")
    expect(terminal.text()).toContain("┊ Let me see")
    say(terminal, "tool")
    await terminal.until("Tests pass")
    await terminal.settled()
    expect(terminal.text()).toContain("✓ bash make test  # Run the tests\n  all 20 passed")
    expect(terminal.history().filter((line) => line.includes("bash make test"))).toHaveLength(1)
  })

  it("interrupts the running turn with escape", async () => {
    const terminal = await ready()
    say(terminal, "hang")
    await terminal.until("Working on it")
    await terminal.until("esc to interrupt")
    terminal.write("\x1b")
    await terminal.until("Interrupted.")
    await terminal.settled()
    expect(terminal.screen().join("\n")).not.toContain("esc to interrupt")
  })

  it("counts down to the next try", async () => {
    const terminal = await ready()
    say(terminal, "retry")
    await terminal.until(/Retry in (30|29|28)s \(attempt 2\): Too many requests/)
    expect(terminal.text()).toContain("esc to interrupt")
  })

  it("gives refused text back to the editor and says why", async () => {
    const terminal = await ready()
    say(terminal, "refuse")
    await terminal.until("The session takes no input now.")
    await terminal.until((now) => now.screen().includes("refuse"))
    expect(terminal.screen().filter((line) => line === "refuse")).toHaveLength(1)
  })

  it("lists commands in /help and says so of one that does not exist", async () => {
    const terminal = await ready()
    say(terminal, "/nonsense")
    await terminal.until("There is no command /nonsense.")
    terminal.write("\x15/help\r")
    await terminal.until("Show commands and keys")
    await terminal.until("ctrl+o")
    terminal.write("\x1b")
    await terminal.settled()
    expect(terminal.screen().join("\n")).not.toContain("ctrl+o")
  })

  it("sends a message that begins with a path", async () => {
    const terminal = await ready()
    say(terminal, "/etc/hosts is empty")
    await terminal.until("You said: /etc/hosts is empty")
    expect(terminal.text()).toContain("› /etc/hosts is empty")
  })

  it("redraws cleanly when the terminal is resized, down to a few columns and back", async () => {
    const terminal = await ready()
    say(terminal, "tool")
    await terminal.until("Tests pass")
    for (const [columns, rows] of [[40, 12], [3, 5], [1, 2], [120, 40]] as const) {
      terminal.resize(columns, rows)
      await terminal.settled()
    }
    await terminal.until(/~\/project\s+bezel\/offline/)
    expect(terminal.screen().filter((line) => line.includes("bezel/offline"))).toHaveLength(1)
    expect(terminal.text()).toContain("✓ bash make test")
  })
})

/** A dialog takes no keys of somebody who is still typing, and says when it does. */
const listens = (terminal: PseudoTerminal) => terminal.until("enter choose · esc cancel")

describe("the approval dialog", () => {
  it("shows what is asked in full, hidden characters included, and takes a yes", async () => {
    const terminal = await ready()
    say(terminal, "ask")
    await terminal.until("Allow bash?")
    await listens(terminal)
    const screen = terminal.screen().join("\n")
    expect(screen).toContain("rm -rf build ␛]0;owned␇␛[2Jwiped <U+009B>31mred <U+202E>gnp.exe")
    expect(screen).toContain("Allow for this session  bash(rm -rf build)")
    terminal.write("2")
    await terminal.until('You said {"decision":"session"}')
  })

  it("takes dismissing for a no", async () => {
    const terminal = await ready()
    say(terminal, "ask")
    await terminal.until("Allow bash?")
    await listens(terminal)
    terminal.write("\x1b")
    await terminal.until('You said {"decision":"deny"}')
    expect(terminal.screen().join("\n")).not.toContain("Allow bash?")
  })

  it("hands on what to do instead", async () => {
    const terminal = await ready()
    say(terminal, "ask")
    await terminal.until("Allow bash?")
    await listens(terminal)
    terminal.write("4")
    await terminal.until("What should it do instead?")
    terminal.write("use trash\r")
    await terminal.until('"message":"use trash"')
    expect(terminal.text()).toContain('"decision":"deny"')
  })

  it("is not answered by what somebody was just typing", async () => {
    const terminal = await ready()
    say(terminal, "ask")
    await terminal.until("Allow bash?")
    await terminal.until("keys count as soon as you stop typing")
    terminal.write("1\r")
    await listens(terminal)
    expect(terminal.text()).toContain("Allow bash?")
    expect(terminal.text()).not.toContain("You said")
  })
})

describe("hostile text", () => {
  it("reaches the terminal as visible characters only, wherever it comes from", async () => {
    const terminal = await ready()
    await terminal.settled()
    const before = terminal.raw.length
    say(terminal, "hostile")
    await terminal.until("After the hostile text")
    await terminal.settled()
    // pi-tui ends every row by closing a hyperlink, whether there is one or not.
    const bytes = terminal.raw.slice(before).replaceAll("\x1b]8;;\x07", "")
    expect(bytes).not.toContain("\x1b]")
    expect(bytes).not.toContain("\x1b[2J")
    // eslint-disable-next-line no-control-regex
    expect(bytes.replace(/\x1b\[[0-9;?]*[a-zA-Z]/g, "")).not.toMatch(
      /[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/
    )
    expect(terminal.text()).toContain("␛]0;owned␇␛[2Jwiped <U+009B>31mred <U+202E>gnp.exe␛]52;c;aGk=␇ <U+E0041>hidden")
    expect(terminal.screen().join("\n")).toContain("⊘ ␛]0;tool␇")
  })
})

describe("a paste", () => {
  it("of 100 kB with its end marker split over reads is one edit and sends nothing", async () => {
    const terminal = await ready()
    const lines = Array.from({ length: 2_000 }, (_, index) => `pasted line ${index} ${"x".repeat(36)}`).join("\r")
    expect(lines.length).toBeGreaterThan(100_000)
    await terminal.settled()
    const before = terminal.raw.length
    terminal.write(`\x1b[200~${lines}`)
    await terminal.settled()
    for (const part of ["\x1b[2", "01", "~"]) {
      terminal.write(part)
      await terminal.settled()
    }
    await terminal.until("[paste #1 +2000 lines]")
    await terminal.settled()
    // One edit is one frame.
    expect(terminal.raw.slice(before).split("\x1b[?2026h")).toHaveLength(2)
    expect(terminal.text()).not.toContain("You said")
    // One undo takes all of it away again.
    terminal.write("\x1f")
    await terminal.until((now) => !now.screen().join("\n").includes("[paste #1"))
  })

  it("without brackets sends nothing either", async () => {
    const terminal = await ready()
    terminal.write("first\rsecond\rthird\r")
    await terminal.until("third")
    await terminal.settled()
    expect(terminal.text()).not.toContain("You said")
    expect(terminal.screen().join("\n")).toContain("first")
  })

  it("of control characters brings none of them into the text", async () => {
    const terminal = await ready()
    terminal.write("\x1b[200~a\x07b\u009b31mc\x1b]0;t\x07d\x1b[201~")
    await terminal.until("ab31mc")
    await terminal.settled()
    terminal.write("\r")
    await terminal.until("You said: ab31mc]0;td")
    expect(terminal.raw).not.toContain("\u009b")
  })
})

describe("a facet that fails", () => {
  it("costs its own contribution, not the screen", async () => {
    const terminal = await ready({ mode: "broken" })
    await terminal.until("a slot's text")
    expect(terminal.screen().join("\n")).toContain("test.broken: slot chat.footer failed: broken slot")
    say(terminal, "/fail")
    await terminal.until("broken.fail: broken command")
    say(terminal, "still here")
    await terminal.until("You said: still here")
  })

  it("shows what is printed to the console as a notice, not in the middle of a frame", async () => {
    const terminal = await ready({ mode: "broken" })
    say(terminal, "/noisy")
    await terminal.until("! printed ␛]0;x␇by a library")
    expect(terminal.raw).not.toContain("\x1b]0;")
  })

  it("that does not start is named on the screen, and the others work", async () => {
    const terminal = await ready({ mode: "failing" })
    await terminal.until("Plugin test.failing failed")
    say(terminal, "fine")
    await terminal.until("You said: fine")
    expect(terminal.text()).not.toContain("ended:")
  })
})
