import { MemorySession, type Storage, StorageError } from "@bezel/core/storage"
import { tool, type ToolDraft } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { call, fail, say, type ScriptedTurn } from "../../packages/core/src/testing/model.ts"
import { open, user } from "../core/turn/fixture.ts"
import { pairingFaults } from "./session-checks.ts"

/** A model that decides by what it sees, as a real one does: three calls, then a failed attempt, then an answer. */
const script = (): ReadonlyArray<ScriptedTurn> => {
  let failures = 0
  const turn: ScriptedTurn = (request) => {
    const last = request.messages.at(-1)
    if (last?.role === "user") {
      const text = JSON.stringify(last.content)
      if (text.includes("two")) return "second answer"
      return [say("let me look"), call("safe", {}, "c1"), call("effect", {}, "c2"), call("missing", {}, "c3")]
    }
    return failures++ === 0 ? [say("half"), fail("transport", { retryAfterMs: 0 })] : "first answer"
  }
  return Array.from({ length: 20 }, () => turn)
}

const failingAt = (storage: Storage, number: number, stored: boolean, counter: { count: number }): Storage => ({
  ...storage,
  commit: (batch) =>
    Effect.suspend(() => {
      counter.count++
      if (counter.count !== number) return storage.commit(batch)
      const failure = new StorageError({ kind: "io", message: "the disk went away", path: null })
      return stored ? Effect.andThen(storage.commit(batch), Effect.fail(failure)) : Effect.fail(failure)
    })
})

const runSession = (number: number, stored: boolean) =>
  Effect.gen(function*() {
    const session = new MemorySession()
    const counter = { count: 0 }
    const effects = { count: 0 }
    const tools = (draft: ToolDraft) => {
      draft.set(
        "safe",
        tool({
          description: "safe",
          input: Schema.Struct({}),
          replay: "safe",
          execute: () => Effect.succeed("read")
        })
      )
      draft.set(
        "effect",
        tool({
          description: "effect",
          input: Schema.Struct({}),
          execute: () =>
            Effect.sync(() => {
              effects.count++
              return "done"
            })
        })
      )
    }
    const acknowledged: Array<string> = []
    // Each opening is one life of the process; the first dies at write `number`, the second must finish the work.
    const life = (storage: Storage) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const finished = yield* Effect.gen(function*() {
          const { harness } = yield* open(storage, script(), {
            tools,
            retry: { attempts: 10, firstWait: 0, longestWait: 0 }
          })
          yield* harness.resume
          for (const [index, text] of ["one", "two"].entries()) {
            const input = yield* harness.main.send({ ...user(text), requestID: `r${index}` })
            if (!acknowledged.includes(input.id)) acknowledged.push(input.id)
            const outcome = yield* input.wait
            if (outcome.status !== "done") return { outcome, harness }
          }
          return { outcome: null, harness }
        }).pipe(Scope.provide(scope), Effect.exit)
        const result = yield* Effect.exit(
          Exit.isSuccess(finished)
            ? Effect.gen(function*() {
              return {
                outcome: finished.value.outcome,
                context: yield* finished.value.harness.main.context,
                entries: (yield* finished.value.harness.main.snapshot).view.entries
              }
            })
            : Effect.failCause(finished.cause)
        )
        yield* Scope.close(scope, Exit.void)
        return result
      })
    const first = yield* life(failingAt(session.storage(), number, stored, counter))
    const second = Exit.isSuccess(first) ? first : yield* life(session.storage())
    return { first, second, effects: effects.count, writes: counter.count, acknowledged, session }
  })

it.effect("a storage that fails at write N, for every N, loses nothing acknowledged and doubles nothing", () =>
  Effect.gen(function*() {
    const whole = yield* runSession(Infinity, false)
    expect(Exit.isSuccess(whole.first)).toBe(true)
    expect(whole.writes).toBeGreaterThan(15)
    for (let number = 1; number <= whole.writes; number++) {
      for (const stored of [false, true]) {
        const where = `write ${number} of ${whole.writes}, ${stored ? "stored" : "not stored"}`
        const { acknowledged, effects, second, session } = yield* runSession(number, stored)
        expect(Exit.isSuccess(second), where).toBe(true)
        if (!Exit.isSuccess(second)) continue
        expect(pairingFaults(second.value.context), where).toEqual([])
        expect(effects, where).toBeLessThanOrEqual(1)
        const kinds = second.value.entries.map((entry) => entry.kind)
        expect(kinds.filter((kind) => kind === "bezel.user").length, where).toBeLessThanOrEqual(2)
        for (const id of acknowledged) {
          const input = yield* session.storage().input(id)
          expect(input?.status, `${where}: input ${id}`).toMatch(/done|unanswered/)
        }
        expect(yield* session.storage().liveTasks, where).toEqual([])
      }
    }
    yield* Effect.logInfo(`${whole.writes} writes, each failed twice`)
  }))
