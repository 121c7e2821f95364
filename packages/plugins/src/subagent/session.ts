/**
 * The `subagent` tool: hands a task to a session of its own, with a fresh context, and gives its answer.
 *
 *     child's id (memo) ─▶ created ─▶ prompted (request id: the call's) ─▶ resumed ─▶ waited for ─▶ answer
 *
 * Each step finds what an earlier run of the same call has done, so a crash or a reload goes on with the same child and asks it
 * once. Interrupting the call interrupts the child; a suspended call leaves it at work. Waiting holds no line and no lock. What
 * the child asks a person is asked where its parent's people are, and denied where its parent would be denied.
 */
import type { Conversation } from "@bezel/core/harness"
import type { SessionContext } from "@bezel/core/host"
import { makeSessionID, type OpenSession } from "@bezel/core/session"
import { tool, type ToolCall, ToolFailure, toolResult } from "@bezel/core/tool"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Agent, Agents, type AgentsShape, defaultAgent, UnknownAgent } from "../agents/contract.ts"
import { openSessions } from "../agents/open-sessions.ts"
import { useIfThere } from "../optional/index.ts"
import { follow, type Sums, sumsOf } from "./activity.ts"
import { type BackgroundKind, backgroundKind, stopTool } from "./background.ts"
import { noUsage, type SubagentDetails, SubagentOptions } from "./contract.ts"

/** The plugin's options are not what it takes. */
export class SubagentOptionsError extends Schema.TaggedError<SubagentOptionsError>()("SubagentOptionsError", {
  message: Schema.String
}) {}

type Context = Pick<
  SessionContext,
  | "options"
  | "namespace"
  | "hooks"
  | "task"
  | "onActivate"
  | "onSession"
  | "session"
  | "tool"
  | "interactions"
  | "use"
  | "find"
>

const defaultMaxDepth = 3

const Input = Schema.Struct({
  description: Schema.NonEmptyString.annotate({ description: "The task in a few words, for the user." }),
  prompt: Schema.NonEmptyString.annotate({
    description:
      "The task in full. The sub-agent knows nothing of this conversation: say what it needs to know and what " +
      "it should answer."
  }),
  agent: Schema.optionalKey(
    Schema.NonEmptyString.annotate({ description: "Name of the agent to use; default: one like you." })
  ),
  background: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Go on at once, and be told of its answer when it is there. Default false."
    })
  )
})
type Input = typeof Input.Type

/** Told to every session that works for another one. */
const instructions =
  "You are a sub-agent: another agent gave you this task, and your last message is all that it sees of your " +
  "work. Do the task to its end, then answer with everything it needs to know, and with what you could not do."

/** Fails where one more sub-agent would be too deep. */
const checkDepth = Effect.fnUntraced(function*(ctx: Context, sessionID: string, maxDepth: number) {
  let depth = 0
  for (let id: string | null = sessionID; depth < maxDepth; depth++) {
    id = (yield* ctx.session.get(id)).parentID
    if (id === null) return
  }
  return yield* new ToolFailure({
    message: `Sub-agents may nest ${maxDepth} deep, and this is the deepest. Do the task yourself.`
  })
})

/** How the conversation is configured from which the call comes. */
const configOf = Effect.fnUntraced(function*(open: ReadonlyMap<string, OpenSession>, call: ToolCall) {
  const conversation: Conversation | null | undefined = yield* open.get(call.sessionID)
    ?.conversation(call.conversationID) ?? Effect.succeed(undefined)
  return conversation == null ? null : (yield* conversation.snapshot).view.config
})

const withAnswer = (sums: Sums, details: Omit<SubagentDetails, "calls" | "usage">, content: string) =>
  toolResult({
    content,
    isError: details.status === "unanswered",
    details: { ...details, calls: sums.calls, usage: sums.usage } satisfies SubagentDetails,
    ...(sums.unattended ? { code: "unattended" } : {})
  })

/** The agent to be, and what the session begins with: its own model and thinking, else those of who asks. */
const begin = Effect.fnUntraced(
  function*(agents: AgentsShape, open: ReadonlyMap<string, OpenSession>, input: Input, call: ToolCall) {
    const config = yield* configOf(open, call)
    const asking = yield* agents.get(config?.agent ?? null)
    const agent = input.agent === undefined ? asking : yield* agents.get(input.agent)
    return {
      agent: agent.name,
      model: agent.model ?? config?.model ?? asking.model,
      thinking: agent.thinking ?? config?.thinking
    }
  }
)

