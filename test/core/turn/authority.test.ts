import {
  Entry,
  type ExtensionTransaction,
  HarnessError,
  type Namespace,
  type TaskApi,
  TaskKind
} from "@bezel/core/harness"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { never } from "../../../packages/core/src/testing/model.ts"
import { memory, open, settle, simpleKind, user } from "./fixture.ts"

/** The code of a failure. */
const codeOf = <A, R>(effect: Effect.Effect<A, HarnessError, R>) =>
  Effect.map(Effect.flip(effect), (error) => error.code)

it.effect("names under bezel. are the core's: no entry, task, kind or namespace of others has one", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    expect(() => Entry.define("bezel.mine", Schema.Unknown)).toThrow(HarnessError)
    for (const kind of ["bezel.user", "bezel.assistant", "bezel.tool_result", "bezel.summary", "bezel.new", "bezel"]) {
      expect(yield* codeOf(harness.main.write(kind, {}))).toBe("not_permitted")
      expect(yield* codeOf(harness.main.commit((tx) => tx.write(kind, {})))).toBe("not_permitted")
    }
    for (const name of ["bezel.generation", "bezel.tool", "bezel.post_tools", "bezel.collapse", "bezel.mine"]) {
      const kind = simpleKind(name, () => Effect.succeed(""))
      expect(yield* codeOf(harness.task(kind))).toBe("not_permitted")
      expect(yield* codeOf(harness.main.commit((tx) => tx.createTask(kind, {})))).toBe("not_permitted")
    }
    for (const id of ["bezel", "bezel.mine", "bezel.internal.x", ""]) {
      expect(yield* codeOf(harness.namespace(id, {}))).toBe("not_permitted")
    }
    expect((yield* harness.main.snapshot).view.entries).toEqual([])
  }))

it.effect("a notice has one user message and nothing that only the core may say, whatever it is cast to", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const message = { role: "user" as const, content: [{ type: "text" as const, text: "hello" }] }
    const answer = { role: "assistant", content: [] } as unknown as typeof message
    const write = (entry: object) => codeOf(harness.main.write("bezel.notice", entry))
    expect(yield* write({})).toBe("invalid")
    expect(yield* write({ model: [] })).toBe("invalid")
    expect(yield* write({ model: [message, message] })).toBe("invalid")
    expect(yield* write({ model: [answer] })).toBe("not_permitted")
    expect(yield* write({ model: [message], head: { after: null } })).toBe("not_permitted")
    expect(yield* write({ model: [message], edits: [] })).toBe("not_permitted")
    // Nor does an entry of one's own move where a context starts: what is not declared is not stored.
    yield* harness.main.write("mine", Object.assign({ data: 1 }, { head: { after: null }, edits: [], id: "e1" }))
    const [entry] = yield* harness.main.entries({})
    expect(entry).toMatchObject({ kind: "mine", head: null, edits: null, model: null })
    expect(yield* codeOf(harness.main.write("mine", { model: [answer] }))).toBe("not_permitted")
  }))

it.effect("a transaction has no way to the turn, the inbox, settings or slots, also for who looks at run time", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[never]])
    const ns = yield* harness.namespace("mine", { sticky: { a: 1 } })
    yield* harness.namespace("theirs", { sticky: { a: 1 } })
    yield* harness.resume
    yield* harness.main.send(user("go"))
    yield* harness.main.send(user("next"))
    yield* settle
    const before = (yield* harness.main.snapshot).view
    const members: Array<string> = []
    const attempt = (change: (draft: { [key: string]: never }) => void) =>
      harness.main.commit((tx) => change(tx.plugins(ns) as { [key: string]: never }))
    yield* harness.main.commit((tx) => {
      for (let at: object | null = tx; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
        members.push(...Object.getOwnPropertyNames(at))
      }
    })
    expect(members.sort()).toEqual(["createTask", "emit", "newestEntry", "now", "plugins", "write"])
    for (const key of ["turn", "inbox", "config", "slots", "theirs", "plugins", "__proto__", "constructor"]) {
      const set = Effect.exit(attempt((draft) => {
        Object.defineProperty(draft, key, { value: 1, configurable: true, enumerable: true, writable: true })
      }))
      expect(yield* set, key).toMatchObject({ _tag: "Failure" })
      expect(yield* Effect.exit(attempt((draft) => void Reflect.set(draft, key, 1))), key).toMatchObject({
        _tag: "Failure"
      })
    }
    expect((yield* harness.main.snapshot).view).toEqual(before)
    expect(yield* ns.get("c1")).toEqual({ a: 1 })
  }))

