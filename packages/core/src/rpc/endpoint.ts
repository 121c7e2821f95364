/**
 * The endpoint of a host: serves its directory and its interactions to one connection after another.
 *
 * A connection reaches what remote tokens name, of the host and of the sessions it is attached to, and nothing else. Everything
 * that comes in is decoded inside the handlers by the token's own schemas; everything that goes out is encoded by them.
 * A defect becomes `internal` with an incident id that this host's log explains. Calls run on fresh fibers under the
 * caller's trace, with the `ClientIdentity` that the transport installed. A disconnect interrupts the calls of that client
 * and ends its subscriptions; work that a service owns goes on.
 */
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { ClientIdentity, InteractionBroker, ServiceDirectory, ServiceError } from "../service/index.ts"
import type { ClientSeat, RemoteService, ServiceDirectoryShape } from "../service/index.ts"
import { ClientView } from "./client-view.ts"
import { mismatchTexts, pluginMismatches } from "./mismatch.ts"
import { notAttached, otherProtocol, overloaded, unknownMember, unknownService } from "./refusals.ts"
import { incident, ServedCalls } from "./served-calls.ts"
import { serverProtocol } from "./transport.ts"
import type { Transport } from "./transport.ts"
import type { EncodedItem } from "./waiting.ts"
import { decodeControl, decodeWatch, protocolVersion, ServiceGroup, toWireError } from "./wire.ts"
import type { Control, Hello, Item, PluginVersion, Watch, WireError } from "./wire.ts"

export interface EndpointOptions {
  /**
   * Whether this client may attach to the session; also the place to open it. Fails with what the client is told.
   * Every session is refused if left out. Without `resume` its work is not to be started by this.
   */
  readonly attach?: (
    sessionID: string,
    client: ClientIdentity,
    options: { readonly resume: boolean }
  ) => Effect.Effect<void, ServiceError>
  /** Told once a client has left a session, by selecting another or by disconnecting. */
  readonly detach?: (sessionID: string, client: ClientIdentity) => Effect.Effect<void>
  /** Told of each client once it has said what it is; must not throw or wait. */
  readonly connected?: (client: ClientIdentity) => void
  /** Told once a client of whom it was told is gone. */
  readonly disconnected?: (client: ClientIdentity) => void
  /** The plugins of this host, which a client compares with its own. */
  readonly manifest?: Effect.Effect<ReadonlyArray<PluginVersion>>
  /** Deliveries that may wait for one subscription before it starts again from a snapshot. 1,024 if left out. */
  readonly queueLimit?: number
  /** Characters of JSON that may wait for one subscription before it starts again from a snapshot. 4 Mi if left out. */
  readonly queueCharacters?: number
  /** Calls, and as many messages of control, that one client may have in flight; more answer `overloaded`. 1,000 if left out. */
  readonly callLimit?: number
  /** References that one client may hold; more answer `overloaded`. 1,000 if left out. */
  readonly referenceLimit?: number
  /** Subscriptions that one client may have open; more answer `overloaded`. 1,000 if left out. */
  readonly subscriptionLimit?: number
}

export interface EndpointShape {
  /** Serves one connection until it closes or the scope does. `user` is what authentication found. */
  readonly serve: (
    transport: Transport,
    client?: { readonly user?: string | null }
  ) => Effect.Effect<void>
  /** Who is connected. */
  readonly clients: Effect.Effect<ReadonlyArray<ClientIdentity>>
}

export class Endpoint extends Context.Service<Endpoint, EndpointShape>()("bezel/rpc/Endpoint") {
  static readonly make = (
    options: EndpointOptions = {}
  ): Effect.Effect<EndpointShape, never, ServiceDirectory | InteractionBroker> =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory
      const broker = yield* InteractionBroker
      // Connections are served in this context, never in that of whoever opened the transport.
      const context = yield* Effect.context<never>()
      const own = Context.omit(Tracer.ParentSpan)(context)
      const clients = new Map<string, ServedConnection>()
      return {
        serve: Effect.fnUntraced(function*(transport, client) {
          const connection = yield* Effect.acquireRelease(
            Effect.sync(() => {
              const served = new ServedConnection(directory, options, client?.user ?? null, own)
              clients.set(served.identity.id, served)
              return served
            }),
            (served) =>
              Effect.suspend(() => {
                clients.delete(served.identity.id)
                return served.leave
              })
          )
          const run = yield* FiberSet.makeRuntime<never>()
          connection.run = (effect) => {
            run(effect)
          }
          const ask = (item: Item) => {
            if (connection.view.interaction(item)) return
            connection.run(transport.dismiss(
              new ServiceError({
                code: "overloaded",
                message: "This client does not read what it is asked; it is given up."
              })
            ))
          }
          connection.seat = yield* broker.connect({
            id: connection.identity.id,
            offer: (offer) => ask({ type: "offer", ...offer }),
            close: (id, reason) => ask({ type: "close", id, reason })
          })
          const handlers = yield* ServiceGroup.toHandlers({
            watch: (message) => connection.watch(message),
            control: (message) => connection.control(message)
          })
          yield* RpcServer.make(ServiceGroup, { disableFatalDefects: true, disableTracing: true }).pipe(
            Effect.provideServiceEffect(RpcServer.Protocol, serverProtocol(transport, connection.calls)),
            Effect.provideContext(handlers),
            Effect.raceFirst(transport.closed)
          )
        }, (effect) => Effect.updateContext(Effect.scoped(effect), () => own)),
        clients: Effect.sync(() => [...clients.values()].map((connection) => connection.identity))
      }
    })

  static readonly layer = (
    options: EndpointOptions = {}
  ): Layer.Layer<Endpoint, never, ServiceDirectory | InteractionBroker> =>
    Layer.effect(Endpoint, Endpoint.make(options))
}

