import { Location } from "@bezel/core/location"
import type { Materialization, ToolDraft } from "@bezel/core/tool"
import { makeToolRegistry, tool, ToolRegistry } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { fakeCall } from "./fake-call.ts"

const everything = { enabled: {}, denied: [] }

const plugin = (name: string, order: number) => ({ plugin: name, version: "1.0.0", order })

const saying = (text: string, description = `says ${text}`) =>
  tool({ description, input: Schema.Struct({}), execute: () => Effect.succeed(text) })

const around = (name: string, label: string) => (draft: ToolDraft) =>
  draft.wrap(name, (next) => (input, call) =>
    Effect.map(next(input, call), (result) => ({
      ...result,
      content: result.content.map((part) => part.type === "text" ? { ...part, text: `${label}(${part.text})` } : part)
    })))

const run = (offer: Materialization, name: string, args = {}) =>
  Effect.gen(function*() {
    const answer = offer.accept(name, args)
    if ("refused" in answer) return answer.refused.code
    const result = yield* offer.settle(answer.accepted, fakeCall({ name }).call, { afterTool: Effect.succeed })
    return result.content.map((part) => part.type === "text" ? part.text : part.mediaType).join("")
  })

describe("contributing tools", () => {
  it.effect("wraps compose in manifest order, whatever the order of registration", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("telemetry", 3), around("bash", "telemetry"))
      yield* registry.transform(plugin("sandbox", 1), around("bash", "sandbox"))
      yield* registry.transform(plugin("tools", 0), (draft) => draft.set("bash", saying("bash")))
      yield* registry.transform(plugin("permission", 2), around("bash", "permission"))
      expect(yield* run(yield* registry.materialize(everything), "bash")).toBe("telemetry(permission(sandbox(bash)))")
    }))

  it.effect("when a wrapping plugin goes, the rest is rebuilt without it and nothing wraps twice", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      const scope = yield* Scope.make()
      yield* registry.transform(plugin("tools", 0), (draft) => draft.set("bash", saying("bash")))
      yield* registry.transform(plugin("sandbox", 1), around("bash", "sandbox"))
      yield* Scope.provide(registry.transform(plugin("permission", 2), around("bash", "permission")), scope)
      yield* registry.transform(plugin("telemetry", 3), around("bash", "telemetry"))
      yield* registry.reload
      expect(yield* run(yield* registry.materialize(everything), "bash")).toBe("telemetry(permission(sandbox(bash)))")
      yield* Scope.close(scope, Exit.void)
      expect(yield* run(yield* registry.materialize(everything), "bash")).toBe("telemetry(sandbox(bash))")
    }))

  it.effect("wrapping an absent tool takes out that transform whole and no other", () =>
    Effect.gen(function*() {
      const faults: Array<string> = []
      const registry = yield* makeToolRegistry({ onFault: (fault) => faults.push(fault.message) })
      yield* registry.transform(plugin("good", 0), (draft) => draft.set("read", saying("read")))
      yield* registry.transform(plugin("bad", 1), (draft) => {
        draft.set("extra", saying("extra"))
        draft.wrap("web_fetch", (next) => next)
      })
      expect((yield* registry.list).map((one) => one.name)).toEqual(["read"])
      expect(faults).toHaveLength(1)
      expect(faults[0]).toContain("bad")
      expect(faults[0]).toContain('there is no tool "web_fetch" to wrap; there are: extra, read')
    }))

  it.effect("a second tool of a name replaces the first with its wraps, and the list tells", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("tools", 0), (draft) => draft.set("bash", saying("old")))
      yield* registry.transform(plugin("sandbox", 1), around("bash", "sandbox"))
      yield* registry.transform(plugin("mine", 2), (draft) => draft.set("bash", saying("new")))
      yield* registry.transform(plugin("last", 3), around("bash", "last"))
      expect(yield* registry.list).toEqual([
        {
          name: "bash",
          plugin: "mine",
          description: "says new",
          namesAccess: false,
          replaced: ["tools"],
          wrappedBy: ["last"]
        }
      ])
      expect(yield* run(yield* registry.materialize(everything), "bash")).toBe("last(new)")
    }))

  it.effect("a removed tool is unknown, and removing what is absent is no fault", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("tools", 0), (draft) => draft.set("bash", saying("bash")))
      yield* registry.transform(plugin("safe", 1), (draft) => {
        draft.remove("bash")
        draft.remove("bash")
      })
      expect(yield* run(yield* registry.materialize(everything), "bash")).toBe("unknown_tool")
      expect(yield* registry.faults).toEqual([])
    }))

  it.effect.each([
    ["a space", "two words"],
    ["a dot", "bezel.bash"],
    ["nothing", ""],
    ["65 characters", "x".repeat(65)],
    ["a name that every object has", "constructor"],
    ["the name of the prototype", "__proto__"]
  ])("%s is no tool name", ([, name]) =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("bad", 0), (draft) => draft.set(name ?? "", saying("x")))
      expect(yield* registry.list).toEqual([])
      expect((yield* registry.faults)[0]?.message).toMatch(/tool name|reserved/)
    }))

  it.effect("a tool whose arguments are no object takes out its transform", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("bad", 0), (draft) =>
        draft.set("x", tool({ description: "", input: Schema.String, execute: () => Effect.void })))
      expect((yield* registry.faults)[0]?.message).toContain(
        'tool "x" cannot be offered to a model, its input schema does not describe an object'
      )
    }))

  it.effect("what tool() has not made takes out its transform, with what belongs there", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      // As plain JavaScript can write it.
      yield* registry.transform(plugin("bad", 0), (draft) => draft.set("x", JSON.parse(`{ "description": "no more" }`)))
      yield* registry.transform(plugin("bare", 1), (draft) => {
        const { description, execute, input }: { [name: string]: unknown } = { ...saying("y") }
        draft.set("y", Object.assign(JSON.parse("{}"), { description, execute, input }))
      })
      expect((yield* registry.faults).map(({ message }) => message)).toEqual([
        expect.stringContaining('tool "x" is not what tool({ description, input, execute }) makes'),
        expect.stringContaining('tool "y" is not what tool({ description, input, execute }) makes')
      ])
    }))

  it.effect("the same manifest gives the same definitions and declarations, byte for byte", () =>
    Effect.gen(function*() {
      const change = (draft: ToolDraft) => {
        draft.set("zeta", saying("z"))
        draft.set("Alpha", saying("A"))
        draft.set(
          "alpha",
          tool({
            description: "a",
            input: Schema.Struct({ path: Schema.String, depth: Schema.optionalKey(Schema.Int) }),
            execute: () => Effect.void
          })
        )
      }
      const first = yield* makeToolRegistry()
      yield* first.transform(plugin("a", 0), change)
      yield* first.transform(plugin("b", 1), (draft) => draft.set("mid", saying("m")))
      const second = yield* makeToolRegistry()
      yield* second.transform(plugin("b", 1), (draft) => draft.set("mid", saying("m")))
      yield* second.transform(plugin("a", 0), change)
      const one = yield* first.materialize(everything)
      yield* first.reload
      const again = yield* first.materialize(everything)
      const other = yield* second.materialize(everything)
      expect(one.definitions.map(({ name }) => name)).toEqual(["Alpha", "alpha", "mid", "zeta"])
      expect(JSON.stringify(again.definitions)).toBe(JSON.stringify(one.definitions))
      expect(JSON.stringify(other.definitions)).toBe(JSON.stringify(one.definitions))
      const hash = (offer: Materialization) => {
        const answer = offer.accept("alpha", { path: "x" })
        return "accepted" in answer ? answer.accepted.declaration.hash : ""
      }
      expect(hash(one)).toMatch(/^[0-9a-f]{64}$/)
      expect(hash(other)).toBe(hash(one))
    }))

  it.effect("the layer needs a location and gives each build a registry of its own", () =>
    Effect.gen(function*() {
      const location = Layer.succeed(Location, { directory: "/tmp", workspaceID: null })
      const registry = yield* ToolRegistry.pipe(Effect.provide(ToolRegistry.layer.pipe(Layer.provide(location))))
      expect(yield* registry.list).toEqual([])
    }))
})

