/** Images in a real terminal: what is written for one, where it stands, and what of a bad one gets there. */
import { afterEach, describe, expect, it } from "vitest"
import { images } from "./image-scenes.ts"
import { PseudoTerminal } from "./terminal.ts"

const open: Array<PseudoTerminal> = []

const ready = async (env: { readonly [name: string]: string }, rows = 40): Promise<PseudoTerminal> => {
  const terminal = PseudoTerminal.open({ command: `${process.execPath} test/tui/program.ts`, columns: 80, rows, env })
  open.push(terminal)
  await terminal.until("bezel/offline")
  return terminal
}

afterEach(() => {
  for (const terminal of open.splice(0)) terminal.close()
})

const kitty = { KITTY_WINDOW_ID: "1" }
const iterm = { TERM_PROGRAM: "iTerm.app" }

/** What kitty was given: the keys of each image and its data, put together again. */
const kittyImages = (raw: string) => {
  const found: Array<{ keys: string; data: string }> = []
  // eslint-disable-next-line no-control-regex
  for (const [, keys = "", data = ""] of raw.matchAll(/\x1b_G([^;\x1b]*)(?:;([A-Za-z0-9+/=]*))?\x1b\\/g)) {
    if (keys.includes("a=T")) found.push({ keys, data })
    else if (/^m=[01]$/.test(keys)) (found.at(-1) ?? { data: "" }).data += data
  }
  return found
}

const show = async (terminal: PseudoTerminal, name: string): Promise<string> => {
  const before = terminal.raw.length
  terminal.write(`scene image ${name}\r`)
  await terminal.until(`Seen ${name}`)
  await terminal.settled()
  return terminal.raw.slice(before)
}

/** Bytes without what the renderer writes for rows of text. */
const odd = (bytes: string): string =>
  bytes.replaceAll("\x1b]8;;\x07", "")
    // eslint-disable-next-line no-control-regex
    .replace(/\x1b\[(?:[0-9;]*m|[0-9]*[ABG]|2?K|J|\?25[lh]|\?2026[hl])/g, "")
    // eslint-disable-next-line no-control-regex
    .replace(/[^\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]/g, "")

const png = images["png"]?.data ?? ""

describe("an image", { timeout: 60_000 }, () => {
  it("is drawn by a terminal that knows kitty's protocol, below its prompt, in rows of its own", async () => {
    const terminal = await ready(kitty)
    const bytes = await show(terminal, "png")
    const [drawn, ...others] = kittyImages(bytes)
    expect(others).toEqual([])
    expect(drawn?.data).toBe(png)
    expect(drawn?.keys).toMatch(/^a=T,f=100,q=2,C=1,c=\d+,r=\d+,i=\d+,m=1$/)
    // 64×48 in cells of 9×18 that may be 60 by 16.
    const rows = Number(/r=(\d+)/.exec(drawn?.keys ?? "")?.[1])
    expect(rows).toBeGreaterThan(1)
    const screen = terminal.screen()
    const prompt = screen.indexOf("› Look at this")
    expect(screen.indexOf("Seen png")).toBe(prompt + rows + 3)
    expect(screen[prompt + 1]).toBe("  [image 64×48 png, 9 KB] shot.png")
    expect(screen.slice(prompt + 2, prompt + rows + 3).join("")).toBe("")
    // eslint-disable-next-line no-control-regex
    expect(odd(bytes.replace(/\x1b_G[^\x1b]*\x1b\\/g, ""))).toBe("")
  })

  it("is drawn by iTerm2 in its own protocol", async () => {
    const terminal = await ready(iterm)
    const bytes = await show(terminal, "png")
    // eslint-disable-next-line no-control-regex
    const drawn = [...bytes.matchAll(/\x1b\]1337;File=([^:\x07]*):([^\x07]*)\x07/g)]
    expect(drawn.map(([, , data]) => data)).toEqual([png])
    expect(drawn[0]?.[1]).toMatch(/^inline=1;size=\d+;width=\d+;height=auto$/)
    // eslint-disable-next-line no-control-regex
    expect(odd(bytes.replace(/\x1b\]1337;File=[^\x07]*\x07/g, ""))).toBe("")
  })

  it.each([
    ["a terminal that draws none", {}],
    ["tmux, whatever terminal is around it", { ...kitty, ...iterm, TMUX: "/tmp/tmux,1,0" }],
    ["the full screen", { ...kitty, TEST_SCREEN: "full" }]
  ])("is described in %s", async (_, env) => {
    const terminal = await ready(env)
    const bytes = await show(terminal, "png")
    expect(terminal.screen()).toContain("  [image 64×48 png, 9 KB] shot.png")
    expect(bytes).not.toContain(png.slice(0, 40))
    // eslint-disable-next-line no-control-regex
    expect(bytes).not.toMatch(/\x1b_G|\x1b\]1337/)
  })

  it("of another kind than PNG is described where the terminal takes that alone, and drawn where it takes others", async () => {
    const terminal = await ready(kitty)
    expect(await show(terminal, "jpeg")).not.toContain("\x1b_G")
    expect(terminal.screen()).toContain("  [image 64×48 jpeg, 22 B] shot.png")
    expect(await show(await ready(iterm), "jpeg")).toContain("\x1b]1337;File=")
  })

  it("is drawn once, however much scrolls by and changes after it, and the history is left alone", async () => {
    const terminal = await ready(kitty, 24)
    const before = terminal.raw.length
    terminal.write("scene images\r")
    await terminal.until("End of the images")
    await terminal.settled()
    const bytes = terminal.raw.slice(before)
    expect(kittyImages(bytes).map(({ data }) => data)).toEqual([png, png])
    expect(bytes).not.toContain("\x1b[2J")
    expect(bytes).not.toContain("\x1b[3J")
    expect(terminal.text()).toContain("Drawn")
    expect(terminal.text()).toContain("✓ read shot.png")
  })

  it("is drawn again for another width, within it", async () => {
    const terminal = await ready(kitty)
    await show(terminal, "png")
    const before = terminal.raw.length
    terminal.resize(40, 30)
    await terminal.until((now) => kittyImages(now.raw.slice(before)).length > 0)
    await terminal.settled()
    expect(kittyImages(terminal.raw.slice(before)).every(({ data }) => data === png)).toBe(true)
    for (const { keys } of kittyImages(terminal.raw.slice(before))) {
      expect(Number(/c=(\d+)/.exec(keys)?.[1])).toBeLessThanOrEqual(38)
    }
  })
})

