/**
 * Declarations: what extensions want of every session of a location.
 *
 * Plugins boot once per location, harnesses open once per session. A declaration is kept by the location and applied to
 * each harness that opens, in manifest order, before anything of the session runs. One token of a declared namespace serves
 * all sessions: which one is meant comes from the fiber that a hook or a session effect runs in, or from an id that names
 * both, `sessionID/conversationID`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import {
  type Harness,
  HarnessError,
  type HookHandlers,
  type HookKind,
  type HookOptions,
  type Namespace,
  type NamespaceShape,
  type Section,
  type TaskExtensions
} from "../harness/index.ts"
import type { JsonObject, JsonValue } from "../json/index.ts"
import type { OpenSession } from "./open-session.ts"

/** An open session together with the authority that its declarations act with. */
export interface DeclarationTarget {
  readonly session: OpenSession
  readonly harness: Harness
  /** The harness's own token for each declared one. */
  readonly namespaces: Map<Namespace, Namespace>
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
  readonly apply: (target: DeclarationTarget) => Effect.Effect<void, unknown, Scope.Scope>
}

/** Which session the current fiber works for; `null` outside of one. */
export const CurrentSession = Context.Reference<string | null>("@bezel/core/session/CurrentSession", {
  defaultValue: () => null
})

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
    get: (conversationID) => Effect.flatMap(find(conversationID), (found) => found.namespace.get(found.conversationID)),
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

type InSession = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const within = (sessionID: string): InSession => (effect) => Effect.provideService(effect, CurrentSession, sessionID)

/** The same handlers, each running as work of its session. */
const situated = <K extends HookKind>(handlers: HookHandlers[K], inSession: InSession): HookHandlers[K] => {
  // Every member of every kind's handlers is a function that gives an effect; this is the one place that relies on it.
  const wrapped = Object.entries(handlers).map(([point, handler]) => [
    point,
    (...input: ReadonlyArray<unknown>) =>
      inSession(Effect.suspend(() => Reflect.apply(handler, handlers, input) as Effect.Effect<unknown, unknown>))
  ])
  return Object.fromEntries(wrapped) as HookHandlers[K]
}

/** Hooks in every session, under a namespace that was declared before. */
export const declareHooks = <K extends HookKind>(
  owner: Owner,
  namespace: Namespace,
  kind: K,
  handlers: HookHandlers[K],
  options?: HookOptions
): SessionDeclaration => ({
  ...owner,
  what: `hooks of ${kind} under namespace "${namespace.id}"`,
  unique: null,
  required: true,
  apply: (target) =>
    Effect.suspend(() => {
      const own = target.namespaces.get(namespace)
      if (own === undefined) {
        return Effect.fail(
          invalid(`The namespace "${namespace.id}" is not registered any more, so its hooks cannot be.`)
        )
      }
      const handled = situated<K>(handlers, within(target.session.identity.sessionID))
      return Effect.asVoid(target.harness.hooks(own, kind, handled, options))
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
  apply: (target) => Effect.asVoid(register(target.harness))
})

/** A piece of the system message in every session. */
export const declareSection = (owner: Owner, section: Section): SessionDeclaration => ({
  ...owner,
  what: `section "${section.id}"`,
  unique: `section "${section.id}"`,
  required: true,
  apply: (target) => {
    const inSession = within(target.session.identity.sessionID)
    return Effect.asVoid(target.harness.section({ ...section, text: (api) => inSession(section.text(api)) }))
  }
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