describe("what a model is told of arguments", () => {
  it.effect("is one object schema without references", () =>
    Effect.gen(function*() {
      class Place extends Schema.Class<Place>("Place")({ line: Schema.Int }) {}
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("a", 0), (draft) =>
        draft.set(
          "go",
          tool({
            description: "goes",
            input: Schema.Struct({
              to: Place,
              via: Schema.optionalKey(Schema.Array(Place)),
              how: Schema.Literals(["fast", "slow"])
            }),
            execute: () => Effect.void
          })
        ))
      const [definition] = (yield* registry.materialize(everything)).definitions
      expect(definition?.inputSchema).toMatchObject({
        type: "object",
        required: ["to", "how"],
        additionalProperties: false,
        properties: {
          to: { type: "object", properties: { line: { type: "integer" } } },
          how: { enum: ["fast", "slow"] }
        }
      })
      expect(JSON.stringify(definition)).not.toContain("$ref")
    }))

  it.effect("is the JSON Schema that a tool gives itself, word for word, each tool its own", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      const input = Schema.Record(Schema.String, Schema.Json)
      const schemas = ["one", "two"].map((name) => ({
        type: "object",
        properties: { [name]: { $ref: "#/$defs/x", default: 1 } },
        $defs: { x: { type: "integer", format: "odd" } }
      }))
      yield* registry.transform(plugin("a", 0), (draft) => {
        for (const [index, inputSchema] of schemas.entries()) {
          draft.set(`t${index}`, tool({ description: "t", input, inputSchema, execute: () => Effect.void }))
        }
      })
      const made = yield* registry.materialize(everything)
      expect(made.definitions.map(({ inputSchema }) => inputSchema)).toEqual(schemas)
      expect(made.accept("t0", { anything: [1] })).toMatchObject({ accepted: { input: { anything: [1] } } })
      expect(made.accept("t0", [])).toMatchObject({ refused: { code: "invalid_arguments" } })
    }))

  it.effect("is an empty object for a tool without parameters, which a model may also leave out as null members", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("a", 0), (draft) => draft.set("now", saying("now")))
      const offer = yield* registry.materialize(everything)
      expect(offer.definitions[0]?.inputSchema).toEqual({ type: "object", properties: {}, additionalProperties: false })
      expect(yield* run(offer, "now")).toBe("now")
      expect(offer.accept("now", [])).toMatchObject({ refused: { code: "invalid_arguments" } })
    }))
})

