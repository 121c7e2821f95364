/**
 * What one connected client can see: which instance an address means for it, and its live subscriptions.
 *
 * A subscription follows its address: when the instance behind it changes, by a reload, another session or a provider that
 * comes or goes, the client gets a fresh snapshot or is told that nobody is there. All of it happens in synchronous steps,
 * so a snapshot and its place in the stream are one. Each subscription has an outbox of its own.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { JsonValue } from "../json/index.ts"
import {
  durableLog,
  DurableReader,
  eventFeed,
  eventSchema,
  isDurable,
  isStateCell,
  jsonCodec,
  ServiceError,
  wireOperations,
  wireValue
} from "../service/index.ts"
import type { Instance, RemoteService, ServiceDirectoryShape } from "../service/index.ts"
import { Outbox, unlimited } from "./outbox.ts"
import type { OutboxLimits } from "./outbox.ts"
import { References } from "./references.ts"
import { notAttached, staleReference, unknownService } from "./refusals.ts"
import { waiting, waitingDelta } from "./waiting.ts"
import type { EncodedItem } from "./waiting.ts"
import { toWireError } from "./wire.ts"
import type { Item, Watch, WireError } from "./wire.ts"

export interface Address {
  readonly service: string
  readonly key?: string
  readonly generation?: number
  readonly session?: string
  readonly reference?: number
}

/** A live subscription: looks again whenever the directory or the selection has changed. */
interface Follow {
  readonly outbox: Outbox
  /** `again`: say it also when nobody is there as before, because the client waits to hear it. */
  readonly refresh: (again: boolean) => void
  readonly end: () => void
}

/** What a client may have been asked, or told to close, without reading it. */
const interactionLimit = 1_024

export class ClientView {
  private readonly directory: ServiceDirectoryShape
  private readonly limits: OutboxLimits
  private readonly follows = new Set<Follow>()
  private readonly interactions = new Outbox(unlimited, null)
  readonly references = new References()
  private readonly changed: (released: Effect.Effect<void> | null) => void
  private readonly unwatch: () => void
  private selected: string | null = null
  private asked = false
  private readonly beside = new Set<string>()

  /** `changed` is told that instances may have ended, with what is to be done for owners of references that did. */
  constructor(
    directory: ServiceDirectoryShape,
    limits: OutboxLimits,
    changed: (released: Effect.Effect<void> | null) => void
  ) {
    this.directory = directory
    this.limits = limits
    this.changed = changed
    this.unwatch = directory.watch(() => {
      changed(this.references.size > 0 ? this.references.sweep() : null)
      this.refresh(false)
    })
  }

  /** The session that the client shows. */
  get session(): string | null {
    return this.selected
  }

  /** Subscriptions that are open, beside the one to interactions. */
  get subscriptions(): number {
    return this.follows.size
  }

  /** Whether it follows what it is asked: there is one such subscription, for two would share its items. */
  get isAsked(): boolean {
    return this.asked
  }

  select(session: string | null): void {
    this.selected = session
    this.refresh(true)
  }

  /** Attached to beside the one that is shown. */
  attach(session: string): void {
    this.beside.add(session)
    this.refresh(true)
  }

  detach(session: string): void {
    this.beside.delete(session)
    this.refresh(true)
  }

  isBeside(session: string): boolean {
    return this.beside.has(session)
  }

  private sees(session: string): boolean {
    return session === this.selected || this.beside.has(session)
  }

  /** All sessions that the client is attached to. */
  get sessions(): ReadonlySet<string> {
    return new Set(this.selected === null ? this.beside : [this.selected, ...this.beside])
  }

