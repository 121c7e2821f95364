/** Whatever is written, whenever the connection is lost and whatever nonsense a peer sends: replicas end where the authority is. */
import { loopback } from "@bezel/core/rpc"
import { MutableRemoteState, RemoteService } from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, Schema } from "effect"
import * as fc from "fast-check"
import { makeServiceHost } from "../../../packages/core/src/testing/service.ts"
import { connected, eventually } from "../../matrix/harness.ts"

const Doc = Schema.Struct({
  text: Schema.String,
  list: Schema.Array(Schema.String),
  map: Schema.Record(Schema.String, Schema.Json)
})

class Document extends RemoteService.make("test.document")({
  state: { doc: Doc },
  methods: { echo: { payload: Schema.Json, success: Schema.Json } }
}) {}

type Step =
  | { readonly do: "append" | "push" | "drop" | "yield" | "shift" }
  | { readonly do: "put"; readonly key: string; readonly value: Schema.Json }
  | { readonly do: "replace"; readonly list: Array<string> }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constantFrom<Step>({ do: "append" }, { do: "push" }, { do: "shift" }, { do: "yield" }, { do: "drop" }),
  fc.record({
    do: fc.constant<"put">("put"),
    key: fc.constantFrom("a", "b", "__proto__", "toString"),
    value: fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)))
  }),
  fc.record({ do: fc.constant<"replace">("replace"), list: fc.array(fc.string(), { maxLength: 4 }) })
)

describe("replication", () => {
  it("ends with the authority's value after any writes and any losses of the connection", async () => {
    expect.hasAssertions()
    const run = (steps: ReadonlyArray<Step>, queueLimit: number) =>
      Effect.gen(function*() {
        const host = yield* makeServiceHost({ queueLimit })
        const doc = yield* MutableRemoteState.make(Doc, { text: "", list: [], map: {} })
        yield* host.directory.provide(Document, { doc, echo: (value) => Effect.succeed(value) })
        const client = yield* host.connect({ retry: { first: 0, longest: 0 } })
        yield* connected(client)
        const document = yield* client.use(Document)
        yield* document.ready
        for (const next of steps) {
          switch (next.do) {
            case "append":
              yield* doc.update((draft) => {
                draft.text += "…x"
              })
              break
            case "push":
              yield* doc.update((draft) => {
                draft.list.push("item")
              })
              break
            case "shift":
              yield* doc.update((draft) => {
                draft.list.shift()
              })
              break
            case "put":
              if (next.key !== "__proto__") {
                yield* doc.update((draft) => {
                  Reflect.set(draft.map, next.key, next.value)
                })
              }
              break
            case "replace":
              yield* doc.set({ ...doc.value, list: next.list })
              break
            case "drop":
              yield* client.drop
              break
            case "yield":
              for (let turn = 0; turn < 30; turn++) yield* Effect.yieldNow
          }
        }
        // One more write, so that there is a value to wait for.
        yield* doc.update((draft) => {
          draft.text += "end"
        })
        yield* eventually(() => document.doc.value?.text === doc.value.text && document.doc.status === "live")
        expect(document.doc.value).toEqual(doc.value)
      }).pipe(Effect.scoped, Effect.runPromise)
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 6 }), run), {
      numRuns: 60
    })
  })

  it("passes any JSON value through unchanged", async () => {
    expect.hasAssertions()
    await Effect.gen(function*() {
      const host = yield* makeServiceHost()
      const doc = yield* MutableRemoteState.make(Doc, { text: "", list: [], map: {} })
      yield* host.directory.provide(Document, { doc, echo: (value) => Effect.succeed(value) })
      const client = yield* host.connect()
      yield* connected(client)
      const document = yield* client.use(Document)
      const property = fc.asyncProperty(
        fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value))),
        async (value) => {
          expect(JSON.stringify(await Effect.runPromise(document.echo(value)))).toBe(JSON.stringify(value))
        }
      )
      yield* Effect.promise(async () => fc.assert(property, { numRuns: 200 }))
    }).pipe(Effect.scoped, Effect.runPromise)
  })

  it("survives any message of a peer, and goes on serving the others", async () => {
    expect.hasAssertions()
    await Effect.gen(function*() {
      const host = yield* makeServiceHost()
      const doc = yield* MutableRemoteState.make(Doc, { text: "", list: [], map: {} })
      yield* host.directory.provide(Document, { doc, echo: (value) => Effect.succeed(value) })
      const client = yield* host.connect()
      yield* connected(client)
      const document = yield* client.use(Document)
      const message = fc.oneof(
        fc.string(),
        fc.jsonValue().map((value) => JSON.stringify(value)),
        fc.record({
          _tag: fc.constantFrom("Request", "Ack", "Interrupt", "Ping", "Eof", "Nonsense"),
          id: fc.oneof(fc.string(), fc.integer(), fc.jsonValue()),
          requestId: fc.oneof(fc.string(), fc.integer()),
          tag: fc.constantFrom("call", "watch", "control", "__proto__", "toString"),
          payload: fc.oneof(
            fc.jsonValue(),
            fc.record({
              type: fc.constantFrom(
                "states",
                "events",
                "instances",
                "interactions",
                "hello",
                "select",
                "answer",
                "handles"
              ),
              service: fc.oneof(fc.constant("test.document"), fc.constant("__proto__"), fc.string()),
              member: fc.constantFrom("echo", "doc", "__proto__", "constructor"),
              payload: fc.jsonValue(),
              session: fc.option(fc.string()),
              interactions: fc.jsonValue(),
              answer: fc.jsonValue(),
              trace: fc.jsonValue()
            }, { requiredKeys: [] })
          ),
          headers: fc.constant([])
        }).map((value) => JSON.stringify(value))
      )
      const property = fc.asyncProperty(
        fc.array(message, { minLength: 1, maxLength: 8 }),
        (frames) =>
          Effect.gen(function*() {
            const peer = yield* loopback(host.endpoint)
            yield* Effect.forkScoped(peer.run(() => Effect.void))
            for (const frame of frames) yield* peer.send(frame)
            for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
            expect(yield* document.echo("still there")).toBe("still there")
          }).pipe(Effect.scoped, Effect.provide(Logger.layer([])), Effect.runPromise)
      )
      yield* Effect.promise(async () => fc.assert(property, { numRuns: 150 }))
      yield* eventually(() => Effect.runSync(host.endpoint.clients).length === 1)
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([])), Effect.runPromise)
  })
})
