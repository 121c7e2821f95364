/**
 * Facades: a service as a client sees it. One object for every consumer in the process, with one replica per state and one
 * subscription behind all of them, opened at the first demand.
 *
 * A facade outlives reloads and reconnects. A call is sent once and never repeated; what the host answers is decoded by the
 * token's own schemas. Applying deliveries is synchronous, so a slow reader of one state never holds up the connection.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import type { JsonValue } from "../json/index.ts"
import { SetupOf } from "../kernel/index.ts"
import {
  carrierOf,
  eventSchema,
  eventsOver,
  Feed,
  isDurable,
  isReference,
  issueOf,
  jsonCodec,
  refusal,
  ServiceError,
  subscription
} from "../service/index.ts"
import type {
  Delivery,
  EventContract,
  JsonCodec,
  MethodContract,
  RemoteService,
  SpanCarrier
} from "../service/index.ts"
import { Demand } from "./demand.ts"
import type { Fork } from "./demand.ts"
import { enough, eventsAfter } from "./events-after.ts"
import { toServiceError } from "./link.ts"
import type { Link } from "./link.ts"
import { staleReference } from "./refusals.ts"
import { ReplicaCell } from "./replica.ts"
import { callTexts, decoding, Held } from "./wire.ts"
import type { Item, WireError } from "./wire.ts"

/** What a facade needs of its connection. */
export interface Host {
  readonly link: () => Link | null
  /** Completes when there is a link. */
  readonly connected: Effect.Effect<Link>
  /** The session that the client shows. */
  readonly session: () => string | null
  /** Whether a value of this session may be shown: the selected one, or the one being selected. */
  readonly shows: (session: string) => boolean
  readonly fork: Fork
  readonly idleMillis: number
  /** What a call is told while there is no link. */
  readonly missing: () => ServiceError
}

/** Which instance a facade is of. */
export interface FacadeAddress {
  readonly service: string
  readonly key?: string
  readonly generation?: number
  readonly reference?: number
  /** The session that it is of, whichever one is shown. */
  readonly session?: string
}

const decodeHeld = decoding(Held, "invalid_result", "The host sent a malformed reference")

/** How long to wait before asking again for what the host refused. */
const retryMillis = 1_000

export class FacadeEntry {
  /** Erased: `Facade<S>` of the token it was made for. */
  readonly facade: object
  /** Keeps the subscription of the states open for the length of a scope. */
  readonly demand: Effect.Effect<void, never, Scope.Scope>
  private readonly host: Host
  private readonly address: FacadeAddress
  private readonly cells: ReadonlyMap<string, ReplicaCell>
  private instance: number | null = null
  /** The session of the values that are shown; null for the host's. */
  private shown: string | null = null
  private hydrated = Deferred.makeUnsafe<void, ServiceError>()
  private hydration: SpanCarrier | null = null

  /** `more` are members that this kind of facade has beside those of its token. */
  constructor(token: RemoteService.Any, address: FacadeAddress, host: Host, more: object = {}) {
    this.host = host
    this.address = address
    this.demand = new Demand(host.fork, this.follow, () => this.lose(), host.idleMillis).acquire
    const { events, methods, state } = token.contract
    this.cells = new Map(
      Object.entries(state ?? {}).map((
        [name, schema]
      ) => [name, new ReplicaCell(schema, this.demand, this.refuseEarly)])
    )
    this.facade = Object.freeze({
      ...more,
      ready: this.ready,
      ...Object.fromEntries(this.cells),
      ...Object.fromEntries(Object.entries(events ?? {}).map(([name, schema]) => [name, this.source(name, schema)])),
      ...Object.fromEntries(
        Object.entries(methods ?? {}).map((
          [name, method]
        ) => [name, this.method(name, method)])
      )
    })
  }

  /** The session that it is of, whichever one is shown. */
  get session(): string | undefined {
    return this.address.session
  }

