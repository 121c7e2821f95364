/**
 * `bezel/offline`: a deterministic model that needs no key and no network.
 *
 * It follows a small command grammar (`offline-grammar.ts`) through the real tools: one call in each step, the next after
 * the result, and at the end an answer that shows what came out. It keeps nothing between requests: where it stands follows
 * from the messages alone, so a session can be continued, forked or recovered like with any other model.
 */
import type { JsonValue } from "@bezel/core/json"
import type {
  Message,
  Model,
  ModelInfo,
  ModelPart,
  ModelRequest,
  Provider,
  ToolCallPart,
  ToolResultPart
} from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { guidance } from "./guidance.ts"
import { grammarHelp, type OfflineCommand, parseCommands } from "./offline-grammar.ts"

const offlineInfo: ModelInfo = {
  provider: "bezel",
  model: "offline",
  name: "Bezel offline",
  contextWindow: null,
  maxOutput: null,
  reasoning: false,
  images: false,
  cost: null
}

/** The model. `connect` says, to whoever talks to it as to a real one, which real ones are at hand. */
export const offlineModel = (connect: ReadonlyArray<string> = []): Model => ({
  info: offlineInfo,
  stream: (request) => Stream.suspend(() => Stream.fromIterable(respond(request, connect)))
})

export const offlineProvider = (connect: ReadonlyArray<string> = []): Provider => ({
  id: "bezel",
  name: "Bezel",
  models: [offlineInfo],
  openEnded: false,
  availability: { ready: true },
  open: () => Effect.succeed(offlineModel(connect))
})

const respond = (request: ModelRequest, connect: ReadonlyArray<string>): ReadonlyArray<ModelPart> => {
  const turn = lastTurn(request.messages)
  const commands = parseCommands(turn.prompt)
  if (commands === null) return answer(request, introduction(turn, connect))
  const progress = follow(commands, turn, request.tools.map((tool) => tool.name))
  if (progress.next !== null) return callTool(request, progress.next)
  return answer(request, report(progress.outcomes))
}

// ------------------------------------------------------------------------------------------------------------ the turn

interface Turn {
  /** The first text of the newest message of the user; what is attached to it is no command. */
  readonly prompt: string
  /** What the user asked before. */
  readonly earlier: ReadonlyArray<string>
  readonly calls: ReadonlyArray<ToolCallPart>
  readonly results: ReadonlyMap<string, ToolResultPart>
}

const promptOf = (message: Message): string | null => {
  if (message.role !== "user") return null
  for (const part of message.content) if (part.type === "text" && part.text.trim() !== "") return part.text.trim()
  return ""
}

const lastTurn = (messages: ReadonlyArray<Message>): Turn => {
  const start = messages.findLastIndex((message) => message.role === "user")
  const calls: Array<ToolCallPart> = []
  const results = new Map<string, ToolResultPart>()
  for (const message of messages.slice(start + 1)) {
    if (message.role === "assistant") {
      for (const part of message.content) if (part.type === "tool-call") calls.push(part)
    }
    if (message.role === "tool") { for (const part of message.content) results.set(part.id, part) }
  }
  const prompts = messages.slice(0, start + 1).map(promptOf).filter((prompt) => prompt !== null)
  return { prompt: prompts.at(-1) ?? "", earlier: prompts.slice(0, -1), calls, results }
}

interface Outcome {
  readonly command: OfflineCommand
  readonly result: ToolResultPart | "not offered"
}

/** Which commands are done, by their calls in order, and which one is next. */
const follow = (
  commands: ReadonlyArray<OfflineCommand>,
  turn: Turn,
  offered: ReadonlyArray<string>
): { readonly outcomes: ReadonlyArray<Outcome>; readonly next: OfflineCommand | null } => {
  const outcomes: Array<Outcome> = []
  let made = 0
  for (const command of commands) {
    const call = turn.calls[made]
    const result = call?.name === command.tool ? turn.results.get(call.id) : undefined
    if (result !== undefined) {
      made++
      outcomes.push({ command, result })
    } else if (!offered.includes(command.tool)) outcomes.push({ command, result: "not offered" })
    else return { outcomes, next: command }
  }
  return { outcomes, next: null }
}

// ---------------------------------------------------------------------------------------------------------- the answer

/** Characters of one result that an answer shows. */
const maxShown = 20_000

const resultText = (result: ToolResultPart): string => {
  const shown = result.modelOutput?.map((part) =>
    part.type === "text" ? part.text : `(a file of type ${part.mediaType})`
  ).join("\n")
  const text = shown ?? asText(result.result)
  return result.name === "read" && !result.isFailure ? withoutLineNumbers(text) : text
}

