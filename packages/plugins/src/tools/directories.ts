/**
 * Where the commands of each conversation run: where the last one ended.
 *
 * It is kept in the conversation's own state, so it is rewound with it and survives a restart. A command is told its directory
 * before anybody judges it, as an argument of its call: what rules and people see is where it runs.
 */
import type { Namespace } from "@bezel/core/harness"
import type { SessionContext } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import * as Effect from "effect/Effect"
import * as FileSystem from "node:fs/promises"

/** The conversation that a call is of. */
interface Caller {
  readonly sessionID: string
  readonly conversationID: string
}

export interface Directories {
  /** Where the next command of the caller's conversation runs. */
  readonly set: (caller: Caller, directory: string) => Effect.Effect<void>
}

const isDirectory = (path: string): Effect.Effect<boolean> =>
  Effect.promise(() => FileSystem.stat(path).then((stats) => stats.isDirectory(), () => false))

const isObject = (value: JsonValue): value is { readonly [key: string]: JsonValue } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Adds the directory to calls of `bash` that name none. One that is gone is forgotten: the workspace is there. */
export const makeDirectories = Effect.fnUntraced(function*(
  ctx: Pick<SessionContext, "namespace" | "hooks">,
  location: string
) {
  const namespace: Namespace = yield* ctx.namespace("tools", { rewindable: { directory: "" } })
  const at = ({ conversationID, sessionID }: Caller) => `${sessionID}/${conversationID}`
  yield* ctx.hooks(namespace, "tool", {
    beforeTool: (call, api) =>
      Effect.gen(function*() {
        const { args } = call
        if (call.name !== "bash" || !isObject(args) || Object.hasOwn(args, "directory")) return undefined
        const { directory } = yield* namespace.get(at(api))
        if (typeof directory !== "string" || directory === "" || !(yield* isDirectory(directory))) return undefined
        return { args: { ...args, directory } }
      })
  })
  const directories: Directories = {
    set: (caller, directory) =>
      Effect.ignore(namespace.update(at(caller), (draft) => {
        draft.directory = directory === location ? "" : directory
      }))
  }
  return directories
})
