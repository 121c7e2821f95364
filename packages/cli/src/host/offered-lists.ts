/** What the built-in plugins offer by name, as servers ask for it at a client of a location's host. */
import { AgentList } from "@bezel/plugins/agents/contract"
import { ClientTools } from "@bezel/plugins/client-tools/contract"
import { PromptCommandList } from "@bezel/plugins/commands/contract"
import { SkillList } from "@bezel/plugins/skills/contract"
import type { OfferTool, RunCommand } from "@bezel/server/http"
import type { OfferedLists } from "@bezel/server/serve"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

export const lists: OfferedLists = {
  agents: (connection) => Effect.flatMap(connection.use(AgentList), (agents) => agents.list()),
  commands: (connection) =>
    Effect.map(
      Effect.flatMap(connection.use(PromptCommandList), (commands) => commands.list()),
      ({ commands }) => commands.map(({ description, file, name }) => ({ name, description, source: file }))
    ),
  skills: (connection) =>
    Effect.map(
      Effect.flatMap(connection.use(SkillList), (skills) => skills.list()),
      ({ skills }) => skills.map(({ description, file, name }) => ({ name, description, source: file }))
    )
}

/** Has a session run a command of its location. */
export const runCommand: RunCommand = (connection, call) =>
  Effect.flatMap(connection.use(PromptCommandList), (commands) => commands.run(call))

/** Offers a tool of a client to a session. It is over when its host says so, or can say nothing any more. */
export const offerTool: OfferTool = (connection, tool) =>
  Effect.gen(function*() {
    const tools = yield* connection.use(ClientTools)
    const offer = yield* Effect.acquireRelease(tools.offer(tool), ({ release }) => release)
    yield* offer.ready
    const over = Stream.merge(
      Stream.filter(offer.isOver.changes, (isOver) => isOver),
      Stream.filter(offer.calls.statuses, (status) => status === "stale")
    )
    return {
      calls: Stream.interruptWhen(offer.calls.changes, Stream.runHead(over)),
      answer: (id, answer) => offer.answer({ id, answer })
    }
  })
