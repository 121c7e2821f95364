/**
 * What a prompt of `bezel run` stands for: one that calls a command (`/name …`) or a server's prompt (`/server:prompt …`) is
 * what that makes of it.
 */
import { parseCall, type PromptCommandsShape } from "@bezel/plugins/commands"
import { type McpConnectionsShape, parsePromptCall } from "@bezel/plugins/mcp"
import * as Effect from "effect/Effect"
import { Exit, exitCode } from "../exit.ts"
import type { RunOutput } from "./output.ts"
import type { RunRequest } from "./turn.ts"

/** The command line's own agent and model stand above those of the command. A prompt that calls none stays as it is. */
export const expandCalled = Effect.fn("expandCalled")(function*(
  { commands, mcp }: { readonly commands: PromptCommandsShape; readonly mcp: Pick<McpConnectionsShape, "prompt"> },
  request: RunRequest,
  output: Pick<RunOutput, "notice">
): Effect.fn.Return<RunRequest, Exit> {
  const usage = ({ message }: { readonly message: string }) => new Exit(exitCode.usage, message)
  const asked = parsePromptCall(request.prompt.text)
  const prompt = asked === null ? null : yield* Effect.mapError(mcp.prompt(asked.name, asked.words), usage)
  if (prompt !== null) {
    return { ...request, prompt: { text: prompt.text, written: "", files: [...request.prompt.files, ...prompt.files] } }
  }
  const called = parseCall(request.prompt.text)
  if (called === null) return request
  const { commands: known } = yield* commands.found
  if (!known.some(({ name }) => name === called.name)) {
    output.notice(`there is no command /${called.name} here, so the prompt is sent as it is`)
    return request
  }
  const { agent, model, text } = yield* Effect.mapError(
    commands.expand(called.name, called.arguments),
    usage
  )
  return {
    ...request,
    prompt: { ...request.prompt, text, written: text },
    called: { agent: request.agent === null ? agent : null, model: request.model === null ? model : null }
  }
})
