/** What the built-in plugins offer by name, as servers ask for it at a client of a location's host. */
import { AgentList } from "@bezel/plugins/agents/contract"
import { PromptCommandList } from "@bezel/plugins/commands/contract"
import { SkillList } from "@bezel/plugins/skills/contract"
import type { RunCommand } from "@bezel/server/http"
import type { OfferedLists } from "@bezel/server/serve"
import * as Effect from "effect/Effect"

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