describe("accepting a call", () => {
  const offer = Effect.gen(function*() {
    const registry = yield* makeToolRegistry()
    yield* registry.transform(plugin("a", 0), (draft) => {
      for (const name of ["search", "read", "bash"]) {
        draft.set(
          name,
          tool({
            description: name,
            input: Schema.Struct({
              path: Schema.String,
              limit: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
              mode: Schema.optionalKey(Schema.Literals(["fast", "slow"]))
            }),
            permission: ({ path }) => ({ access: name, subjects: [path] }),
            execute: () => Effect.void
          })
        )
      }
    })
    return { registry, offer: yield* registry.materialize({ enabled: { search: true }, denied: ["bash"] }) }
  })

  const refusal = (name: string, args: Parameters<Materialization["accept"]>[1]) =>
    Effect.map(offer, ({ offer }) => {
      const answer = offer.accept(name, args)
      return "refused" in answer ? answer.refused : null
    })

  it.effect("an unknown tool is answered with what is like it and what there is", () =>
    Effect.gen(function*() {
      expect(yield* refusal("Reed", {})).toEqual({
        code: "unknown_tool",
        message: 'There is no tool "Reed". Did you mean "read"? Available tools: read, search.'
      })
    }))

  it.effect("a denied tool is not offered and says so when it is called", () =>
    Effect.gen(function*() {
      const { offer: made } = yield* offer
      expect(made.definitions.map(({ name }) => name)).toEqual(["read", "search"])
      expect(yield* refusal("bash", { path: "x" })).toEqual({
        code: "not_offered",
        message: 'The tool "bash" is not available here. Available tools: read, search.'
      })
    }))

  it.effect("a hidden tool is not offered", () =>
    Effect.gen(function*() {
      const { registry } = yield* offer
      const made = yield* registry.materialize({ enabled: { read: false, unknown: false }, denied: [] })
      expect(made.definitions.map(({ name }) => name)).toEqual(["bash", "search"])
    }))

  it.effect("invalid arguments are answered with each path, what is wrong there and what is allowed", () =>
    Effect.gen(function*() {
      const refused = yield* refusal("read", { path: 3, limit: 0, mode: "quick", ofset: 1 })
      expect(refused?.code).toBe("invalid_arguments")
      expect(refused?.message).toContain("path: expected string, got 3")
      expect(refused?.message).toContain("limit: expected a value greater than or equal to 1, got 0")
      expect(refused?.message).toContain('mode: expected "fast" | "slow", got "quick"')
      expect(refused?.message).toContain("ofset: there is no such parameter")
      expect(refused?.message).toContain('Its parameters are: path: string, limit?: integer, mode?: "fast" | "slow".')
    }))

  it.effect("a missing argument is named", () =>
    Effect.gen(function*() {
      expect((yield* refusal("read", {}))?.message).toContain("path: is required")
    }))

  it.effect.each([[null], ["text"], [[1]], [7]])(
    "arguments that are no object are refused: %j",
    ([args]) =>
      Effect.gen(function*() {
        expect((yield* refusal("read", args ?? null))?.message).toContain("must be a JSON object")
      })
  )

  it.effect("null for an optional argument is the same as leaving it out", () =>
    Effect.gen(function*() {
      const { offer: made } = yield* offer
      const answer = made.accept("read", { path: "x", limit: null, mode: null })
      expect(answer).toMatchObject({
        accepted: { args: { path: "x" }, permission: { access: "read", subjects: ["x"] } }
      })
    }))

  it.effect("a thousand levels of nesting are refused like any other wrong argument", () =>
    Effect.gen(function*() {
      const deep = JSON.parse("[".repeat(5_000) + "]".repeat(5_000))
      expect((yield* refusal("read", { path: deep }))?.code).toBe("invalid_arguments")
    }))

  it.effect("a permission that throws refuses the call instead of failing", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      yield* registry.transform(plugin("a", 0), (draft) =>
        draft.set(
          "x",
          tool({
            description: "",
            input: Schema.Struct({}),
            permission: () => {
              throw new Error("no idea")
            },
            execute: () => Effect.void
          })
        ))
      const answer = (yield* registry.materialize(everything)).accept("x", {})
      expect(answer).toMatchObject({ refused: { code: "invalid_arguments" } })
    }))
})

