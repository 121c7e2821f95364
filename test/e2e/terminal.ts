/** The command in a real terminal: a pseudo-terminal from `script`, and a screen that shows what it would show. */
import xterm from "@xterm/headless"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { type Home, root } from "./command.ts"

export interface TerminalRun {
  /** The rows of the screen and what has scrolled off it, without trailing space. */
  readonly text: () => string
  /** Everything that was written until now. */
  readonly raw: () => string
  /** Completes once the screen matches. */
  readonly shows: (pattern: RegExp) => Promise<void>
  readonly type: (keys: string) => void
  readonly kill: (signal: NodeJS.Signals) => void
  /** Once the screen shows all of it: everything that was written, escape sequences and all, and the exit code. */
  readonly ended: Promise<{ readonly code: number | null; readonly raw: string }>
}

/** Runs a shell line in a terminal of 80 by 24, in the home's work folder, with `bezel` on the path. */
export function runInTerminal(home: Home, line: string): TerminalRun {
  const screen = new xterm.Terminal({ cols: 80, rows: 24, scrollback: 1_000, allowProposedApi: true })
  const child = spawn("script", [
    "--quiet",
    "--return",
    "--flush",
    "--command",
    `stty cols 80 rows 24; ${line}`,
    "/dev/null"
  ], {
    cwd: home.work,
    env: {
      HOME: home.folder,
      PATH: `${join(root, "bin")}:${process.env.PATH}`,
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
      SHELL: "/bin/sh"
    },
    stdio: ["pipe", "pipe", "pipe"],
    detached: true
  })
  const signal = (name: NodeJS.Signals) => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, name)
  }
  onTestFinished(() => signal("SIGKILL"))
  let raw = ""
  // The screen takes what is written to it a moment later.
  let taken: Promise<void> = Promise.resolve()
  const watchers = new Set<() => void>()
  const check = () => {
    for (const watcher of watchers) watcher()
  }
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    raw += chunk
    taken = new Promise((resolve) =>
      screen.write(chunk, () => {
        check()
        resolve()
      })
    )
  })
  const text = () => {
    const { active } = screen.buffer
    const rows = Array.from({ length: active.length }, (_, row) => active.getLine(row)?.translateToString(true) ?? "")
    return rows.join("\n").trimEnd()
  }
  return {
    text,
    raw: () => raw,
    shows: (pattern) =>
      new Promise((resolve, reject) => {
        const limit = setTimeout(() => reject(new Error(`the screen does not show ${pattern}:\n${text()}`)), 20_000)
        const watcher = () => {
          if (!pattern.test(text())) return
          watchers.delete(watcher)
          clearTimeout(limit)
          resolve()
        }
        watchers.add(watcher)
        watcher()
      }),
    type: (keys) => {
      child.stdin.write(keys)
    },
    kill: signal,
    ended: new Promise((resolve) => child.once("close", (code) => void taken.then(() => resolve({ code, raw }))))
  }
}
