/**
 * Registrations of a harness: namespaces, hooks and sections, each in a scope, each undone exactly once.
 *
 * A namespace's string is what persists; its token is today's authority. A token that is not the one registered now is
 * refused, so code of a retired generation cannot keep writing.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type JsonObject, type JsonValue, stored } from "../json/index.ts"
import type { StorageReader } from "../storage/index.ts"
import {
  HarnessError,
  type HarnessExtensions,
  type HookHandlers,
  type HookKind,
  type HookOptions,
  type Namespace,
  type NamespaceShape,
  type Registration,
  type Section
} from "./api.ts"
import type { PluginSlices, RewindableDocument } from "./documents.ts"
import { isReserved } from "./entry-kind.ts"
import { type Authority, pluginEvent } from "./extension-transaction.ts"
import type { HookedKind } from "./hook-point.ts"
import type { CommitLine } from "./line.ts"
import { namespaceState } from "./projection.ts"
import { rewindableAt, sequenceInLineage } from "./rewindable.ts"
import type { ConversationState, SessionState } from "./state.ts"
import type { Transaction } from "./transaction.ts"

export interface RegisteredHook<H extends object = object> {
  readonly namespace: string
  readonly handlers: H
  readonly options: HookOptions
}

export interface Extensions extends HarnessExtensions {
  /** Handlers for a conversation by `order`, then in order of registration, gates last. */
  readonly hooksFor: <K extends HookKind>(
    kind: K,
    conversation: ConversationState
  ) => ReadonlyArray<RegisteredHook<HookHandlers[K]>>
  /** The same at the points of a custom kind, by its name. */
  readonly hooksAt: (kind: string, conversation: ConversationState) => ReadonlyArray<RegisteredHook>
  readonly sections: () => ReadonlyArray<Section>
  /** Ids of the namespaces that declare a projection. */
  readonly projected: () => Iterable<string>
  readonly projection: (namespace: string) => ((state: JsonObject) => JsonValue) | undefined
  readonly authority: Pick<Authority, "namespaceDraft" | "assertNamespace">
}

interface NamespaceEntry {
  readonly token: Namespace
  readonly alias: Namespace | null
  readonly shape: NamespaceShape
  readonly view: ((state: JsonObject) => JsonValue) | undefined
}

