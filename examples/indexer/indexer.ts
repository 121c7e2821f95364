/**
 * A plugin as somebody outside of this repository writes it: an index of the folder's files, made in the background by a task
 * of its own kind, which goes on where it was when the process dies in the middle.
 *
 *     starting ─▶ scanning ─▶ writing ─▶ scanning ─▶ … ─▶ done
 *                    ▲           │ entered only after a crash: the same batch again, under the same key
 *                    └───────────┘
 *
 * The index is a file of lines, `.bezel/index.jsonl`, and each line names its batch. Writing a batch is made harmless to repeat:
 * whoever reads the file takes the first line of each batch, and a line that was cut off counts as none.
 */
import { noticeKind, TaskKind, type TaskTransaction } from "@bezel/core/harness"
import { Plugin, type SessionContext } from "@bezel/core/host"
import { tool, ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { appendFile, mkdir, readdir, readFile } from "node:fs/promises"
import { dirname, join } from "node:path"

/** Where the index is, below the folder that it is of. */
export const indexFile = join(".bezel", "index.jsonl")

const Batch = Schema.Struct({
  /** Name of the batch: what was asked for, and the last file of it. */
  key: Schema.String,
  files: Schema.Array(Schema.String)
})
type Batch = typeof Batch.Type

const decodeLine = Schema.decodeUnknownOption(Schema.fromJsonString(Batch))

const failed = (what: string) => (error: unknown) =>
  new ToolFailure({ message: `${what} failed: ${error instanceof Error ? error.message : String(error)}` })

/** The batches of an index, each once, however often it was written. */
export const readIndex = (root: string): Effect.Effect<ReadonlyArray<Batch>> =>
  Effect.promise(() => readFile(join(root, indexFile), "utf8").catch(() => "")).pipe(Effect.map((text) => {
    const batches = new Map<string, Batch>()
    for (const line of text.split("\n")) {
      const batch = decodeLine(line)
      if (batch._tag === "Some" && !batches.has(batch.value.key)) batches.set(batch.value.key, batch.value)
    }
    return [...batches.values()]
  }))

/** The far side of the effect. It only ever appends, and starts a line of its own, whatever was left by a crash. */
export interface Sink {
  readonly write: (root: string, batch: Batch) => Effect.Effect<void, ToolFailure>
}

export const fileSink: Sink = {
  write: (root, batch) =>
    Effect.tryPromise({
      try: async () => {
        const file = join(root, indexFile)
        await mkdir(dirname(file), { recursive: true })
        await appendFile(file, `\n${JSON.stringify(batch)}\n`)
      },
      catch: failed("Writing the index")
    })
}

/** The next files behind one of them, in an order that does not change. */
const nextFiles = (
  root: string,
  after: string | null,
  count: number
): Effect.Effect<ReadonlyArray<string>, ToolFailure> =>
  Effect.tryPromise({
    try: () => readdir(root, { recursive: true, withFileTypes: true }),
    catch: failed("Reading the folder")
  })
    .pipe(
      Effect.map((entries) =>
        entries.filter((entry) => entry.isFile()).map((entry) =>
          join(entry.parentPath, entry.name).slice(root.length + 1)
        )
          .filter((file) => !/(^|\/)(\.bezel|\.git|node_modules)\//.test(file) && (after === null || file > after))
          .sort()
          .slice(0, count)
      )
    )

const Input = Schema.Struct({ root: Schema.String })

/** Where the task goes on: everything else that it needs is found again. */
const Checkpoint = Schema.Union([
  Schema.Struct({ phase: Schema.Literal("scanning"), after: Schema.NullOr(Schema.String) }),
  Schema.Struct({ phase: Schema.Literal("writing"), batch: Batch })
])
type Checkpoint = typeof Checkpoint.Type

/** Progress; gone with the task. */
const Slot = Schema.Struct({
  files: Schema.mutableKey(Schema.Int),
  last: Schema.mutableKey(Schema.NullOr(Schema.String))
})

type Commit = TaskTransaction<Checkpoint, typeof Slot.Type>

/** What a session knows of its index, and what of that clients see. */
const state = { session: { files: 0, indexed: false } }

/** What a person may write beside the plugin's name in `bezel.jsonc`. */
const Options = Schema.Struct({ filesPerBatch: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))) })

const session = (sink: Sink) =>
  Effect.fn("indexer/session")(function*(ctx: SessionContext) {
    const { filesPerBatch = 200 } = yield* Schema.decodeUnknownEffect(Options)(ctx.options ?? {})
    const index = yield* ctx.namespace("indexer", state, {
      view: ({ files, indexed }) => indexed === true ? `${String(files)} files indexed` : "being indexed"
    })

    /** What was written counts in the same commit that says where to go on. */
    const counted = (batch: Batch) => (tx: Commit): Checkpoint => {
      tx.slot.files += batch.files.length
      tx.slot.last = batch.files.at(-1) ?? null
      return { phase: "scanning", after: tx.slot.last }
    }

    const indexer = TaskKind.make("example.indexer", {
      input: Input,
      checkpoint: Checkpoint,
      slot: { schema: Slot, initial: { files: 0, last: null } },
      result: Schema.Struct({ files: Schema.Int }),
      failure: Schema.Struct({ message: Schema.String }),
      initial: () =>
        Effect.succeed({
          next: (tx: Commit): Checkpoint => {
            Object.assign(tx.plugins(index), state.session)
            return { phase: "scanning", after: null }
          }
        }),
      phases: {
        scanning: (task, api) =>
          Effect.gen(function*() {
            const { root } = task.input
            const files = yield* nextFiles(root, task.checkpoint.after, filesPerBatch)
            const last = files.at(-1)
            if (last === undefined) {
              return {
                done: (tx) => {
                  const { files } = tx.slot
                  Object.assign(tx.plugins(index), { files, indexed: true })
                  tx.emit(index, "done", { files })
                  tx.write(noticeKind, {
                    model: [{
                      role: "user",
                      content: [{ type: "text", text: `The index of ${files} files is complete.` }]
                    }]
                  })
                  return { status: "completed", result: { files } }
                }
              } as const
            }
            const batch = { key: `${task.id}:${last}`, files }
            // Stored before the effect: after a crash it is known what was being written, and under which key.
            yield* api.commit((tx) => tx.checkpoint({ phase: "writing", batch }))
            yield* sink.write(root, batch)
            return { next: counted(batch) }
          }),
        writing: (task) =>
          Effect.as(sink.write(task.input.root, task.checkpoint.batch), { next: counted(task.checkpoint.batch) })
      },
      describe: ({ checkpoint, slot }) => ({
        stage: checkpoint?.phase ?? "starting",
        files: slot.files,
        last: slot.last
      })
    })

    yield* ctx.task(indexer)
    yield* ctx.tool.transform((draft) =>
      draft.set(
        "index",
        tool({
          description:
            "Starts to index the files of this folder in the background. You are told when the index is complete.",
          input: Schema.Struct({}),
          execute: (_, call) =>
            Effect.as(
              call.task(indexer, { root: ctx.location.directory }, { background: true }),
              "Indexing has started; go on meanwhile."
            )
        })
      )
    )
  })

/** With another far side than the file, for tests. */
export const indexerPlugin = (sink: Sink = fileSink): Plugin =>
  Plugin.define({ id: "example.indexer", version: "1.0.0", session: session(sink) })

export default indexerPlugin()