/** A file's own text: the read tool numbers lines, for a model to point at. What follows the last number is the tool's note. */
const withoutLineNumbers = (text: string): string => {
  const lines = text.split("\n")
  const first = Number(/^(\d+)\t/.exec(lines[0] ?? "")?.[1] ?? Number.NaN)
  let numbered = true
  return lines.map((line, index) => {
    const start = `${first + index}\t`
    numbered &&= line.startsWith(start)
    return numbered ? line.slice(start.length) : line
  }).join("\n")
}

const asText = (value: JsonValue): string => typeof value === "string" ? value : JSON.stringify(value, null, 2)

const cut = (text: string): string =>
  text.length <= maxShown
    ? text
    : `${text.slice(0, maxShown).toWellFormed()}\n… (${text.length - maxShown} more characters)`

const outcomeText = ({ command, result }: Outcome): string => {
  if (result === "not offered") {
    return `\`${command.written}\` needs the tool ${command.tool}, which is not offered here.`
  }
  const text = resultText(result)
  if (result.isFailure) {
    return `\`${command.written}\` did not work: ${
      text.trim() === "" ? "the tool failed without saying why." : cut(text)
    }`
  }
  return text.trim() === "" ? `\`${command.written}\` is done, without output.` : cut(text)
}

const report = (outcomes: ReadonlyArray<Outcome>): string => {
  const [only] = outcomes
  if (only !== undefined && outcomes.length === 1) return outcomeText(only)
  return outcomes.map((outcome, index) => {
    const text = outcomeText(outcome)
    const plain = outcome.result !== "not offered" && !outcome.result.isFailure &&
      resultText(outcome.result).trim() !== ""
    return `${index + 1}. ${plain ? `\`${outcome.command.written}\`:\n\n${text}` : text}`
  }).join("\n\n")
}

const introduction = (turn: Turn, connect: ReadonlyArray<string>): string => {
  const previous = turn.earlier.at(-1)
  const asked = turn.earlier.length === 1 ? "one thing" : `${turn.earlier.length} things`
  return [
    "I am `bezel/offline`, a small deterministic model that needs no key and no network. I do not understand free text; I follow these commands, several joined by ` then `:",
    grammarHelp.map((line) => `- \`${line}\``).join("\n"),
    ...(previous === undefined
      ? []
      : [`Before this you asked me ${asked} in this conversation, the last was: ${firstLine(previous)}`]),
    guidance(connect)
  ].join("\n\n")
}

const firstLine = (text: string): string => {
  const line = text.split("\n", 1)[0] ?? ""
  return line.length <= 100 ? line : `${line.slice(0, 100).toWellFormed()}…`
}

// ----------------------------------------------------------------------------------------------------------- the parts

const answer = (request: ModelRequest, text: string): ReadonlyArray<ModelPart> => [
  { type: "text-start", id: "text-1" },
  ...deltas(text).map((delta): ModelPart => ({ type: "text-delta", id: "text-1", delta })),
  { type: "text-end", id: "text-1" },
  finish(request, "stop", text)
]

const callTool = (request: ModelRequest, command: OfflineCommand): ReadonlyArray<ModelPart> => {
  const id = callID(request)
  const written = JSON.stringify(command.params)
  return [
    { type: "tool-params-start", id, name: command.tool },
    ...deltas(written).map((delta): ModelPart => ({ type: "tool-params-delta", id, delta })),
    { type: "tool-params-end", id },
    { type: "tool-call", id, name: command.tool, params: command.params },
    finish(request, "tool-calls", written)
  ]
}

/** A few words each, as real models stream; a character is never cut. */
const deltas = (text: string): ReadonlyArray<string> => text.match(/[\s\S]{1,24}(?=\s|$)|[\s\S]{1,24}/gu) ?? []

/** The same request gets the same id, and no two requests of a conversation do: each has more behind it. */
const callID = (request: ModelRequest): string => {
  let hash = 0x811c9dc5
  const text = JSON.stringify([request.sessionID, request.messages.filter((message) => message.role !== "system")])
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return `call_${request.messages.length}_${hash.toString(36)}`
}

/** About four characters to a token: enough for meters and limits to have something to show. */
const tokens = (text: string): number => Math.ceil(text.length / 4)

const finish = (request: ModelRequest, reason: "stop" | "tool-calls", text: string): ModelPart => {
  const input = tokens(JSON.stringify(request.messages))
  return {
    type: "finish",
    reason,
    usage: {
      inputTokens: { total: input, uncached: input, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: tokens(text), text: tokens(text), reasoning: 0 }
    }
  }
}
