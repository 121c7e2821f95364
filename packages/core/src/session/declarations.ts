/**
 * Declarations: what extensions want of every session of a location.
 *
 * Plugins boot once per location, harnesses open once per session. A declaration is kept by the location and applied to
 * each harness that opens, in manifest order, before anything of the session runs. One token of a declared namespace serves
 * all sessions: which one is meant comes from the fiber that a hook or a session effect runs in, or from an id that names
 * both, `sessionID/conversationID`.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import {
  type Harness,
  HarnessError,
  type HookedKind,
  type HookKind,
  type HookOptions,
  type Namespace,
  type NamespaceShape,
  type RegisterHooks,
  type Section,
  type TaskExtensions
} from "../harness/index.ts"
import type { JsonObject, JsonValue } from "../json/index.ts"
import type { OpenSession } from "./open-session.ts"
import { CurrentSession, makePluginCode, type PluginCode } from "./plugin-code.ts"

/** An open session together with the authority that its declarations act with. */
export interface DeclarationTarget {
  readonly session: OpenSession
  readonly harness: Harness
  /** The harness's own token for each declared one. */
  readonly namespaces: Map<Namespace, Namespace>
  /** What stands now at each place that extensions hook into; a chain that has begun runs it too, after a reload. */
  readonly places: Map<string, object>
}

export interface SessionDeclaration {
  readonly plugin: string
  /** Place of the plugin in the manifest. */
  readonly order: number
  /** For messages: `namespace "review"`. */
  readonly what: string
  /** What must be unique among the declarations of a location, if anything. */
  readonly unique: string | null
  /** A failure of these keeps the session from opening: a gate that is not there must not let calls through. */
  readonly required: boolean
  /** The kind of task that it registers, if it does. */
  readonly task?: string
  readonly apply: (target: DeclarationTarget) => Effect.Effect<void, unknown, Scope.Scope>
}

interface Owner {
  readonly plugin: string
  readonly order: number
}

/** Finds the open sessions in which a declaration is applied. */
export interface OpenTargets {
  readonly targets: () => ReadonlyArray<DeclarationTarget>
}

const invalid = (message: string) => new HarnessError({ code: "invalid", message })

/** A namespace of all sessions of a location: the declaration, and the one token for them. */
export const declareNamespace = (
  owner: Owner,
  open: OpenTargets,
  id: string,
  shape: NamespaceShape,
  options?: { readonly view?: (state: JsonObject) => JsonValue }
): {
  readonly declaration: SessionDeclaration
  readonly token: Namespace
  readonly bindUnregister: (unregister: Effect.Effect<void>) => void
} => {
  let unregister: Effect.Effect<void> = Effect.void

  const find = (conversationID: string) =>
    Effect.gen(function*() {
      const [first, second] = conversationID.split("/")
      const sessionID = second === undefined ? yield* CurrentSession : first
      const targets = open.targets().filter((target) => target.namespaces.has(token))
      const target = sessionID === null || sessionID === undefined
        ? targets.length === 1 ? targets[0] : undefined
        : targets.find((candidate) => candidate.session.identity.sessionID === sessionID)
      const namespace = target?.namespaces.get(token)
      if (namespace === undefined) {
        return yield* invalid(
          `Namespace "${id}": no open session is meant by "${conversationID}" here; name it as "sessionID/conversationID".`
        )
      }
      return { namespace, conversationID: second ?? conversationID }
    })

  const token: Namespace = {
    id,
    unregister: Effect.suspend(() => unregister),
    get: (conversationID, options) =>
      Effect.flatMap(find(conversationID), (found) => found.namespace.get(found.conversationID, options)),
    update: (conversationID, change, event) =>
      Effect.flatMap(find(conversationID), (found) => found.namespace.update(found.conversationID, change, event))
  }
  const declaration: SessionDeclaration = {
    ...owner,
    what: `namespace "${id}"`,
    unique: `namespace "${id}"`,
    required: true,
    apply: (target) =>
      Effect.gen(function*() {
        const namespace = yield* target.harness.namespace(id, shape, { ...options, alias: token })
        target.namespaces.set(token, namespace)
        yield* Effect.addFinalizer(() => Effect.sync(() => target.namespaces.delete(token)))
      })
  }
  return {
    declaration,
    token,
    bindUnregister: (effect) => {
      unregister = effect
    }
  }
}

const within = (sessionID: string) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, CurrentSession, sessionID)

/**
 * Puts an object into a place of its own until the scope ends. The same declaration of a plugin's next generation gets the
 * same place, so `read` gives what stands there when it is called.
 */