export const makeExtensions = (
  storage: StorageReader,
  line: () => CommitLine,
  conversation: (id: string) => Effect.Effect<ConversationState, HarnessError>
): Extensions => {
  const namespaces = new Map<string, NamespaceEntry>()
  /** By kind; the types of handlers are erased here, and come back with the kind that they were registered for. */
  const hooks = new Map<string, Set<RegisteredHook>>()
  const sections = new Set<Section>()

  const current = (token: Namespace): NamespaceEntry => {
    const entry = namespaces.get(token.id)
    if (entry === undefined || entry.token !== token && entry.alias !== token) {
      throw new HarnessError({
        code: "stale_definition",
        message:
          `The namespace "${token.id}" was unregistered or registered again; this token may not be used any more.`
      })
    }
    return entry
  }

  const authorized = (token: Namespace): Effect.Effect<NamespaceEntry, HarnessError> =>
    Effect.try({ try: () => current(token), catch: (error) => error as HarnessError })

  const namespace: Extensions["namespace"] = (id, shape, options) =>
    Effect.gen(function*() {
      const fault = namespaceFault(id, shape)
      if (fault !== null) return yield* fault
      if (namespaces.has(id)) {
        return yield* new HarnessError({
          code: "duplicate",
          message: `The namespace "${id}" is registered already; choose a name of your own.`
        })
      }
      const token: Namespace = {
        id,
        unregister: Effect.sync(() => {
          if (namespaces.get(id)?.token === token) namespaces.delete(id)
        }),
        get: (conversationID, options) =>
          Effect.flatMap(conversation(conversationID), (state) =>
            Effect.flatMap(authorized(token), ({ shape }) => {
              const at = options?.at
              return at === undefined
                ? line().read(() =>
                  structuredClone({ ...defaultsOf(shape), ...namespaceState(line().state, state, id) })
                )
                : stateAt(storage, state, id, shape, at)
            })),
        update: (conversationID, change, event) =>
          Effect.flatMap(conversation(conversationID), (state) =>
            line().commit((tx) => {
              const entry = current(token)
              change(mergedDraft(tx, state, id, entry.shape))
              if (event !== undefined) tx.emit(state, pluginEvent(id, event.name, event.data))
            }))
      }
      namespaces.set(id, { token, alias: options?.alias ?? null, shape, view: options?.view })
      line().show({ namespace: id })
      yield* Effect.addFinalizer(() => token.unregister)
      return token
    })

  const register = <A>(set: Set<A>, item: A): Effect.Effect<Registration, never, Scope.Scope> => {
    const unregister = Effect.sync(() => {
      set.delete(item)
    })
    return Effect.acquireRelease(
      Effect.sync(() => {
        set.add(item)
        return { unregister }
      }),
      () => unregister
    )
  }

  const chain = (key: string, state: ConversationState): ReadonlyArray<RegisteredHook> => {
    const handlers = [...hooks.get(key) ?? []].filter((hook) => applies(hook.options, state, line().state))
      .sort((a, b) => (a.options.order ?? 0) - (b.options.order ?? 0))
    return [
      ...handlers.filter((hook) => hook.options.gate !== true),
      ...handlers.filter((hook) => hook.options.gate === true)
    ]
  }

  return {
    namespace,
    hooks: (token: Namespace, kind: HookKind | HookedKind, handlers: object, options?: HookOptions) =>
      Effect.andThen(
        authorized(token),
        Effect.suspend((): Effect.Effect<Registration, HarnessError, Scope.Scope> => {
          const fault = pointFault(kind, handlers)
          if (fault !== null) return Effect.fail(fault)
          const key = hookKey(kind)
          const own = hooks.get(key) ?? new Set()
          hooks.set(key, own)
          return register(own, { namespace: token.id, handlers, options: options ?? {} })
        })
      ),
    section: (section) =>
      Effect.suspend(() =>
        [...sections].some((known) => known.id === section.id)
          ? Effect.fail(
            new HarnessError({ code: "duplicate", message: `The section "${section.id}" is registered already.` })
          )
          : register(sections, section)
      ),
    hooksFor: <K extends HookKind>(kind: K, state: ConversationState) =>
      chain(hookKey(kind), state) as ReadonlyArray<RegisteredHook<HookHandlers[K]>>,
    hooksAt: (kind, state) => chain(hookKey({ name: kind }), state),
    sections: () => [...sections].sort((a, b) => a.order - b.order),
    projected: () => [...namespaces.values()].flatMap(({ token, view }) => view === undefined ? [] : [token.id]),
    projection: (id) => {
      const entry = namespaces.get(id)
      const view = entry?.view
      return entry === undefined || view === undefined
        ? undefined
        : (state) => view({ ...defaultsOf(entry.shape), ...state })
    },
    authority: {
      assertNamespace: (token) => {
        current(token)
      },
      namespaceDraft: (tx, state, token) => mergedDraft(tx, state, token.id, current(token).shape)
    }
  }
}

/** A custom kind may have the name of one of the core's. */
const hookKey = (kind: HookKind | { readonly name: string }): string =>
  typeof kind === "string" ? kind : `custom ${kind.name}`

const pointFault = (kind: HookKind | HookedKind, handlers: object): HarnessError | null => {
  if (typeof kind === "string") return null
  const unknown = Object.keys(handlers).find((point) => !Object.hasOwn(kind.hooks, point))
  return unknown === undefined ? null : new HarnessError({
    code: "invalid",
    message: `The task kind "${kind.name}" has no hook point "${unknown}"; it has ${
      Object.keys(kind.hooks).join(", ") || "none"
    }.`
  })
}

const applies = (options: HookOptions, state: ConversationState, session: SessionState): boolean => {
  if (options.conversation === undefined || options.conversation === state.record.id) return true
  if (options.subtree !== true) return false
  // A conversation that is owned belongs to the conversation of the task that owns it, while that task lives.
  const owner = state.record.owner === null ? undefined : session.tasks.get(state.record.owner)
  const above = owner === undefined ? undefined : session.conversations.get(owner.conversation)
  return above !== undefined && applies(options, above, session)
}