  /** Whether the service has states, so that holding the facade is a demand. */
  get hasStates(): boolean {
    return this.cells.size > 0
  }

  /** The client shows another session now. */
  selected(session: string | null): void {
    if (this.shown !== null && this.shown !== session) this.absent(session === null ? "detached" : "hydrating")
    else if (this.instance === null && session !== null) this.waiting()
  }

  // ------------------------------------------------------------------------------------------------------------- calls

  /** The function of one method. What it needs at each call is made once. */
  private method(member: string, method: MethodContract): (payload: unknown) => Effect.Effect<unknown, unknown> {
    const name = `${this.address.service}.${member}`
    const { error, payload, success } = method
    const codecs = {
      payload: payload === undefined ? null : jsonCodec(payload),
      success: success === undefined || isReference(success) ? null : jsonCodec(success),
      error: error === undefined ? null : jsonCodec(error)
    }
    const textOf = callTexts(this.address, member)
    const failed = (wire: WireError) => Effect.fail(callError(name, codecs.error, wire))
    const succeeded = (value: unknown): Effect.Effect<unknown, ServiceError> => {
      if (codecs.success === null) return Effect.void
      const decoded = codecs.success.decode(value)
      return Exit.isSuccess(decoded)
        ? Effect.succeed(decoded.value)
        : Effect.fail(refusal("invalid_result", `The result of ${name} does not fit`, issueOf(decoded)))
    }
    return (payload) =>
      this.inTime(() => {
        const encoded = codecs.payload === null ? nothing : codecs.payload.encode(payload)
        if (Exit.isFailure(encoded)) {
          return Effect.fail(refusal("invalid_arguments", `The arguments of ${name} do not fit`, issueOf(encoded)))
        }
        const link = this.host.link()
        if (link === null) return Effect.fail(this.host.missing())
        const session = this.host.session()
        const hold = isReference(success) ? link.nextReference() : undefined
        return Effect.useSpan(`rpc.client ${name}`, { kind: "client" }, (span) => {
          const call = textOf({ payload: encoded.value, session, hold, trace: span })
          if (hold === undefined || !isReference(success)) return link.call(call, succeeded, failed)
          const token = success["~reference"]
          return Effect.onInterrupt(
            link.call(call, (value) => this.referenceTo(token, link, value, hold), failed),
            // The answer may be on its way already: what it holds is given back.
            () => Effect.ignore(link.control({ type: "release", reference: hold }))
          )
        })
      })
  }

  /** Nothing is there for a facet that is being set up: what it needs of other hosts it asks for when it is activated. */
  private inTime<A, E>(use: () => Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.withFiber((fiber) => {
      const early = this.early(fiber)
      return early === null ? use() : Effect.die(early)
    })
  }

  private readonly refuseEarly = (): void => {
    const fiber = Fiber.getCurrent()
    const early = fiber === undefined ? null : this.early(fiber)
    if (early !== null) throw early
  }

  private early(fiber: Fiber.Fiber<unknown, unknown>): Error | null {
    const facet = fiber.getRef(SetupOf)
    return facet === null || facet.bound() ? null : new Error(
      `Plugin ${facet.entry.id} used service "${this.address.service}" during setup. Services can be used from activation on: see ctx.onActivate.`
    )
  }

