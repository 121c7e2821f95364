/**
 * A session made of nothing but its view: a conversation that does what the text sent to it says, and a presentation half
 * over it. The terminal host and its facets cannot tell it from a real one, and it needs no model, storage or connection.
 */
import type { ConversationView, ViewEntry, ViewMessagePart, ViewTool, ViewTurn } from "@bezel/core/harness"
import type { PresentationContext, PresentationHalf } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import type { Message, ToolCallPart } from "@bezel/core/model"
import type { Interaction, Replica } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { ChatConversation } from "../../packages/plugins/src/chat/screen.ts"

const emptyView: ConversationView = {
  conversation: { id: "main", sessionID: "ses_stub", parent: null, owner: null },
  entries: [],
  config: { model: { provider: "bezel", model: "offline" }, agent: null, thinking: "off", queue: "one" },
  inbox: [],
  turn: null,
  compaction: null,
  tasks: {},
  plugins: {},
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, context: 0 }
}

const turn = (parts: ReadonlyArray<ViewMessagePart>, tools: ReadonlyArray<ViewTool> = []): ViewTurn => ({
  inputs: ["in_1"],
  generation: { task: "t1", stage: "streaming", attempt: 1, model: null, retryAt: null, error: null },
  message: parts.length === 0 ? null : { parts },
  tools
})

export const tool = (given: Partial<ViewTool> & { readonly callId: string; readonly name: string }): ViewTool => ({
  task: given.callId,
  args: {},
  status: "running",
  waitingOn: null,
  output: "",
  progress: null,
  details: null,
  continuedBy: null,
  entry: null,
  ...given
})

export interface StubSession {
  readonly conversation: ChatConversation & { readonly view: Replica<ConversationView> }
  /** The text of each input, in the order in which they came. */
  readonly sent: ReadonlyArray<string>
  readonly presentation: PresentationHalf<never>
  /** Asks through whichever facet handles the interaction. */
  readonly ask: <Q, R>(
    interaction: Interaction<Q, R>,
    request: Q
  ) => Effect.Effect<R | "declined" | "unhandled", unknown>
  readonly update: (change: (view: ConversationView) => ConversationView) => Effect.Effect<void>
}

export interface Script {
  readonly update: (change: (view: ConversationView) => ConversationView) => Effect.Effect<void>
  readonly entry: (kind: string, model: ReadonlyArray<Message> | null, data?: JsonValue) => Effect.Effect<string>
  readonly turn: (parts: ReadonlyArray<ViewMessagePart>, tools?: ReadonlyArray<ViewTool>) => Effect.Effect<void>
  readonly finish: Effect.Effect<void>
  readonly ask: StubSession["ask"]
}

