/** A tool that reads files and starts a process, both through its call. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { tool } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const session = Effect.fn("lines/session")(function*(ctx: SessionContext) {
  const countLines = tool({
    description: "Counts the lines of a file.",
    input: Schema.Struct({ file: Schema.String }),
    execute: ({ file }, call) =>
      Effect.gen(function*() {
        if (!(yield* (yield* call.fs).exists(file))) return `There is no file ${file}.`
        const { stdout } = yield* call.process.spawn(ChildProcess.make("wc", ["-l", file]))
        return yield* Stream.mkString(Stream.decodeText(stdout))
      })
  })
  yield* ctx.tool.transform((draft) => draft.set("count_lines", countLines))
})

export default Plugin.define({ id: "example.lines", version: "1.0.0", session })
