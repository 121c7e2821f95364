/**
 * The decision about one call: every subject judged, a command line taken apart, `--yes` applied, and, where a person must be
 * asked, what the question says. Pure but for `PathProbe`, which looks at the file system.
 */
import * as path from "node:path"
import { isInside } from "./paths.ts"
import { escapePattern, unknown } from "./pattern.ts"
import { formatRule, judge, type Judgement, pathAccesses, type Rule, type RuleSet, type Subject } from "./rules.ts"
import { readCommandLine, type SimpleCommand } from "./shell.ts"

/** What the decision needs to know of files. */
export interface PathProbe {
  /** The path with all links of its existing part resolved. */
  readonly real: (file: string) => string
  readonly exists: (file: string) => boolean
}

export interface Decision {
  readonly verdict: "allow" | "ask" | "deny"
  /** Why it is asked or denied, one sentence each. */
  readonly reasons: ReadonlyArray<string>
  /** Rules that would have allowed what is asked; empty if no rule can say it. */
  readonly grants: ReadonlyArray<string>
}

interface Finding {
  readonly verdict: "allow" | "ask" | "deny"
  readonly reason: string
  /** A rule that would allow this, or `null`. */
  readonly grant: string | null
  /** Why `--yes` does not reach this, or `null` if it does. */
  readonly beyondYes: string | null
}

const allowed: Finding = { verdict: "allow", reason: "", grant: null, beyondYes: null }

const outside = (isOutside: boolean): string | null => isOutside ? "outside the location it takes a rule" : null

/** What a `deny` might speak of is not "what rules do not deny". */
const maybeForbidden = (judgement: Judgement): string | null =>
  judgement.rule?.verdict === "deny" ? "a rule might forbid it" : null

const describe = (rule: Rule): string => `the rule ${JSON.stringify(formatRule(rule))} (${rule.origin})`

const shown = (text: string): string => text.split(unknown).join("…")

const reasonOf = (judgement: Judgement, what: string): string => {
  const { rule, uncertain, verdict } = judgement
  if (rule === null) return `no rule allows ${what}`
  if (verdict === "deny") return `${describe(rule)} denies ${what}`
  return uncertain
    ? `${describe(rule)} might forbid ${what}, whose full text is known only when it runs`
    : `${describe(rule)} asks about ${what}`
}

const judgePath = (set: RuleSet, access: string, file: string, isOutside: boolean): Finding => {
  const judgement = judge(set, { access, value: file })
  if (judgement.verdict === "allow") return allowed
  const what = `${access} of ${shown(file)}${isOutside ? ", which is outside the location" : ""}`
  // A general question is answered in general; where a rule singled this path out, the answer is for this path.
  const isGeneral = judgement.rule === null || judgement.rule.path.kind === "everything"
  const named = isOutside ? escapePattern(file) : `./${escapePattern(path.relative(set.location, file))}`
  const pattern = isGeneral && !isOutside ? "./**" : named
  return {
    verdict: judgement.verdict,
    reason: reasonOf(judgement, what),
    grant: file.includes(unknown) ? null : formatRule({ access, pattern }),
    beyondYes: maybeForbidden(judgement) ?? outside(isOutside)
  }
}

/** The rule for exactly this. A command line without a command is nothing that a rule could name. */
const grantFor = ({ access, value }: Subject): string | null => {
  if (value.includes(unknown) || (value === "" && access === "bash")) return null
  return formatRule({ access, pattern: value === "" ? "*" : escapePattern(value) })
}

const judgeText = (set: RuleSet, subject: Subject, what: string, isOutside: boolean): Finding => {
  const judgement = judge(set, subject)
  if (judgement.verdict === "allow") return allowed
  return {
    verdict: judgement.verdict,
    reason: reasonOf(judgement, what),
    grant: grantFor(subject),
    beyondYes: maybeForbidden(judgement) ?? outside(isOutside)
  }
}

const judgeCommand = (set: RuleSet, access: string, command: SimpleCommand, isOutside: boolean): Finding => {
  const [name = "", ...args] = command.words
  // By whatever path it is called, `rm` is `rm`, and what stands before it in its environment does not hide it.
  const bare = [name.slice(name.lastIndexOf("/") + 1), ...args].join(" ")
  const value = [...command.assignments, command.text].join(" ")
  return judgeText(
    set,
    { access, value, variants: [command.text, bare] },
    `the command ${JSON.stringify(shown(value))}`,
    isOutside
  )
}

