/** The command as somebody else runs it: `bin/bezel` in a throw-away home, by its arguments, streams and exit code alone. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { onTestFinished } from "vitest"
import type { ModelServer } from "../../packages/core/src/testing/model-server.ts"

export const root = join(import.meta.dirname, "../..")

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** stdout as JSON, one value per line. */
  readonly lines: () => ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }>
}

export interface Running {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
  /** What has come so far. */
  readonly output: { readonly stdout: string; readonly stderr: string }
  /** Completes once stdout or stderr has matched. */
  readonly seen: (pattern: RegExp) => Promise<void>
}

export interface Home {
  /** The folder that commands run in. */
  readonly work: string
  readonly folder: string
  readonly write: (path: string, content: string) => string
  /** The user's `bezel.jsonc`. */
  readonly settings: (content: string | object) => void
  /** A provider `test` with a model `m` at this server, as the default model. */
  readonly useServer: (server: ModelServer, more?: object) => void
  readonly start: (argv: ReadonlyArray<string>, options?: StartOptions) => Running
  readonly run: (argv: ReadonlyArray<string>, options?: StartOptions) => Promise<Ended>
}

export interface StartOptions {
  readonly stdin?: string
  readonly env?: { readonly [name: string]: string }
  readonly cwd?: string
  /** Starts in a folder that is deleted before the command runs. */
  readonly gone?: boolean
  /** Where stdout goes instead of here. */
  readonly stdoutTo?: string
}

/** A fresh home and work folder, gone when the test has ended. */
export function makeHome(): Home {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "bezel-e2e-")))
  const work = join(folder, "work")
  mkdirSync(work)
  const running = new Set<ChildProcess>()
  onTestFinished(() => {
    for (const child of running) child.kill("SIGKILL")
    rmSync(folder, { recursive: true, force: true })
  })
  const write = (path: string, content: string) => {
    const target = join(folder, path)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, content)
    return target
  }
  const settings: Home["settings"] = (content) => {
    write(".config/bezel/bezel.jsonc", typeof content === "string" ? content : JSON.stringify(content))
  }
  const start: Home["start"] = (argv, options = {}) => {
    const gone = options.gone === true ? mkdtempSync(join(folder, "gone-")) : null
    const [program, ...first] = gone === null
      ? [join(root, "bin/bezel")]
      : ["/bin/sh", "-c", 'rmdir "$PWD"; exec "$0" "$@"', join(root, "bin/bezel")]
    const stdout = options.stdoutTo === undefined ? "pipe" : openSync(options.stdoutTo, "w")
    const child = spawn(program ?? "", [...first, ...argv], {
      cwd: gone ?? options.cwd ?? work,
      env: { HOME: folder, PATH: process.env.PATH ?? "", LANG: "C.UTF-8", TERM: "dumb", ...options.env },
      stdio: ["pipe", stdout, "pipe"]
    })
    running.add(child)
    const output = { stdout: "", stderr: "" }
    const watchers = new Set<() => void>()
    const collect = (name: "stdout" | "stderr") => (text: string) => {
      output[name] += text
      for (const check of watchers) check()
    }
    child.stdout?.setEncoding("utf8").on("data", collect("stdout"))
    child.stderr?.setEncoding("utf8").on("data", collect("stderr"))
    child.stdin?.on("error", () => {})
    child.stdin?.end(options.stdin ?? "")
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once("error", reject)
      child.once("close", (code, signal) => {
        running.delete(child)
        const lines = () =>
          output.stdout.trim().split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))
        resolve({ code, signal, ...output, lines })
        for (const check of watchers) check()
      })
    })
    const seen = (pattern: RegExp) =>
      new Promise<void>((resolve, reject) => {
        const check = () => {
          const matches = pattern.test(output.stdout) || pattern.test(output.stderr)
          if (matches) resolve()
          else if (running.has(child)) return
          else reject(new Error(`ended without ${pattern}: ${JSON.stringify(output)}`))
          watchers.delete(check)
        }
        watchers.add(check)
        check()
      })
    return { process: child, ended, output, seen }
  }
  return {
    folder,
    work,
    write,
    settings,
    start,
    run: (argv, options) => start(argv, options).ended,
    useServer: (server, more = {}) =>
      settings({
        model: "test/m",
        providers: {
          test: {
            package: "@ai-sdk/openai-compatible",
            options: { baseURL: server.url, apiKey: "k-secret-123" },
            models: { m: { name: "M", contextWindow: 32_768, maxOutput: 4_096 } }
          }
        },
        ...more
      })
  }
}
