/** Starts the servers that `bench/http.ts` compares, and says what each costs as the system counts it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const node = join(root, "node_modules/.bin/node")

export const opencodeVersion = "1.18.33"

export interface Server {
  readonly name: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly pid: number
  /** Milliseconds from spawn to the first answer. */
  readonly startMillis: number
  readonly stop: () => Promise<void>
}

/** Path of the program; fetches it from npm into `.bench/` if it is not there. `null` where it cannot be had. */
export function installOpencode(): string | null {
  const folder = join(root, ".bench", "opencode")
  const name = `opencode-${process.platform}-${process.arch}`
  const program = join(folder, "node_modules", name, "bin/opencode")
  const manifest = join(folder, "node_modules", name, "package.json")
  if (existsSync(manifest) && JSON.parse(readFileSync(manifest, "utf8")).version === opencodeVersion) return program
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }))
  console.error(`bench: fetching opencode ${opencodeVersion} into ${folder}`)
  const argv = ["install", "--save-exact", "--ignore-scripts", "--no-audit", "--no-fund", `${name}@${opencodeVersion}`]
  const { status } = spawnSync("npm", argv, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] })
  return status === 0 && existsSync(program) ? program : null
}

/** Pids of a process and everything below it. */
const family = (pid: number): ReadonlyArray<number> => {
  const parents = new Map<number, number>()
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8")
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]))
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = [pid]
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child)
  return found
}

/** CPU time of a server and what it has started, in milliseconds. */
export const cpuMillis = (pid: number): number =>
  family(pid).reduce((sum, one) => {
    try {
      const stat = readFileSync(`/proc/${one}/stat`, "utf8")
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return sum + (Number(fields[11]) + Number(fields[12])) * 10
    } catch {
      return sum
    }
  }, 0)

/** Memory of a server and what it has started, in MiB; what processes share is counted once. */
export const memoryMiB = (pid: number): number =>
  family(pid).reduce((sum, one) => {
    try {
      const text = readFileSync(`/proc/${one}/smaps_rollup`, "utf8")
      return sum + Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1_024
    } catch {
      return sum
    }
  }, 0)

const untilAnswer = async (url: string, headers: Record<string, string>): Promise<void> => {
  for (;;) {
    try {
      const response = await fetch(url, { headers })
      await response.arrayBuffer()
      if (response.ok) return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
}

/** The first line of stdout that fits. */
const line = (child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> =>
  new Promise((resolve, reject) => {
    let text = ""
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      const found = pattern.exec(text)
      if (found !== null) resolve(found)
    })
    child.once("exit", (code) => reject(new Error(`it ended with ${code}: ${text}`)))
  })

interface Recipe {
  readonly name: string
  readonly command: string
  readonly argv: ReadonlyArray<string>
  /** Written into the home before it starts. */
  readonly files?: Readonly<Record<string, string>>
  readonly ready: RegExp
  readonly address: (found: RegExpExecArray) => { readonly url: string; readonly token?: string }
  readonly path: string
}

export const recipes = (settings?: object): Readonly<Record<"bezel" | "raw", Recipe>> => ({
  bezel: {
    name: "bezel serve",
    command: join(root, "bin/bezel"),
    argv: ["serve", "--port", "0", "--json"],
    ...(settings === undefined ? {} : { files: { "config/bezel.jsonc": JSON.stringify(settings) } }),
    ready: /^\{.*\}$/m,
    address: ([text]) => JSON.parse(text),
    path: "/session"
  },
  raw: {
    name: "node:http",
    command: node,
    argv: [join(import.meta.dirname, "http-raw.mjs")],
    ready: /^http\S+$/m,
    address: ([url]) => ({ url }),
    path: "/"
  }
})

export const opencode = (program: string): Recipe => ({
  name: `opencode ${opencodeVersion}`,
  command: program,
  argv: ["serve", "--port", "0", "--hostname", "127.0.0.1"],
  ready: /listening on (http\S+)/,
  address: ([, url = ""]) => ({ url }),
  path: "/session"
})

export const start = async (recipe: Recipe): Promise<Server> => {
  const home = mkdtempSync(join(tmpdir(), "bezel-bench-"))
  for (const folder of ["work", "config"]) mkdirSync(join(home, folder))
  for (const [file, text] of Object.entries(recipe.files ?? {})) writeFileSync(join(home, file), text)
  const began = performance.now()
  const child = spawn(recipe.command, [...recipe.argv], {
    cwd: join(home, "work"),
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home,
      BEZEL_CONFIG_DIR: join(home, "config"),
      OPENCODE_DISABLE_AUTOUPDATE: "1"
    },
    stdio: ["ignore", "pipe", "ignore"]
  })
  const { token, url } = recipe.address(await line(child, recipe.ready))
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  await untilAnswer(url + recipe.path, headers)
  return {
    name: recipe.name,
    url,
    headers,
    pid: child.pid ?? 0,
    startMillis: performance.now() - began,
    stop: () =>
      new Promise((resolve) => {
        child.once("exit", () => {
          rmSync(home, { recursive: true, force: true })
          resolve()
        })
        child.kill("SIGTERM")
        setTimeout(() => child.kill("SIGKILL"), 8_000).unref()
      })
  }
}