const expandHome = (file: string, home: string): string =>
  file === "~" || file.startsWith("~/") ? path.join(home, file.slice(1)) : file

/** Whether a word of a command means something outside the location. */
const pointsOutside = (word: string, set: RuleSet, probe: PathProbe, base: string): boolean => {
  const known = word.split(unknown)[0] ?? ""
  const isCut = word.includes(unknown)
  const file = path.resolve(base, expandHome(known, set.home))
  if (/^\/dev\/(null|stdin|stdout|stderr|tty|zero|full|fd)(\/|$)/.test(file)) return false
  if (known.startsWith("~") && !/^~(\/|$)/.test(known)) return true
  if (isInside(set.location, file) && isInside(set.location, probe.real(file))) return false
  if (set.readable?.some((folder) => isInside(folder, file) && isInside(folder, probe.real(file))) === true) {
    return false
  }
  if (!known.startsWith("/")) return true
  // Not every text that begins with a slash is a path: `/api/v1`, an awk pattern.
  const folder = isCut ? file : path.dirname(file)
  return probe.exists(file) || (folder !== "/" && probe.exists(folder))
}

const judgeRedirection = (
  set: RuleSet,
  access: "write" | "read",
  target: string,
  movesDirectory: boolean,
  probe: PathProbe,
  base: string
): Finding => {
  const expanded = expandHome(target, set.home)
  const isRelative = !path.isAbsolute(expanded)
  const isUnknown = expanded.includes(unknown) || (movesDirectory && isRelative)
  if (!isUnknown) {
    const file = probe.real(path.resolve(base, expanded))
    const finding = judgePath(set, access, file, !isInside(set.location, file))
    // Reading by redirection is no more than what the command could read by itself; only a rule can object.
    return access === "read" && finding.verdict !== "deny" && judge(set, { access, value: file }).rule === null
      ? allowed
      : finding
  }
  const judgement = judge(set, { access, value: unknown })
  if (judgement.verdict === "allow" || (access === "read" && judgement.rule === null)) return allowed
  const isOutside = expanded.startsWith(unknown) || pointsOutside(target, set, probe, base)
  return {
    verdict: judgement.verdict,
    reason: reasonOf(judgement, `${access} of ${shown(target)}`),
    grant: null,
    beyondYes: maybeForbidden(judgement) ?? outside(isOutside)
  }
}

/** Plain words of a command that are files whose reading is denied: a tool would be refused them, so a command asks at least. */
const touchesDenied = (set: RuleSet, command: SimpleCommand, probe: PathProbe, base: string): Finding | null => {
  if (!set.rules.some((rule) => rule.verdict === "deny" && rule.access === "read")) return null
  for (const word of command.words.slice(1)) {
    if (word.includes(unknown) || word.startsWith("-") || word === "") continue
    const { rule, verdict } = judge(set, {
      access: "read",
      value: probe.real(path.resolve(base, expandHome(word, set.home)))
    })
    if (verdict === "deny" && rule !== null) {
      return {
        verdict: "ask",
        reason: `${describe(rule)} denies reading ${word}`,
        grant: null,
        beyondYes: "a rule might forbid it"
      }
    }
  }
  return null
}

/**
 * A line that goes into a directory of the location first is what follows it, run there. Only if the directory is there: else
 * the shell stays where it is.
 */
const movedInside = (
  set: RuleSet,
  line: string,
  probe: PathProbe
): { readonly line: string; readonly base: string } => {
  const match = /^cd '((?:[^']|'\\'')+)' && ([\s\S]*)$/.exec(line)
  const directory = match?.[1]?.replaceAll("'\\''", "'")
  if (match?.[2] === undefined || directory === undefined || !path.isAbsolute(directory)) {
    return { line, base: set.location }
  }
  const base = probe.real(directory)
  return probe.exists(directory) && isInside(set.location, base)
    ? { line: match[2], base }
    : { line, base: set.location }
}

