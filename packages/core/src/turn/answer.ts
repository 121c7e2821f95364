/**
 * An answer as it streams: gathers response parts into an assistant message, and gives what is new for the live view.
 *
 * Plain synchronous code: it runs once per delta. Calls are keyed by their id; the order of parts is the order in which they
 * began.
 */
import type { JsonObject, JsonValue } from "../json/index.ts"
import {
  type AssistantMessage,
  type DeferredPart,
  type MalformedCall,
  malformedCall,
  type ModelPart,
  type ProviderOptions,
  type ToolCallPart
} from "../model/index.ts"

export interface AnswerCall {
  readonly id: string
  readonly name: string
  readonly params: JsonValue
  readonly malformed: MalformedCall | null
}

export interface AnswerUsage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** What the live view has to add: new parts, and text for parts that are there. */
export interface AnswerFrame {
  readonly parts: ReadonlyArray<LivePart>
  readonly appended: ReadonlyArray<{ readonly index: number; readonly text: string }>
}

export type LivePart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "tool-call"; readonly id: string; readonly name: string; readonly text: string }

interface Gathered {
  readonly type: LivePart["type"]
  readonly key: string
  readonly name: string
  readonly chunks: Array<string>
  options: ProviderOptions | null
  call: AnswerCall | null
  pending: string
  shown: boolean
}

export class Answer {
  readonly #parts: Array<Gathered> = []
  readonly #open = new Map<string, number>()
  #usage: AnswerUsage | null = null
  #finish: string | null = null
  #deferred: DeferredPart | null = null
  /** UTF-16 units that no frame has taken yet. */
  pending = 0

  /** Whether there is anything that a person reads, rather than arguments of calls alone. */
  get hasProse(): boolean {
    return this.#parts.some((part) => part.type !== "tool-call" && part.chunks.length > 0)
  }

  /** Whether it says anything in text, white space aside. */
  get hasText(): boolean {
    return this.#parts.some((part) => part.type === "text" && part.chunks.some((chunk) => chunk.trim() !== ""))
  }

  /** Where the answer can be asked for later, if it was not given now. */
  get deferred(): DeferredPart | null {
    return this.#deferred
  }

  get finish(): string | null {
    return this.#finish
  }

