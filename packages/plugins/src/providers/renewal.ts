/**
 * A token that ends before its time: who has signed in elsewhere, or was signed out, has one that looks good and is refused.
 * Then it is renewed and the request made once more. A refusal behind the first part of an answer is left as it is.
 */
import type { Model, ModelError, ProviderKey } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"

/** `renew` gives another token in place of a refused one, or the same where there is none. */
export const withRenewal = (
  model: Model,
  token: ProviderKey,
  renew: (refused: Redacted.Redacted) => Effect.Effect<ProviderKey, ModelError>,
  open: (key: ProviderKey) => Effect.Effect<Model, ModelError>
): Model => ({
  ...model,
  stream: (request) =>
    Stream.suspend(() => {
      let answered = false
      const first = Stream.onFirst(model.stream(request), () =>
        Effect.sync(() => {
          answered = true
        }))
      return Stream.catchIf(first, ({ kind }) =>
        kind === "auth" && !answered, (error) =>
        Stream.unwrap(Effect.gen(function*() {
          const key = yield* renew(token.value)
          if (Redacted.value(key.value) === Redacted.value(token.value)) {
            return Stream.fail(error)
          }
          return (yield* open(key)).stream(request)
        })))
    })
})
