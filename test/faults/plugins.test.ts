/**
 * Code of a plugin that throws, fails, dies, interrupts itself or never returns, at every place of a turn where it runs.
 *
 * Whatever it does: every input ends, every call has one result, nothing of the session is left running, and the session is
 * whole when it is opened again without that plugin.
 */
import { type Harness, TaskKind } from "@bezel/core/harness"
import { apply } from "@bezel/core/json"
import type { Message } from "@bezel/core/model"
import type { MemorySession } from "@bezel/core/storage"
import { tool, type ToolDraft, ToolFailure } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { call, say, type ScriptedTurn } from "../../packages/core/src/testing/model.ts"
import { echo, memory, open, user } from "../core/turn/fixture.ts"
import { pairingFaults } from "./session-checks.ts"

type Broken = () => Effect.Effect<never, ToolFailure>

const misbehaviours: { readonly [name: string]: Broken } = {
  throws: () => {
    throw new Error("thrown by a plugin")
  },
  fails: () => Effect.fail(new ToolFailure({ message: "failed by a plugin" })),
  dies: () => Effect.die(new Error("died in a plugin")),
  "dies of a string": () => Effect.die("a string from a plugin"),
  "interrupts itself": () => Effect.interrupt,
  "never returns": () => Effect.never
}

interface Place {
  /** Puts the misbehaving code in place; the turn of the script then comes by it. */
  readonly install: (harness: Harness, broken: Broken) => Effect.Effect<unknown, unknown, Scope.Scope>
  readonly tools?: (broken: Broken) => (draft: ToolDraft) => void
  /** The turn never ends by itself where a tool never returns: a person ends it. */
  readonly aborts?: "always" | "when it never returns"
}

const none = () => Effect.void

const hooked = (
  install: (harness: Harness, broken: Broken) => Effect.Effect<unknown, unknown, Scope.Scope>
): Place => ({
  install
})

const brokenTool =
  (execute: (broken: Broken) => Parameters<typeof tool>[0]["execute"]) =>
  (broken: Broken) =>
  (draft: ToolDraft): void => {
    draft.set("echo", echo)
    draft.set("work", tool({ description: "works", input: Schema.Struct({}), execute: execute(broken) }))
  }

/** A kind whose phases go well but for one piece of it. */
const kind = (pieces: { readonly phase?: Broken; readonly describe?: Broken; readonly abort?: Broken }) =>
  TaskKind.make("faults.work", {
    input: Schema.Struct({}),
    checkpoint: Schema.Struct({ phase: Schema.Literal("working") }),
    slot: { schema: Schema.Struct({}), initial: {} },
    result: Schema.Null,
    failure: Schema.Struct({ message: Schema.String }),
    initial: () => Effect.succeed({ next: { phase: "working" } as const }),
    phases: {
      working: () =>
        pieces.abort === undefined
          ? Effect.as(pieces.phase?.() ?? Effect.void, { done: () => ({ status: "completed", result: null } as const) })
          : Effect.never
    },
    ...(pieces.abort === undefined ? {} : { abort: pieces.abort }),
    ...(pieces.describe === undefined ? {} : { describe: syncOf(pieces.describe) })
  })

/** For places that are plain functions: what fails or dies as an effect is thrown there, and what never returns is no JSON. */
const syncOf = (broken: Broken) => () => {
  const exit = Effect.runSyncExit(broken())
  if (Exit.isFailure(exit)) throw new Error("thrown by a plugin", { cause: exit.cause })
  return null
}

const startTask = (harness: Harness, made: ReturnType<typeof kind>, options: { readonly abort?: boolean } = {}) =>
  Effect.gen(function*() {
    yield* harness.task(made)
    const ref = yield* harness.main.commit((tx) => tx.createTask(made, {}, { background: true }))
    yield* harness.resume
    yield* settle
    if (options.abort === true) yield* Effect.forkScoped(harness.main.abortTask(ref))
    yield* settle
  })

const settle = Effect.gen(function*() {
  for (let n = 0; n < 50; n++) yield* Effect.yieldNow
})

const places: { readonly [name: string]: Place } = {
  "a section": hooked((harness, broken) => harness.section({ id: "s", order: 1, text: broken as never })),
  systemInstructions: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "generation", { systemInstructions: broken }))
  ),
  beforePrepare: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "generation", { beforePrepare: broken }))
  ),
  beforeRequest: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "generation", { beforeRequest: broken }))
  ),
  afterResponse: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "generation", { afterResponse: broken }))
  ),
  onYield: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "generation", { onYield: broken }))
  ),
  beforeTool: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "tool", { beforeTool: broken }))
  ),
  "a gate": hooked((harness, broken) =>
    Effect.flatMap(
      harness.namespace("p", {}),
      (ns) => harness.hooks(ns, "tool", { beforeTool: broken }, { gate: true })
    )
  ),
  "beforeTool while it waits for a person": {
    install: (harness, broken) =>
      Effect.flatMap(
        harness.namespace("p", {}),
        (ns) =>
          harness.hooks(ns, "tool", { beforeTool: (_, api) => Effect.andThen(api.waiting, Effect.suspend(broken)) })
      ),
    aborts: "when it never returns"
  },
  afterTool: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "tool", { afterTool: broken }))
  ),
  afterTools: hooked((harness, broken) =>
    Effect.flatMap(harness.namespace("p", {}), (ns) => harness.hooks(ns, "post_tools", { afterTools: broken }))
  ),
  beforeCollapse: hooked((harness, broken) =>
    Effect.flatMap(
      harness.namespace("p", {}),
      (ns) => Effect.andThen(harness.hooks(ns, "collapse", { beforeCollapse: broken }), harness.main.collapse())
    )
  ),
  "a tool": { install: none, tools: brokenTool((broken) => broken), aborts: "when it never returns" },
  "a tool's onAbort": {
    install: none,
    tools: brokenTool((broken) => (_, api) =>
      Effect.andThen(api.onAbort(Effect.ignore(Effect.suspend(broken))), Effect.never)
    ),
    aborts: "always"
  },
  "a tool's finalizer": {
    install: none,
    tools: brokenTool((broken) => () => Effect.ensuring(Effect.never, Effect.ignore(Effect.suspend(broken)))),
    aborts: "always"
  },
  "the projection of a namespace": hooked((harness, broken) =>
    Effect.gen(function*() {
      const ns = yield* harness.namespace("p", { sticky: { n: 0 } }, { view: syncOf(broken) })
      yield* harness.hooks(ns, "tool", {
        beforeTool: (_, api) =>
          ns.update(api.conversationID, (draft) => {
            draft.n = 1
          })
      })
    })
  ),
  "a phase of a kind": hooked((harness, broken) => startTask(harness, kind({ phase: broken }))),
  "the description of a kind": hooked((harness, broken) => startTask(harness, kind({ describe: broken }))),
  "the abort of a kind": hooked((harness, broken) => startTask(harness, kind({ abort: broken }), { abort: true }))
}