  get usage(): AnswerUsage {
    return this.#usage ?? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  }

  get isEmpty(): boolean {
    return this.#parts.every((part) => part.chunks.length === 0 && part.call === null)
  }

  add(part: ModelPart): void {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        return this.#begin(part.type === "text-start" ? "text" : "reasoning", part.id, "", part.metadata)
      case "text-delta":
      case "reasoning-delta":
        return this.#append(part.type === "text-delta" ? "text" : "reasoning", part.id, part.delta, part.metadata)
      case "text-end":
      case "reasoning-end":
        return this.#end(part.type === "text-end" ? "text" : "reasoning", part.id, part.metadata)
      case "tool-params-start":
        return this.#begin("tool-call", part.id, part.name, undefined)
      case "tool-params-delta":
        return this.#append("tool-call", part.id, part.delta, undefined)
      case "tool-params-end":
        return
      case "tool-call":
        return this.#call(part)
      case "deferred":
        this.#deferred = part
        return
      case "finish": {
        const { inputTokens, outputTokens } = part.usage
        this.#finish = part.reason
        this.#usage = {
          input: inputTokens.total ?? 0,
          output: outputTokens.total ?? 0,
          cacheRead: inputTokens.cacheRead ?? 0,
          cacheWrite: inputTokens.cacheWrite ?? 0
        }
      }
    }
  }

  /** Takes what has come since the last frame, or `null` if nothing has. */
  frame(): AnswerFrame | null {
    if (this.pending === 0) return null
    const parts: Array<LivePart> = []
    const appended: Array<{ readonly index: number; readonly text: string }> = []
    for (const [index, part] of this.#parts.entries()) {
      if (!part.shown) {
        part.shown = true
        const text = part.chunks.join("")
        parts.push(
          part.type === "tool-call"
            ? { type: part.type, id: part.key, name: part.name, text }
            : { type: part.type, text }
        )
      } else if (part.pending !== "") {
        appended.push({ index, text: part.pending })
      }
      part.pending = ""
    }
    this.pending = 0
    return { parts, appended }
  }

  /** The calls in order, each under an id of its own. */
  calls(): ReadonlyArray<AnswerCall> {
    return this.#parts.flatMap((part) => part.call === null ? [] : [part.call])
  }

  /** The message as the transcript keeps it, without empty parts. */
  message(): AssistantMessage {
    const content: Array<AssistantMessage["content"][number]> = []
    for (const part of this.#parts) {
      const text = part.chunks.join("")
      const options = part.options === null ? {} : { options: part.options }
      if (part.type === "tool-call") {
        if (part.call === null) continue
        const call: ToolCallPart = {
          type: "tool-call",
          id: part.call.id,
          name: part.call.name,
          params: part.call.params,
          ...options
        }
        content.push(call)
      } else if (text !== "" || part.options !== null && part.type === "reasoning") {
        content.push({ type: part.type, text, ...options })
      }
    }
    return { role: "assistant", content }
  }

  #begin(type: LivePart["type"], id: string, name: string, metadata: unknown): void {
    this.#open.set(`${type} ${id}`, this.#parts.length)
    this.#parts.push({
      type,
      key: id,
      name,
      chunks: [],
      options: providerOptions(metadata),
      call: null,
      pending: "",
      shown: false
    })
    this.pending += 1
  }

  #append(type: LivePart["type"], id: string, text: string, metadata: unknown): void {
    if (!this.#open.has(`${type} ${id}`)) this.#begin(type, id, "", undefined)
    const part = this.#parts[this.#open.get(`${type} ${id}`) ?? -1]
    if (part === undefined) return
    const options = providerOptions(metadata)
    if (options !== null) part.options = { ...part.options, ...options }
    if (text === "") return
    part.chunks.push(text)
    if (part.shown) part.pending += text
    this.pending += text.length
  }

  #end(type: LivePart["type"], id: string, metadata: unknown): void {
    const part = this.#parts[this.#open.get(`${type} ${id}`) ?? -1]
    const options = providerOptions(metadata)
    if (part !== undefined && options !== null) part.options = { ...part.options, ...options }
  }

  #call(part: Extract<ModelPart, { readonly type: "tool-call" }>): void {
    const open = this.#open.get(`tool-call ${part.id}`)
    if (open === undefined) this.#begin("tool-call", part.id, part.name, undefined)
    const gathered = this.#parts[open ?? this.#parts.length - 1]
    if (gathered === undefined) return
    const taken = new Set(this.calls().map((call) => call.id))
    let id = part.id === "" ? "call" : part.id
    for (let n = 2; taken.has(id); n++) id = `${part.id === "" ? "call" : part.id}_${n}`
    const malformed = malformedCall(part)
    gathered.call = { id, name: part.name, params: malformed === null ? jsonOf(part.params) : {}, malformed }
    const options = providerOptions(part.metadata)
    if (options !== null) gathered.options = { ...gathered.options, ...options }
    // A later call may come under the same id; it is a part of its own.
    this.#open.delete(`tool-call ${part.id}`)
  }
}

const jsonOf = (value: unknown): JsonValue => value === undefined ? {} : JSON.parse(JSON.stringify(value))

/** Provider metadata without what is only ours. */
const providerOptions = (metadata: unknown): ProviderOptions | null => {
  if (typeof metadata !== "object" || metadata === null) return null
  const options: { [provider: string]: JsonObject } = {}
  for (const [provider, value] of Object.entries(metadata)) {
    if (provider !== "bezel" && typeof value === "object" && value !== null) {
      options[provider] = JSON.parse(JSON.stringify(value))
    }
  }
  return Object.keys(options).length === 0 ? null : options
}
