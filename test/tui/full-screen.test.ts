/** The full screen in a real terminal: what is on it, cell by cell, when it scrolls, is resized and asks, and what it leaves. */
import { afterEach, describe, expect, it } from "vitest"
import { PseudoTerminal } from "./terminal.ts"

const open: Array<PseudoTerminal> = []

const start = async (
  columns: number,
  rows: number,
  { command = `${process.execPath} test/tui/program.ts`, screen = "full" } = {}
): Promise<PseudoTerminal> => {
  const terminal = PseudoTerminal.open({ command, columns, rows, env: { TEST_SCREEN: screen } })
  open.push(terminal)
  await terminal.until((now) => now.screen().some((row) => row.endsWith("offline")))
  return terminal
}

afterEach(() => {
  for (const terminal of open.splice(0)) terminal.close()
})

/** Rows below the transcript: two, the editor in its two lines, and the status. */
const bottomRows = 6

/** One editor and one status row, at the very bottom, whole rows wide, with the cursor in the editor. */
const expectBottom = async (terminal: PseudoTerminal, columns: number, rows: number): Promise<void> => {
  await terminal.until((now) => now.cursor().row === rows - 3)
  const screen = terminal.screen()
  expect(screen).toHaveLength(rows)
  for (const row of [rows - 4, rows - 2]) {
    expect(terminal.cells(row).map(({ text, width }) => `${text}${width}`).join("")).toBe("─1".repeat(columns))
  }
  expect(screen[rows - 1]).toMatch(/offline$/)
  expect(terminal.overflowing()).toEqual([])
}

const transcript = (terminal: PseudoTerminal): ReadonlyArray<string> => terminal.screen().slice(0, -bottomRows)
const numbers = (rows: ReadonlyArray<string>): ReadonlyArray<number> =>
  rows.flatMap((row) => /^Line (\d+) of many$/.exec(row)?.[1] ?? []).map(Number)

const indicator = (terminal: PseudoTerminal): string => transcript(terminal).at(-1) ?? ""

const streamed = async (terminal: PseudoTerminal, lines: number): Promise<void> => {
  terminal.write(`stream ${lines}\r`)
  await terminal.until((now) =>
    numbers(transcript(now)).includes(lines) && !now.screen().some((row) => row.includes("esc"))
  )
}

const keys = {
  pageUp: "\x1b[5~",
  pageDown: "\x1b[6~",
  home: "\x1b[H",
  end: "\x1b[F",
  ctrlHome: "\x1b[1;5H",
  ctrlEnd: "\x1b[1;5F"
}

describe.each([20, 40, 80, 200])("the full screen at %i columns", { timeout: 60_000 }, (columns) => {
  it("keeps editor and status at the bottom and scrolls the transcript above them", async () => {
    const terminal = await start(columns, 20)
    expect(terminal.screen()[0]).toMatch(/^Bezel/)
    await expectBottom(terminal, columns, 20)
    await streamed(terminal, 60)
    await expectBottom(terminal, columns, 20)
    // An empty row between two lines, and none behind the last.
    expect(transcript(terminal).filter((row) => row !== "")).toEqual(
      Array.from({ length: 7 }, (_, index) => `Line ${index + 54} of many`)
    )

    terminal.write(keys.pageUp)
    await terminal.until((now) => indicator(now).startsWith("↓ more"))
    const first = numbers(transcript(terminal))
    expect(first).toEqual(Array.from({ length: first.length }, (_, index) => (first[0] ?? 0) + index))
    expect(first.at(-1)).toBeLessThan(60)
    await expectBottom(terminal, columns, 20)
    terminal.write(keys.pageUp)
    await terminal.until((now) => (numbers(transcript(now))[0] ?? 0) < (first[0] ?? 0))
    // Two rows of a page are of the page before.
    expect(numbers(transcript(terminal)).at(-1)).toBeGreaterThanOrEqual((first[0] ?? 0) - 1)

    terminal.write(keys.home)
    await terminal.until((now) => now.screen()[0]?.startsWith("Bezel") === true)
    expect(transcript(terminal)).toContain("› stream 60")
    expect(numbers(transcript(terminal))[0]).toBe(1)
    await expectBottom(terminal, columns, 20)
    terminal.write(keys.pageDown)
    await terminal.until((now) => numbers(transcript(now))[0] !== 1)
    terminal.write(keys.end)
    await terminal.until((now) => numbers(transcript(now)).includes(60))
    expect(terminal.screen().join("\n")).not.toContain("↓ more")
    await expectBottom(terminal, columns, 20)
  })

  it("is drawn for its new size when the terminal is resized in the middle of an answer", async () => {
    const terminal = await start(columns, 20)
    terminal.write("stream 120\r")
    await terminal.until((now) => numbers(transcript(now)).length > 3)
    for (const [width, height] of [[Math.max(20, columns - 5), 12], [columns + 30, 30], [columns, 16]] as const) {
      terminal.resize(width, height)
      await terminal.until((now) => now.screen().at(-1)?.endsWith("offline") === true)
      await expectBottom(terminal, width, height)
    }
    await terminal.until((now) =>
      numbers(transcript(now)).includes(120) && !now.screen().some((row) => row.includes("esc"))
    )
    await expectBottom(terminal, columns, 16)
    expect(terminal.raw).not.toContain("\x1b[3J")
  })
})