/** One connected client, as this host sees it. */
class ServedConnection {
  identity: ClientIdentity
  seat: ClientSeat | undefined
  /** Runs something for the length of the connection. */
  run: (effect: Effect.Effect<void>) => void = () => {}
  readonly view: ClientView
  readonly calls: ServedCalls
  private readonly directory: ServiceDirectoryShape
  private readonly options: EndpointOptions
  /** What calls run in. */
  private readonly context: Context.Context<never>
  private readonly selecting = Semaphore.makeUnsafe(1)
  private hasGreeted = false
  /** Control messages that are being worked on. */
  private controls = 0
  /** Attached to without having started their work. */
  private readonly resting = new Set<string>()
  private forking: { readonly identity: ClientIdentity; readonly run: typeof Effect.runFork } | undefined

  constructor(
    directory: ServiceDirectoryShape,
    options: EndpointOptions,
    user: string | null,
    context: Context.Context<never>
  ) {
    this.directory = directory
    this.context = context
    this.options = options
    this.identity = { id: crypto.randomUUID(), label: "a client", user }
    this.view = new ClientView(directory, {
      items: options.queueLimit ?? 1_024,
      characters: options.queueCharacters ?? 4 * 1_048_576
    }, (released) => {
      this.calls.sweep()
      if (released !== null) this.run(released)
    })
    this.calls = new ServedCalls({
      view: this.view,
      limits: { calls: options.callLimit ?? 1_000, references: options.referenceLimit ?? 1_000 },
      fork: (effect) => this.fork(effect),
      run: (effect) => this.run(effect)
    })
  }

  get leave(): Effect.Effect<void> {
    const { sessions } = this.view
    if (this.hasGreeted) this.options.disconnected?.(this.identity)
    return Effect.andThen(
      this.view.close(),
      Effect.forEach(
        sessions,
        (session) =>
          Effect.catchCause(
            this.options.detach?.(session, this.identity) ?? Effect.void,
            (cause) => Effect.logError(`Session ${session} was not left as it should be.`, cause)
          ),
        { discard: true }
      )
    )
  }

  // ------------------------------------------------------------------------------------------------------------- calls

  /** A new context for each greeting, since the label is a part of who calls. */
  private fork(effect: Effect.Effect<unknown, unknown>): Fiber.Fiber<unknown, unknown> {
    if (this.forking?.identity !== this.identity) {
      const run = Effect.runForkWith(Context.add(this.context, ClientIdentity, this.identity))
      this.forking = { identity: this.identity, run }
    }
    return this.forking.run(effect)
  }

  // ------------------------------------------------------------------------------------------------------ subscriptions

  watch(message: unknown): Stream.Stream<EncodedItem, WireError> {
    const decoded = decodeWatch(message)
    if (Exit.isFailure(decoded)) return Stream.unwrap(failed(decoded.cause))
    const watch: Watch = decoded.value
    const refused = this.refusal(watch)
    if (refused !== undefined) return Stream.fail(toWireError(refused))
    return this.view.watch(watch)
  }

  private refusal(watch: Watch): ServiceError | undefined {
    if (watch.type === "interactions") {
      return this.view.isAsked ? overloaded("a subscription to what it is asked") : undefined
    }
    const limit = this.options.subscriptionLimit ?? 1_000
    if (this.view.subscriptions >= limit) return overloaded(`${limit} subscriptions`)
    const token = this.tokenOf(watch)
    if (token instanceof ServiceError) return token
    if (watch.type === "events" && !Object.hasOwn(token.contract.events ?? {}, watch.member)) {
      return unknownMember(watch, "event source")
    }
    return undefined
  }

  private tokenOf(watch: Exclude<Watch, { readonly type: "interactions" }>): RemoteService.Any | ServiceError {
    if (watch.type !== "instances" && watch.reference !== undefined) {
      const found = this.view.resolve(watch)
      return found instanceof ServiceError ? found : found.token
    }
    return this.directory.declared(watch.service)?.token ?? unknownService(watch.service)
  }

  // ------------------------------------------------------------------------------------------------------------ control

