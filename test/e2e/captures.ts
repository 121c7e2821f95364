/**
 * The screens that `docs/terminal.md` shows: taken of a real run of `bezel` with the offline model, in a throw-away home.
 *
 * What differs from run to run is made alike: the home's path, seconds and the picture of the spinner, sizes of requests.
 * `node scripts/captures.ts` writes them into the page, and a test compares the page with fresh ones.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { png } from "../tui/image-scenes.ts"
import { PseudoTerminal } from "../tui/terminal.ts"

const root = join(import.meta.dirname, "../..")
const columns = 72

/** A status row whose right end is as wide as before. */
const alike = (row: string): string => {
  const status = /^(\S.*?)( +)[\d.]+k? context( · .*)$/.exec(row)
  if (status === null) return row
  const [, place = "", , rest = ""] = status
  const right = `1.2k context${rest}`
  return place + " ".repeat(Math.max(1, columns - place.length - right.length)) + right
}

const normal = (rows: ReadonlyArray<string>, home: string): string =>
  rows.map((row) =>
    alike(
      row.replaceAll(home, "/home/me")
        .replace(/^[\u2800-\u28ff] /u, "⠹ ")
        .replace(/ \d+s( +esc to interrupt)$/, " 3s$1")
    )
  ).join("\n").trim()

/** The screens by name. */
export const takeCaptures = async (): Promise<ReadonlyMap<string, string>> => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "bezel-capture-")))
  const shop = join(home, "shop")
  mkdirSync(shop)
  writeFileSync(join(shop, "total.ts"), "export const total = (items: number[]) =>\n  items.length\n")
  writeFileSync(join(shop, "shot.png"), png(64, 48))
  const terminal = PseudoTerminal.open({
    command: "bezel",
    columns,
    rows: 30,
    cwd: shop,
    env: { HOME: home, PATH: `${join(root, "bin")}:${process.env["PATH"]}` }
  })
  const captures = new Map<string, string>()
  const screen = () => terminal.screen().join("\n")
  const shows = (wanted: string | RegExp) =>
    terminal.until(() => typeof wanted === "string" ? screen().includes(wanted) : wanted.test(screen()))
  /** From the last row that begins so, or as many rows from there. */
  const take = (name: string, from: string, count?: number) => {
    const rows = terminal.screen()
    const first = rows.findLastIndex((row) => row.startsWith(from))
    if (first < 0) throw new Error(`No row begins with ${from}:\n${screen()}`)
    captures.set(name, normal(rows.slice(first, count === undefined ? undefined : first + count), home))
  }
  const rests = /context · bezel\/offline$/m
  try {
    await shows("bezel/offline")
    terminal.write("edit total.ts: items.length => items.reduce((sum, item) => sum + item, 0)\r")
    await shows(/waits for you[\s\S]*enter choose · esc cancel/)
    take("an edit asks", "› edit total.ts")
    terminal.write("1")
    await shows(/Edited total\.ts[\s\S]*context · bezel\/offline$/m)
    take("an edit is shown", "✓ edit total.ts")

    terminal.write("ask Which colour? teal | amber\r")
    await shows(/a question waits for you[\s\S]*Which colour\?[\s\S]*enter choose/)
    take("a question", "● question")
    terminal.write("2")
    await shows(/amber[\s\S]*context · bezel\/offline$/m)

    terminal.write("task look around: run sleep 60\r")
    await shows(/waits for an answer[\s\S]*Running subagent[\s\S]*For the sub-agent[\s\S]*enter choose/)
    take("a sub-agent asks", "● subagent")
    terminal.write("1")
    await shows("bash sleep 60")
    terminal.write("look at b too\r")
    await shows("↳ next: look at b too")
    terminal.write("/later then commit\r")
    await shows("↳ later: then commit")
    terminal.write("/queue\r")
    await shows(/Prompts that wait[\s\S]*enter choose/)
    take("prompts that wait", "↳ next")
    terminal.write("2")
    await shows(/Waits for the end[\s\S]*enter choose/)
    take("one that waits", "Waits for the end")
    terminal.write("3")
    await shows("It waits no longer")
    terminal.write("\x1b")
    await shows(/^(?![\s\S]*It waits no longer)[\s\S]*⊘ Interrupted\./)

    terminal.write(`\x1b[200~${join(shop, "shot.png")}\x1b[201~what is this?`)
    await shows("+ shot.png")
    take("an image", "+ shot.png")
    terminal.write("\x03")
    await shows(rests)

    terminal.write("/plugins\r")
    await shows("escape closes")
    take("plugins", "Plugins", 5)
    terminal.write("\x1b")
    await shows(rests)
    terminal.write("\x04")
    await terminal.exit()
    return captures
  } finally {
    terminal.close()
    rmSync(home, { recursive: true, force: true })
  }
}

/** A page with its screens replaced by these; each stands in a block behind a comment with its name. */
export const withCaptures = (page: string, captures: ReadonlyMap<string, string>): string =>
  page.replace(
    /(<!-- screen: (.*?) -->\n+```text\n)(?:(?!```)[\s\S])*(```\n)/g,
    (_, start: string, name: string, end: string) => {
      const capture = captures.get(name)
      if (capture === undefined) throw new Error(`There is no screen of the name "${name}".`)
      return `${start}${capture}\n${end}`
    }
  )
