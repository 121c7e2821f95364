/**
 * Which files git ignores: `.gitignore` files from the top of the work tree down, and `.git/info/exclude`.
 *
 * The user's global excludes are left out on purpose, so that the same tree gives the same result on every machine.
 */
import { readFileSync, statSync } from "node:fs"
import * as NodePath from "node:path"
import type { Glob } from "./glob.ts"
import { compileGlob, matchesGlob } from "./glob.ts"

interface Rule {
  readonly glob: Glob
  readonly negated: boolean
  readonly directoriesOnly: boolean
}

/** The rules that hold in one directory: its own and those of the directories above, inside one work tree. */
export interface IgnoreRules {
  readonly directory: string
  readonly rules: ReadonlyArray<Rule>
  readonly above: IgnoreRules | null
}

/**
 * The rules that hold in a directory, read from the top of its work tree; outside of one, from the workspace or itself.
 */
export const rulesAt = (directory: string, workspace: string): IgnoreRules => {
  const inside = directory === workspace || directory.startsWith(workspace + NodePath.sep)
  const top = workTree(directory) ?? (inside ? workspace : directory)
  const excludes: IgnoreRules = {
    directory: top,
    rules: rulesOf(NodePath.join(top, ".git", "info", "exclude")),
    above: null
  }
  const below = NodePath.relative(top, directory).split(NodePath.sep).filter((segment) => segment !== "")
  let rules = rulesBelow(excludes, top)
  let at = top
  for (const segment of below) {
    at = NodePath.join(at, segment)
    rules = rulesBelow(rules, at)
  }
  return rules
}

/** The rules of a directory, added to those above it. */
export const rulesBelow = (above: IgnoreRules, directory: string): IgnoreRules =>
  withRulesOf(above, directory, NodePath.join(directory, ".gitignore"))

/** Whether git ignores an entry whose parent directories it does not ignore. The last rule that matches decides. */
export const isIgnored = (rules: IgnoreRules, path: string, isDirectory: boolean): boolean => {
  for (let level: IgnoreRules | null = rules; level !== null; level = level.above) {
    const segments = NodePath.relative(level.directory, path).split(NodePath.sep)
    const rule = level.rules.findLast((one) => (isDirectory || !one.directoriesOnly) && matchesGlob(one.glob, segments))
    if (rule !== undefined) return !rule.negated
  }
  return false
}

/** The rules of a file that hold in a directory, added to those above it. */
export const withRulesOf = (above: IgnoreRules, directory: string, file: string): IgnoreRules => {
  const rules = rulesOf(file)
  return rules.length === 0 ? above : { directory, rules, above }
}

const MAX_RULES_BYTES = 1024 * 1024

const rulesOf = (file: string): ReadonlyArray<Rule> => {
  try {
    const stats = statSync(file)
    if (!stats.isFile() || stats.size > MAX_RULES_BYTES) return []
    return readFileSync(file, "utf8").split(/\r?\n/).flatMap(ruleOf)
  } catch {
    return []
  }
}

const ruleOf = (line: string): ReadonlyArray<Rule> => {
  let pattern = line.replace(/(?<!\\)\s+$/, "")
  if (pattern === "" || pattern.startsWith("#")) return []
  const negated = pattern.startsWith("!")
  if (negated) pattern = pattern.slice(1)
  const directoriesOnly = pattern.endsWith("/")
  if (directoriesOnly) pattern = pattern.slice(0, -1)
  // Only a pattern without a slash holds at any depth.
  const glob = compileGlob(pattern.includes("/") ? pattern : `**/${pattern}`)
  return glob.length === 0 ? [] : [{ glob, negated, directoriesOnly }]
}

/** The nearest directory at or above this one that has a `.git`, or `null`. */
export const workTree = (directory: string): string | null => {
  for (let at = directory;;) {
    try {
      statSync(NodePath.join(at, ".git"))
      return at
    } catch {
      const up = NodePath.dirname(at)
      if (up === at) return null
      at = up
    }
  }
}