const occupy = <A extends object>(
  places: Map<string, object>,
  name: string,
  occupant: A
): Effect.Effect<{ readonly read: () => A | undefined }, never, Scope.Scope> =>
  Effect.suspend(() => {
    let ordinal = 0
    while (places.has(`${name} ${ordinal}`)) ordinal++
    const place = `${name} ${ordinal}`
    places.set(place, occupant)
    return Effect.as(
      Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (places.get(place) === occupant) places.delete(place)
        })
      ),
      // The one erasure of places: their names say what kind of occupant they have.
      { read: () => places.get(place) as A | undefined }
    )
  })

/** The same points, each running as work of its session what its place holds by then; one that is gone is skipped. */
const situated = (
  handlers: object,
  read: () => object | undefined,
  run: (code: () => Effect.Effect<unknown, unknown>) => Effect.Effect<unknown, unknown>
): object => {
  // Every member of every kind's handlers is a function that gives an effect; this is the one place that relies on it.
  const wrapped = Object.keys(handlers).map((point) => [
    point,
    (...input: ReadonlyArray<unknown>) =>
      run(() => {
        const now = read()
        const handler: unknown = now === undefined ? undefined : Reflect.get(now, point)
        return typeof handler === "function"
          ? Reflect.apply(handler, now, input) as Effect.Effect<unknown, unknown>
          : Effect.void
      })
  ])
  return Object.fromEntries(wrapped)
}

const nameOf = (kind: HookKind | HookedKind): string => typeof kind === "string" ? kind : `kind "${kind.name}"`

/** Hooks in every session, under a namespace that was declared before. Their types were checked against their kind's. */
export const declareHooks = (
  owner: Owner,
  namespace: Namespace,
  kind: HookKind | HookedKind,
  handlers: object,
  options?: HookOptions,
  code: PluginCode = makePluginCode()
): SessionDeclaration => ({
  ...owner,
  what: `hooks of ${nameOf(kind)} under namespace "${namespace.id}"`,
  unique: null,
  required: true,
  apply: (target) =>
    Effect.gen(function*() {
      const own = target.namespaces.get(namespace)
      if (own === undefined) {
        return yield* invalid(
          `The namespace "${namespace.id}" is not registered any more, so its hooks cannot be.`
        )
      }
      const { read } = yield* occupy(target.places, `hooks ${nameOf(kind)} ${namespace.id}`, handlers)
      const inSession = within(target.session.identity.sessionID)
      const handled = situated(handlers, read, (handler) => inSession(code.run(owner.plugin, handler)))
      const register = target.harness.hooks as (
        namespace: Namespace,
        kind: HookKind | HookedKind,
        handlers: object,
        options: HookOptions
      ) => ReturnType<RegisterHooks>
      yield* register(own, kind, handled, { order: owner.order, ...options })
    })
})

/** A kind of task that every session can run. */
export const declareTask = (
  owner: Owner,
  name: string,
  register: (harness: TaskExtensions) => ReturnType<TaskExtensions["task"]>
): SessionDeclaration => ({
  ...owner,
  what: `task kind "${name}"`,
  unique: `task kind "${name}"`,
  required: true,
  task: name,
  apply: (target) => Effect.asVoid(register(target.harness))
})

/** A piece of the system message in every session. */
export const declareSection = (
  owner: Owner,
  section: Section,
  code: PluginCode = makePluginCode()
): SessionDeclaration => ({
  ...owner,
  what: `section "${section.id}"`,
  unique: `section "${section.id}"`,
  required: true,
  apply: (target) =>
    Effect.gen(function*() {
      const { read } = yield* occupy(target.places, `section ${section.id}`, section)
      const inSession = within(target.session.identity.sessionID)
      yield* target.harness.section({
        ...section,
        // Of those with the same order, the earlier plugin's stands first, whenever it was registered.
        order: section.order + owner.order / 1_000_000,
        text: (api) => inSession(code.run(owner.plugin, () => read()?.text(api) ?? Effect.succeed(null)))
      })
    })
})

/** An effect in the scope of every session. Its failure is reported and stays without consequence for the session. */
export const declareSession = (
  owner: Owner,
  effect: (session: OpenSession) => Effect.Effect<void, unknown, Scope.Scope>
): SessionDeclaration => ({
  ...owner,
  what: "session effect",
  unique: null,
  required: false,
  apply: (target) => within(target.session.identity.sessionID)(Effect.suspend(() => effect(target.session)))
})