/** `respond` plays the answer to an input; aborting interrupts it. */
export const makeStubSession = (respond: (text: string, script: Script) => Effect.Effect<void, unknown>) =>
  Effect.gen(function*() {
    const ref = yield* SubscriptionRef.make(emptyView)
    const fork = yield* FiberSet.makeRuntime<never>()
    const sent: Array<string> = []
    const handlers = new Map<string, (request: never) => Effect.Effect<unknown, unknown>>()
    let running: Fiber.Fiber<void, unknown> | null = null
    let entries = 0

    const update = (change: (view: ConversationView) => ConversationView) => SubscriptionRef.update(ref, change)
    const view: Replica<ConversationView> = {
      get value() {
        return SubscriptionRef.getUnsafe(ref)
      },
      sequence: 0,
      status: "live",
      statuses: Stream.make("live" as const),
      changes: SubscriptionRef.changes(ref),
      forEach: (effect) => Effect.andThen(Stream.runForEach(SubscriptionRef.changes(ref), effect), Effect.never)
    }
    const ask: StubSession["ask"] = (interaction, request) =>
      Effect.suspend(() => {
        const handler = handlers.get(interaction.id) as
          | ((asked: typeof request) => Effect.Effect<never, unknown>)
          | undefined
        return handler === undefined ? Effect.succeed("unhandled" as const) : handler(request)
      })
    const script: Script = {
      update,
      entry: (kind, model, data = null) =>
        Effect.suspend(() => {
          entries += 1
          const entry: ViewEntry = { id: `e${entries}`, kind, data, model, head: false, createdAt: 0 }
          return Effect.as(update((current) => ({ ...current, entries: [...current.entries, entry] })), entry.id)
        }),
      turn: (parts, tools) => update((current) => ({ ...current, turn: turn(parts, tools) })),
      finish: update((current) => ({ ...current, turn: null })),
      ask
    }
    const conversation: StubSession["conversation"] = {
      view,
      send: ({ text }) =>
        Effect.gen(function*() {
          sent.push(text)
          if (text === "refuse") return yield* Effect.fail({ message: "The session takes no input now." })
          yield* script.entry("bezel.user", [{ role: "user", content: [{ type: "text", text }] }])
          running = fork(respond(text, script))
          return {}
        }),
      abort: () =>
        Effect.gen(function*() {
          if (running !== null) yield* Fiber.interrupt(running)
          running = null
          yield* script.finish
          yield* script.entry("bezel.failure", null, { reason: "aborted", error: null, inputs: [] })
        }),
      inputContent: ({ inputID }) =>
        Effect.succeed({
          text: SubscriptionRef.getUnsafe(ref).inbox.find(({ id }) => id === inputID)?.text ?? "",
          files: []
        }),
      inputAbort: ({ inputID }) =>
        Effect.suspend(() =>
          SubscriptionRef.getUnsafe(ref).inbox.some(({ id }) => id === inputID)
            ? Effect.as(
              update((current) => ({ ...current, inbox: current.inbox.filter(({ id }) => id !== inputID) })),
              "aborted"
            )
            : Effect.succeed("already_placed")
        ),
      configSet: (patch) => update((current) => ({ ...current, config: { ...current.config, ...patch } })),
      entries: () =>
        Effect.sync(() =>
          SubscriptionRef.getUnsafe(ref).entries.map(({ createdAt, data, id, kind, model }, index) => ({
            createdAt,
            data,
            id,
            kind,
            model,
            ordinal: index + 1
          }))
        )
    }

    const presentation: PresentationHalf<never> = {
      check: () => [],
      apply: () => Effect.void,
      makeContext: (facet, kernel): PresentationContext => ({
        plugin: facet.entry.id,
        options: null,
        onActivate: facet.onActivate,
        onDispose: facet.onDispose,
        own: facet.own,
        plugins: kernel.plugins,
        log: {
          debug: () => Effect.void,
          info: () => Effect.void,
          warning: () => Effect.void,
          error: () => Effect.void
        },
        provide: () => Effect.void,
        reload: () => Effect.succeed([]),
        use: () => Effect.die(new Error("The stub has no services.")),
        observe: () => Effect.void,
        interactions: {
          handle: (interaction, handler) =>
            Effect.sync(() => {
              handlers.set(interaction.id, (request: never) => Effect.scoped(handler(request)))
            })
        },
        connection: {
          value: { status: "connected" },
          sequence: 0,
          changes: Stream.make({ status: "connected" as const }),
          forEach: (effect) => Effect.andThen(effect({ status: "connected" }), Effect.never)
        },
        session: { current: Effect.succeed(null), changes: Stream.make(null), select: () => Effect.void }
      })
    }
    const session: StubSession = { conversation, sent, presentation, ask, update }
    return session
  })

export const assistant = (text: string, calls: ReadonlyArray<ToolCallPart> = []): ReadonlyArray<Message> => [{
  role: "assistant",
  content: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...calls]
}]

export const toolResult = (id: string, name: string, result: string, isFailure = false): ReadonlyArray<Message> => [{
  role: "tool",
  content: [{ type: "tool-result", id, name, isFailure, result }]
}]
