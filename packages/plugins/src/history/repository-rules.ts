/**
 * What a git repository's settings say of its files, read as text, without running git, which would obey them: what it
 * ignores, and whether files may differ from what git keeps of them.
 */
import * as FileSystem from "node:fs/promises"
import { homedir } from "node:os"
import * as NodePath from "node:path"
import type { UserRepository } from "../git/repository.ts"
import { type IgnoreRules, withRulesOf } from "../tools/ignore.ts"

const readText = (path: string): Promise<string | null> => FileSystem.readFile(path, "utf8").catch(() => null)

const userConfigs = (): ReadonlyArray<string> => {
  const home = homedir()
  return [NodePath.join(xdgGit(), "config"), NodePath.join(home, ".gitconfig")]
}

const xdgGit = (): string => NodePath.join(process.env["XDG_CONFIG_HOME"] || NodePath.join(homedir(), ".config"), "git")

/**
 * Whether git may keep something else of a file than what is on the disk: other line ends, what a filter makes of it. By
 * words in its settings, so that `true` may be too careful.
 */
export const mayConvert = async (
  { commonDirectory, gitDirectory }: UserRepository,
  attributeFiles: ReadonlyArray<string>
): Promise<boolean> => {
  for (
    const file of [
      ...userConfigs(),
      "/etc/gitconfig",
      NodePath.join(commonDirectory, "config"),
      NodePath.join(gitDirectory, "config.worktree")
    ]
  ) {
    if (/autocrlf|eol|attributesfile|include/i.test(await readText(file) ?? "")) return true
  }
  const others = [
    NodePath.join(commonDirectory, "info", "attributes"),
    NodePath.join(xdgGit(), "attributes"),
    "/etc/gitattributes"
  ]
  for (const file of [...others, ...attributeFiles]) {
    if (/\b(?:text|crlf|eol|filter|ident|encoding)\b/.test(await readText(file) ?? "")) return true
  }
  return false
}

/** Whether its objects have names of another kind than SHA-1. */
export const hasOtherNames = async ({ commonDirectory }: UserRepository): Promise<boolean> =>
  /objectformat\s*=\s*(?!sha1\b)\w/i.test(await readText(NodePath.join(commonDirectory, "config")) ?? "")

/** What is ignored everywhere in a work tree: by the person's own rules, and by those of the repository beside its files. */
export const topRules = async (root: string, repository: UserRepository | null): Promise<IgnoreRules> => {
  let own = NodePath.join(xdgGit(), "ignore")
  for (const file of userConfigs()) {
    const named = /^\s*excludesfile\s*=\s*"?([^"\n]+?)"?\s*$/im.exec(await readText(file) ?? "")?.[1]
    if (named !== undefined) own = named.startsWith("~/") ? NodePath.join(homedir(), named.slice(2)) : named
  }
  const rules = withRulesOf({ directory: root, rules: [], above: null }, root, own)
  return repository === null
    ? rules
    : withRulesOf(rules, root, NodePath.join(repository.commonDirectory, "info", "exclude"))
}