describe("what calls itself an image", { timeout: 60_000 }, () => {
  const described: { readonly [name: string]: string } = {
    empty: "[image png, 0 B] shot.png",
    text: "[image png, ",
    escapes: "[image 8×8 png,",
    pixels: "[image 100000×100000 png, ",
    nothing: "[image png, ",
    large: "[image 64×48 png, 3.8 MB] shot.png",
    pdf: "[application/pdf, 8 B] report.pdf",
    kind: "[image 64×48 png;␛[2J, 9 KB] shot.png"
  }

  it.each([["kitty", kitty], ["iTerm2", iterm]])("is described, and none of its bytes reaches %s", async (_, env) => {
    const terminal = await ready(env)
    for (const [name, words] of Object.entries(described)) {
      // iTerm2 finds out the kind itself.
      if (name === "kind" && env === iterm) continue
      const bytes = await show(terminal, name)
      expect([name, terminal.text().includes(`  ${words}`)]).toEqual([name, true])
      expect([name, odd(bytes)]).toEqual([name, ""])
    }
  })

  it("cannot act by its name, drawn or described", async () => {
    const terminal = await ready({})
    expect(odd(await show(terminal, "name"))).toBe("")
    expect(terminal.text()).toContain("[image 64×48 png, 9 KB] ␛]0;owned␇a␊b<U+202E>gnp.exe")
    const drawn = await show(await ready(kitty), "name")
    // eslint-disable-next-line no-control-regex
    expect(odd(drawn.replace(/\x1b_G[^\x1b]*\x1b\\/g, ""))).toBe("")
    // eslint-disable-next-line no-control-regex
    expect(odd((await show(await ready(iterm), "name")).replace(/\x1b\]1337;File=[^\x07]*\x07/g, ""))).toBe("")
  })
})
