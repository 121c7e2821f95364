/**
 * A conversation that outlives the harness behind it: what is asked of it goes to whichever harness is open, and waits while
 * none is, which is how a session looks from outside when it is suspended and opened again under new code.
 */
import * as Effect from "effect/Effect"
import type { Conversation, HarnessError, InputHandle } from "../harness/index.ts"

/** Uses the conversation of the harness that is open; again with the next one if that was closed under it. */
export type Through = <A, E, R>(
  use: (conversation: Conversation) => Effect.Effect<A, E, R>
) => Effect.Effect<A, E | HarnessError, R>

/** `resolve` leads to the conversation of that id. */
export const enduring = (id: string, resolve: (id: string) => Through): Conversation => {
  const through = resolve(id)
  const handle = (inputID: string): InputHandle => ({
    id: inputID,
    wait: through((conversation) => Effect.flatMap(found(conversation, inputID), (input) => input.wait)),
    result: through((conversation) => Effect.flatMap(found(conversation, inputID), (input) => input.result)),
    abort: through((conversation) => Effect.flatMap(found(conversation, inputID), (input) => input.abort)),
    content: through((conversation) => Effect.flatMap(found(conversation, inputID), (input) => input.content))
  })
  return {
    id,
    commit: (build) => through((conversation) => conversation.commit(build)),
    waitForTask: (ref) => through((conversation) => conversation.waitForTask(ref)),
    abortTask: (ref) => through((conversation) => conversation.abortTask(ref)),
    send: (input) => Effect.map(through((conversation) => conversation.send(input)), (sent) => handle(sent.id)),
    input: (inputID) =>
      Effect.map(
        through((conversation) => conversation.input(inputID)),
        (known) => known === null ? null : handle(inputID)
      ),
    abort: (reason) => through((conversation) => conversation.abort(reason)),
    configure: (patch) => through((conversation) => conversation.configure(patch)),
    write: (kind, entry) => through((conversation) => conversation.write(kind, entry)),
    // A session that cannot be opened runs nothing.
    busy: Effect.catch(through((conversation) => conversation.busy), () => Effect.succeed(false)),
    idle: through((conversation) => conversation.idle),
    snapshot: through((conversation) => conversation.snapshot),
    watch: through((conversation) => conversation.watch),
    entries: (scan) => through((conversation) => conversation.entries(scan)),
    context: through((conversation) => conversation.context),
    fork: (at) =>
      Effect.map(through((conversation) => conversation.fork(at)), (forked) => enduring(forked.id, resolve)),
    reset: (handoff) => through((conversation) => conversation.reset(handoff)),
    rewind: (from, data) => through((conversation) => conversation.rewind(from, data)),
    restore: (marked, data) => through((conversation) => conversation.restore(marked, data)),
    collapse: (instructions) => through((conversation) => conversation.collapse(instructions)),
    finalText: through((conversation) => conversation.finalText)
  }
}

/** An input that was there before is there after reopening: inputs are durable. */
const found = (conversation: Conversation, inputID: string): Effect.Effect<InputHandle, HarnessError> =>
  Effect.flatMap(
    conversation.input(inputID),
    (input) => input === null ? Effect.die(new Error(`The input ${inputID} is gone.`)) : Effect.succeed(input)
  )
