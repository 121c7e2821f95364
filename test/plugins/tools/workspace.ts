/** A workspace of real files, and the built-in tools on it, called as a turn calls them. */
import type { JsonValue } from "@bezel/core/json"
import type { Materialization, ToolCall, ToolResult } from "@bezel/core/tool"
import { makeToolRegistry } from "@bezel/core/tool"
import { toolsSession } from "@bezel/plugins/tools"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as FileSystem from "node:fs/promises"
import * as OS from "node:os"
import * as NodePath from "node:path"

export interface Workspace {
  readonly directory: string
  readonly offer: Materialization
  /** Settles a call; a refused one dies. */
  readonly call: (name: string, args: JsonValue, sessionID?: string) => Effect.Effect<ToolResult>
  /** The text of a result that must be no error. */
  readonly good: (name: string, args: JsonValue) => Effect.Effect<string>
  /** The text of a result that must be an error. */
  readonly bad: (name: string, args: JsonValue) => Effect.Effect<string>
  readonly write: (path: string, content: string | Uint8Array) => Effect.Effect<void>
  readonly bytes: (path: string) => Effect.Effect<Buffer>
  readonly path: (path: string) => string
  /** Ends a session as the runtime does. */
  readonly closeSession: (sessionID: string) => Effect.Effect<void>
  readonly streamed: Array<string>
  /** Where commands have ended, as the conversation's state has it. */
  readonly directories: ReadonlyArray<string>
}

export const textOf = (result: ToolResult): string =>
  result.content.map((part) => part.type === "text" ? part.text : `<${part.mediaType}>`).join("\n")

export const workspace = (
  options: { readonly [name: string]: JsonValue } = {}
): Effect.Effect<Workspace, never, Scope.Scope> =>
  Effect.gen(function*() {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(async () =>
        FileSystem.realpath(await FileSystem.mkdtemp(NodePath.join(OS.tmpdir(), "bezel-tools-")))
      ),
      (path) => Effect.promise(() => FileSystem.rm(path, { recursive: true, force: true }))
    )
    const artifacts = NodePath.join(directory, "..", `${NodePath.basename(directory)}-artifacts`)
    yield* Effect.acquireRelease(
      Effect.promise(() => FileSystem.mkdir(artifacts)),
      () => Effect.promise(() => FileSystem.rm(artifacts, { recursive: true, force: true }))
    )
    const sessions = new Map<string, Effect.Effect<void>>()
    const streamed: Array<string> = []
    const directories: Array<string> = []
    const registry = yield* makeToolRegistry()
    const scope = yield* Effect.scope
    yield* Effect.orDie(toolsSession({
      location: { directory, workspaceID: null },
      options,
      job: { name: "bezel.job", input: Schema.Never },
      find: () => Effect.succeed(null),
      namespace: (id) =>
        Effect.succeed({
          id,
          unregister: Effect.void,
          get: () => Effect.succeed({ directory: directories.at(-1) ?? "" }),
          update: (_, change) =>
            Effect.sync(() => {
              const draft = { directory: "" }
              change(draft)
              directories.push(draft.directory)
            })
        }),
      hooks: () => Effect.succeed({ unregister: Effect.void }),
      onDispose: (effect) => Effect.provideService(Effect.addFinalizer(() => effect), Scope.Scope, scope),
      onSession: (effect) =>
        Effect.sync(() => {
          const open = (sessionID: string) =>
            Effect.orDie(
              Effect.scoped(effect({ identity: { sessionID, location: { directory, workspaceID: null } } } as never))
            )
          for (const id of ["s1", "s2"]) sessions.set(id, open(id))
        }),
      tool: {
        transform: (change) =>
          Effect.provideService(
            registry.transform({ plugin: "bezel.tools", version: "1", order: 0 }, change),
            Scope.Scope,
            scope
          ),
        reload: registry.reload,
        list: registry.list
      }
    }))
    const offer = yield* registry.materialize({ enabled: {}, denied: [] })
    let calls = 0

    const toolCall = (name: string, sessionID: string): ToolCall => ({
      sessionID,
      conversationID: "main",
      taskID: "task",
      callID: `call-${++calls}`,
      name,
      stream: (chunk) =>
        Effect.sync(() => {
          streamed.push(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())
        }),
      progress: () => Effect.void,
      memo: (_name: string, candidate?: JsonValue) => Effect.succeed(candidate as never),
      onAbort: () => Effect.void,
      task: () => Effect.die(new Error("a tool of this test started a task")),
      waitForTask: () => Effect.die(new Error("a tool of this test waited for a task")),
      slot: () => Effect.succeed(null),
      conversation: () => Effect.die(new Error("a tool of this test started a conversation")),
      fs: Effect.die(new Error("a tool of this test asked for files")),
      process: { spawn: () => Effect.die(new Error("a tool of this test started a process")) },
      artifact: (file) =>
        Effect.promise(async () => {
          const path = NodePath.join(artifacts, file)
          const handle = await FileSystem.open(path, "wx")
          let room = 100 * 1024 * 1024
          return {
            path,
            write: (chunk) =>
              Effect.promise(async () => {
                const part = chunk.subarray(0, room)
                room -= part.length
                if (part.length > 0) await handle.appendFile(part)
                return part.length === chunk.length
              }),
            close: Effect.promise(() => handle.close())
          }
        })
    })

    const call: Workspace["call"] = (name, args, sessionID = "s1") =>
      Effect.suspend(() => {
        const answer = offer.accept(name, args)
        return "refused" in answer
          ? Effect.die(new Error(answer.refused.message))
          : offer.settle(answer.accepted, toolCall(name, sessionID), { afterTool: Effect.succeed })
      })
    const expecting = (isError: boolean) => (name: string, args: JsonValue) =>
      Effect.flatMap(call(name, args), (result) =>
        result.isError === isError
          ? Effect.succeed(textOf(result))
          : Effect.die(new Error(`unexpected result: ${textOf(result)}`)))
    const path = (name: string) => NodePath.join(directory, name)
    return {
      directory,
      offer,
      call,
      good: expecting(false),
      bad: expecting(true),
      write: (name, content) =>
        Effect.promise(async () => {
          await FileSystem.mkdir(NodePath.dirname(path(name)), { recursive: true })
          await FileSystem.writeFile(path(name), content)
        }),
      bytes: (name) => Effect.promise(() => FileSystem.readFile(path(name))),
      path,
      closeSession: (sessionID) => sessions.get(sessionID) ?? Effect.void,
      streamed,
      directories
    }
  })
