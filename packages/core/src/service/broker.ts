/**
 * The interaction broker: one request of the host, offered to the people who are there.
 *
 * A request is offered to every client that is attached to its session and handles the interaction, the preferred client
 * first. The first valid answer settles it and the others are told to close. A client that leaves or fails hands the
 * request on; one that comes late is offered what is open. With nobody left, the session's unattended policy decides. Where
 * a session works for another one (`relay`), the other's people are asked too, and its policy holds where there is none.
 *
 *   open ── valid answer ──▶ answered          open ── nobody left, policy deny ──▶ unattended
 *     ├──── a person refuses ──▶ declined        └──── nobody left, policy wait ──▶ open
 *     ├──── time limit ──▶ expired
 *     └──── requester interrupted ──▶ gone, settled as nothing
 *
 * All state changes are synchronous steps. Values of sensitive interactions appear in no message and no log of this module;
 * in fact no request or answer does.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { JsonValue } from "../json/index.ts"
import { Location } from "../location/index.ts"
import { explain, issueOf, jsonCodec } from "./codec.ts"
import { refusal, ServiceError } from "./error.ts"
import type { Interaction, InteractionOutcome, Unattended } from "./interaction.ts"

/** An open request as a client sees it. */
export interface Offer {
  readonly id: string
  readonly interaction: string
  readonly session: string
  /** The JSON form of the request. */
  readonly request: JsonValue
}

/** Why an offer is over: somebody answered, its time ran out, or the host no longer asks. */
export type CloseReason = "answered" | "declined" | "expired" | "unattended" | "withdrawn"

export type Answer =
  | { readonly type: "answered"; readonly response: unknown }
  | { readonly type: "declined" }
  /** The client cannot: no dialog, a crash. The request goes on to others. */
  | { readonly type: "failed" }

/** What a connection gives the broker. Both functions return at once. */
export interface InteractionClient {
  readonly id: string
  readonly offer: (offer: Offer) => void
  readonly close: (id: string, reason: CloseReason) => void
}

/** Stands for every interaction, for clients that hand on whatever is asked. */
export const anyInteraction = "*"

/** What the broker gives a connection. Ends with the scope: what was offered to it is handed on. */
export interface ClientSeat {
  readonly attach: (session: string) => Effect.Effect<void>
  readonly detach: (session: string) => Effect.Effect<void>
  /**
   * The interactions that this client handles, all of them, each time; {@link anyInteraction} is for those that are not
   * named. Gives what it has before it now.
   */
  readonly handles: (interactions: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Offer>>
  /** `invalid_arguments` leaves the request open; `stale_reference` says that it was settled before. */
  readonly answer: (id: string, answer: Answer) => Effect.Effect<void, ServiceError>
}

export interface InteractionBrokerShape {
  readonly request: <Q, R>(
    interaction: Interaction<Q, R>,
    request: Q,
    options: { readonly sessionID: string; readonly timeLimit?: Duration.Input }
  ) => Effect.Effect<InteractionOutcome<R>>
  readonly connect: (client: InteractionClient) => Effect.Effect<ClientSeat, never, Scope.Scope>
  /** The client that sent the session's current input is asked first. */
  readonly prefer: (sessionID: string, client: string) => Effect.Effect<void>
  /** What happens while nobody is there, whatever an interaction would like; null gives that back to the interaction. */
  readonly unattended: (sessionID: string, policy: Unattended | null) => Effect.Effect<void>
  /** For the length of the scope, who is attached to `to` is asked what `from` asks, and `to`'s policy holds for it. */
  readonly relay: (from: string, to: string) => Effect.Effect<void, never, Scope.Scope>
  /** What is open in a session, or asked there for another. */
  readonly open: (sessionID: string) => Effect.Effect<ReadonlyArray<Offer>>
}

export class InteractionBroker extends Context.Service<InteractionBroker, InteractionBrokerShape>()(
  "bezel/service/InteractionBroker"
) {
  static readonly make: Effect.Effect<InteractionBrokerShape> = Effect.sync(() => new Broker())
  static readonly layer: Layer.Layer<InteractionBroker, never, Location> = Layer.effect(
    InteractionBroker,
    Effect.andThen(Location, InteractionBroker.make)
  )
}

interface Client extends InteractionClient {
  readonly sessions: Set<string>
  handles: ReadonlySet<string>
}

/** A request that is not settled, its types erased. */
interface Open {
  readonly offer: Offer
  readonly unattended: Unattended
  /** Validates an answer; `undefined` for one that settles as declined, because the interaction fails closed. */
  readonly accept: (response: unknown) => { readonly response: unknown } | ServiceError | undefined
  readonly settle: (outcome: InteractionOutcome<unknown>) => void
  /** Clients that have it before them. */
  readonly shown: Set<Client>
  /** Clients that could not handle it. */
  readonly failed: Set<Client>
}

class Broker implements InteractionBrokerShape {
  private readonly clients = new Map<string, Client>()
  private readonly requests = new Map<string, Open>()
  private readonly preferred = new Map<string, string>()
  private readonly policies = new Map<string, Unattended>()
  private readonly relays = new Map<string, string>()
  private ids = 0