/** A call of each sort, a failed one among them, then the answer; and a second question. */
const script = (): ReadonlyArray<ScriptedTurn> => {
  const turn: ScriptedTurn = (request) => {
    const last = request.messages.at(-1)
    if (last?.role === "tool") return "answer"
    if (request.tools.length === 0) return "the summary"
    const asked = JSON.stringify(last?.content)
    return asked.includes("call") ? [say("let me see"), call("echo", { text: "a" }), call("work", {})] : "answer"
  }
  return Array.from({ length: 20 }, () => turn)
}

const plainTools = brokenTool(() => () => Effect.succeed("worked"))(() => Effect.never)

it.effect("a provider that never gives its model holds up a turn until a person ends it", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [], {
      models: { resolve: () => Effect.never, list: Effect.succeed([]) }
    })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    expect((yield* harness.main.snapshot).view.turn?.generation).toMatchObject({ stage: "preparing" })
    yield* harness.main.abort()
    expect(yield* input.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
  }))

/** One life of a session with the misbehaving plugin in it, then another without it. */
const live = (session: MemorySession, place: Place, name: string) =>
  Effect.gen(function*() {
    const broken = misbehaviours[name] ?? none
    const scope = yield* Scope.make()
    const { harness } = yield* Scope.provide(
      open(session.storage(), script(), { tools: place.tools?.(broken as Broken) ?? plainTools }),
      scope
    )
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("before")), (input) => input.wait)
    // Somebody looks on, for what shows is projected for them.
    const watch = yield* Scope.provide(harness.main.watch, scope)
    let seen = watch.view
    yield* Scope.provide(
      Effect.forkScoped(Stream.runForEach(watch.envelopes, ({ operations }) =>
        Effect.sync(() => {
          seen = apply(seen, operations)
        }))),
      scope
    )
    yield* Scope.provide(place.install(harness, broken as Broken), scope)
    const input = yield* harness.main.send(user("call"))
    const ended = yield* Effect.forkChild(input.wait)
    yield* settle
    const abort = place.aborts === "always" || place.aborts !== undefined && name === "never returns"
    if (abort) yield* Effect.forkIn(harness.main.abort(), scope)
    // More time than all limits of one turn together.
    for (let n = 0; n < 30; n++) {
      yield* TestClock.adjust("10 seconds")
      yield* settle
    }
    const outcome = ended.pollUnsafe()
    const quiescent = yield* harness.quiescent
    yield* settle
    expect(seen).toEqual((yield* harness.main.snapshot).view)
    yield* Fiber.interrupt(ended)
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* settle
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(closing)
    return { outcome, quiescent, aborted: abort }
  })

const wholeAfterwards = (session: MemorySession) =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(session.storage(), script(), { tools: plainTools })
    yield* harness.resume
    yield* harness.main.idle
    const outcome = yield* Effect.flatMap(harness.main.send(user("after: call")), (input) => input.wait)
    const results = (yield* harness.main.entries({ kind: "bezel.tool_result" })).map((entry) => entry.data)
    const messages: ReadonlyArray<Message> = model.requests.at(-1)?.messages ?? []
    return { outcome, results, messages, live: yield* session.storage().liveTasks }
  })

const cases = Object.keys(places).flatMap((place) => Object.keys(misbehaviours).map((how) => ({ place, how })))

it.effect.each(cases)("$place that $how holds up no turn", ({ how, place }) =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    const at = places[place]
    if (at === undefined) return yield* Effect.die(new Error(place))
    const { aborted, outcome, quiescent } = yield* live(session, at, how)
    expect(outcome).toMatchObject({
      _tag: "Success",
      value: aborted ? { status: "unanswered", reason: "aborted" } : { status: "done", text: "answer" }
    })
    const isTask = place === "a phase of a kind"
    expect(quiescent).toBe(!(isTask && how === "never returns"))
    const after = yield* wholeAfterwards(session)
    expect(after.outcome).toMatchObject({ status: "done", text: "answer" })
    expect(pairingFaults(after.messages)).toEqual([])
    expect(new Set(after.results.map((data) => JSON.stringify(Reflect.get(Object(data), "callID")))).size)
      .toBe(after.results.length)
    expect(after.results.length).toBe(4)
    expect(after.live).toEqual([])
  })))
