/**
 * Agents as markdown files: what is said of one in front matter (YAML between two lines of `---`), its prompt below.
 *
 * The name is the file's. Front matter has the members of an agent in the settings but for `prompt`; everything is checked as
 * strictly as there. A file that is none takes the agent of its name with it: half of what was said of it is not used.
 */
import { leadsOutOfProject, realPathWithin } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Yaml from "effect/encoding/Yaml"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { AgentSettings } from "../settings/contract.ts"

export interface AgentFile {
  readonly name: string
  readonly source: string
  /** Or what is wrong with it, in a few words. */
  readonly agent: Result.Result<AgentSettings, string>
}

/** More than any prompt that a model should be given with each request. */
const maxBytes = 256 * 1024
const maxFiles = 200

const frontMatter = /^\uFEFF?---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/

/** Fails with what is wrong, in a few words. */
export const readAgent = (text: string): Result.Result<AgentSettings, string> => {
  const match = frontMatter.exec(text)
  let head: unknown = {}
  if (match?.[1] !== undefined && match[1].trim() !== "") {
    try {
      head = Yaml.parse(match[1])
    } catch (cause) {
      return Result.fail(`its front matter is not YAML (${oneLine(cause)})`)
    }
  }
  if (typeof head !== "object" || head === null || Array.isArray(head)) {
    return Result.fail('its front matter is no list of members, such as "description: …"')
  }
  if ("prompt" in head) return Result.fail("its prompt is what follows the front matter, not a member of it")
  const prompt = text.slice(match?.[0].length ?? 0).trim()
  const decoded = Schema.decodeUnknownResult(AgentSettings, { onExcessProperty: "error" })(
    prompt === "" ? head : { ...head, prompt }
  )
  return Result.isSuccess(decoded)
    ? Result.succeed(decoded.success)
    : Result.fail(`its front matter is not valid: ${oneLine(decoded.failure)}`)
}

const oneLine = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).replace(/\s*\n\s*/g, " ").slice(0, 300)

const reasonOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

const readFile = async (file: string, root: string | null): Promise<Result.Result<AgentSettings, string>> => {
  try {
    const real = root === null ? file : await realPathWithin(root, file)
    if (real === null) return Result.fail(leadsOutOfProject)
    const found = await fs.stat(real)
    if (!found.isFile()) return Result.fail("it is not a regular file")
    if (found.size > maxBytes) return Result.fail(`it is larger than ${maxBytes / 1024} KiB`)
    return readAgent(await fs.readFile(real, "utf8"))
  } catch (cause) {
    return Result.fail(`it cannot be read (${reasonOf(cause)})`)
  }
}

/**
 * The agents in a folder, by name. A folder that is not there is empty. With `root`, the real path of a project, files that
 * lie outside of it are refused.
 */
export const agentFiles = (folder: string, root: string | null = null): Effect.Effect<ReadonlyArray<AgentFile>> =>
  Effect.promise(async () => {
    const entries = await fs.readdir(folder).catch(() => [])
    const names = entries.filter((entry) => entry.endsWith(".md") && !entry.startsWith(".")).sort().slice(0, maxFiles)
    return Promise.all(names.map(async (entry) => {
      const file = path.join(folder, entry)
      return { name: entry.slice(0, -".md".length), source: file, agent: await readFile(file, root) }
    }))
  })
