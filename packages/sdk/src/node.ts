/**
 * `@bezel/sdk/node`: finds the server of this user and its token in the folders of Bezel, as `bezel attach` does.
 *
 * The server's note is in the state folder, named by the data folder that it serves; its token is beside it, readable by this
 * user alone. `BEZEL_URL` and `BEZEL_TOKEN` override.
 */
import { createHash } from "node:crypto"
import { readFileSync, realpathSync } from "node:fs"
import { userInfo } from "node:os"
import { isAbsolute, join, resolve } from "node:path"
import { BezelError } from "./client/error.ts"
import { type BezelClient, createClient } from "./client/promise-client.ts"

export * from "./index.ts"

export interface FindOptions {
  /** Default: that of this user. */
  readonly dataFolder?: string
  /** Default: that of this user. */
  readonly stateFolder?: string
}

/** By the XDG conventions, as the server itself finds them. */
const folder = (kind: "data" | "state", home: ReadonlyArray<string>): string => {
  const own = process.env[`BEZEL_${kind.toUpperCase()}_DIR`] ?? ""
  if (own !== "") return resolve(own)
  const base = process.env[`XDG_${kind.toUpperCase()}_HOME`] ?? ""
  if (isAbsolute(base)) return join(base, "bezel")
  const user = process.env.HOME ?? ""
  return join(isAbsolute(user) ? user : userInfo().homedir, ...home, "bezel")
}

const none = (message: string): BezelError => new BezelError({ code: "unreachable", status: 0, message })

const textOf = (file: string): string | null => {
  try {
    return readFileSync(file, "utf8").trim()
  } catch {
    return null
  }
}

/** The address of a note, if the process that wrote it is there. */
const urlOf = (note: string | null): string | null => {
  if (note === null) return null
  try {
    const found: unknown = JSON.parse(note)
    if (typeof found !== "object" || found === null || !("url" in found) || !("pid" in found)) return null
    const { pid, url } = found
    if (typeof url !== "string" || typeof pid !== "number") return null
    process.kill(pid, 0)
    return url
  } catch {
    return null
  }
}

/** Where the server of this user listens, and its token. Fails with `unreachable` where there is none. */
export const findServer = (options: FindOptions = {}): { readonly url: string; readonly token: string } => {
  const data = options.dataFolder ?? folder("data", [".local", "share"])
  const state = join(options.stateFolder ?? folder("state", [".local", "state"]), "server")
  let real = resolve(data)
  try {
    real = realpathSync(data)
  } catch {
    // Without the folder there is no server on it either.
  }
  const note = join(state, `${createHash("sha256").update(real).digest("hex").slice(0, 12)}.json`)
  const url = process.env.BEZEL_URL ?? urlOf(textOf(note))
  if (url === null || url === "") throw none("No Bezel server runs for this user; start one with `bezel serve`.")
  const token = process.env.BEZEL_TOKEN ?? textOf(join(state, "token"))
  if (token === null || token === "") throw none(`The token of the server on ${url} is not known; set BEZEL_TOKEN.`)
  return { url, token }
}

/** A client of the server of this user. */
export const connect = (options?: FindOptions): BezelClient => createClient(findServer(options))
