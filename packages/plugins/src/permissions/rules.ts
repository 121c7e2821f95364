/**
 * Permission rules: from settings and command line to a verdict about one subject. Pure.
 *
 * Among the patterns that match, `deny` wins, then the longest; of two as long, one from the command line, then the one of the
 * access itself (rules for `write` hold for `edit` too, those for `files_*` for all whose names begin so), then `ask`. Without a rule that matches, `*` (rules for every access)
 * is looked at, and without that one the default holds: `read`, `search` and `list` inside the location (and of the session's
 * own files, where what did not fit a result is kept) are allowed, as are
 * `question`, which asks by itself, `subagent`, whose calls are each judged by themselves, `skill`, `todo` and `job`; everything else
 * asks.
 */
import * as Result from "effect/Result"
import { accessOfTool, coversAccess, type Narrowing, type PermissionRules, type Verdict } from "./contract.ts"
import { isInside, matchesPath, type PathPattern, pathPattern } from "./paths.ts"
import { matches, mayMatch, type TextPattern, textPattern, unknown } from "./pattern.ts"
import type { ListedTool } from "./read-only.ts"

export interface Rule {
  readonly access: string
  readonly pattern: string
  readonly verdict: Verdict
  readonly origin: "settings" | "command line" | "session" | "project" | `the agent ${string}`
  readonly text: TextPattern
  readonly path: PathPattern
}

export interface RuleSet {
  readonly rules: ReadonlyArray<Rule>
  readonly location: string
  readonly home: string
  /** Folders outside the location that may be read without a rule: the session's own files. */
  readonly readable?: ReadonlyArray<string>
}

/** Accesses whose subjects are absolute paths. */
export const pathAccesses: ReadonlySet<string> = new Set(["read", "write", "edit", "search", "list"])

const allowedInside: ReadonlySet<string> = new Set(["read", "search", "list"])

/**
 * Asking whether somebody may be asked makes no sense; what a sub-agent does is judged when it does it; a skill is a text that
 * the user has chosen or trusted, and a list of what is to be done is the session's own, as are jobs, which were allowed when
 * they were started.
 */
const allowedAnyway: ReadonlySet<string> = new Set(["question", "subagent", "skill", "todo", "job"])

export interface RuleText {
  readonly access: string
  readonly pattern: string
}

/**
 * Reads a rule as it is written on a command line and shown in a question: an access, alone (`write`) or with a pattern in
 * parentheses (`write(src/**)`, `bash(git status*)`).
 */
export const parseRule = (text: string): Result.Result<RuleText, string> => {
  const match = /^\s*([\w.*-]+)\s*(?:\((.*)\))?\s*$/s.exec(text)
  const [, access, pattern] = match ?? []
  if (access === undefined || pattern?.trim() === "") {
    return Result.fail(
      `"${text}" is not a permission rule; write an access, like write, or with a pattern, like bash(git status*)`
    )
  }
  return Result.succeed({ access, pattern: pattern ?? "*" })
}

export const formatRule = (rule: RuleText): string =>
  rule.pattern === "*" ? rule.access : `${rule.access}(${rule.pattern})`

const makeRule = (
  text: RuleText,
  verdict: Verdict,
  origin: Rule["origin"],
  place: { readonly location: string; readonly home: string }
): Rule => ({
  ...text,
  verdict,
  origin,
  text: textPattern(text.pattern),
  path: pathPattern(text.pattern, place.location, place.home)
})

/** Fails with the first rule of `allow` or `deny` that cannot be read. */
export const compileRules = (
  settings: PermissionRules,
  options: {
    readonly location: string
    readonly home: string
    readonly allow?: ReadonlyArray<string>
    readonly deny?: ReadonlyArray<string>
  }
): Result.Result<RuleSet, string> => {
  const rules: Array<Rule> = []
  for (const { verdict, ...text } of flatten(settings)) rules.push(makeRule(text, verdict, "settings", options))
  for (const [texts, verdict] of [[options.allow ?? [], "allow"], [options.deny ?? [], "deny"]] as const) {
    for (const text of texts) {
      const parsed = parseRule(text)
      if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
      rules.push(makeRule(parsed.success, verdict, "command line", options))
    }
  }
  return Result.succeed({ rules, location: options.location, home: options.home })
}

/** The same rules and what a person granted; texts that are no rules are left out. */
export const withGrants = (
  set: RuleSet,
  grants: ReadonlyArray<string>,
  origin: "session" | "project" = "session"
): RuleSet => ({
  ...set,
  rules: [
    ...set.rules,
    ...grants.flatMap((text) => {
      const parsed = parseRule(text)
      return Result.isSuccess(parsed) ? [makeRule(parsed.success, "allow", origin, set)] : []
    })
  ]
})

/** The rules of a narrowing as a set of its own, in which whatever they do not speak of is allowed. */
export const narrowingRules = (narrowing: Narrowing, place: Pick<RuleSet, "location" | "home">): RuleSet => ({
  ...place,
  rules: [
    ...flatten(narrowing.rules).map(({ verdict, ...text }) =>
      makeRule(text, verdict, `the agent ${narrowing.name}`, place)
    ),
    makeRule({ access: "*", pattern: "*" }, "allow", `the agent ${narrowing.name}`, place)
  ]
})