  /** Ends a reference, or the wish for one, and its subscriptions. */
  release(reference: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const released = this.references.release(reference)
      this.changed(null)
      this.refresh(false)
      return released
    })
  }

  /** False for a client that takes none of them: what it is asked cannot be left out, so it cannot stay. */
  interaction(item: Item): boolean {
    this.interactions.push(waiting(item))
    return this.interactions.size <= interactionLimit
  }

  /** The instance that an address means for this client, or why there is none. */
  resolve(address: Address): Instance | ServiceError {
    if (address.session !== undefined && !this.sees(address.session)) return notAttached(address.session)
    if (address.reference !== undefined) return this.referenced(address.reference, address.service)
    const declared = this.directory.declared(address.service)
    if (declared === undefined) return unknownService(address.service)
    const instance = this.directory.lookup({
      service: address.service,
      key: address.key ?? null,
      session: address.session ?? this.selected,
      generation: address.generation
    })
    if (address.generation !== undefined && instance === undefined) {
      return new ServiceError({
        code: "stale_reference",
        message: `This instance of service "${address.service}" has ended; look for its successor.`
      })
    }
    if (instance !== undefined) return instance
    return new ServiceError({
      code: "unavailable",
      message: declared.perSession && (address.session ?? this.selected) === null
        ? `Service "${address.service}" belongs to a session, and none is selected.`
        : `Nobody provides service "${address.service}" at the moment.`
    })
  }

  private referenced(reference: number, service: string): Instance | ServiceError {
    const instance = this.references.get(reference)
    if (instance?.token.id !== service) return staleReference(service)
    return instance.session === null || this.sees(instance.session) ? instance : notAttached(instance.session)
  }

  watch(watch: Watch): Stream.Stream<EncodedItem, WireError> {
    if (watch.type === "interactions") {
      return Stream.unwrap(Effect.as(
        Effect.acquireRelease(
          Effect.sync(() => {
            this.asked = true
          }),
          () =>
            Effect.sync(() => {
              this.asked = false
            })
        ),
        this.interactions.stream
      ))
    }
    return Stream.unwrap(
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const follow = this.follow(watch)
            this.follows.add(follow)
            return follow
          }),
          (follow) =>
            Effect.sync(() => {
              this.follows.delete(follow)
              follow.end()
            })
        ),
        (follow) => follow.outbox.stream
      )
    )
  }

  /** Gives back what is to be done for the owners of references. */
  close(): Effect.Effect<void> {
    this.unwatch()
    return this.references.clear()
  }

  private refresh(again: boolean): void {
    for (const follow of this.follows) follow.refresh(again)
  }

  private follow(watch: Exclude<Watch, { readonly type: "interactions" }>): Follow {
    switch (watch.type) {
      case "states":
        return this.followInstance(watch, null)
      case "events":
        return this.isDurable(watch) ? this.followDurable(watch) : this.followInstance(watch, watch.member)
      case "instances":
        return this.followKeys(watch.service)
    }
  }

  /** The states of an instance, or one of its event sources. */
  private followInstance(address: Address, source: string | null): Follow {
    let current: Instance | null | undefined
    let absence: string | undefined
    let detach: ReadonlyArray<() => void> = []
    // Whether the client has a snapshot that deltas can follow.
    let isShown = false
    const restart = () => {
      const item: Item = current ? snapshot(current) : { type: "absent", reason: this.absenceReason(address) }
      isShown = item.type === "snapshot"
      return [waiting(item)]
    }
    const outbox = new Outbox(this.limits, source === null ? restart : null)
    const end = () => {
      for (const stop of detach) stop()
      detach = []
    }
    const refresh = (again: boolean) => {
      const found = this.resolve(address)
      if (isOver(address, found)) outbox.fail(toWireError(found))
      const next = found instanceof ServiceError ? null : found
      const reason = next === null ? this.absenceReason(address) : undefined
      if (next === current && reason === absence && !(again && next === null)) return
      end()
      absence = reason
      current = next
      if (source === null) {
        if (next !== null) detach = followStates(next, outbox, () => isShown)
        outbox.reset()
      } else if (next !== null) detach = followEvents(next, source, outbox)
    }
    refresh(true)
    return { outbox, refresh, end }
  }

  private isDurable(watch: Extract<Watch, { readonly type: "events" }>): boolean {
    const found = this.resolve(watch)
    const token = found instanceof ServiceError ? this.directory.declared(watch.service)?.token : found.token
    const event = token?.contract.events?.[watch.member]
    return event !== undefined && isDurable(event)
  }

  /** Nothing waits here: the log keeps what happened, and the reader's place is all there is to a slow consumer. */
  private followDurable(watch: Extract<Watch, { readonly type: "events" }>): Follow {
    let current: Instance | null = null
    let reader: DurableReader | null = null
    let place = watch.after ?? null
    let told = watch.after !== undefined
    let stop = () => {}
    const outbox: Outbox = new Outbox(unlimited, () => {
      if (reader === null || current === null) return []
      const from: ReadonlyArray<Item> = told ? [] : [{ type: "from", id: reader.id }]
      told = true
      const taken = reader.take()
      place = reader.id
      if (reader.isBehind) outbox.reset()
      const schema = current.token.contract.events?.[watch.member]
      const codec = schema === undefined ? undefined : jsonCodec(eventSchema(schema))
      return [
        ...from,
        ...taken.map((event): Item => {
          if (event.type === "gap") return { type: "gap", id: event.id }
          const encoded = codec?.encode(event.value)
          // One that the token cannot express is missing.
          if (encoded === undefined || Exit.isFailure(encoded)) return { type: "gap", id: event.id }
          return { type: "event", id: event.id, value: encoded.value, ...(event.cause ? { cause: event.cause } : {}) }
        })
      ].map(waiting)
    })
    const refresh = () => {
      const found = this.resolve(watch)
      if (isOver(watch, found)) outbox.fail(toWireError(found))
      const next = found instanceof ServiceError ? null : found
      if (next === current) return
      stop()
      stop = () => {}
      current = next
      reader = null
      const log = next === null ? undefined : durableLog(Reflect.get(next.implementation, watch.member))
      if (log === undefined) return
      reader = new DurableReader(log, place)
      stop = log.feed.subscribe(() => outbox.reset())
      outbox.reset()
    }
    refresh()
    return { outbox, refresh, end: () => stop() }
  }

  private absenceReason(address: Address): "detached" | "unavailable" {
    const declared = this.directory.declared(address.service)
    return declared?.perSession === true && (address.session ?? this.selected) === null ? "detached" : "unavailable"
  }

  private followKeys(service: string): Follow {
    let seen = ""
    const live = () =>
      this.directory.keyed(service, this.selected).flatMap((instance) =>
        instance.key === null ? [] : [{ key: instance.key, generation: instance.generation, session: instance.session }]
      )
    const outbox = new Outbox(unlimited, () => [waiting({ type: "instances", live: live() })])
    const refresh = () => {
      const now = JSON.stringify(live())
      if (now === seen) return
      seen = now
      outbox.reset()
    }
    refresh()
    return { outbox, refresh, end: () => {} }
  }
}

