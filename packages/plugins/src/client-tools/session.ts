/**
 * The session facet of tools of clients: each offer is a tool of the location that only its session sees, and each call of it
 * waits for the client that made the offer.
 *
 *     call ─▶ told to the client ─ answer ─▶ result      ─ time limit, client gone ─▶ error result      ─ abort ─▶ taken back
 *
 * A call is never repeated, neither here nor after a crash: nobody knows what the client did. One name has one owner: an offer
 * replaces no other tool. The permission rules hold for it as for any tool, under the tool's own name.
 */
import type { SessionContext } from "@bezel/core/host"
import type { JsonObject } from "@bezel/core/json"
import { type Capability, MutableRemoteState, RemoteReference } from "@bezel/core/service"
import { type Tool, tool, type ToolCall, ToolFailure, type ToolResult, toolResult } from "@bezel/core/tool"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
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

interface Offer {
  readonly sessionID: string
  readonly tool: Tool
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

/** The tool of an offer, and the object that its client holds. */
const makeOffer = Effect.fnUntraced(function*(
  offered: OfferedTool,
  mayCall: (sessionID: string) => Effect.Effect<boolean>,
  gone: (offer: Offer) => Effect.Effect<void>
) {
  const { description, name, sessionID, timeLimitSeconds } = offered
  const { inputSchema, toServer } = toolArguments(offered.inputSchema)
  const input = yield* acceptedBy(inputSchema)
  const calls = yield* MutableRemoteState.make(Schema.Array(ClientToolCall), [])
  const isOver = yield* MutableRemoteState.make(Schema.Boolean, false)
  const waiting = new Map<string, Deferred.Deferred<Ended>>()

  const execute = Effect.fn("client-tools.call")(function*(input: JsonObject, call: ToolCall) {
    if (!(yield* mayCall(call.sessionID))) {
      return yield* new ToolFailure({ message: `The tool ${name} is offered to another session.` })
    }
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
  const offer: Offer = {
    sessionID,
    tool: tool({ description, input, inputSchema, bounds: { keep: "both" }, execute }),
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
  const offers = new Map<string, Offer>()

  yield* ctx.tool.transform((draft) => {
    const taken = new Set(draft.list().map(({ name }) => name))
    for (const [name, { tool }] of offers) if (!taken.has(name)) draft.set(name, tool)
  })

  /** Sessions that work for the one that has the offer have it too. */
  const isOf = (owner: string, sessionID: string): Effect.Effect<boolean> =>
    Effect.gen(function*() {
      const seen = new Set<string>()
      for (let id: string | null = sessionID; id !== null && !seen.has(id);) {
        if (id === owner) return true
        seen.add(id)
        const record: Option.Option<{ readonly parentID: string | null }> = yield* Effect.option(ctx.session.get(id))
        id = Option.isSome(record) ? record.value.parentID : null
      }
      return false
    })

  const namespace = yield* ctx.namespace("client-tools", {})
  yield* ctx.hooks(namespace, "generation", {
    beforeRequest: (request, { sessionID }) =>
      Effect.gen(function*() {
        if (offers.size === 0) return undefined
        const hidden = new Set<string>()
        for (const [name, offer] of offers) if (!(yield* isOf(offer.sessionID, sessionID))) hidden.add(name)
        const tools = request.tools.filter(({ name }) => !hidden.has(name))
        return tools.length === request.tools.length ? undefined : { request: { ...request, tools } }
      })
  })

  const remove = (name: string) => (offer: Offer) =>
    Effect.suspend(() => {
      if (offers.get(name) !== offer) return Effect.void
      offers.delete(name)
      return ctx.tool.reload
    })

  yield* ctx.provide(ClientTools, {
    offer: Effect.fnUntraced(function*(offered: OfferedTool) {
      const { name, sessionID } = offered
      const problem = problemOf(offered)
      if (problem !== null) return yield* new OfferRefused({ code: "invalid", message: problem })
      const taken = (plugin: string) =>
        new OfferRefused({ code: "taken", message: `There is a tool ${name} already, ${plugin}.` })
      if (offers.has(name)) return yield* taken("which a client offers")
      const listed = (yield* ctx.tool.list).find((listing) => listing.name === name)
      if (listed !== undefined) return yield* taken(`of the plugin ${listed.plugin}`)
      if (offers.size >= mostOffers) {
        return yield* new OfferRefused({
          code: "too_many",
          message: `Clients offer ${mostOffers} tools here already; none can be added.`
        })
      }
      const { held, offer } = yield* makeOffer(offered, (asking) => isOf(sessionID, asking), remove(name))
      // Nothing has waited since the name was found to be free, but the list: two at once are told apart here.
      if (offers.has(name)) return yield* taken("which a client offers")
      offers.set(name, offer)
      yield* ctx.tool.reload
      return held
    })
  })
  yield* ctx.onDispose(Effect.suspend(() => Effect.forEach([...offers.values()], ({ end }) => end, { discard: true })))
})
