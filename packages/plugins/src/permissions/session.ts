/**
 * The gate before every tool call: rules first, those that narrow this conversation with them, then a person.
 *
 *     decide ─ deny ──────────────────────────────▶ blocked (denied_by_rule)
 *        │ ─ allow ───────────────────────────────▶ runs
 *        └ ask ─▶ memo? ─ yes ─▶ as it was answered
 *                  └ no ─▶ waiting ─▶ turn at the dialog ─▶ decide again ─▶ asked
 *                            answered (remembered) · declined · expired · unattended (not remembered)
 *
 * A `deny` is looked at each time, so neither a remembered answer nor a grant beats it. What a person grants for a session is
 * kept in this plugin's namespace, which no client sees and no other session has; what is granted for the project is kept in
 * the state folder. Questions of one session are asked one at a time: an answer for the session settles those that wait behind
 * it. What narrows a conversation is judged by itself and the stricter verdict holds, so it never allows anything.
 */
import type { BeforeToolApi, BeforeToolDecision, HookToolCall, Namespace } from "@bezel/core/harness"
import type { SessionContext } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { AppPaths } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { createHash } from "node:crypto"
import * as os from "node:os"
import { McpSetting } from "../mcp/contract.ts"
import { toolPrefix } from "../mcp/text.ts"
import { answerLimit, LimitsSetting } from "../settings/contract.ts"
import { unknownAccesses } from "./access-names.ts"
import {
  Approval,
  type ApprovalResponse,
  type Narrowing,
  type NarrowingSource,
  PermissionGate,
  PermissionOptions,
  type PermissionRules,
  PermissionsKey,
  ProjectPermissions
} from "./contract.ts"
import { decide, type Decision, strictest } from "./decide.ts"
import { fileProbe } from "./probe.ts"
import { makeProjectGrants, type ProjectGrants } from "./project-grants.ts"
import { changesOf, type ListedTool } from "./read-only.ts"
import { compileRules, deniesAll, deniesTool, narrowingRules, type RuleSet, withGrants } from "./rules.ts"
import { declined, deniedByRule, expired, unattended } from "./texts.ts"

/** The plugin's options are not what it takes. */
export class PermissionOptionsError extends Schema.TaggedError<PermissionOptionsError>()("PermissionOptionsError", {
  message: Schema.String
}) {}

const Grants = Schema.Struct({ grants: Schema.Array(Schema.String) })

/** What an answer leaves behind for a rerun of the same call after a crash or a reload. */
const Memo = Schema.Struct({ allowed: Schema.Boolean, message: Schema.NullOr(Schema.String) })

type Context =
  & Pick<
    SessionContext,
    "options" | "location" | "settings" | "namespace" | "hooks" | "tool" | "provide" | "onActivate"
  >
  & {
    readonly interactions: Pick<SessionContext["interactions"], "request">
    readonly session: Pick<SessionContext["session"], "folder" | "get">
  }

const optionsOf = (value: unknown) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(PermissionOptions, { onExcessProperty: "error" })(value ?? {}),
    (error) =>
      new PermissionOptionsError({ message: `The options of the permissions plugin are not valid: ${error.message}` })
  )

/** One question at a time for each session; the entry is gone when nobody waits. */
const makeTurns = () => {
  const turns = new Map<string, { readonly lock: Semaphore.Semaphore; waiting: number }>()
  return <A, E, R>(sessionID: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const turn = turns.get(sessionID) ?? { lock: Semaphore.makeUnsafe(1), waiting: 0 }
        turn.waiting++
        turns.set(sessionID, turn)
        return turn
      }),
      (turn) => turn.lock.withPermits(1)(effect),
      (turn) =>
        Effect.sync(() => {
          if (--turn.waiting === 0) turns.delete(sessionID)
        })
    )
}

/** The memo is for exactly this call: what is asked again with other arguments is another question. */
const memoName = (call: HookToolCall): string =>
  `decision.${
    createHash("sha256").update(JSON.stringify([call.name, call.args, call.permission])).digest("hex").slice(0, 16)
  }`