  /** Only the number that this call gave is its reference; it lives as long as the link it came over. */
  private referenceTo(
    token: RemoteService.Any,
    link: Link,
    value: unknown,
    hold: number
  ): Effect.Effect<object, ServiceError> {
    const held = decodeHeld(value)
    if (Exit.isFailure(held)) return Effect.failCause(held.cause)
    if (held.value.reference !== hold) {
      return Effect.fail(
        new ServiceError({
          code: "invalid_result",
          message: "The host answered with a reference that was not asked for."
        })
      )
    }
    return Effect.sync(() => {
      const demand = Scope.makeUnsafe()
      const released = Latch.makeUnsafe(false)
      const gone = () => released.isOpen() || link.isClosed()
      const entry: FacadeEntry = new FacadeEntry(
        token,
        { service: token.id, reference: hold },
        {
          link: () => gone() ? null : link,
          connected: Effect.suspend(() => gone() ? Effect.never : Effect.succeed(link)),
          session: () => null,
          shows: () => true,
          fork: this.host.fork,
          idleMillis: 0,
          missing: () => staleReference(token.id)
        },
        {
          release: Effect.suspend(() => {
            if (released.isOpen()) return Effect.void
            released.openUnsafe()
            return Effect.ignore(link.control({ type: "release", reference: hold }))
          })
        }
      )
      // Held is wanted: its states are followed until it is given back or the link is gone.
      if (entry.hasStates) {
        this.host.fork(
          Scope.provide(entry.demand, demand).pipe(
            Effect.andThen(Effect.raceFirst(released.await, link.closed)),
            Effect.andThen(Scope.close(demand, Exit.void))
          )
        )
      }
      return entry.facade
    })
  }

  // ------------------------------------------------------------------------------------------------------------ states

  private get ready(): Effect.Effect<void, ServiceError> {
    return this.inTime(() =>
      Effect.scoped(Effect.andThen(this.demand, Effect.suspend(() => Deferred.await(this.hydrated))))
    )
  }

  /** Runs as long as somebody needs the states, over one link after another. */
  private readonly follow: Effect.Effect<never> = Effect.suspend(() =>
    Effect.flatMap(this.host.connected, (link) => this.followOver(link))
  ).pipe(Effect.forever)

  private followOver(link: Link): Effect.Effect<void> {
    return Effect.useSpan(`rpc.hydrate ${this.address.service}`, (span) =>
      Effect.sync(() => {
        this.hydration = carrierOf(span)
        this.unready()
        this.waiting()
      })).pipe(
        Effect.andThen(link.watch({ type: "states", ...this.address }, (item) => this.take(item))),
        Effect.catch((error) =>
          Effect.suspend(() => {
            this.lose()
            if (error.code === "disconnected" || error.code === "cancelled") return Effect.void
            // A gap starts again at once; a refusal waits for the host to change.
            if (error === gap) return Effect.void
            this.refuse(error)
            return this.refused(error)
          })
        )
      )
  }

  private take(item: Item): ServiceError | null {
    switch (item.type) {
      case "snapshot":
        // Of a session that was left while it was on its way.
        if (item.session !== null && !this.host.shows(item.session)) return null
        return this.hydrate(item)
      case "delta":
        if (item.instance !== this.instance) return null
        return this.cells.get(item.member)?.advance(item) === false ? gap : null
      case "absent":
        if (item.reason === "detached") this.absent("detached")
        else this.lose()
        return null
      default:
        return null
    }
  }

  /** All states of the service as one, or none. */
  private hydrate(item: Extract<Item, { readonly type: "snapshot" }>): ServiceError | null {
    const fresh: Array<() => void> = []
    for (const [name, cell] of this.cells) {
      const state = item.states[name]
      const decoded = state === undefined ? undefined : cell.decode(state.value)
      if (state === undefined || decoded === undefined || Exit.isFailure(decoded)) {
        return new ServiceError({
          code: "invalid_result",
          message: `The state "${name}" of service "${this.address.service}" is not what this client's contract says.`
        })
      }
      fresh.push(() => cell.install(state.sequence, state.value, decoded.value))
    }
    for (const install of fresh) install()
    this.instance = item.instance
    this.shown = item.session
    for (const cell of this.cells.values()) cell.announce(this.hydration)
    Deferred.doneUnsafe(this.hydrated, Effect.void)
    return null
  }

  /** The authority cannot be reached: what is known stays, as stale. */
  private lose(): void {
    this.unready()
    for (const cell of this.cells.values()) cell.become(cell.isKnown ? "stale" : "detached")
  }

