/**
 * The client's side of interactions: which ones this process handles, and the dialogs that are open now.
 *
 * A handler runs in a fiber of its own. It ends when the host withdraws the request (somebody else answered, time ran out)
 * or when the connection is lost; a failure or defect of it tells the host to ask another client. Of a sensitive
 * interaction nothing that was asked, answered or thrown is logged.
 *
 * Whoever hands requests on to people elsewhere takes them as they are, through a `RequestPort`, and answers in its own time.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { JsonValue } from "../json/index.ts"
import { anyInteraction, AskedRequest, jsonCodec, ServiceError } from "../service/index.ts"
import type { CloseReason, Interaction, Offer } from "../service/index.ts"
import type { Fork } from "./demand.ts"
import type { Link } from "./link.ts"
import { decoding, Offered } from "./wire.ts"
import type { Control, Item } from "./wire.ts"

type Handler = (request: unknown) => Effect.Effect<unknown, unknown, Scope.Scope>
type Answer = Extract<Control, { readonly type: "answer" }>["answer"]

/** Takes the requests that no handler of this side is for. Each function returns at once. */
export interface RequestPort {
  /** `id` names the request as long as its host runs; the same one may be offered again. */
  readonly offered: (request: Offer) => void
  readonly closed: (id: string, reason: CloseReason) => void
  /** The connection is lost. What is open still is offered again when it is back. */
  readonly lost: () => void
}

/** Answers what a port was offered. `invalid_arguments` leaves the request open; `stale_reference`: it was settled before. */
export interface RequestAnswers {
  readonly answer: (
    id: string,
    answer: { readonly type: "answered"; readonly response: JsonValue } | { readonly type: "declined" }
  ) => Effect.Effect<void, ServiceError>
}

const decodeOffers = decoding(Offered, "invalid_result", "The host's list of requests is malformed")

interface Registered {
  readonly interaction: Interaction.Any
  readonly handler: Handler
}

interface Dialog {
  readonly fiber: Fiber.Fiber<unknown>
  readonly asked: { closed: CloseReason | null }
}

export class Asking {
  private readonly registered: Array<Registered> = []
  private readonly dialogs = new Map<string, Dialog>()
  private readonly fork: Fork
  private readonly link: () => Link | null
  private readonly epoch: () => string | null
  private port: RequestPort | null = null

  constructor(fork: Fork, link: () => Link | null, epoch: () => string | null) {
    this.fork = fork
    this.link = link
    this.epoch = epoch
  }

  /** One port at a time, for the length of the scope. Completes when what is open now has been offered to it. */
  handOn(port: RequestPort): Effect.Effect<RequestAnswers, never, Scope.Scope> {
    const answers: RequestAnswers = {
      answer: (id, answer) =>
        Effect.suspend(() => {
          const link = this.link()
          const at = id.lastIndexOf(".")
          if (link === null || id.slice(0, at) !== this.epoch()) {
            return Effect.fail(
              new ServiceError({ code: "stale_reference", message: "This request is no longer open here." })
            )
          }
          return Effect.asVoid(link.control({ type: "answer", id: id.slice(at + 1), answer }))
        })
    }
    return Effect.as(
      Effect.acquireRelease(
        Effect.suspend(() => {
          this.port = port
          return this.announce
        }),
        () =>
          Effect.suspend(() => {
            if (this.port !== port) return Effect.void
            this.port = null
            return this.announce
          })
      ),
      answers
    )
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
    const interactions = [
      ...new Set(this.registered.map((entry) => entry.interaction.id)),
      ...(this.port === null ? [] : [anyInteraction])
    ]
    // A link that is lost meanwhile says it again when it is back.
    return Effect.ignore(Effect.map(link.control({ type: "handles", interactions }), (open) => {
      const offers = decodeOffers(open)
      if (Exit.isFailure(offers)) return
      for (const offer of offers.value) if (this.handlerOf(offer) === undefined) this.port?.offered(this.named(offer))
    }))
  }

  private take(item: Item): ServiceError | null {
    if (item.type === "close") {
      const dialog = this.dialogs.get(item.id)
      if (dialog !== undefined) {
        dialog.asked.closed = item.reason
        dialog.fiber.interruptUnsafe()
      }
      this.dialogs.delete(item.id)
      this.port?.closed(this.named(item).id, item.reason)
    }
    if (item.type === "offer") {
      const entry = this.handlerOf(item)
      if (entry === undefined && this.port !== null) {
        const { id, interaction, request, session } = this.named(item)
        this.port.offered({ id, interaction, request, session })
        return null
      }
      const work = Effect.flatMap(
        entry === undefined ? Effect.succeed<Answer>({ type: "failed" }) : answerOf(entry, item.request),
        (answer) => {
          this.dialogs.delete(item.id)
          const link = this.link()
          // Settled by somebody else in the meantime, or the link is lost: the host knows.
          return link === null ? Effect.void : Effect.ignore(link.control({ type: "answer", id: item.id, answer }))
        }
      )
      const asked: Dialog["asked"] = { closed: null }
      this.dialogs.set(item.id, { asked, fiber: this.fork(Effect.provideService(work, AskedRequest, asked)) })
    }
    return null
  }

  private handlerOf(offer: { readonly interaction: string }): Registered | undefined {
    return this.registered.findLast((candidate) => candidate.interaction.id === offer.interaction)
  }

  /** Numbers are the host's own, and begin anew with each. */
  private named<A extends { readonly id: string }>(item: A): A {
    return { ...item, id: `${this.epoch()}.${item.id}` }
  }

  private endAll(): void {
    this.port?.lost()
    for (const { fiber } of this.dialogs.values()) fiber.interruptUnsafe()
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