it.effect("an extension appends nothing in the middle of a turn: what it writes waits for the boundary", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[never]])
    yield* harness.resume
    yield* harness.main.send(user("go"))
    yield* settle
    yield* harness.main.commit((tx) => tx.write("mine", { data: 1 }))
    expect((yield* harness.main.entries({})).map((entry) => entry.kind)).toEqual(["bezel.user"])
    yield* harness.main.abort()
    expect((yield* harness.main.entries({})).map((entry) => entry.kind)).toContain("mine")
  }))

it.effect("a task comes only after tasks that were created before it: no cycle, no wait for itself or for nobody", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const kind = simpleKind("k", () => Effect.succeed("done"))
    yield* harness.task(kind)
    yield* harness.resume
    const first = yield* harness.main.commit((tx) => tx.createTask(kind, {}))
    const number = Number(first.id.slice(1))
    for (const id of [`t${number + 1}`, `t${number + 7}`, "t0", "t", "e1", "nobody", "__proto__"]) {
      const fault = yield* Effect.flip(
        harness.main.commit((tx) => tx.createTask(kind, {}, { after: [first, { id, kind: "k" }] }))
      )
      expect(fault, id).toMatchObject({ code: "invalid", message: expect.stringContaining(`"${id}"`) })
    }
    const last = yield* harness.main.commit((tx) => tx.createTask(kind, {}, { after: [first] }))
    expect(yield* harness.main.waitForTask(last)).toMatchObject({ result: "done" })
  }))

it.effect("a token that is not the one registered now is refused by every method", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const scope = yield* Scope.make()
    const old = yield* harness.namespace("n", { sticky: { a: 1 } }).pipe(Scope.provide(scope))
    const oldKind = simpleKind("k", () => Effect.succeed(""))
    const registration = yield* harness.task(oldKind)
    yield* old.unregister
    yield* registration.unregister
    const forged: Namespace = { ...old }
    const uses = (token: Namespace) => [
      token.get("c1"),
      token.update("c1", () => {}),
      harness.main.commit((tx) => {
        tx.plugins(token)
      }),
      harness.main.commit((tx) => {
        tx.emit(token, "x", null)
      }),
      harness.hooks(token, "tool", {})
    ]
    for (const use of uses(old)) expect(yield* codeOf(use)).toBe("stale_definition")
    const ns = yield* harness.namespace("n", { sticky: { a: 1 } })
    yield* harness.task(simpleKind("k", () => Effect.succeed("")))
    for (const use of uses(old)) expect(yield* codeOf(use)).toBe("stale_definition")
    for (const use of uses(forged)) expect(yield* codeOf(use)).toBe("stale_definition")
    expect(yield* codeOf(harness.main.commit((tx) => tx.createTask(oldKind, {})))).toBe("stale_definition")
    // The end of the old one's scope does not take the new one with it.
    yield* old.unregister
    expect(yield* ns.get("c1")).toEqual({ a: 1 })
  }))

const Phase = Schema.Struct({ phase: Schema.Literal("none") })

/** A kind that hands its runtime out, so that it can be used when its time is over. */
const leaky = (
  name: string,
  leak: (api: TaskApi<typeof Phase.Type, { n: number }>) => void,
  until: Effect.Effect<void>
) =>
  TaskKind.make(name, {
    input: Schema.Struct({}),
    checkpoint: Phase,
    slot: { schema: Schema.Struct({ n: Schema.mutableKey(Schema.Int) }), initial: { n: 0 } },
    result: Schema.Null,
    failure: Schema.Never,
    initial: (_, api) =>
      Effect.andThen(
        Effect.sync(() => leak(api)),
        Effect.as(until, { done: () => ({ status: "completed", result: null } as const) })
      ),
    phases: { none: () => Effect.succeed("retry" as const) }
  })