describe("somebody who reads further up", { timeout: 60_000 }, () => {
  it("keeps the rows they read while the answer goes on below, and is told of it", async () => {
    const terminal = await start(60, 20)
    await streamed(terminal, 40)
    terminal.write(keys.pageUp + keys.pageUp)
    await terminal.until((now) => indicator(now).startsWith("↓ more"))
    await terminal.settled()
    const before = transcript(terminal).slice(0, -1)
    // Sent from elsewhere: what is sent here shows the end.
    terminal.write("/elsewhere\r")
    await terminal.until((now) => indicator(now).startsWith("↓ new"))
    expect(transcript(terminal).slice(0, -1)).toEqual(before)
    expect(indicator(terminal)).toMatch(/^↓ new +\d+ % · ctrl\+end$/)
    terminal.write(keys.ctrlEnd)
    await terminal.until((now) => transcript(now).includes("said elsewhere"))
  })

  it("is taken to the end by what they send", async () => {
    const terminal = await start(60, 20)
    await streamed(terminal, 40)
    terminal.write(keys.ctrlHome)
    await terminal.until((now) => now.screen()[0]?.startsWith("Bezel") === true)
    terminal.write("hello\r")
    await terminal.until((now) => transcript(now).includes("You said: hello"))
    expect(terminal.screen().join("\n")).not.toContain("↓ more")
  })

  it("keeps home and end in the text while something is typed", async () => {
    const terminal = await start(60, 20)
    await streamed(terminal, 40)
    terminal.write("abc")
    await terminal.until((now) => now.screen().includes("abc"))
    terminal.write(`${keys.home}X`)
    await terminal.until((now) => now.screen().includes("Xabc"))
    expect(numbers(transcript(terminal))).toContain(40)
  })
})

describe("a question on the full screen", { timeout: 60_000 }, () => {
  it("that is taller than the terminal is read from its beginning by page up, and then answered", async () => {
    const terminal = await start(60, 12)
    terminal.write("/pick\r")
    await terminal.until((now) => now.screen().at(-1)?.startsWith("↑↓ move") === true)
    expect(terminal.screen().join("\n")).not.toContain("Pick one")
    terminal.write(keys.pageUp + keys.pageUp)
    await terminal.until((now) => now.screen().join("\n").includes("Pick one"))
    expect(terminal.screen().at(-1)).toMatch(/^↑↓ move/)
    terminal.write("\x1b")
    await terminal.until((now) => now.screen().at(-1)?.endsWith("offline") === true)
    await expectBottom(terminal, 60, 12)
  })

  it("takes the editor's place at the bottom and gives it back, and panels do", async () => {
    const terminal = await start(60, 20)
    terminal.write("scene approval\r")
    await terminal.until((now) => now.screen().at(-1)?.startsWith("↑↓ move") === true)
    expect(terminal.screen().join("\n")).toMatch(
      /─\nAllow bash\?\n {2}rm -rf build\n {2}No rule allows it\.\n› 1\. Allow/
    )
    terminal.write("1")
    await terminal.until((now) => now.screen().at(-1)?.endsWith("offline") === true)
    terminal.write("/help\r")
    await terminal.until((now) => now.screen().some((row) => row.startsWith("Help")))
    expect(terminal.screen().at(-1)).toMatch(/^─+$/)
    expect(terminal.screen().some((row) => /^Help +1-\d+ of \d+/.test(row))).toBe(true)
    terminal.write(keys.pageDown)
    await terminal.until((now) => now.screen().some((row) => /^Help +(?!1-)\d+-\d+ of/.test(row)))
    terminal.write("\x1b")
    await terminal.until((now) => now.screen().at(-1)?.endsWith("offline") === true)
    await expectBottom(terminal, 60, 20)
  })
})