/** The facet for session hosts. */
export const session = Effect.fn("permissions/session")(function*(ctx: Context) {
  const options = yield* optionsOf(ctx.options)
  const settings = ctx.settings.get(PermissionsKey)
  const compiled = compileRules(settings, {
    location: ctx.location.directory,
    home: os.homedir(),
    allow: options.allow ?? [],
    deny: options.deny ?? []
  })
  if (Result.isFailure(compiled)) return yield* new PermissionOptionsError({ message: compiled.failure })
  const rules = compiled.success
  const inTurn = makeTurns()
  const namespace = yield* ctx.namespace("permissions", { session: { grants: [] } })

  const stateDirectory = options.stateDirectory ??
    (yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths.state)), AppPaths.layer))
  const project = makeProjectGrants(stateDirectory, ctx.location.directory)
  const sources = new Set<NarrowingSource>()
  let readable: ReadonlyArray<string> = []

  /** What is granted, the session's own files included. Nothing of it is looked up for what the rules settle. */
  const granted = Effect.fnUntraced(function*(
    set: RuleSet,
    at: { readonly sessionID: string; readonly conversationID: string } | null
  ) {
    const lasting = withGrants(set, yield* project.list, "project")
    if (at === null) return { ...lasting, readable: [...readable] }
    const state = Schema.decodeUnknownOption(Grants)(yield* namespace.get(`${at.sessionID}/${at.conversationID}`))
    const grants = Option.isSome(state) ? state.value.grants : []
    const folder = yield* Effect.option(ctx.session.folder(at.sessionID))
    return {
      ...withGrants(lasting, grants),
      readable: [...readable, ...(Option.isSome(folder) ? [fileProbe.real(folder.value)] : [])]
    }
  })

  const decideBy = Effect.fnUntraced(function*(set: RuleSet, call: HookToolCall, api: BeforeToolApi) {
    const how = { yes: options.yes === true, probe: fileProbe }
    const decision = decide(set, call.permission, how)
    return decision.verdict === "ask" ? decide(yield* granted(set, api), call.permission, how) : decision
  })

  const decideNow = Effect.fnUntraced(function*(call: HookToolCall, api: BeforeToolApi) {
    const decisions = [yield* decideBy(rules, call, api)]
    for (const source of sources) {
      for (const narrowing of yield* source({ sessionID: api.sessionID, conversationID: api.conversationID })) {
        decisions.push(
          onlyReading(narrowing, call, yield* ctx.tool.list),
          yield* decideBy(narrowingRules(narrowing, rules), call, api)
        )
      }
    }
    return strictest(decisions)
  })

  /** Of a session that works for another one. What its record cannot say is left out of the question, which is asked all the same. */
  const subagentOf = (sessionID: string) =>
    Effect.match(ctx.session.get(sessionID), {
      onSuccess: ({ agent, parentID, title }) => parentID === null ? {} : { subagent: { agent, title } },
      onFailure: () => ({})
    })

  const ask = Effect.fnUntraced(function*(call: HookToolCall, api: BeforeToolApi, decision: Decision) {
    const outcome = yield* ctx.interactions.request(Approval, {
      ...yield* subagentOf(api.sessionID),
      conversationID: api.conversationID,
      taskID: api.taskID,
      callID: call.callID,
      tool: call.name,
      args: call.args,
      access: call.permission.access,
      subjects: call.permission.subjects,
      reasons: decision.reasons,
      grants: decision.grants
    }, { sessionID: api.sessionID, ...answerLimit(ctx.settings.get(LimitsSetting)) })
    switch (outcome.type) {
      case "answered":
        return yield* answered({ namespace, project }, call, api, decision, outcome.response)
      case "declined":
        return declined(undefined)
      case "expired":
        return expired(decision)
      case "unattended":
        return unattended(decision)
    }
  })

  const gate = Effect.fn("permissions.gate")(function*(call: HookToolCall, api: BeforeToolApi) {
    const first = yield* decideNow(call, api)
    if (first.verdict === "deny") return deniedByRule(first)
    if (first.verdict === "allow") return undefined
    const remembered = Schema.decodeUnknownOption(Memo)(yield* api.memo(memoName(call)))
    if (Option.isSome(remembered)) {
      return remembered.value.allowed ? undefined : declined(remembered.value.message ?? undefined)
    }
    // Durable before the dialog: who attaches meanwhile sees what the call waits for, and the hook's time limit ends here.
    yield* api.waiting
    return yield* inTurn(
      api.sessionID,
      Effect.gen(function*() {
        const now = yield* decideNow(call, api)
        return now.verdict === "allow"
          ? undefined
          : now.verdict === "deny"
          ? deniedByRule(now)
          : yield* ask(call, api, now)
      })
    )
  })

  yield* ctx.hooks(namespace, "tool", { beforeTool: gate }, { gate: true })

  const taken = new Set<string>()
  const comingAndGoing = Object.keys(ctx.settings.get(McpSetting)).map(toolPrefix)
  const unknown = (accesses: ReadonlyArray<string>) =>
    Effect.map(ctx.tool.list, (tools) => unknownAccesses(accesses, tools, taken, comingAndGoing))
  // Once all tools are there. What the command line says wrongly is refused by the command.
  yield* ctx.onActivate(Effect.gen(function*() {
    for (const { access, meant, message } of yield* unknown(Object.keys(settings))) {
      // Who allows a tool that only another project has is not deceived in anything.
      if (meant === null && onlyAllows(settings[access])) continue
      yield* Effect.logWarning(`A rule of the setting permissions has no effect: ${message}`)
    }
  }))
  yield* ctx.provide(PermissionGate, {
    denies: (tool) => deniesTool(rules.rules, tool),
    unknown,
    narrow: (source) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => sources.add(source)),
        () => Effect.sync(() => sources.delete(source))
      )),
    readable: (folders) => {
      const mine = folders.map((folder) => fileProbe.real(folder))
      return Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          readable = [...readable, ...mine]
        }),
        () =>
          Effect.sync(() => {
            // One of each: another plugin may have named the same folder.
            for (const folder of mine) readable = readable.toSpliced(readable.indexOf(folder), 1)
          })
      ))
    },
    verdict: (access, conversation) =>
      Effect.gen(function*() {
        const decided = decide(rules, access, { yes: false, probe: fileProbe })
        if (decided.verdict !== "ask") return decided.verdict
        const set = yield* Effect.orElseSucceed(granted(rules, conversation), () => rules)
        return decide(set, access, { yes: false, probe: fileProbe }).verdict
      })
  })
  yield* ctx.provide(ProjectPermissions, {
    list: () => Effect.map(project.list, (rules) => ({ rules, file: project.file })),
    remove: ({ rule }) => project.remove(rule)
  })
  if (rules.rules.some(deniesAll)) {
    yield* ctx.tool.transform((draft) => {
      for (const listed of draft.list()) {
        if (!deniesTool(rules.rules, listed)) continue
        taken.add(listed.name)
        draft.remove(listed.name)
      }
    })
  }
})

