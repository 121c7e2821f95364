/**
 * Whether a rule speaks of anything that is there. A rule with a slip of the pen in its access never matches, and whoever wrote
 * it believes to be protected; so it is told by name.
 */
import { closestName } from "@bezel/core/settings"
import type { ToolListing } from "@bezel/core/tool"
import { coversAccess, type UnknownAccess } from "./contract.ts"

/** The accesses of the built-in tools, and the one that stands for all. */
const builtinAccesses = [
  "bash",
  "edit",
  "job",
  "list",
  "list_mcp_resources",
  "question",
  "read",
  "read_mcp_resource",
  "search",
  "skill",
  "subagent",
  "todo",
  "web",
  "write"
]

type Listed = Pick<ToolListing, "name" | "plugin" | "namesAccess">

const isBuiltin = (tool: Listed): boolean => tool.plugin.startsWith("bezel.")

/**
 * Of these accesses, those of no tool. `hidden` names tools that are there and not offered, `prefixes` how the names of tools
 * begin that come and go, as those of servers do.
 */
export const unknownAccesses = (
  accesses: Iterable<string>,
  tools: ReadonlyArray<Listed>,
  hidden: Iterable<string>,
  prefixes: ReadonlyArray<string> = []
): ReadonlyArray<UnknownAccess> => {
  const known = new Set([...builtinAccesses, ...tools.map(({ name }) => name), ...hidden])
  const certain = tools.every((tool) => isBuiltin(tool) || !tool.namesAccess)
  const isKnown = (access: string) =>
    access === "*" || [...known].some((name) => coversAccess(access, name)) ||
    prefixes.some((prefix) => access.startsWith(prefix) || coversAccess(access, prefix))
  return [...new Set(accesses)].filter((access) => !isKnown(access)).map((access) => {
    const meant = closestName(access, [...known])
    const hint = meant === null ? `there are ${[...known].sort().join(", ")}` : `did you mean ${meant}?`
    return { access, certain, meant, message: `there is no tool ${JSON.stringify(access)} here; ${hint}` }
  })
}