type Denying = ReadonlyArray<Pick<Rule, "access" | "pattern" | "verdict">>

/** Whether a rule denies all of its access. */
export const deniesAll = ({ pattern, verdict }: Denying[number]): boolean =>
  verdict === "deny" && /^\*+$/.test(pattern.trim())

/** Accesses that are denied whatever they are about, and tools that only have such. */
const deniedAccesses = (list: Denying): ReadonlySet<string> => {
  const denied = new Set(list.filter(deniesAll).map(({ access }) => access))
  if (denied.has("write")) denied.add("edit")
  // A tool whose calls are one or the other.
  if (denied.has("edit")) denied.add("apply_patch")
  return denied
}

/**
 * Whether these rules deny a tool whatever it is called with, so that it need not be offered. What is denied by the rules for
 * everything is so only where no other rule speaks of the tool.
 */
export const deniesTool = (list: Denying, { name, namesAccess, plugin }: ListedTool): boolean => {
  const access = Object.hasOwn(accessOfTool, name) ? accessOfTool[name] ?? name : name
  const denied = deniedAccesses(list)
  if ([...denied].some((one) => coversAccess(one, name) || coversAccess(one, access))) return true
  // Of a tool from outside that names its accesses itself, nobody knows which they are.
  if (!denied.has("*") || (namesAccess && !plugin.startsWith("bezel."))) return false
  const sections = [name, ...sectionsOf(access), ...(name === "apply_patch" ? ["edit", "write"] : [])]
  return !list.some((rule) => rule.access !== "*" && sections.some((one) => coversAccess(rule.access, one)))
}

/** The rules that settings hold, one by one. */
export const flatten = (rules: PermissionRules): ReadonlyArray<RuleText & { readonly verdict: Verdict }> =>
  Object.entries(rules).flatMap(([access, section]) =>
    Object.entries(typeof section === "string" ? { "*": section } : section).map(([pattern, verdict]) => ({
      access,
      pattern,
      verdict
    }))
  )

/** What one subject is judged by: how it reads, and other readings that a `deny` or an `ask` must catch too. */
export interface Subject {
  readonly access: string
  /** An absolute path, or text; may hold `unknown` parts. */
  readonly value: string
  readonly variants?: ReadonlyArray<string>
}

export interface Judgement {
  readonly verdict: Verdict
  /** The rule that decided; `null`: the default. */
  readonly rule: Rule | null
  /** It asks because a `deny` or `ask` rule might match what is not known yet. */
  readonly uncertain: boolean
}

const sectionsOf = (access: string): ReadonlyArray<string> => access === "edit" ? ["edit", "write"] : [access]

const rank = (rule: Rule, access: string): ReadonlyArray<number> => [
  // A person who was asked has seen the very thing, so the answer stands above any rule that asks.
  rule.origin === "session" || rule.origin === "project" ? 1 : 0,
  rule.pattern.trim().length,
  rule.origin === "command line" ? 1 : 0,
  rule.access === access ? 1 : 0,
  rule.verdict === "ask" ? 1 : 0
]

const stronger = (left: Rule, right: Rule, access: string): Rule => {
  const [a, b] = [rank(left, access), rank(right, access)]
  for (let index = 0; index < a.length; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference > 0 ? left : right
  }
  return left
}

/** Judges one subject. */
export const judge = (set: RuleSet, subject: Subject): Judgement => {
  const isPath = pathAccesses.has(subject.access)
  const values = [subject.value, ...subject.variants ?? []]
  const certainly = (rule: Rule): boolean => {
    if (isPath) {
      return rule.path.kind === "everything" ||
        (!subject.value.includes(unknown) && matchesPath(rule.path, subject.value, rule.verdict, set.location))
    }
    return rule.verdict === "allow"
      ? matches(rule.text, subject.value)
      : values.some((value) => matches(rule.text, value))
  }
  const possibly = (rule: Rule): boolean =>
    isPath ? subject.value.includes(unknown) : values.some((value) => mayMatch(rule.text, value))

  for (const accesses of [sectionsOf(subject.access), ["*"]]) {
    const own = set.rules.filter((rule) => accesses.some((access) => coversAccess(rule.access, access)))
    const denied = own.find((rule) => rule.verdict === "deny" && certainly(rule))
    if (denied !== undefined) return { verdict: "deny", rule: denied, uncertain: false }
    const maybeDenied = own.find((rule) => rule.verdict === "deny" && possibly(rule))
    if (maybeDenied !== undefined) return { verdict: "ask", rule: maybeDenied, uncertain: true }
    const matching = own.filter((rule) =>
      rule.verdict !== "deny" && (certainly(rule) || (rule.verdict === "ask" && possibly(rule)))
    )
    const [first, ...others] = matching
    if (first !== undefined) {
      const rule = others.reduce((best, other) => stronger(best, other, subject.access), first)
      return { verdict: rule.verdict, rule, uncertain: rule.verdict === "ask" && !certainly(rule) }
    }
  }
  const isAllowed = allowedAnyway.has(subject.access) ||
    (allowedInside.has(subject.access) && !subject.value.includes(unknown) &&
      [set.location, ...set.readable ?? []].some((folder) => isInside(folder, subject.value)))
  return { verdict: isAllowed ? "allow" : "ask", rule: null, uncertain: false }
}
