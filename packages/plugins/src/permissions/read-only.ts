/**
 * What may change something, for conversations that may only read.
 *
 * A command line only reads if every command in it is known to, with the options that it has; anything that is not known may
 * change something. So a new tool of the system is refused until it is listed here, and never the other way round. What
 * programs do behind the back of a reading command (a pager that the user has configured) is not looked at.
 */
import type { ToolListing } from "@bezel/core/tool"
import { coversAccess, type PermissionRules } from "./contract.ts"
import { unknown } from "./pattern.ts"
import { readCommandLine, type SimpleCommand } from "./shell.ts"

type Reads = (args: ReadonlyArray<string>) => boolean

const always: Reads = () => true

/** No argument is one of these options, and none can turn out to be one when it is expanded. */
const without = (options: RegExp): Reads => (args) =>
  args.every((arg) => !arg.startsWith(unknown) && !options.test(arg))

/** At most so many arguments that are no options: a further one would be written. */
const operands = (most: number): Reads => (args) => args.filter((arg) => !/^-./.test(arg)).length <= most

const oneOf = (...words: ReadonlyArray<string>): Reads => (args) => args.every((arg) => words.includes(arg))

const startsWith = (...first: ReadonlyArray<string>): Reads => (args) =>
  first.includes(args[0] ?? "") && args.slice(1).every((arg) => !arg.startsWith("-") && !arg.startsWith(unknown))

const either = (...ways: ReadonlyArray<Reads>): Reads => (args) => ways.some((reads) => reads(args))

/** An `--output` in any of its abbreviations, or a program that would be run. */
const gitWrites = /^(-O|--ext|--(?!oneline$|ours$|only-matching$|or$)o)/

const git: { readonly [command: string]: Reads } = {
  ...Object.fromEntries(
    [
      "status",
      "log",
      "diff",
      "show",
      "blame",
      "ls-files",
      "ls-tree",
      "rev-parse",
      "rev-list",
      "describe",
      "shortlog",
      "grep",
      "cat-file",
      "diff-tree",
      "diff-index",
      "diff-files",
      "merge-base",
      "name-rev",
      "for-each-ref",
      "show-ref",
      "count-objects",
      "check-ignore",
      "whatchanged",
      "cherry",
      "range-diff",
      "version"
    ].map((name) => [name, without(gitWrites)])
  ),
  branch: oneOf("-a", "-r", "-v", "-vv", "--all", "--list", "--remotes", "--show-current", "--verbose"),
  tag: either(oneOf(), startsWith("-l", "--list")),
  remote: oneOf("-v", "--verbose"),
  stash: startsWith("list", "show"),
  config: startsWith("--get", "--get-all", "--list", "-l", "get", "list"),
  reflog: either(oneOf(), startsWith("show")),
  worktree: startsWith("list")
}

const gitReads: Reads = (args) => {
  let index = 0
  for (; index < args.length; index++) {
    if (args[index] === "-C") index++
    else if (args[index] !== "--no-pager" && args[index] !== "-P") break
  }
  const command = args[index] ?? ""
  return Object.hasOwn(git, command) && git[command]?.(args.slice(index + 1)) === true
}

const commands: { readonly [name: string]: Reads } = {
  ...Object.fromEntries(
    [
      "ls",
      "cat",
      "head",
      "tail",
      "wc",
      "grep",
      "egrep",
      "fgrep",
      "zgrep",
      "pwd",
      "cd",
      "echo",
      "which",
      "type",
      "stat",
      "du",
      "df",
      "cut",
      "tr",
      "diff",
      "cmp",
      "comm",
      "nl",
      "tac",
      "rev",
      "fold",
      "expand",
      "paste",
      "join",
      "column",
      "basename",
      "dirname",
      "realpath",
      "readlink",
      "true",
      "false",
      "test",
      "[",
      ":",
      "md5sum",
      "sha1sum",
      "sha256sum",
      "sha512sum",
      "cksum",
      "od",
      "hexdump",
      "strings",
      "seq",
      "sleep",
      "uname",
      "id",
      "whoami",
      "printenv",
      "env",
      "zcat",
      "ps",
      "nproc",
      "jq",
      "exit",
      "return",
      "break",
      "continue",
      "xargs",
      "time"
    ].map((name) => [name, always])
  ),
  git: gitReads,
  // What it runs, deletes and writes is told beside it, as commands and files of their own.
  find: without(/^$/),
  rg: without(/^--(pre|hostname-bin)/),
  sort: without(/^(-[^-]*[oT]|--[oc])/),
  tree: without(/^(-[^-]*o|--o)/),
  file: without(/^(-[^-]*C|--c)/),
  printf: without(/^-v/),
  date: (args) => args.every((arg) => /^(\+|-[^s-]|--(utc|iso|rfc|date))/.test(arg)),
  uniq: operands(1),
  xxd: operands(1),
  command: (args) => /^-[vV]$/.test(args[0] ?? ""),
  sed: ([quiet, script, ...files]) =>
    quiet === "-n" && /^(\d+|\$)?(,(\d+|\$))?p$/.test(script ?? "") &&
    files.every((file) => !file.startsWith("-") && !file.startsWith(unknown)),
  awk: (args) => args.every((arg) => !arg.includes(unknown) && !/[>|@]|system|getline|^-[^Fv]/.test(arg))
}