  control(message: unknown): Effect.Effect<unknown, WireError> {
    const decoded = decodeControl(message)
    if (Exit.isFailure(decoded)) return failed(decoded.cause)
    const limit = this.options.callLimit ?? 1_000
    if (this.controls >= limit) return Effect.fail(toWireError(overloaded(`${limit} messages in flight`)))
    this.controls++
    return this.perform(decoded.value).pipe(
      Effect.catchCause((cause): Effect.Effect<never, WireError> => {
        for (const reason of cause.reasons) if (reason._tag === "Fail") return Effect.fail(toWireError(reason.error))
        const { error, log } = incident("A control message failed", cause)
        return Effect.andThen(log, Effect.fail(toWireError(error)))
      }),
      Effect.ensuring(Effect.sync(() => {
        this.controls--
      }))
    )
  }

  private perform(control: Control): Effect.Effect<unknown, ServiceError> {
    switch (control.type) {
      case "hello":
        return this.greet(control)
      case "catalogue":
        return Effect.succeed(this.directory.catalogue())
      case "release":
        return Effect.as(this.view.release(control.reference), null)
      case "handles":
        return this.seat?.handles(control.interactions) ?? Effect.succeed([])
      case "answer":
        return Effect.as(this.seat?.answer(control.id, control.answer) ?? Effect.void, null)
      case "select":
        return Effect.as(this.select(control.session, control.resume ?? true), null)
      case "attach":
        return Effect.as(this.attach(control.session, control.resume ?? true), null)
      case "detach":
        return Effect.as(this.detach(control.session), null)
    }
  }

  private greet(hello: Extract<Control, { readonly type: "hello" }>): Effect.Effect<Hello, ServiceError> {
    const { label, protocol = protocolVersion } = hello
    if (protocol !== protocolVersion) return Effect.fail(otherProtocol(protocol))
    this.identity = { ...this.identity, label: label.slice(0, 200) }
    if (!this.hasGreeted) this.options.connected?.(this.identity)
    this.hasGreeted = true
    return Effect.gen({ self: this }, function*() {
      const manifest = yield* this.options.manifest ?? Effect.succeed([])
      const mismatches = pluginMismatches(manifest, hello.manifest ?? [])
      for (const text of mismatchTexts(mismatches, `the client "${this.identity.label}"`)) {
        yield* Effect.logWarning(text)
      }
      return {
        client: this.identity.id,
        epoch: this.directory.epoch,
        contracts: this.directory.contracts(),
        manifest
      }
    })
  }

  /** One at a time, and once attached to the end: whoever is told of an attach is told of the detach. */
  private inTurn(
    change: (restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) => Effect.Effect<void, ServiceError>
  ): Effect.Effect<void, ServiceError> {
    return this.selecting.withPermits(1)(Effect.uninterruptibleMask(change))
  }

  private select(session: string | null, resume: boolean): Effect.Effect<void, ServiceError> {
    return this.inTurn((restore) =>
      Effect.gen({ self: this }, function*() {
        const before = this.view.session
        const starts = session !== null && resume && this.resting.has(session)
        if (before === session) return starts ? yield* restore(this.enter(session)) : undefined
        const isNew = session !== null && !this.view.isBeside(session)
        if (isNew || starts) yield* restore(this.enter(session, resume))
        this.view.select(session)
        if (isNew) yield* this.seat?.attach(session) ?? Effect.void
        if (before !== null && !this.view.isBeside(before)) yield* this.depart(before)
      })
    )
  }

  private attach(session: string, resume: boolean): Effect.Effect<void, ServiceError> {
    return this.inTurn((restore) =>
      Effect.gen({ self: this }, function*() {
        const isBeside = this.view.isBeside(session)
        const starts = resume && this.resting.has(session)
        if (isBeside && !starts) return
        const isNew = session !== this.view.session
        if (isNew || starts) yield* restore(this.enter(session, resume))
        if (isBeside) return
        this.view.attach(session)
        if (isNew) yield* this.seat?.attach(session) ?? Effect.void
      })
    )
  }

  private detach(session: string): Effect.Effect<void, ServiceError> {
    return this.inTurn(() =>
      Effect.suspend(() => {
        if (!this.view.isBeside(session)) return Effect.void
        this.view.detach(session)
        return session === this.view.session ? Effect.void : this.depart(session)
      })
    )
  }

  private enter(session: string, resume = true): Effect.Effect<void, ServiceError> {
    const entering = this.options.attach?.(session, this.identity, { resume }) ?? Effect.fail(notAttached(session))
    return Effect.tap(entering, () =>
      Effect.sync(() => {
        if (resume) this.resting.delete(session)
        else this.resting.add(session)
      }))
  }

  private depart(session: string): Effect.Effect<void> {
    this.resting.delete(session)
    return Effect.andThen(
      this.seat?.detach(session) ?? Effect.void,
      this.options.detach?.(session, this.identity) ?? Effect.void
    )
  }
}

const failed = (cause: Cause.Cause<ServiceError>): Effect.Effect<never, WireError> =>
  Effect.mapError(Effect.failCause(cause), toWireError)
