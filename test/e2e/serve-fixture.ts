/** `bezel serve` as somebody else runs it: started by its command line, found by its first line, called over HTTP. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import type { Home, Running } from "./command.ts"

/** What answers have, as far as tests look at it. */
interface Body {
  readonly id: string
  readonly inputID: string
  readonly items: ReadonlyArray<{ readonly id: string; readonly title: string }>
  readonly [key: string]: unknown
}

export interface Answer {
  readonly status: number
  readonly body: Body
}

export interface ServerRun extends Running {
  readonly url: string
  readonly token: string
  readonly first: { readonly [key: string]: unknown }
  readonly call: (method: string, path: string, body?: unknown, token?: string | null) => Promise<Answer>
  /** A new session of the home's work folder. */
  readonly create: (more?: object) => Promise<string>
  /** Gives a prompt and waits for how it ends. */
  readonly prompt: (sessionID: string, text: string) => Promise<Body>
  readonly say: (sessionID: string, text: string) => Promise<string>
}

/** Completes when the server has said that it answers. */
export async function startServer(
  home: Home,
  more: ReadonlyArray<string> = [],
  env: { readonly [name: string]: string } = {},
  cwd: string = home.work
): Promise<ServerRun> {
  const running = home.start(["serve", "--port", "0", "--json", ...more], { env, cwd })
  await running.seen(/^\{.*\}\n/)
  const first = JSON.parse(running.output.stdout.split("\n")[0] ?? "")
  const { token, url } = first
  const call: ServerRun["call"] = async (method, path, body, shown = token) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(shown === null ? {} : { authorization: `Bearer ${shown}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    return { status: response.status, body: text === "" ? null : JSON.parse(text) }
  }
  const say: ServerRun["say"] = async (id, text) => {
    const { body, status } = await call("POST", `/session/${id}/prompt`, { text })
    if (status !== 202) throw new Error(`the prompt was not accepted: ${JSON.stringify(body)}`)
    return body.inputID
  }
  return {
    ...running,
    url,
    token,
    first,
    call,
    say,
    create: async (given = {}) => {
      const { body, status } = await call("POST", "/session", { location: home.work, ...given })
      if (status !== 201) throw new Error(`no session: ${JSON.stringify(body)}`)
      return body.id
    },
    prompt: async (id, text) => {
      const input = await say(id, text)
      return (await call("POST", `/session/${id}/wait?timeout=60&input=${input}`)).body
    }
  }
}

/** Process ids of the session hosts that the server's records name. */
export const hostsOf = (home: Home): ReadonlyArray<number> => {
  const folder = join(home.folder, ".local/state/bezel/run/hosts")
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((name) => {
    const { process } = JSON.parse(readFileSync(join(folder, name), "utf8"))
    return process === null ? [] : [process.pid]
  })
}

export const eventually = (holds: () => boolean | Promise<boolean>): Promise<void> =>
  vi.waitFor(async () => {
    if (!await holds()) throw new Error(`it does not hold: ${String(holds)}`)
  }, { timeout: 30_000, interval: 50 })
