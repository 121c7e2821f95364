/** What is on the screen, cell by cell, for the main scenes at narrow and wide terminals. */
import { afterEach, describe, expect, it } from "vitest"
import { PseudoTerminal } from "./terminal.ts"

const open: Array<PseudoTerminal> = []

const ready = async (columns: number, rows = 24): Promise<PseudoTerminal> => {
  const terminal = PseudoTerminal.open({ command: `${process.execPath} test/tui/program.ts`, columns, rows })
  open.push(terminal)
  await terminal.until((now) => now.screen().some((line) => line.endsWith("offline")))
  return terminal
}

afterEach(() => {
  for (const terminal of open.splice(0)) terminal.close()
})

const show = async (terminal: PseudoTerminal, words: string, wanted: (screen: string) => boolean): Promise<string> => {
  terminal.write(`${words}\r`)
  await terminal.until((now) => wanted(now.screen().join("\n")))
  return terminal.screen().join("\n")
}

/** Nothing went over the edge, nothing was cleared, and there is one editor, one status row and one cursor where it belongs. */
const expectFrame = async (
  terminal: PseudoTerminal,
  columns: number,
  where: "history" | "screen" = "history"
): Promise<void> => {
  // The cursor comes last of a frame.
  const isRule = (row: number) => /^─+$/.test(terminal.screen()[row] ?? "")
  await terminal.until((now) => isRule(now.cursor().row - 1) && isRule(now.cursor().row + 1))
  const screen = terminal.screen()
  expect(terminal.overflowing(where)).toEqual([])
  // eslint-disable-next-line no-control-regex
  expect(terminal.raw).not.toMatch(/\x1b\[[23]J/)
  const rules = screen.flatMap((line, row) => /^─+$/.test(line) ? [row] : []).slice(-2)
  expect(rules).toHaveLength(2)
  for (const row of rules) {
    expect(terminal.cells(row).every(({ text, width }) => text === "─" && width === 1)).toBe(true)
  }
  expect(terminal.cells(rules[0] ?? 0)).toHaveLength(columns)
  const status = screen.findLastIndex((line) => line !== "")
  expect(screen[status]).toMatch(/offline$/)
  expect(status).toBe((rules[1] ?? 0) + 1)
  expect(terminal.cursor().row).toBe((rules[0] ?? 0) + 1)
}

const interrupt = async (terminal: PseudoTerminal): Promise<void> => {
  terminal.write("\x1b")
  await terminal.until((now) => !/^[\u2800-\u28ff?] .*esc( to interrupt)?$/m.test(now.screen().join("\n")))
}

describe.each([20, 40, 80, 200])("at %i columns", { timeout: 60_000 }, (columns) => {
  it("an answer that streams, a change, the queue, the list of things to do and a retry stand in their rows", async () => {
    const terminal = await ready(columns, 40)
    const answer = await show(terminal, "scene answer", (screen) => screen.includes("const a = 1"))
    expect(answer).toMatch(/┊ Where is it set\?\n\nIt is set in a\.ts:\n\n- one\n- two\n/)
    await expectFrame(terminal, columns)
    await interrupt(terminal)

    const diff = await show(terminal, "scene diff", (screen) => screen.includes("+two"))
    expect(diff).toMatch(/✓ edit src\/a\.ts\n {2}@@ -1,3 \+1,3 @@\n {3}same\n {2}-one\n {2}\+two\n {3}same\n/)
    const row = (words: string) => terminal.screen().indexOf(words)
    const color = (words: string) => terminal.cells(row(words))[2]?.color
    expect([color("  +two"), color("  -one")]).toEqual([2, 1])
    await expectFrame(terminal, columns)

    const todo = await show(terminal, "scene todo", (screen) => screen.includes("Todo 1/3"))
    expect(todo).toMatch(/Todo 1\/3\n {2}▶ write\n {2}○ test\n─/)
    await expectFrame(terminal, columns)

    const queue = await show(terminal, "scene queue", (screen) => screen.includes("↳ later:"))
    expect(queue).toMatch(
      columns === 20 ? /↳ next: look at b t…\n↳ later: then commit\n/ : /↳ next: look at b too\n↳ later: then commit\n/
    )
    await expectFrame(terminal, columns)
    await interrupt(terminal)

    const retry = await show(terminal, "retry", (screen) => screen.includes("Retry in"))
    if (columns >= 80) {
      expect(retry).toMatch(/[\u2800-\u28ff] Retry in \d+s \(attempt 2\): Too many requests +esc to interrupt/)
    } else expect(retry).toMatch(columns === 20 ? /Retry in .*… esc\n/ : /Retry in .*… esc to interrupt\n/)
    await expectFrame(terminal, columns)
  })

  it("an approval, a question and a long list take the editor's place and give it back", async () => {
    const terminal = await ready(columns, 24)
    const listens = (title: string) => (screen: string) => screen.includes(title) && screen.includes("↑↓ move")
    const approval = await show(terminal, "scene approval", listens("Allow bash?"))
    expect(approval).toMatch(/─\nAllow bash\?\n {2}rm -rf build\n {2}No rule allows it\.\n› 1\. Allow once\n {2}2\. No/)
    expect(terminal.overflowing()).toEqual([])
    terminal.write("1")
    await terminal.until((now) => now.screen().at(-1) !== undefined && !now.screen().join("\n").includes("Allow bash?"))
    await expectFrame(terminal, columns)

    const question = await show(terminal, "scene question", listens("Which one?"))
    expect(question).toMatch(
      columns === 20
        ? /Which one\?\n› 1\. Left  the shor…\n {2}2\. Right\n/
        : /Which one\?\n› 1\. Left {2}the short way\n {2}2\. Right\n/
    )
    terminal.write("2")
    await terminal.until((now) => !now.screen().join("\n").includes("Which one?"))

    const picker = await show(terminal, "/pick", listens("Pick one"))
    expect(picker).toMatch(/Pick one\nof many\n› 1\. Item 1 {2}d\n/)
    expect(picker).toMatch(/ {5}Item 10 {2}d\n {2}4 more\n/)
    terminal.write("\x1b[A")
    await terminal.until((now) => now.screen().some((line) => line.startsWith("›    Item 14")))
    expect(terminal.overflowing()).toEqual([])
    terminal.write("\x1b")
    await terminal.until((now) => !now.screen().join("\n").includes("Pick one"))
    await expectFrame(terminal, columns)
  })

  it("text of every script and emoji keep their columns", async () => {
    const terminal = await ready(columns, 40)
    await show(terminal, "scene mixed", (screen) => screen.includes("End of it."))
    await expectFrame(terminal, columns)
    const words = terminal.text().replace(/\s+/g, "")
    expect(words).toContain("日本語テキスト")
    expect(words).toContain("e\u0301a\u0308")
    expect(words).toContain("שלוםעולם")
    const cjk = terminal.screen().findLastIndex((line) => line.startsWith("日本語"))
    expect(terminal.cells(cjk).slice(0, 4).map(({ text, width }) => [text, width])).toEqual([
      ["日", 2],
      ["", 0],
      ["本", 2],
      ["", 0]
    ])
  })
})

describe("what has scrolled away", { timeout: 60_000 }, () => {
  it("is not taken back by calls that end when their first row is above the screen", async () => {
    const terminal = await ready(60, 14)
    const before = terminal.raw.length
    await show(terminal, "scene tall", (screen) => screen.includes("All of them passed"))
    const bytes = terminal.raw.slice(before)
    expect(bytes).not.toContain("\x1b[2J")
    expect(bytes).not.toContain("\x1b[3J")
    for (let step = 0; step < 12; step++) expect(terminal.text()).toContain(`bash step ${step}`)
    await expectFrame(terminal, 60)
  })

  it("is whole and in order when the terminal is resized in the middle of an answer, at widths from 20 to 200", async () => {
    /** A terminal that gets its sizes while the answer comes, and the longest that it took until the program was told. */
    const resized = async () => {
      const terminal = await ready(60, 16)
      let longest = 0
      terminal.write("stream 150\r")
      await terminal.until("Line 20 of many")
      for (const [columns, rows] of [[20, 10], [200, 30], [35, 12], [90, 40], [60, 16]] as const) {
        const seen = terminal.raw.length
        const began = performance.now()
        terminal.resize(columns, rows)
        longest = Math.max(longest, performance.now() - began)
        await terminal.until((now) => now.raw.length > seen)
      }
      return { terminal, longest }
    }
    let taken = await resized()
    // Frames may be on their way for some tenths of a second; a machine that needs longer to say a size shows nothing.
    for (let attempt = 0; attempt < 4 && taken.longest > 100; attempt++) taken = await resized()
    const { terminal } = taken
    await terminal.until((now) => {
      const screen = now.screen().join("\n")
      return screen.includes("Line 150 of many") && !screen.includes("esc to")
    })
    // What was written lately is there again from where its size changed, since frames were on their way to another one.
    const lines = terminal.history().flatMap((line) => {
      const match = /^Line (\d+) of many$/.exec(line)
      return match === null ? [] : [Number(match[1])]
    })
    const last = Array.from({ length: 150 }, (_, index) => lines.lastIndexOf(index + 1))
    expect(last).not.toContain(-1)
    expect(last).toEqual(last.toSorted((a, b) => a - b))
    await expectFrame(terminal, 60, "screen")
    // Cell by cell what somebody sees who had this size from the beginning.
    const other = await ready(60, 16)
    await show(other, "stream 150", (screen) => screen.includes("Line 150 of many") && !screen.includes("esc to"))
    await terminal.settled()
    await other.settled()
    for (let row = 0; row < 16; row++) expect(terminal.cells(row)).toEqual(other.cells(row))
    expect(terminal.cursor()).toEqual(other.cursor())
  })
})

describe("what is asked for by a key", { timeout: 60_000 }, () => {
  it("shows output in full and shortens it again without touching what has scrolled away", async () => {
    const terminal = await ready(60, 20)
    await show(terminal, "stream 20", (screen) => screen.includes("Line 20 of many"))
    await show(terminal, "scene tall", (screen) => screen.includes("All of them passed"))
    await terminal.until((now) => !now.screen().join("\n").includes("esc to"))
    for (let press = 0; press < 4; press++) {
      const seen = terminal.raw.length
      terminal.write("\x0fx")
      await terminal.until((now) => now.raw.length > seen && now.screen().includes("x".repeat(press + 1)))
      await terminal.settled()
    }
    await expectFrame(terminal, 60)
    expect(terminal.history().filter((line) => /^Line \d+ of many$/.test(line))).toEqual(
      Array.from({ length: 20 }, (_, index) => `Line ${index + 1} of many`)
    )
  })
})

describe("a hostile transcript", { timeout: 60_000 }, () => {
  it("reaches nothing but its own rows, and what it draws is no approval", async () => {
    const terminal = await ready(80, 24)
    await terminal.settled()
    const before = terminal.raw.length
    await show(terminal, "scene attack", (screen) => screen.includes("End of the attack"))
    await terminal.settled()
    const bytes = terminal.raw.slice(before).replaceAll("\x1b]8;;\x07", "")
    // Only what the renderer itself writes: colours, moves by rows and columns, clearing of a row, cursor, synchronized output.
    // eslint-disable-next-line no-control-regex
    expect(bytes.replace(/\x1b\[(?:[0-9;]*m|[0-9]*[ABG]|2?K|J|\?25[lh]|\?2026[hl])/g, "")).not.toMatch(
      // eslint-disable-next-line no-control-regex
      /[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/
    )
    await expectFrame(terminal, 80)
    expect(terminal.text()).toContain("Bezel  /help for help")
    expect(terminal.text()).toContain("› scene attack")
    // It stands above the editor, which has the keys: what is typed is a prompt, and answers nothing.
    const screen = terminal.screen()
    const fake = terminal.text().lastIndexOf("↑↓ move · enter choose · esc cancel")
    expect(fake).toBeGreaterThan(-1)
    expect(terminal.text().indexOf("End of the attack")).toBeGreaterThan(fake)
    expect(screen.slice(terminal.cursor().row).join("\n")).not.toContain("↑↓ move")
    terminal.write("1")
    await terminal.until((now) => now.screen()[now.cursor().row] === "1")
  })
})
