/** What a person does beside talking, in a real terminal: their own editor, the clipboard, a file, prompts taken back. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it, onTestFinished } from "vitest"
import { PseudoTerminal } from "./terminal.ts"

const open: Array<PseudoTerminal> = []

const ready = async (env: { readonly [name: string]: string } = {}): Promise<PseudoTerminal> => {
  const terminal = PseudoTerminal.open({ command: `${process.execPath} test/tui/program.ts`, env })
  open.push(terminal)
  await terminal.until("bezel/offline")
  return terminal
}

afterEach(() => {
  for (const terminal of open.splice(0)) terminal.close()
})

const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), "bezel-test-"))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

/** An editor as a script: it says what it got and how it is kept, and waits for a key before it writes. */
const editor = (home: string, end: string): string => {
  const script = join(home, "editor.sh")
  writeFileSync(
    script,
    `stat -c '%a %n' "$1" > ${home}/mode; cp "$1" ${home}/got; stty -a > ${home}/stty; echo in the editor; read key; ${end}\n`
  )
  return `sh ${script}`
}

describe("the person's own editor", { timeout: 40_000 }, () => {
  it("gets the prompt in a private file and the terminal, and gives the text back", async () => {
    const home = folder()
    const terminal = await ready({ TMPDIR: home, VISUAL: editor(home, `printf 'one\\ntwo\\n' > "$1"`) })
    terminal.write("half a thought\x07")
    await terminal.until("in the editor")
    expect(readFileSync(join(home, "got"), "utf8")).toBe("half a thought")
    expect(readFileSync(join(home, "mode"), "utf8")).toMatch(/^600 /)
    expect(readFileSync(join(home, "stty"), "utf8")).toMatch(/ icanon/)
    expect(terminal.modes().bracketedPaste).toBe(false)
    terminal.write("\r")
    await terminal.until((now) => now.modes().bracketedPaste && now.screen().includes("two"))
    expect(readdirSync(home).filter((name) => name.startsWith("bezel-prompt-"))).toEqual([])
    terminal.write("\r")
    await terminal.until(/You said: one\s+two/)
  })

  it.each(["inline", "full"])(
    "gives back a screen that goes on, also where something moved meanwhile: %s",
    async (screen) => {
      const home = folder()
      const script = join(home, "slow.sh")
      // Some turns of the picture that says that the model works.
      writeFileSync(script, "sleep 0.5; echo in the editor; read key\n")
      const terminal = await ready({ TMPDIR: home, VISUAL: `sh ${script}`, TEST_SCREEN: screen })
      terminal.write("hang\r")
      await terminal.until("esc to interrupt")
      terminal.write("half a thought\x07")
      await terminal.until("in the editor")
      terminal.write("\r")
      await terminal.until((now) => now.modes().bracketedPaste && now.screen().includes("half a thought"))
      terminal.write(" more")
      await terminal.until((now) => now.screen().includes("half a thought more"))
      terminal.write("\x1b")
      await terminal.until((now) => now.text().includes("Interrupted.") && now.screen().includes("half a thought more"))
      expect(terminal.modes().bracketedPaste).toBe(true)
    }
  )

  it("leaves the prompt as it was when it fails, and the interrupt key is for it alone", async () => {
    const home = folder()
    const terminal = await ready({ TMPDIR: home, EDITOR: editor(home, "exit 3") })
    terminal.write("half a thought\x07")
    await terminal.until("in the editor")
    terminal.write("\x03")
    await terminal.until((now) => now.modes().bracketedPaste && /ended\s+with/.test(now.text()))
    expect(terminal.screen()).toContain("half a thought")
    expect(readdirSync(home).filter((name) => name.startsWith("bezel-prompt-"))).toEqual([])
  })

  it("is not what an interrupt ends that arrives just after it", async () => {
    const home = folder()
    // What its key did: it ended the editor, and its signal comes to the program after the editor's end.
    const script = join(home, "late.sh")
    writeFileSync(
      script,
      `echo in the editor; read key; (trap '' INT; sleep 0.1; kill -INT 0; touch ${home}/sent) & exit 0\n`
    )
    const terminal = await ready({ TMPDIR: home, VISUAL: `sh ${script}` })
    terminal.write("half a thought\x07")
    await terminal.until("in the editor")
    terminal.write("\r")
    await terminal.until((now) => now.modes().bracketedPaste && existsSync(join(home, "sent")))
    terminal.write(" more")
    await terminal.until((now) => now.screen().includes("half a thought more"))
    expect(terminal.text()).not.toContain("ended:")
  })

  it("is asked for where none is set", async () => {
    const terminal = await ready()
    terminal.write("\x07")
    await terminal.until("No editor is set: set VISUAL or EDITOR")
    expect(terminal.modes().bracketedPaste).toBe(true)
  })
})

describe("keeping", { timeout: 40_000 }, () => {
  it("/copy hands the last answer to the terminal's clipboard, and nothing else ever does", async () => {
    const terminal = await ready()
    terminal.write("/copy\r")
    await terminal.until("There is no answer yet.")
    terminal.write("grüße\r")
    await terminal.until("You said: grüße")
    expect(terminal.raw).not.toContain("\x1b]52")
    terminal.write("/copy\r")
    await terminal.until("The last answer went to the clipboard")
    // eslint-disable-next-line no-control-regex
    const copied = /\x1b\]52;c;([^\x07]*)\x07/.exec(terminal.raw)?.[1] ?? ""
    expect(Buffer.from(copied, "base64").toString()).toBe("You said: grüße")
  })

  it("/export writes the conversation to a private file, and never over one that is there", async () => {
    const file = join(folder(), "talk.md")
    const terminal = await ready()
    terminal.write("tool\r")
    await terminal.until("Tests pass")
    terminal.write(`/export ${file}\r`)
    await terminal.until("Written to ")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, "utf8")).toMatch(
      /## Prompt\n\ntool\n\n## Answer\n\nI run it\n\n### Call of bash\n\n```json\n[\s\S]*### Result of bash\n\n```\nall 20 passed\n```\n\n## Answer\n\nTests pass\n$/
    )
    writeFileSync(file, "mine")
    terminal.write(`/export ${file}\r`)
    await terminal.until(/is\s+there\s+already;\s+give\s+another\s+name/)
    expect(readFileSync(file, "utf8")).toBe("mine")
  })
})

describe("a prompt that waits", { timeout: 40_000 }, () => {
  it("comes back into the editor, the newest first, before what is typed there", async () => {
    const terminal = await ready()
    terminal.write("scene queue\r")
    await terminal.until("↳ later: then commit")
    terminal.write("and more\x1b[1;3A")
    await terminal.until((now) => now.screen().includes("/later then commit") && now.screen().includes("and more"))
    expect(terminal.screen().join("\n")).not.toContain("↳ later:")
    expect(terminal.screen().join("\n")).toContain("↳ next: look at b too")
  })
})