const namespaceFault = (id: string, shape: NamespaceShape): HarnessError | null => {
  if (isReserved(id) || id === "") {
    return new HarnessError({
      code: "not_permitted",
      message: `A plugin's namespace may not be named "${id}"; names under "bezel." are the core's.`
    })
  }
  const seen = new Set<string>()
  for (const defaults of [shape.session, shape.rewindable, shape.sticky]) {
    for (const key of Object.keys(defaults ?? {})) {
      if (seen.has(key)) {
        return new HarnessError({
          code: "invalid",
          message: `The namespace "${id}" declares the key "${key}" in two documents; a key lives in one.`
        })
      }
      seen.add(key)
    }
  }
  return null
}

/** The rewindable keys of a namespace as they were at an entry. */
const stateAt = Effect.fnUntraced(
  function*(storage: StorageReader, state: ConversationState, id: string, shape: NamespaceShape, at: string) {
    const sequence = yield* sequenceInLineage(storage, state.record, at)
    if (sequence === null) {
      return yield* new HarnessError({
        code: "not_found",
        message: `The conversation ${state.record.id} has no entry "${at}"; name one that it has said or inherited.`
      })
    }
    const document = yield* rewindableAt(storage, state.record, sequence)
    const plugins = document === null ? {} : stored<RewindableDocument>(document).plugins
    return { ...structuredClone(shape.rewindable), ...Object.hasOwn(plugins, id) ? plugins[id] : {} }
  },
  Effect.catchTag("StorageError", (error) =>
    Effect.fail(
      new HarnessError({ code: "faulted", message: `This session could not be read: ${error.message}` })
    ))
)

const defaultsOf = (shape: NamespaceShape): JsonObject => ({ ...shape.session, ...shape.rewindable, ...shape.sticky })

/** One object over the three documents' slices; each key goes to the document that declares it. Defaults seed lazily. */
const mergedDraft = (
  tx: Transaction,
  state: ConversationState,
  id: string,
  shape: NamespaceShape
): { [key: string]: JsonValue } => {
  const owner = (key: string): { [key: string]: JsonValue } => {
    if (Object.hasOwn(shape.session ?? {}, key)) return slice(tx.session().plugins, id)
    if (Object.hasOwn(shape.rewindable ?? {}, key)) return slice(tx.rewindable(state).plugins, id)
    if (Object.hasOwn(shape.sticky ?? {}, key)) return slice(tx.sticky(state).plugins, id)
    throw new HarnessError({
      code: "not_permitted",
      message: `The namespace "${id}" has no key "${key}"; declare its default when registering.`
    })
  }
  const defaults = defaultsOf(shape)
  const read = (key: string): JsonValue | undefined => {
    const target = owner(key)
    if (!Object.hasOwn(target, key)) target[key] = structuredClone(defaults[key] ?? null)
    return target[key]
  }
  return new Proxy<{ [key: string]: JsonValue }>({}, {
    get: (_, key) => typeof key === "string" && Object.hasOwn(defaults, key) ? read(key) : undefined,
    has: (_, key) => typeof key === "string" && Object.hasOwn(defaults, key),
    ownKeys: () => Object.keys(defaults),
    getOwnPropertyDescriptor: (_, key) =>
      typeof key === "string" && Object.hasOwn(defaults, key)
        ? { configurable: true, enumerable: true, writable: true, value: read(key) }
        : undefined,
    set: (_, key, value: JsonValue) => {
      if (typeof key !== "string") return false
      owner(key)[key] = value
      return true
    },
    defineProperty: (_, key, descriptor) => {
      if (typeof key !== "string" || !("value" in descriptor)) return false
      owner(key)[key] = descriptor.value
      return true
    },
    deleteProperty: () => false,
    setPrototypeOf: () => false,
    preventExtensions: () => false
  })
}

/** Read back after seeding: what was assigned is a detached copy, what is read is the draft. */
const slice = (plugins: PluginSlices, id: string): { [key: string]: JsonValue } => {
  if (!Object.hasOwn(plugins, id)) plugins[id] = {}
  return plugins[id] ?? {}
}
