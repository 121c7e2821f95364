/** How prompts of servers are called: `/server:prompt words…`, on the screen and by `bezel run`. Pure. */
import type { McpPrompt, McpServerState } from "./contract.ts"

/** What stands behind the slash. */
export const slashName = (server: string, prompt: string): string => `${server}:${prompt}`.replaceAll(/[\s/]+/g, "_")

/** Reads a text that calls a prompt; `null` if it calls none. */
export const parsePromptCall = (text: string): { readonly name: string; readonly words: string } | null => {
  const match = /^\s*\/([^\s/:]+:[^\s/]+)(?:\s+([\s\S]*))?$/.exec(text)
  return match?.[1] === undefined ? null : { name: match[1], words: (match[2] ?? "").trim() }
}

/** What was typed, put into the places of a prompt in order; the last place takes the rest. */
export const placesOf = (prompt: McpPrompt, typed: string): { readonly [name: string]: string } => {
  const words = typed.trim() === "" ? [] : typed.trim().split(/\s+/)
  const places: Record<string, string> = {}
  for (const [index, { name }] of prompt.arguments.entries()) {
    const value = index === prompt.arguments.length - 1 ? words.slice(index).join(" ") : words[index] ?? ""
    if (value !== "") places[name] = value
  }
  return places
}

/** Places that must be filled in and are not. */
export const missingPlaces = (
  prompt: McpPrompt,
  places: { readonly [name: string]: string }
): ReadonlyArray<string> =>
  prompt.arguments.filter(({ name, required }) => required && !Object.hasOwn(places, name)).map(({ name }) => name)

/** What a prompt takes, for people: `file [how]`. */
export const placesText = (prompt: McpPrompt): string =>
  prompt.arguments.map(({ name, required }) => required ? name : `[${name}]`).join(" ")

/** All prompts by how they are called. */
export const promptsByName = (servers: ReadonlyArray<McpServerState>) =>
  new Map(
    servers.flatMap((server) =>
      server.prompts.map((prompt) => [slashName(server.name, prompt.name), { server, prompt }] as const)
    )
  )
