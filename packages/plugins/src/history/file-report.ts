/** The steps of a plan as people see them: each file with what happens to it, and a diff where it is text. */
import type { RevertedFile } from "@bezel/core/session"
import { unifiedDiff } from "../tools/diff.ts"
import { showPath } from "../tools/paths.ts"
import { diffText } from "../tools/read.ts"
import { type FileState, observe } from "./file-state.ts"
import type { KeptContent } from "./kept-content.ts"
import type { Step } from "./plan.ts"

const actionOf = ({ from, to }: Step): RevertedFile["action"] =>
  to.type === "absent" ? "remove" : from.type === "absent" ? "create" : "change"

/** What is there now, and what will be. */
export const fileReports = async (
  steps: ReadonlyArray<Step>,
  kept: KeptContent,
  location: string,
  maxFileBytes: number
): Promise<ReadonlyArray<RevertedFile>> => {
  const files: Array<RevertedFile> = []
  for (const step of steps.toSorted((left, right) => left.path < right.path ? -1 : 1)) {
    const before = contentOf(step.from, (await observe(step.path, maxFileBytes)).content)
    const after = contentOf(
      step.to,
      step.to.type === "file" || step.to.type === "link" ? await kept.get(step.to.id) : null
    )
    files.push({
      path: step.path,
      action: actionOf(step),
      diff: before === null || after === null ? null : diffOf(showPath(location, step.path), before, after, step.to)
    })
  }
  return files
}

/** As text; `null` for what is none. What is not there is empty, and a link is its target. */
const contentOf = (state: FileState, content: Buffer | null): string | null => {
  if (state.type === "absent") return ""
  if (content === null) return null
  return state.type === "link" ? `→ ${content.toString("utf8")}\n` : diffText(content)
}

const diffOf = (name: string, before: string, after: string, to: FileState): string | null => {
  const diff = unifiedDiff(name, before, after)
  return to.type === "absent" ? diff?.replace(/^\+\+\+ .*$/m, "+++ /dev/null") ?? null : diff
}
