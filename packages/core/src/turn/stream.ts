/**
 * Streams an answer into the live message: the first words at once, then one commit every 100 ms or 256 characters, or as
 * it is set.
 *
 * A provider that stutters still shows what it sent within that time; one that floods costs a commit per so many characters,
 * not per delta. The stream waits for a due commit, which is the back-pressure on the provider.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { HarnessError, TaskRuntime } from "../harness/index.ts"
import { append } from "../json/index.ts"
import { ModelError, type ModelPart } from "../model/index.ts"
import { Answer, type AnswerFrame } from "./answer.ts"
import type { Frames } from "./options.ts"

export interface StreamOutcome {
  readonly answer: Answer
  /** Why the stream is no answer, or `null`. */
  readonly error: ModelError | null
}

export const streamAnswer = Effect.fn("Turn.stream")(function*(
  parts: Stream.Stream<ModelPart, ModelError>,
  runtime: TaskRuntime,
  every: Frames
): Effect.fn.Return<StreamOutcome, HarnessError> {
  const answer = new Answer()
  const frames = Semaphore.makeUnsafe(1)
  const dirty = Latch.makeUnsafe(false)
  let lastFrame = -Infinity

  // Taking the frame and committing it is one step, so frames never overtake each other and none is lost.
  const flush = Effect.uninterruptible(frames.withPermit(Effect.suspend(() => {
    dirty.closeUnsafe()
    const frame = answer.frame()
    if (frame === null) return Effect.void
    return Effect.andThen(
      runtime.commit((tx) => showFrame(tx, runtime, frame)),
      Effect.map(Clock.currentTimeMillis, (now) => {
        lastFrame = now
      })
    )
  })))

  const consume = Stream.runForEachArray(parts, (chunk) => {
    for (const part of chunk) answer.add(part)
    if (answer.pending === 0) return Effect.void
    // The closing commit shows the rest; and arguments of a call that nobody waits to read can wait for the next tick.
    if (answer.finish !== null) return Effect.void
    if (lastFrame === -Infinity && answer.hasProse || answer.pending >= every.characters) return flush
    dirty.openUnsafe()
    return Effect.void
  })

  const tick = Effect.forever(Effect.andThen(dirty.await, Effect.andThen(Effect.sleep(every.millis), flush)))

  const exit = yield* Effect.exit(Effect.raceFirst(consume, tick))
  if (Exit.isFailure(exit)) {
    const error = Cause.squash(exit.cause)
    if (!(error instanceof ModelError)) return yield* Effect.failCause(exit.cause as Cause.Cause<HarnessError>)
    yield* flush
    return { answer, error }
  }
  if (answer.finish === null && answer.deferred === null) {
    yield* flush
    return { answer, error: unfinished }
  }
  return { answer, error: emptiness(answer) }
})

/** A finish behind nothing that a person reads and nothing to run is no answer, whatever the provider calls it. */
const emptiness = (answer: Answer): ModelError | null => {
  if (answer.deferred !== null || answer.hasText || answer.calls().length > 0) return null
  return answer.finish === "length"
    ? new ModelError({
      kind: "truncated",
      message: "The model used up its output limit before it said anything; give it more room, or a smaller task.",
      retryable: false,
      retryAfterMs: null
    })
    : new ModelError({
      kind: "malformed",
      message: "The model finished without saying anything.",
      retryable: true,
      retryAfterMs: null
    })
}

const unfinished = new ModelError({
  kind: "truncated",
  message: "The model's answer broke off before it was finished.",
  retryable: true,
  retryAfterMs: null
})

const showFrame = (
  tx: Parameters<Parameters<TaskRuntime["commit"]>[0]>[0],
  runtime: TaskRuntime,
  frame: AnswerFrame
): void => {
  const turn = tx.sticky(runtime.conversation).turn
  if (turn === null) return
  turn.message ??= { parts: [] }
  const parts = turn.message?.parts
  if (parts === undefined) return
  for (const { index, text } of frame.appended) {
    const part = parts[index]
    if (part !== undefined) append(part, "text", text)
  }
  for (const part of frame.parts) parts.push({ ...part })
  if (turn.generation !== null && turn.generation.stage !== "streaming") turn.generation.stage = "streaming"
}