/** A reference that has ended has no successor: what follows it ends too. */
const isOver = (address: Address, found: Instance | ServiceError): found is ServiceError =>
  address.reference !== undefined && found instanceof ServiceError && found.code === "stale_reference"

const statesOf = (token: RemoteService.Any) => Object.entries(token.contract.state ?? {})

/** Everything that the instance's states are now. One that its token cannot express makes the instance absent. */
const snapshot = (instance: Instance): Item => {
  const states: { [member: string]: { readonly sequence: number; readonly value: JsonValue } } = {}
  for (const [name, schema] of statesOf(instance.token)) {
    const cell: unknown = Reflect.get(instance.implementation, name)
    if (!isStateCell(cell)) return { type: "absent", reason: "unavailable" }
    const encoded = wireValue(schema, cell)
    if (Exit.isFailure(encoded)) return { type: "absent", reason: "unavailable" }
    states[name] = { sequence: cell.sequence, value: encoded.value }
  }
  return { type: "snapshot", instance: instance.generation, session: instance.session, states }
}

const followStates = (instance: Instance, outbox: Outbox, isShown: () => boolean): ReadonlyArray<() => void> =>
  statesOf(instance.token).flatMap(([member, schema]) => {
    const cell: unknown = Reflect.get(instance.implementation, member)
    if (!isStateCell(cell)) return []
    return [
      cell.feed.subscribe((delivery) => {
        const delta = waitingDelta(
          instance.generation,
          member,
          delivery,
          () => wireOperations(schema, cell, delivery)
        )
        // A value that the token cannot express: the snapshot says so, and the next one whether it is over.
        if (delta === null || !isShown()) outbox.reset()
        else outbox.push(delta)
      })
    ]
  })

const followEvents = (instance: Instance, member: string, outbox: Outbox): ReadonlyArray<() => void> => {
  const feed = eventFeed(Reflect.get(instance.implementation, member))
  const schema = instance.token.contract.events?.[member]
  if (feed === undefined || schema === undefined) return []
  const codec = jsonCodec(eventSchema(schema))
  return [
    feed.subscribe((delivery) => {
      const encoded = codec.encode(delivery.value)
      if (Exit.isFailure(encoded)) return
      outbox.push(waiting({
        type: "event",
        sequence: delivery.sequence,
        value: encoded.value,
        ...(delivery.cause === null ? {} : { cause: delivery.cause })
      }))
    })
  ]
}
