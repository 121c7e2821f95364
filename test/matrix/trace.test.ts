/** A prompt from a person to the coordinator and back, as one tree of spans, over every transport. */
import { Conversation, conversationKey, makePresentation, Plugin, type PresentationContext } from "@bezel/core/host"
import { Kernel } from "@bezel/core/kernel"
import { Connection, Endpoint, type Transport } from "@bezel/core/rpc"
import { RemoteService, type ServiceError } from "@bezel/core/service"
import { call, hostIdentity, recordSpans, scriptedModel, testCoordinator, testSessionHost } from "@bezel/core/testing"
import { tool, ToolFailure } from "@bezel/core/tool"
import * as OtelTracer from "@effect/opentelemetry/OtelTracer"
import * as Resource from "@effect/opentelemetry/Resource"
import { describe, expect, it } from "@effect/vitest"
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor
} from "@opentelemetry/sdk-trace-base"
import { Context, Deferred, Effect, Layer, Schema, type Scope } from "effect"
import { connected, overLoopback, overPort, overUnixSocket, overWebSocket } from "./harness.ts"

class Fleet extends RemoteService.make("test.fleet")({
  methods: { count: { payload: Schema.Struct({ title: Schema.String }), success: Schema.Finite } }
}) {}

/** A tool that asks the coordinator, which looks into its records under a span of its own. */
const fleet = Plugin.define({
  id: "test.fleet",
  coordinator: (ctx) =>
    ctx.provide(Fleet, {
      count: ({ title }) =>
        ctx.fleet.records.list({}).pipe(
          Effect.map(({ sessions }) => sessions.filter((session) => session.title === title).length),
          Effect.orDie,
          Effect.withSpan("coordinator.count")
        )
    }),
  session: (ctx) =>
    Effect.gen(function*() {
      const upstream = yield* Effect.orDie(ctx.upstream.use(Fleet))
      yield* ctx.tool.transform((draft) =>
        draft.set(
          "count",
          tool({
            description: "Counts sessions",
            input: Schema.Struct({ title: Schema.String }),
            execute: (input) =>
              upstream.count(input).pipe(
                Effect.map(String),
                Effect.mapError(({ message }) => new ToolFailure({ message }))
              )
          })
        )
      )
    })
})

/** Boots the facet of a screen over a connection. */
const screenOver = (
  connection: typeof Connection.Service,
  location: Parameters<typeof makePresentation>[0]["location"],
  facet: (ctx: PresentationContext) => Effect.Effect<void, unknown, Scope.Scope>
) =>
  Effect.gen(function*() {
    const { makeContext, ...bind } = yield* makePresentation({ connection, location })
    yield* Kernel.make({
      host: "presentation",
      plugins: [{ entry: { id: "test.chat", required: true }, load: Effect.succeed(facet) }],
      makeContext,
      bind
    })
  })

/** Asks once over the transport, from a screen; the tool that the model calls asks the coordinator. */
const ask = (transport: typeof overLoopback) =>
  Effect.gen(function*() {
    const coordinator = yield* testCoordinator([fleet])
    let toCoordinator: Effect.Effect<Transport, ServiceError, Scope.Scope> = Effect.die("not yet")
    const host = yield* testSessionHost([fleet], {
      model: scriptedModel([[call("count", { title: "mine" })], "One."]),
      coordinator: {
        ...coordinator,
        upstream: {
          connect: (location, manifest) =>
            Effect.gen(function*() {
              const identity = hostIdentity(location)
              toCoordinator = yield* transport.open({
                serve: (end) => coordinator.serve(end, identity),
                clients: Effect.succeed([])
              })
              return yield* Connection.make({ label: "host", manifest, connect: toCoordinator })
            }).pipe(Effect.orDie)
        }
      }
    })
    const { id } = yield* host.session.create({ title: "mine" })
    const toHost = yield* transport.open(Context.get(host.services, Endpoint))
    const connection = yield* Connection.make({ label: "screen", connect: toHost })
    yield* connected(connection)
    yield* connection.select(id)
    const answered = yield* Deferred.make<string>()
    yield* screenOver(
      connection,
      host.location,
      (ctx) =>
        ctx.observe(Conversation, (conversation, key) =>
          Effect.gen(function*() {
            if (key !== conversationKey(id, "c1")) {
              return
            }
            const outcome = yield* Effect.withSpan(
              Effect.flatMap(conversation.send({ text: "how many?" }), conversation.wait),
              "ui.chat.send"
            )
            yield* Deferred.succeed(answered, outcome.status === "done" ? outcome.text : outcome.reason)
          }))
    )
    return yield* Deferred.await(answered)
  }).pipe(Effect.scoped)

const tree = [
  "ui.chat.send",
  "rpc.client bezel.conversation.send",
  "rpc.server bezel.conversation.send",
  "Conversation.send",
  "task.bezel.tool",
  "tool.settle",
  "rpc.client test.fleet.count",
  "rpc.server test.fleet.count",
  "coordinator.count"
]

for (const transport of [overLoopback, overUnixSocket, overWebSocket, overPort]) {
  describe(`a prompt over ${transport.name}`, () => {
    it.live("is one tree of spans: screen, session host, turn, tool, coordinator", () => {
      const spans = recordSpans()
      return spans.traced(
        Effect.gen(function*() {
          expect(yield* ask(transport)).toBe("One.")
          const path = spans.path(spans.named("coordinator.count"))
          expect(path).toEqual(tree)
          expect(
            new Set(path.map((name) => spans.named(name).traceId)).size
          ).toBe(1)
        })
      )
    })
  })
}

describe("a program that brings the SDK of OpenTelemetry", () => {
  it.live("has the same tree of spans in its exporter", () =>
    Effect.gen(function*() {
      const exporter = new InMemorySpanExporter()
      const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
      const tracer = OtelTracer.layer.pipe(
        Layer.provide(Layer.succeed(OtelTracer.OtelTracerProvider, provider)),
        Layer.provide(Resource.layer({ serviceName: "a-host" }))
      )
      expect(yield* Effect.provide(ask(overUnixSocket), tracer)).toBe("One.")
      const spans = exporter.getFinishedSpans()
      const path = (span: ReadableSpan | undefined): ReadonlyArray<string> => {
        const above = span?.parentSpanContext?.spanId
        return span === undefined
          ? []
          : [...path(spans.find((one) => one.spanContext().spanId === above)), span.name]
      }
      const named = (name: string) => spans.find((span) => span.name === name)
      expect(path(named("coordinator.count"))).toEqual(tree)
      expect(new Set(tree.map((name) => named(name)?.spanContext().traceId)).size).toBe(1)
    }))
})