  readonly request: InteractionBrokerShape["request"] = <Q, R>(
    interaction: Interaction<Q, R>,
    request: Q,
    options: { readonly sessionID: string; readonly timeLimit?: Duration.Input }
  ): Effect.Effect<InteractionOutcome<R>> =>
    Effect.suspend(() => {
      const encoded = jsonCodec(interaction.request).encode(request)
      if (Exit.isFailure(encoded)) {
        return Effect.die(
          new Error(`The request of interaction "${interaction.id}" does not fit: ${explain(encoded)}.`)
        )
      }
      const settled = Deferred.makeUnsafe<InteractionOutcome<R>>()
      const open: Open = {
        offer: { id: `${++this.ids}`, interaction: interaction.id, session: options.sessionID, request: encoded.value },
        unattended: interaction.unattended,
        accept: accepting(interaction),
        // Erasure: `accept` has decoded the response with this interaction's own schema.
        settle: (outcome) => Deferred.doneUnsafe(settled, Effect.succeed(outcome as InteractionOutcome<R>)),
        shown: new Set(),
        failed: new Set()
      }
      this.requests.set(open.offer.id, open)
      for (const client of this.inOrder(options.sessionID)) this.show(open, client)
      this.reconsider(open)
      const outcome = options.timeLimit === undefined
        ? Deferred.await(settled)
        : Effect.flatMap(Effect.timeoutOption(Deferred.await(settled), options.timeLimit), (timed) => {
          if (Option.isNone(timed)) this.settle(open, { type: "expired" })
          return Deferred.await(settled)
        })
      return Effect.onInterrupt(outcome, () => Effect.sync(() => this.close(open, "withdrawn")))
    })