const judgeCommandLine = (set: RuleSet, access: string, given: string, probe: PathProbe): ReadonlyArray<Finding> => {
  const { base, line } = movedInside(set, given, probe)
  const reading = readCommandLine(line)
  const isOutside = reading.paths.some((word) => pointsOutside(word, set, probe, base))
  const hasDeny = set.rules.some((rule) => rule.verdict === "deny" && (rule.access === access || rule.access === "*"))
  const findings: Array<Finding> = reading.problems.map((problem) => ({
    verdict: "ask",
    reason: `the command cannot be judged by rules: ${problem}`,
    grant: null,
    beyondYes: hasDeny ? "a rule might forbid it" : outside(isOutside)
  }))
  for (const command of reading.commands) {
    findings.push(judgeCommand(set, access, command, isOutside))
    const touched = touchesDenied(set, command, probe, base)
    if (touched !== null) findings.push(touched)
  }
  for (const target of reading.writes) {
    findings.push(judgeRedirection(set, "write", target, reading.movesDirectory, probe, base))
  }
  for (const target of reading.reads) {
    findings.push(judgeRedirection(set, "read", target, reading.movesDirectory, probe, base))
  }
  // Nothing to run is still a call, and a tool that is not to be used at all must not answer it.
  if (reading.commands.length === 0) findings.push(judgeText(set, { access, value: "" }, `an empty command`, isOutside))
  return findings
}

const judgeSubject = (set: RuleSet, access: string, subject: string, probe: PathProbe): ReadonlyArray<Finding> => {
  if (access === "bash") return judgeCommandLine(set, access, subject, probe)
  if (!pathAccesses.has(access)) {
    return [
      judgeText(
        set,
        // A host that a rule denies is denied at every port.
        { access, value: subject, ...(access === "web" ? { variants: [subject.replace(/:\d+$/, "")] } : {}) },
        subject === "" ? access : `${access} of ${JSON.stringify(subject)}`,
        false
      )
    ]
  }
  const file = probe.real(path.resolve(set.location, subject))
  return [judgePath(set, access, file, !isInside(set.location, file))]
}

/** Decides a call. Any `deny` denies; all must be allowed; else it is asked. */
export const decide = (
  set: RuleSet,
  call: { readonly access: string; readonly subjects: ReadonlyArray<string> },
  options: { readonly yes: boolean; readonly probe: PathProbe }
): Decision => {
  const subjects = call.subjects.length === 0 && call.access !== "bash" && !pathAccesses.has(call.access)
    ? [""]
    : call.subjects
  const findings = subjects.flatMap((subject) => judgeSubject(set, call.access, subject, options.probe))
  // An access to paths that names none is about the location as a whole.
  if (subjects.length === 0) {
    findings.push(...judgeSubject(set, call.access, call.access === "bash" ? "" : set.location, options.probe))
  }
  const denied = findings.filter((finding) => finding.verdict === "deny")
  if (denied.length > 0) {
    return {
      verdict: "deny",
      reasons: unique(denied.map((finding) => finding.reason)),
      grants: []
    }
  }
  const open = findings.filter((finding) => finding.verdict === "ask" && !(options.yes && finding.beyondYes === null))
  if (open.length === 0) return { verdict: "allow", reasons: [], grants: [] }
  const grants = open.map((finding) => finding.grant)
  return {
    verdict: "ask",
    reasons: unique(
      open.map((finding) =>
        options.yes ? `${finding.reason} (--yes does not cover it: ${finding.beyondYes})` : finding.reason
      )
    ),
    grants: grants.includes(null) ? [] : unique(grants.flatMap((grant) => grant === null ? [] : [grant]))
  }
}

/** The stricter of decisions about one call. What would be granted is what all that ask need. */
export const strictest = (decisions: ReadonlyArray<Decision>): Decision => {
  for (const verdict of ["deny", "ask"] as const) {
    const those = decisions.filter((decision) => decision.verdict === verdict)
    if (those.length === 0) continue
    return {
      verdict,
      reasons: unique(those.flatMap((decision) => decision.reasons)),
      grants: those.some((decision) => decision.grants.length === 0)
        ? []
        : unique(those.flatMap((decision) => decision.grants))
    }
  }
  return { verdict: "allow", reasons: [], grants: [] }
}

const unique = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(texts)]