const subagent = (
  ctx: Context,
  agents: AgentsShape,
  open: ReadonlyMap<string, OpenSession>,
  maxDepth: number,
  background: BackgroundKind
) =>
  Effect.fn("subagent")(function*(input: Input, call: ToolCall) {
    yield* checkDepth(ctx, call.sessionID, maxDepth)
    const { agent, model, thinking } = yield* begin(agents, open, input, call)
    const childID = yield* call.memo("session", makeSessionID(yield* Clock.currentTimeMillis))
    // Where it goes on in the background, what began it is over soon, and takes it along only until then.
    yield* call.onAbort(
      Effect.ignore(ctx.session.interrupt(childID, "the call that it works for was interrupted"))
    )
    yield* ctx.session.create({
      id: childID,
      parentID: call.sessionID,
      title: input.description,
      agent,
      model
    }).pipe(Effect.catchTag("SessionExists", () => Effect.void))
    return yield* Effect.scoped(Effect.gen(function*() {
      yield* ctx.interactions.relay({ from: childID, to: call.sessionID })
      if (thinking !== undefined) yield* ctx.session.configure(childID, { thinking })
      const { inputID } = yield* ctx.session.prompt({
        sessionID: childID,
        prompt: { text: input.prompt },
        requestID: call.callID,
        resume: false
      })
      if (input.background === true) {
        yield* call.task(background, { sessionID: childID, inputID, description: input.description, agent }, {
          background: true
        })
        return toolResult({
          content:
            `The sub-agent works in the background, in session ${childID}. You are told of its answer when it is there; ` +
            `subagent_stop ends it.`,
          details: {
            sessionID: childID,
            description: input.description,
            agent,
            status: "background",
            reason: null,
            calls: 0,
            usage: noUsage
          } satisfies SubagentDetails
        })
      }
      yield* ctx.session.resume(childID)
      const outcome = yield* Effect.raceFirst(
        ctx.session.wait(childID, inputID),
        follow(() => open.get(childID)?.main, (now) => call.progress({ sessionID: childID, ...now }))
      )
      // What it has done is read from it while it is open, which it is for a while; a reload may have come in between.
      if (!open.has(childID)) yield* ctx.session.resume(childID)
      const child = open.get(childID)
      const sums: Sums = child === undefined
        ? { calls: 0, usage: noUsage, unattended: false }
        : yield* sumsOf(child.main)
      const known = { sessionID: childID, description: input.description, agent }
      if (outcome.status === "done") {
        return withAnswer(sums, { ...known, status: "completed", reason: null }, outcome.text)
      }
      const why = outcome.error?.message ?? `its turn ended (${outcome.reason})`
      return withAnswer(
        sums,
        { ...known, status: "unanswered", reason: outcome.reason },
        `The sub-agent gave no answer: ${why}`
      )
    }))
  })

const description =
  "Hands a task to a sub-agent, which works in a session of its own with the same tools and a fresh context, and gives its " +
  "answer. For work that would fill this conversation with what it need not know, and for independent tasks side by side: " +
  "call it several times at once, or in the background."

const listed = (agents: ReadonlyArray<Agent>): string =>
  agents.length === 0
    ? ""
    : `\n\nAgents:\n${agents.map(({ description, name }) => `- ${name}: ${description}`).join("\n")}`

/** Where the plugin of agents was left out, there is one for all. */
const withoutAgents: AgentsShape = {
  list: Effect.succeed([]),
  get: (name) =>
    name === null || name === defaultAgent
      ? Effect.succeed({
        name: defaultAgent,
        description: "",
        source: "",
        prompt: null,
        tools: {},
        model: null,
        thinking: null,
        permissions: {},
        readOnly: false
      })
      : Effect.fail(new UnknownAgent({ agent: name, message: "There are no agents here, so leave agent out." }))
}

/** The facet for session hosts. */
export const session = Effect.fn("subagent/session")(function*(ctx: Context) {
  const options = yield* Effect.mapError(
    Schema.decodeUnknownEffect(SubagentOptions, { onExcessProperty: "error" })(ctx.options ?? {}),
    (error) =>
      new SubagentOptionsError({ message: `The options of the sub-agent plugin are not valid: ${error.message}` })
  )
  const open = yield* openSessions(ctx)
  const namespace = yield* ctx.namespace("subagent", {})
  const background = backgroundKind(ctx)
  yield* ctx.task(background)
  yield* ctx.hooks(namespace, "generation", {
    systemInstructions: (api) =>
      Effect.map(ctx.session.get(api.sessionID), ({ parentID }) => parentID === null ? undefined : instructions)
  })
  // The tool's description names the agents, which are known once their plugin is there.
  yield* ctx.onActivate(Effect.gen(function*() {
    const agents = (yield* useIfThere(ctx, Agents)) ?? withoutAgents
    const all = yield* agents.list
    yield* ctx.tool.transform((draft) => {
      draft.set("subagent_stop", stopTool(ctx))
      draft.set(
        "subagent",
        tool({
          description: description + listed(all),
          input: Input,
          replay: "safe",
          permission: ({ agent }) => ({ access: "subagent", subjects: agent === undefined ? [] : [agent] }),
          execute: subagent(ctx, agents, open, options.maxDepth ?? defaultMaxDepth, background)
        })
      )
    })
  }))
})
