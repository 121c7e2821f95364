/** What `bezel doctor` finds of the server of this user: whether one runs and answers, and who can read its tokens. */
import { findServer, listTokens, type ServerFolders } from "@bezel/server/discovery"
import * as Effect from "effect/Effect"
import { statSync } from "node:fs"
import { join } from "node:path"
import { serverFolders } from "../host/server-folders.ts"

interface Finding {
  readonly part: "server"
  readonly state: "ok" | "warning" | "fault"
  readonly message: string
}

const finding = (state: Finding["state"], message: string): Finding => ({ part: "server", state, message })

/** How long a server may take to answer. */
const patienceMillis = 3_000

const answers = (url: string): Effect.Effect<boolean> =>
  Effect.promise((signal) =>
    fetch(`${url}/health`, { signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMillis)]) }).then(
      ({ ok }) => ok,
      () => false
    )
  )

const running = (folders: ServerFolders, version: string) =>
  Effect.gen(function*() {
    const server = yield* findServer(folders)
    if (server === null) return [finding("ok", "none runs here")]
    const { pid, url } = server
    if (!(yield* answers(url))) {
      return [
        finding("fault", `process ${pid} does not answer on ${url}; kill ${pid} ends it, and bezel serve starts anew`)
      ]
    }
    return [
      server.version === version
        ? finding("ok", `runs on ${url} (process ${pid})`)
        : finding(
          "warning",
          `runs on ${url} (process ${pid}) as ${server.version}, and this is ${version}; start it anew`
        )
    ]
  })

/** Files of tokens are for this user alone. */
const open = (folders: ServerFolders): ReadonlyArray<Finding> =>
  ["token", "tokens.json"].map((name) => join(folders.state, name)).flatMap((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) === 0 ? [] : [finding("fault", `${file} can be read by others; chmod 600 ${file} mends that`)]
  })

const tokens = (folders: ServerFolders) =>
  Effect.match(listTokens(folders.state), {
    onSuccess: (all) =>
      all.length === 0
        ? []
        : [finding("ok", `tokens given away: ${all.map(({ name }) => name).join(", ")} (bezel auth token list)`)],
    onFailure: ({ message }) => [finding("fault", message)]
  })

export const checkServer = (version: string) =>
  Effect.gen(function*() {
    const folders = yield* serverFolders
    return [...(yield* running(folders, version)), ...open(folders), ...(yield* tokens(folders))]
  })
