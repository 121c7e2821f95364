/**
 * The session facet of tools of clients: each offer is a tool that only its session sees, and each call of it waits for the
 * client that made the offer. A location has one tool for all offers of a name, which finds the one of the session that calls.
 *
 *     call ─▶ told to the client ─ answer ─▶ result      ─ time limit, client gone ─▶ error result      ─ abort ─▶ taken back
 *
 * A call is never repeated, neither here nor after a crash: nobody knows what the client did. In a session one name has one
 * owner, and an offer replaces no other tool. The permission rules hold for it as for any tool, under the tool's own name.
 */
import type { SessionContext } from "@bezel/core/host"
import type { JsonObject } from "@bezel/core/json"
import { type Capability, MutableRemoteState, RemoteReference } from "@bezel/core/service"
import {
  type Tool,
  tool,
  toolArguments as argumentsOf,
  type ToolCall,
  ToolFailure,
  type ToolResult,
  toolResult
} from "@bezel/core/tool"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import { toolArguments } from "../mcp/arguments.ts"
import { acceptedBy } from "./accepted.ts"
import {
  type ClientToolAnswer,
  ClientToolCall,
  ClientTools,
  longestAnswer,
  longestDescription,
  longestSchema,
  type OfferedTool,
  OfferRefused,
  ToolOffer
} from "./contract.ts"

type Context = Pick<SessionContext, "plugin" | "tool" | "namespace" | "hooks" | "provide" | "onDispose"> & {
  readonly session: Pick<SessionContext["session"], "get">
}

/** Offers of one location at a time. */
const mostOffers = 128
/** So that nothing here or at a provider goes down into a schema without end. */
const deepestSchema = 24

/** What the tool of a name takes; which arguments those of a session are, its offer says. */
const Arguments: Schema.Codec<JsonObject> = Schema.Record(Schema.String, Schema.Json)

interface Offer {
  readonly sessionID: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly call: (input: JsonObject, call: ToolCall) => Effect.Effect<ToolResult, ToolFailure>
  readonly end: Effect.Effect<void>
}

type Ended = ClientToolAnswer | { readonly type: "gone" }

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Object.values(value).reduce<number>((deepest, member) => Math.max(deepest, depthOf(member)), 0)
    : 0

/** What is wrong with an offer by itself. */
const problemOf = ({ description, inputSchema, name }: OfferedTool): string | null => {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name) || name in Object.prototype) {
    return 'The name of a tool is 1 to 64 letters, digits, "_" and "-".'
  }
  if (description.trim() === "") return "A tool needs a description, or no model knows what it is for."
  if (description.length > longestDescription) {
    return `The description is longer than ${longestDescription} characters.`
  }
  if (JSON.stringify(inputSchema).length > longestSchema) {
    return `The schema is longer than ${longestSchema} characters.`
  }
  if (depthOf(inputSchema) > deepestSchema) return `The schema is nested deeper than ${deepestSchema} times.`
  if (inputSchema.type !== "object") return 'The schema must describe an object: "type": "object".'
  return null
}

const resultOf = (name: string, ended: Ended): ToolResult => {
  switch (ended.type) {
    case "gone":
      return toolResult({
        content:
          `The client that offers the tool ${name} has left before it answered. Whether it did anything is unknown.`,
        isError: true
      })
    case "error":
      return toolResult({
        content: ended.message === "" ? "It failed, and did not say why." : ended.message,
        isError: true
      })
    case "result":
      return typeof ended.value === "string"
        ? toolResult(ended.value)
        : toolResult({ content: JSON.stringify(ended.value, null, 2) })
  }
}

/** An offer, and the object that its client holds. */
const makeOffer = Effect.fnUntraced(function*(offered: OfferedTool, gone: (offer: Offer) => Effect.Effect<void>) {
  const { description, name, sessionID, timeLimitSeconds } = offered
  const { inputSchema, toServer } = toolArguments(offered.inputSchema)
  const input = yield* acceptedBy(inputSchema)
  const calls = yield* MutableRemoteState.make(Schema.Array(ClientToolCall), [])
  const isOver = yield* MutableRemoteState.make(Schema.Boolean, false)
  const waiting = new Map<string, Deferred.Deferred<Ended>>()

  const execute = Effect.fn("client-tools.call")(function*(input: JsonObject, call: ToolCall) {
    if (isOver.value) return resultOf(name, { type: "gone" })
    const id = randomBytes(18).toString("base64url")
    const ended = Deferred.makeUnsafe<Ended>()
    const { callID, conversationID } = call
    return yield* Effect.acquireUseRelease(
      Effect.andThen(
        Effect.sync(() => waiting.set(id, ended)),
        calls.set([...calls.value, {
          id,
          callID,
          conversationID,
          sessionID: call.sessionID,
          input: toServer(input)
        }])
      ),
      () =>
        Effect.map(
          Effect.timeoutOption(Deferred.await(ended), Duration.seconds(timeLimitSeconds)),
          Option.match({
            onNone: () =>
              toolResult({
                content: `The client that offers the tool ${name} did not answer within ${timeLimitSeconds} seconds. ` +
                  "Whether it did anything is unknown.",
                isError: true
              }),
            onSome: (answer) => resultOf(name, answer)
          })
        ),
      () =>
        Effect.suspend(() => {
          waiting.delete(id)
          return calls.set(calls.value.filter((open) => open.id !== id))
        })
    )
  })

  const end: Effect.Effect<void> = Effect.suspend(() => {
    if (isOver.value) return Effect.void
    for (const ended of waiting.values()) Deferred.doneUnsafe(ended, Effect.succeed<Ended>({ type: "gone" }))
    return Effect.andThen(isOver.set(true), gone(offer))
  })
  const read = argumentsOf(tool({ description, input, inputSchema, execute }))
  if (Result.isFailure(read)) return yield* new OfferRefused({ code: "invalid", message: `${read.failure}.` })
  const offer: Offer = {
    sessionID,
    description,
    inputSchema,
    call: (given, call) => {
      const decoded = read.success.decode(name, given)
      return "problem" in decoded ? Effect.fail(new ToolFailure({ message: decoded.problem })) : execute(given, call)
    },
    end
  }
  const held: Capability<typeof ToolOffer> = yield* RemoteReference.make(ToolOffer, {
    calls,
    isOver,
    answer: ({ answer, id }) =>
      Effect.sync(() => {
        const ended = waiting.get(id)
        if (ended === undefined) return false
        const isLong = JSON.stringify(answer).length > longestAnswer
        const given: Ended = isLong
          ? { type: "error", message: `The result is longer than ${longestAnswer} characters.` }
          : answer
        return Deferred.doneUnsafe(ended, Effect.succeed(given))
      })
  }, { released: end })
  return { offer, held }
})