const onlyReads = ({ assignments, words }: SimpleCommand): boolean => {
  const [name = "", ...args] = words
  if (assignments.length > 0) return false
  const bare = name.replace(/^(\/usr)?\/bin\//, "")
  return Object.hasOwn(commands, bare) && commands[bare]?.(args) === true
}

const shown = (text: string): string => JSON.stringify(text.split(unknown).join("…"))

/** What is known of a tool without calling it. */
export type ListedTool = Pick<ToolListing, "name" | "plugin" | "namesAccess">

const serversPlugin = "bezel.mcp"
const readingResources: ReadonlySet<string> = new Set(["list_mcp_resources", "read_mcp_resource"])

/** Whether it is known here what a tool does: not of those of servers, of programs over HTTP and of plugins from outside. */
const isOurs = ({ name, plugin }: ListedTool): boolean =>
  plugin === serversPlugin
    ? readingResources.has(name)
    : plugin.startsWith("bezel.") && plugin !== "bezel.client-tools"

/** Whether the agent's own rules say that a tool only reads, by allowing it by name. */
const isTrusted = (name: string, rules: PermissionRules): boolean =>
  Object.entries(rules).some(([access, rule]) =>
    coversAccess(access, name) && (typeof rule === "string" ? rule : rule["*"]) === "allow"
  )

/**
 * Tools that somebody who only reads may not call, for what they do is not known; `rules` are the agent's own. A plugin's tool
 * that names the access of each call itself is not among them: each of its calls is looked at.
 */
export const unknownToOnlyRead = (tools: ReadonlyArray<ListedTool>, rules: PermissionRules): ReadonlyArray<string> =>
  tools.filter((tool) =>
    !isOurs(tool) && !isTrusted(tool.name, rules) && !(tool.namesAccess && tool.plugin !== serversPlugin)
  ).map(({ name }) => name)

/** Why a call of one of these tools might change something, for who only reads, one phrase each; none if it does not. */
export const changesOf = (
  call: {
    readonly name: string
    readonly permission: { readonly access: string; readonly subjects: ReadonlyArray<string> }
  },
  tools: ReadonlyArray<ListedTool>,
  rules: PermissionRules
): ReadonlyArray<string> => {
  const tool = tools.find(({ name }) => name === call.name)
  const known = mayChange(call.permission)
  const unsaid = tool !== undefined && !isOurs(tool) && !isTrusted(tool.name, rules) &&
    !(tool.plugin !== serversPlugin && readingAccesses.has(call.permission.access))
  return unsaid && known.length === 0 ? [`the tool ${call.name} of ${whose(tool)} may change anything`] : known
}

const readingAccesses: ReadonlySet<string> = new Set(["read", "search", "list", "bash"])

const whose = ({ plugin }: ListedTool): string =>
  plugin === serversPlugin ? "an MCP server" : plugin === "bezel.client-tools" ? "a client" : `the plugin ${plugin}`

/** Why a call might change something, one phrase each; none if it only reads. Accesses of other kinds are not looked at. */
export const mayChange = (
  call: { readonly access: string; readonly subjects: ReadonlyArray<string> }
): ReadonlyArray<string> => {
  if (call.access === "write" || call.access === "edit") return [`${call.access} changes files`]
  if (call.access !== "bash") return []
  return call.subjects.flatMap((line) => {
    const reading = readCommandLine(line)
    return [
      ...reading.problems.map((problem) => `the command cannot be judged: ${problem}`),
      ...reading.writes.map((target) => `a redirection would write ${shown(target)}`),
      ...reading.commands.filter((command) => !onlyReads(command)).map((command) =>
        `the command ${shown([...command.assignments, command.text].join(" "))} is not known to only read`
      )
    ]
  })
}
