/**
 * Agents as markdown files: what is said of one in front matter (YAML between two lines of `---`), its prompt below.
 *
 * The name is the file's. Front matter has the members of an agent in the settings but for `prompt`; everything is checked as
 * strictly as there. A file that is none takes the agent of its name with it: half of what was said of it is not used.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { decodeHead, type Markdown, type MarkdownFault, parseMarkdown, readMarkdown } from "../markdown/index.ts"
import { AgentSettings } from "../settings/contract.ts"

export interface AgentFile {
  readonly name: string
  readonly source: string
  /** Or what is wrong with it, in a few words. */
  readonly agent: Result.Result<AgentSettings, string>
}

const maxFiles = 200

const agentOf = (markdown: Markdown): Result.Result<AgentSettings, MarkdownFault> =>
  "prompt" in markdown.head
    ? Result.fail({ what: "its prompt is what follows the front matter, not a member of it", line: null })
    : decodeHead(
      AgentSettings,
      markdown,
      true,
      markdown.body === "" ? markdown.head : { ...markdown.head, prompt: markdown.body }
    )

const inWords = <A>(read: Result.Result<A, MarkdownFault>): Result.Result<A, string> =>
  Result.mapError(read, ({ line, what }) => line === null ? what : `line ${line}: ${what}`)

/** Fails with what is wrong, in a few words. */
export const readAgent = (text: string): Result.Result<AgentSettings, string> =>
  inWords(Result.flatMap(parseMarkdown(text), agentOf))

/**
 * The agents in a folder, by name. A folder that is not there is empty. With `root`, the real path of a project, files that
 * lie outside of it are refused.
 */
export const agentFiles = (folder: string, root: string | null = null): Effect.Effect<ReadonlyArray<AgentFile>> =>
  Effect.gen(function*() {
    const entries = yield* Effect.promise(() => fs.readdir(folder).catch((): ReadonlyArray<string> => []))
    const names = entries.filter((entry) => entry.endsWith(".md") && !entry.startsWith(".")).sort().slice(0, maxFiles)
    return yield* Effect.forEach(names, (entry) => {
      const file = path.join(folder, entry)
      return Effect.map(readMarkdown(file, root), (read): AgentFile => ({
        name: entry.slice(0, -".md".length),
        source: file,
        agent: read === null
          ? Result.fail("it cannot be read (it is a link to nothing)")
          : inWords(Result.flatMap(read, agentOf))
      }))
    }, { concurrency: 8 })
  })