describe("a materialization", () => {
  const offered = (description: string) => (draft: ToolDraft) => draft.set("x", saying(description, description))

  it.effect("keeps the code that it offered, and says when that has been replaced or removed", () =>
    Effect.gen(function*() {
      const registry = yield* makeToolRegistry()
      const first = yield* registry.transform(plugin("a", 0), offered("old"))
      const offer = yield* registry.materialize(everything)
      const answer = offer.accept("x", {})
      if ("refused" in answer) return expect.fail("the call was refused")
      expect(offer.fresh(answer.accepted)).toBeNull()
      yield* registry.reload
      expect(offer.fresh(answer.accepted)).toBeNull()

      const second = yield* registry.transform(plugin("b", 1), offered("new"))
      expect(offer.fresh(answer.accepted)).toMatchObject({ code: "stale_tool" })
      expect(offer.fresh(answer.accepted)?.message).toContain("has been replaced")
      expect(offer.definitions[0]?.description).toBe("old")
      expect(yield* run(offer, "x")).toBe("old")

      yield* second.unregister
      expect(offer.fresh(answer.accepted)).toBeNull()
      yield* first.unregister
      expect(offer.fresh(answer.accepted)?.message).toContain("has been removed")
    }))

  it.effect.each(
    [
      { what: "plugin", owner: { plugin: "other", version: "1" }, description: "same", replay: "never" },
      { what: "version", owner: { plugin: "a", version: "2" }, description: "same", replay: "never" },
      { what: "description", owner: { plugin: "a", version: "1" }, description: "changed", replay: "never" },
      { what: "replay", owner: { plugin: "a", version: "1" }, description: "same", replay: "safe" }
    ] as const
  )("another $what is another declaration", ({ description, owner, replay }) =>
    Effect.gen(function*() {
      const made = (by: { plugin: string; version: string }, text: string, replay: "safe" | "never") =>
        Effect.gen(function*() {
          const registry = yield* makeToolRegistry()
          yield* registry.transform({ ...by, order: 0 }, (draft) =>
            draft.set(
              "x",
              tool({
                description: text,
                input: Schema.Struct({}),
                replay,
                execute: () => Effect.void
              })
            ))
          const answer = (yield* registry.materialize(everything)).accept("x", {})
          return "accepted" in answer ? answer.accepted.declaration.hash : ""
        })
      expect(yield* made(owner, description, replay)).not.toBe(
        yield* made({ plugin: "a", version: "1" }, "same", "never")
      )
    }))
})
