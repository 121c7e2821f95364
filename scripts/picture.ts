/**
 * Draws `docs/terminal.svg`: what a terminal shows of a real run of `bezel`, with the offline model, in a throw-away home.
 * Run it after the screen has changed: `node scripts/picture.ts`.
 */
import xterm from "@xterm/headless"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const [columns, rows] = [84, 27]

const files = {
  "shop/cart.ts":
    "export function total(prices: number[]) {\n  let sum = 0\n  for (const price of prices) sum = price\n  return sum\n}\n",
  "shop/cart.test.ts":
    'import { total } from "./cart.ts"\n\nconsole.log(total([2, 3]) === 5 ? "ok" : "total is wrong")\n'
}
const steps: ReadonlyArray<readonly [shows: RegExp, keys: string]> = [
  [/bezel\/offline/, "search total in **/*.ts then edit cart.ts: sum = price => sum += price\r"],
  [/Allow edit\?/, "\r"],
  [/✓ edit[\s\S]*bezel\/offline/, "run node cart.test.ts\r"],
  [/Allow bash\?/, ""]
]

const palette = ["#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#dcdfe4"]
const colorOf = (index: number): string => {
  if (index < 16) return palette[index % 8] ?? "#dcdfe4"
  if (index > 231) return `rgb(${Array(3).fill(8 + (index - 232) * 10).join(",")})`
  const level = (value: number) => value === 0 ? 0 : 55 + value * 40
  const cube = index - 16
  return `rgb(${level(Math.floor(cube / 36))},${level(Math.floor(cube / 6) % 6)},${level(cube % 6)})`
}

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

function svg(screen: xterm.Terminal): string {
  const [width, height] = [8.4, 18]
  const buffer = screen.buffer.active
  const texts: Array<string> = []
  for (let row = 0; row < rows; row++) {
    const line = buffer.getLine(buffer.viewportY + row)
    for (let column = 0; line !== undefined && column < columns; column++) {
      const cell = line.getCell(column)
      const characters = cell?.getChars() ?? ""
      if (cell === undefined || characters.trim() === "") continue
      const color = cell.isFgRGB()
        ? `#${cell.getFgColor().toString(16).padStart(6, "0")}`
        : cell.isFgPalette()
        ? colorOf(cell.getFgColor())
        : "#dcdfe4"
      const style = (cell.isBold() ? ' font-weight="bold"' : "") + (cell.isDim() ? ' opacity="0.6"' : "")
      texts.push(
        `<text x="${(16 + column * width).toFixed(1)}" y="${28 + row * height}" fill="${color}"${style}>${
          escape(characters)
        }</text>`
      )
    }
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${32 + columns * width} ${
    28 + rows * height
  }" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">
<rect width="100%" height="100%" rx="8" fill="#1e222a"/>
${texts.join("\n")}
</svg>
`
}

const home = mkdtempSync(join(tmpdir(), "bezel-picture-"))
try {
  mkdirSync(join(home, "shop"))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(home, name), content)
  const screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  const child = spawn("script", [
    "--quiet",
    "--return",
    "--flush",
    "--command",
    `stty cols ${columns} rows ${rows}; bezel`,
    "/dev/null"
  ], {
    cwd: join(home, "shop"),
    env: {
      HOME: home,
      PATH: `${join(root, "bin")}:${process.env.PATH}`,
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
      SHELL: "/bin/sh"
    },
    stdio: ["pipe", "pipe", "inherit"]
  })
  child.stdout.on("data", (chunk: Buffer) => screen.write(chunk))
  const text = () =>
    Array.from(
      { length: rows },
      (_, row) => screen.buffer.active.getLine(screen.buffer.active.viewportY + row)?.translateToString(true) ?? ""
    ).join("\n")
  for (const [shows, keys] of steps) {
    const end = Date.now() + 20_000
    while (!shows.test(text())) {
      if (Date.now() > end) throw new Error(`the screen does not show ${shows}:\n${text()}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    // A dialog takes no keys of somebody who is still typing.
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    child.stdin.write(keys)
  }
  writeFileSync(join(root, "docs/terminal.svg"), svg(screen))
  console.log(text())
  child.kill("SIGKILL")
} finally {
  rmSync(home, { recursive: true, force: true })
}