/** The facet for session hosts. */
export const session = Effect.fn("client-tools/session")(function*(ctx: Context) {
  /** By name, and by the session that has the offer. */
  const offers = new Map<string, { readonly tool: Tool; readonly of: Map<string, Offer> }>()

  /** Names of offers that are no other tool's name. */
  let own: ReadonlySet<string> = new Set()

  yield* ctx.tool.transform((draft) => {
    const taken = new Set(draft.list().map(({ name }) => name))
    own = new Set([...offers.keys()].filter((name) => !taken.has(name)))
    for (const [name, { tool }] of offers) if (own.has(name)) draft.set(name, tool)
  })

  /** A session, and those that it works for. */
  const lineOf = (sessionID: string): Effect.Effect<ReadonlyArray<string>> =>
    Effect.gen(function*() {
      const line: Array<string> = []
      for (let id: string | null = sessionID; id !== null && !line.includes(id);) {
        line.push(id)
        const record: Option.Option<{ readonly parentID: string | null }> = yield* Effect.option(ctx.session.get(id))
        id = Option.isSome(record) ? record.value.parentID : null
      }
      return line
    })

  /** The offer that a session has under a name: its own, else that of the nearest one that it works for. */
  const offerIn = (line: ReadonlyArray<string>, name: string): Offer | null => {
    const of = offers.get(name)?.of
    for (const id of line) {
      const found = of?.get(id)
      if (found !== undefined) return found
    }
    return null
  }

  const toolOf = (name: string): Tool =>
    tool({
      description: "A tool of a client.",
      input: Arguments,
      inputSchema: { type: "object" },
      bounds: { keep: "both" },
      execute: (input, call) =>
        Effect.flatMap(lineOf(call.sessionID), (line) => {
          const offer = offerIn(line, name)
          return offer === null
            ? Effect.fail(new ToolFailure({ message: `Nobody offers the tool ${name} to this session.` }))
            : offer.call(input, call)
        })
    })

  const namespace = yield* ctx.namespace("client-tools", {})
  yield* ctx.hooks(namespace, "generation", {
    beforeRequest: (request, { sessionID }) =>
      Effect.gen(function*() {
        if (!request.tools.some(({ name }) => own.has(name))) return undefined
        const line = yield* lineOf(sessionID)
        const tools = request.tools.flatMap((definition) => {
          if (!own.has(definition.name)) return [definition]
          const offer = offerIn(line, definition.name)
          return offer === null
            ? []
            : [{ ...definition, description: offer.description, inputSchema: offer.inputSchema }]
        })
        return { request: { ...request, tools } }
      })
  })

  const remove = (name: string) => (offer: Offer) =>
    Effect.suspend(() => {
      const known = offers.get(name)
      if (known?.of.get(offer.sessionID) !== offer) return Effect.void
      known.of.delete(offer.sessionID)
      if (known.of.size > 0) return Effect.void
      offers.delete(name)
      return ctx.tool.reload
    })

  const count = () => [...offers.values()].reduce((sum, { of }) => sum + of.size, 0)

  yield* ctx.provide(ClientTools, {
    offer: Effect.fnUntraced(function*(offered: OfferedTool) {
      const { name, sessionID } = offered
      const problem = problemOf(offered)
      if (problem !== null) return yield* new OfferRefused({ code: "invalid", message: problem })
      const taken = (by: string) =>
        new OfferRefused({ code: "taken", message: `There is a tool ${name} already, ${by}.` })
      const isTaken = () => offers.get(name)?.of.has(sessionID) === true
      if (isTaken()) return yield* taken("which a client offers to this session")
      const listed = offers.has(name) ? undefined : (yield* ctx.tool.list).find((listing) => listing.name === name)
      if (listed !== undefined) return yield* taken(`of the plugin ${listed.plugin}`)
      if (count() >= mostOffers) {
        return yield* new OfferRefused({
          code: "too_many",
          message: `Clients offer ${mostOffers} tools here already; none can be added.`
        })
      }
      const { held, offer } = yield* makeOffer(offered, remove(name))
      // Others may have come since: two at once are told apart here.
      if (isTaken()) return yield* taken("which a client offers to this session")
      const known = offers.get(name)
      if (known !== undefined) known.of.set(sessionID, offer)
      else {
        offers.set(name, { tool: toolOf(name), of: new Map([[sessionID, offer]]) })
        yield* ctx.tool.reload
      }
      return held
    })
  })
  yield* ctx.onDispose(
    Effect.suspend(() =>
      Effect.forEach([...offers.values()].flatMap(({ of }) => [...of.values()]), ({ end }) => end, { discard: true })
    )
  )
})