describe("the mouse", { timeout: 60_000 }, () => {
  it("scrolls by its wheel where that is asked for, and its reports are no keys", async () => {
    const terminal = await start(60, 20, { screen: "mouse" })
    await streamed(terminal, 40)
    expect(terminal.raw).toContain("\x1b[?1000h")
    terminal.write("\x1b[<64;3;3M")
    await terminal.until((now) => indicator(now).startsWith("↓ more"))
    const up = numbers(transcript(terminal))
    terminal.write("\x1b[<0;3;3M\x1b[<0;3;3m\x1b[<64;3;3M")
    await terminal.until((now) => (numbers(transcript(now))[0] ?? 0) < (up[0] ?? 0))
    terminal.write("\x1b[<65;3;3M".repeat(4))
    await terminal.until((now) => numbers(transcript(now)).includes(40) && !indicator(now).startsWith("↓"))
    expect(terminal.screen().at(-3)).toBe("")
  })

  it("is the terminal's own otherwise: it is not asked for, and its wheel is no arrow key", async () => {
    const terminal = await start(60, 20)
    expect(terminal.raw).not.toMatch(/\x1b\[\?100[0-6]h/)
    expect(terminal.raw).toContain("\x1b[?1007l")
  })
})

describe("the main screen", { timeout: 60_000 }, () => {
  it("is as it was once the full screen has ended, with nothing of the session in it", async () => {
    const terminal = await start(60, 20, {
      command: `sh -c 'seq 1 40; exec ${process.execPath} test/tui/program.ts'`
    })
    await streamed(terminal, 40)
    terminal.write("\x04")
    await terminal.exit()
    expect(terminal.history().map((row) => row.trimEnd()).filter((row) => row !== "")).toEqual([
      ...Array.from({ length: 40 }, (_, index) => `${index + 1}`),
      "ended: quit"
    ])
  })

  it("is never left, nor the mouse asked for, without the option", async () => {
    const terminal = await start(60, 20, { screen: "inline" })
    await streamed(terminal, 40)
    terminal.write("\x04")
    await terminal.exit()
    expect(terminal.raw).not.toMatch(/\x1b\[\?(?:1049|47|1047|100\d|7)[hlsr]/)
  })
})

describe("a hostile transcript on the full screen", { timeout: 60_000 }, () => {
  it("reaches nothing but its own rows, and draws no question where one would stand", async () => {
    const terminal = await start(80, 24)
    await terminal.settled()
    const before = terminal.raw.length
    terminal.write("scene attack\r")
    await terminal.until((now) => now.screen().includes("End of the attack"))
    terminal.write(keys.pageUp.repeat(2))
    await terminal.until((now) => now.screen().some((row) => row.startsWith("↓ more")))
    await terminal.settled()
    const bytes = terminal.raw.slice(before).replaceAll("\x1b]8;;\x07", "")
    // Only what the renderer itself writes: colours, a place, clearing of a row, cursor, synchronized output.
    // eslint-disable-next-line no-control-regex
    expect(bytes.replace(/\x1b\[(?:[0-9;]*m|[0-9]+;[0-9]+H|2K|\?25[lh]|\?2026[hl])/g, "")).not.toMatch(
      // eslint-disable-next-line no-control-regex
      /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/
    )
    await expectBottom(terminal, 80, 24)
    const fake = terminal.screen().findLastIndex((row) => row.includes("↑↓ move"))
    expect(fake).toBeLessThan(24 - bottomRows)
    terminal.write("1")
    await terminal.until((now) => now.screen()[now.cursor().row] === "1")
  })
})