  readonly connect: InteractionBrokerShape["connect"] = (port) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const client: Client = { ...port, sessions: new Set(), handles: new Set() }
        this.clients.set(client.id, client)
        return client
      }),
      (client) =>
        Effect.sync(() => {
          this.clients.delete(client.id)
          for (const open of this.requests.values()) if (open.shown.delete(client)) this.reconsider(open)
        })
    ).pipe(Effect.map((client): ClientSeat => ({
      attach: (session) =>
        Effect.sync(() => {
          client.sessions.add(session)
          this.catchUp(client)
        }),
      detach: (session) =>
        Effect.sync(() => {
          client.sessions.delete(session)
          this.recheck(client)
        }),
      handles: (interactions) =>
        Effect.sync(() => {
          client.handles = new Set(interactions)
          this.recheck(client)
          this.catchUp(client)
          return [...this.requests.values()].filter(({ shown }) => shown.has(client)).map(({ offer }) => offer)
        }),
      answer: (id, answer) => Effect.suspend(() => this.answered(client, id, answer))
    })))

  readonly prefer: InteractionBrokerShape["prefer"] = (sessionID, client) =>
    Effect.sync(() => {
      this.preferred.set(sessionID, client)
    })

  readonly unattended: InteractionBrokerShape["unattended"] = (sessionID, policy) =>
    Effect.sync(() => {
      if (policy === null) this.policies.delete(sessionID)
      else this.policies.set(sessionID, policy)
      for (const open of this.requests.values()) this.reconsider(open)
    })

  readonly relay: InteractionBrokerShape["relay"] = (from, to) =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => {
        this.relays.set(from, to)
        for (const client of this.inOrder(from)) this.catchUp(client)
        for (const open of this.requests.values()) this.reconsider(open)
      }),
      () =>
        Effect.sync(() => {
          if (this.relays.get(from) === to) this.relays.delete(from)
          for (const client of this.clients.values()) this.recheck(client)
        })
    ))

  readonly open: InteractionBrokerShape["open"] = (sessionID) =>
    Effect.sync(() =>
      [...this.requests.values()].filter((open) => this.audience(open.offer.session).includes(sessionID))
        .map((open) => open.offer)
    )

  private answered(client: Client, id: string, answer: Answer): Effect.Effect<void, ServiceError> {
    const open = this.requests.get(id)
    // A client may only answer what was put before it; that another session's id exists is not its business.
    if (open === undefined || !open.shown.has(client)) {
      return Effect.fail(new ServiceError({ code: "stale_reference", message: "This request is no longer open here." }))
    }
    if (answer.type === "failed") {
      open.shown.delete(client)
      open.failed.add(client)
      this.reconsider(open)
      return Effect.void
    }
    if (answer.type === "declined") {
      open.shown.delete(client)
      this.settle(open, { type: "declined", client: client.id })
      return Effect.void
    }
    const accepted = open.accept(answer.response)
    if (accepted instanceof ServiceError) return Effect.fail(accepted)
    open.shown.delete(client)
    this.settle(
      open,
      accepted === undefined
        ? { type: "declined", client: client.id }
        : { type: "answered", response: accepted.response, client: client.id }
    )
    return Effect.void
  }

  private eligible(open: Open, client: Client): boolean {
    const { handles } = client
    return (handles.has(open.offer.interaction) || handles.has(anyInteraction)) && !open.failed.has(client) &&
      this.audience(open.offer.session).some((session) => client.sessions.has(session))
  }

  /** The sessions whose people are asked, the asking one first. */
  private audience(session: string): ReadonlyArray<string> {
    const audience = [session]
    for (;;) {
      const next = this.relays.get(audience.at(-1) ?? session)
      if (next === undefined || audience.includes(next)) return audience
      audience.push(next)
    }
  }

  private show(open: Open, client: Client): void {
    if (open.shown.has(client) || !this.eligible(open, client)) return
    open.shown.add(client)
    client.offer(open.offer)
  }

  private catchUp(client: Client): void {
    for (const open of this.requests.values()) this.show(open, client)
  }

  /** Takes away what a client has before it and may not have any more. */
  private recheck(client: Client): void {
    for (const open of this.requests.values()) {
      if (this.eligible(open, client) || !open.shown.delete(client)) continue
      client.close(open.offer.id, "withdrawn")
      this.reconsider(open)
    }
  }

  private inOrder(sessionID: string): ReadonlyArray<Client> {
    const preferred = this.audience(sessionID).flatMap((session) => this.preferred.get(session) ?? [])
    const first = this.clients.get(preferred[0] ?? "")
    const all = [...this.clients.values()]
    return first === undefined ? all : [first, ...all.filter((client) => client !== first)]
  }

  /** After anybody left: with nobody before it, a request waits or settles by policy. */
  private reconsider(open: Open): void {
    if (open.shown.size > 0) return
    const [policy = open.unattended] = this.audience(open.offer.session).flatMap((session) =>
      this.policies.get(session) ?? []
    )
    if (policy === "deny") this.settle(open, { type: "unattended" })
  }

  private settle(open: Open, outcome: InteractionOutcome<unknown>): void {
    if (!this.close(open, outcome.type)) return
    open.settle(outcome)
  }

  private close(open: Open, reason: CloseReason): boolean {
    if (!this.requests.delete(open.offer.id)) return false
    for (const client of open.shown) client.close(open.offer.id, reason)
    open.shown.clear()
    return true
  }
}

const accepting = <Q, R>(interaction: Interaction<Q, R>): Open["accept"] => (response) => {
  const decoded = jsonCodec(interaction.response).decode(response)
  if (Exit.isSuccess(decoded)) return { response: decoded.value }
  // Fails closed: what a confirmation cannot read is a no.
  if (interaction.confirm !== null) return undefined
  return refusal("invalid_arguments", `The answer to interaction "${interaction.id}" does not fit`, issueOf(decoded))
}