  /** What is known is not of this session, or of none. */
  private absent(status: "detached" | "hydrating"): void {
    this.unready()
    this.shown = null
    for (const cell of this.cells.values()) cell.clear(status)
  }

  private waiting(): void {
    for (const cell of this.cells.values()) if (!cell.isKnown) cell.become("hydrating")
  }

  private unready(): void {
    this.instance = null
    if (Deferred.isDoneUnsafe(this.hydrated)) this.hydrated = Deferred.makeUnsafe<void, ServiceError>()
  }

  /** Until it is worth asking again, which it never is of a reference that has ended. */
  private refused(error: ServiceError): Effect.Effect<void> {
    return this.address.reference !== undefined && error.code === "stale_reference"
      ? Effect.never
      : Effect.sleep(retryMillis)
  }

  private refuse(error: ServiceError): void {
    Deferred.doneUnsafe(this.hydrated, Effect.fail(error))
  }

  // ------------------------------------------------------------------------------------------------------------ events

  private source(member: string, contract: EventContract) {
    const feed = new Feed<Delivery<unknown>>()
    const codec = jsonCodec(eventSchema(contract))
    // Where the shared subscription of a durable source is, so that the next link goes on from there.
    let place: string | null = null
    // That of the last event of a passive source on this link.
    let newest: number | null = null
    const take = (item: Item): ServiceError | null => {
      if (item.type === "from" || item.type === "gap") place = item.id
      if (item.type !== "event") return null
      place = item.id ?? null
      const { sequence = null } = item
      if (newest !== null && sequence !== null && sequence > newest + 1) this.sayLost(member, sequence - newest - 1)
      newest = sequence
      const decoded = codec.decode(item.value)
      if (Exit.isSuccess(decoded)) feed.publish({ value: decoded.value, cause: item.cause ?? null })
      return null
    }
    const follow = Effect.forever(Effect.suspend(() => {
      newest = null
      return this.watchEvents(member, () => place, take)
    }))
    const forget = () => {
      place = null
    }
    const demand = new Demand(this.host.fork, follow, forget, this.host.idleMillis).acquire
    const shared = eventsOver(Effect.andThen(demand, subscription(feed, () => [])))
    if (!isDurable(contract)) return shared
    const watch = (place: () => string | null, take: (item: Item) => ServiceError | null) =>
      this.watchEvents(member, place, take)
    return Object.assign(shared, { after: (id: string | null) => eventsAfter(id, codec, watch) })
  }

  /** The host keeps so many events for a client that does not read them, and drops the oldest. */
  private sayLost(member: string, count: number): void {
    this.host.fork(Effect.logWarning(
      `${count} events "${member}" of service "${this.address.service}" were lost: they came faster than this client read them. Their state has what they led to.`
    ))
  }

  /** Follows one source over the link that is there next, until it is lost or the taker has enough. */
  private watchEvents(
    member: string,
    place: () => string | null,
    take: (item: Item) => ServiceError | null
  ): Effect.Effect<void> {
    return Effect.flatMap(this.host.connected, (link) => {
      const after = place()
      return Effect.catch(
        link.watch({ type: "events", ...this.address, member, ...(after === null ? {} : { after }) }, take),
        (error) =>
          error.code === "disconnected" || error.code === "cancelled" || error === enough
            ? Effect.void
            : this.refused(error)
      )
    })
  }
}

/** Deliveries that do not fit what came before: start again from a snapshot. */
const gap = new ServiceError({ code: "invalid_result", message: "A delivery did not fit what came before it." })

const nothing = Exit.succeed<JsonValue>(null)

/** What the caller of a method fails with. */
const callError = (name: string, codec: JsonCodec | null, error: WireError): unknown => {
  if (error.type === "service" || codec === null) return toServiceError(error)
  const decoded = codec.decode(error.error)
  return Exit.isSuccess(decoded)
    ? decoded.value
    : refusal("invalid_result", `The error of ${name} does not fit`, issueOf(decoded))
}
