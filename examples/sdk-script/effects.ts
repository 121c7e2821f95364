/** The client in effects: streams for events, and a scope that ends what is still read. */
import { makeEffectClient } from "@bezel/sdk"
import { Effect, Stream } from "effect"

/** The text of the next answer of a session, as soon as somebody prompts it. */
export const nextAnswer = (url: string, token: string, id: string) =>
  Effect.gen(function*() {
    const client = makeEffectClient({ url, token })
    yield* client.session.events(id).pipe(Stream.takeUntil(({ type }) => type === "turn.ended"), Stream.runDrain)
    const { text = "" } = yield* client.session.wait(id)
    return text
  })