it.effect("a runtime of an invocation that has ended, was marked or was replaced is refused", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const held: Array<TaskApi<typeof Phase.Type, { n: number }>> = []
    const gate = yield* Deferred.make<void>()
    const kind = leaky("leaky", (api) => held.push(api), Deferred.await(gate))
    yield* harness.task(kind)
    yield* harness.resume
    const create = harness.main.commit((tx) => tx.createTask(kind, {}))
    const write = (api: TaskApi<typeof Phase.Type, { n: number }> | undefined) =>
      api === undefined ? Effect.die(new Error("nothing was leaked")) : api.commit((tx) => {
        tx.slot.n++
      })
    const ended = yield* create
    yield* settle
    yield* write(held[0])
    yield* Deferred.succeed(gate, undefined)
    yield* harness.main.waitForTask(ended)
    expect(yield* codeOf(write(held[0]))).toBe("stale_invocation")
    expect(yield* codeOf(held[0]?.config ?? Effect.die("nothing"))).toBe("stale_invocation")
  }))

it.effect("an abort gets a fresh invocation, which may write and may not create work", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const other = simpleKind("other", () => Effect.succeed(""))
    const faults: Array<string> = []
    const ran: Array<string> = []
    const kind = simpleKind("k", () => Effect.ensuring(Effect.never, Effect.sync(() => ran.push("unwound"))), {
      abort: (api) =>
        Effect.gen(function*() {
          ran.push("abort")
          const outcome = yield* Effect.match(api.commit((tx) => tx.createTask(other, {})), {
            onSuccess: () => "created",
            onFailure: (error) => error.code
          })
          faults.push(outcome)
          yield* api.commit((tx) => tx.write("mine", { data: "aborted" }))
        })
    })
    yield* harness.task(kind)
    yield* harness.task(other)
    yield* harness.resume
    const ref = yield* harness.main.commit((tx) => tx.createTask(kind, {}))
    yield* settle
    expect(yield* harness.main.abortTask(ref)).toMatchObject({ status: "aborted" })
    expect(ran).toEqual(["unwound", "abort"])
    expect(faults).toEqual(["not_permitted"])
    expect((yield* harness.main.entries({})).map((entry) => entry.data)).toEqual(["aborted"])
  }))

it.effect("a task reaches no slot but its own", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const held: Array<TaskApi<typeof Phase.Type, { n: number }>> = []
    const kind = leaky("leaky", (api) => held.push(api), Effect.never)
    yield* harness.task(kind)
    yield* harness.resume
    yield* harness.main.commit((tx) => [tx.createTask(kind, {}), tx.createTask(kind, {})])
    yield* settle
    const seen: Array<number> = []
    for (const [index, api] of held.entries()) {
      yield* api.commit((tx) => {
        tx.slot.n += index + 1
        expect(Object.keys(tx.slot)).toEqual(["n"])
      })
    }
    for (const api of held) seen.push(yield* api.commit((tx) => tx.slot.n))
    expect(seen).toEqual([1, 2])
  }))

it.effect("what an extension emits or writes is strict JSON, and refused otherwise with the place", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const ns = yield* harness.namespace("n", { sticky: { a: null } })
    const cyclic: Array<unknown> = []
    cyclic.push(cyclic)
    const commit = (use: (tx: ExtensionTransaction) => unknown) =>
      Effect.exit(harness.main.commit((tx) => void use(tx)))
    for (const bad of [undefined, () => 1, new Date(), Number.NaN, 1n, cyclic] as unknown as ReadonlyArray<null>) {
      expect(yield* commit((tx) => tx.emit(ns, "x", bad))).toMatchObject({ _tag: "Failure" })
      if (bad !== undefined) {
        expect(yield* commit((tx) => tx.write("mine", { data: bad }))).toMatchObject({ _tag: "Failure" })
      }
      expect(yield* commit((tx) => tx.plugins(ns).a = bad)).toMatchObject({ _tag: "Failure" })
    }
    expect((yield* harness.main.snapshot).view.entries).toEqual([])
    expect(yield* ns.get("c1")).toEqual({ a: null })
  }))