const onlyAllows = (rule: PermissionRules[string] | undefined): boolean =>
  rule !== undefined &&
  (typeof rule === "string" ? [rule] : Object.values(rule)).every((verdict) => verdict === "allow")

const onlyReading = (narrowing: Narrowing, call: HookToolCall, tools: ReadonlyArray<ListedTool>): Decision => {
  const changes = narrowing.readOnly ? changesOf(call, tools, narrowing.rules) : []
  return changes.length === 0
    ? { verdict: "allow", reasons: [], grants: [] }
    : {
      verdict: "deny",
      reasons: changes.map((what) => `the agent ${narrowing.name} only reads, and ${what}`),
      grants: []
    }
}

/** Keeps an answer: the grant first, so that a crash in between asks nobody again. */
const answered = (
  { namespace, project }: { readonly namespace: Namespace; readonly project: ProjectGrants },
  call: HookToolCall,
  api: BeforeToolApi,
  decision: Decision,
  response: ApprovalResponse
): Effect.Effect<BeforeToolDecision | undefined, { readonly message: string }> =>
  Effect.gen(function*() {
    const inProject = response.decision === "project" && decision.grants.length > 0 &&
      (yield* Effect.match(project.add(decision.grants), { onSuccess: () => true, onFailure: () => false }))
    const inSession = response.decision === "session" || (response.decision === "project" && !inProject)
    // What could not be kept for the project holds for as long as this session at least.
    if (inSession && decision.grants.length > 0) {
      yield* namespace.update(api.conversationID, (draft) => {
        const grants = Array.isArray(draft.grants) ? draft.grants as ReadonlyArray<JsonValue> : []
        draft.grants = [...grants, ...decision.grants.filter((grant) => !grants.includes(grant))]
      })
    }
    const memo = { allowed: response.decision !== "deny", message: response.message ?? null }
    const kept = Schema.decodeUnknownOption(Memo)(yield* api.memo(memoName(call), memo))
    const winner = Option.getOrElse(kept, () => memo)
    return winner.allowed ? undefined : declined(winner.message ?? undefined)
  })
