/**
 * The client's side of interactions: which ones this process handles, and the dialogs that are open now.
 *
 * A handler runs in a fiber of its own. It ends when the host withdraws the request (somebody else answered, time ran out)
 * or when the connection is lost; a failure or defect of it tells the host to ask another client. Of a sensitive
 * interaction nothing that was asked, answered or thrown is logged.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { jsonCodec } from "../service/index.ts"
import type { Interaction, ServiceError } from "../service/index.ts"
import type { Fork } from "./demand.ts"
import type { Link } from "./link.ts"
import type { Control, Item } from "./wire.ts"

type Handler = (request: unknown) => Effect.Effect<unknown, unknown, Scope.Scope>
type Answer = Extract<Control, { readonly type: "answer" }>["answer"]

interface Registered {
  readonly interaction: Interaction.Any
  readonly handler: Handler
}

export class Asking {
  private readonly registered: Array<Registered> = []
  private readonly dialogs = new Map<string, Fiber.Fiber<unknown>>()
  private readonly fork: Fork
  private readonly link: () => Link | null

  constructor(fork: Fork, link: () => Link | null) {
    this.fork = fork
    this.link = link
  }

  /** Handles an interaction for the length of the scope; of two handlers the newer one is asked. */
  handle<Q, R>(
    interaction: Interaction<Q, R>,
    handler: (request: Q) => Effect.Effect<R | "declined", unknown, Scope.Scope>
  ): Effect.Effect<void, never, Scope.Scope> {
    // Erasure: `answerOf` decodes and encodes with this interaction's own schemas.
    const entry: Registered = { interaction, handler: handler as Handler }
    return Effect.acquireRelease(
      Effect.suspend(() => {
        this.registered.push(entry)
        return this.announce
      }),
      () =>
        Effect.suspend(() => {
          const at = this.registered.indexOf(entry)
          if (at >= 0) this.registered.splice(at, 1)
          return this.announce
        })
    )
  }

  /** Serves one link until it is gone. */
  over(link: Link): Effect.Effect<void> {
    return Effect.andThen(
      this.announceTo(link),
      Effect.ignore(link.watch({ type: "interactions" }, (item) => this.take(item)))
    ).pipe(Effect.onExit(() => Effect.sync(() => this.endAll())))
  }

  private get announce(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const link = this.link()
      return link === null ? Effect.void : this.announceTo(link)
    })
  }

  private announceTo(link: Link): Effect.Effect<void> {
    const interactions = [...new Set(this.registered.map((entry) => entry.interaction.id))]
    // A link that is lost meanwhile says it again when it is back.
    return Effect.ignore(link.control({ type: "handles", interactions }))
  }

  private take(item: Item): ServiceError | null {
    if (item.type === "close") {
      this.dialogs.get(item.id)?.interruptUnsafe()
      this.dialogs.delete(item.id)
    }
    if (item.type === "offer") {
      const entry = this.registered.findLast((candidate) => candidate.interaction.id === item.interaction)
      const work = Effect.flatMap(
        entry === undefined ? Effect.succeed<Answer>({ type: "failed" }) : answerOf(entry, item.request),
        (answer) => {
          this.dialogs.delete(item.id)
          const link = this.link()
          // Settled by somebody else in the meantime, or the link is lost: the host knows.
          return link === null ? Effect.void : Effect.ignore(link.control({ type: "answer", id: item.id, answer }))
        }
      )
      this.dialogs.set(item.id, this.fork(work))
    }
    return null
  }

  private endAll(): void {
    for (const dialog of this.dialogs.values()) dialog.interruptUnsafe()
    this.dialogs.clear()
  }
}

const answerOf = (entry: Registered, request: unknown): Effect.Effect<Answer> => {
  const { id, response, sensitive } = entry.interaction
  const failed = (why: string, cause: Cause.Cause<unknown>): Effect.Effect<Answer> =>
    Effect.as(
      sensitive
        ? Effect.logWarning(`The handler of interaction "${id}" ${why}; another client is asked.`)
        : Effect.logWarning(`The handler of interaction "${id}" ${why}; another client is asked.`, cause),
      { type: "failed" } satisfies Answer
    )
  return Effect.suspend(() => {
    const decoded = jsonCodec(entry.interaction.request).decode(request)
    if (Exit.isFailure(decoded)) return failed("does not know this form of request", Cause.empty)
    return Effect.matchCauseEffect(Effect.scoped(Effect.suspend(() => entry.handler(decoded.value))), {
      onFailure: (cause) => failed("failed", cause),
      onSuccess: (value): Effect.Effect<Answer> => {
        if (value === "declined") return Effect.succeed({ type: "declined" })
        const encoded = jsonCodec(response).encode(value)
        return Exit.isSuccess(encoded)
          ? Effect.succeed({ type: "answered", response: encoded.value })
          : failed("gave an answer that its contract refuses", Cause.empty)
      }
    })
  })
}
