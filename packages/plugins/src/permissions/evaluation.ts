/**
 * What bash evaluates beyond expanding it: arithmetic, subscripts and names of variables. `a[$(rm x)]` runs `rm x` there, also
 * when it only is the value of a variable, and however that came into it: from a file, a commit message, an argument.
 *
 * A text is plain if no value in it can bring a command along: it holds no substitution, no quoting that hides a `$`, and no
 * variable that somebody else fills; what the line itself puts into those that are evaluated must be plain too. This is a matter of text, so it takes more for dangerous than is.
 */
import { unknown } from "./pattern.ts"

/** Variables whose value comes from elsewhere than an assignment: the last argument, what was read or matched, a folder's name. */
const filledByOthers =
  /(^|[^\w])(_|BASH_\w+|REPLY|MAPFILE|OPTARG|OLDPWD|DIRSTACK|FUNCNAME|COMP_\w+|READLINE_\w+)(?!\w)|\$\{!?PWD|\$[@*0-9]|\$\{!?[@*0-9]/

/** Numbers, whatever they are of. What stands in nested arithmetic is looked at by itself. */
const numbers = /\$\(\([^()`;]*\)\)|\$[#?!$](?!\w)|\$\{#[^{}$`]*\}/g

/** Whether no value in the text, as it is written, can be more than text. */
export const isPlain = (text: string): boolean => {
  const rest = text.replace(numbers, "0")
  return !rest.includes(unknown) && !/[`\\]|\$(?![\w{])|[<>]\(/.test(rest) && !filledByOthers.test(rest)
}

/** Names in a text, of variables for all that is known. */
const namesIn = (text: string): ReadonlyArray<string> => text.replace(numbers, "0").match(/[A-Za-z_]\w*/g) ?? []

/** Values that a line gives to variables, and what it evaluates: whether the one can reach the other. */
export class Evaluation {
  private readonly evaluated = new Set<string>()
  private readonly unknownValues = new Set<string>()
  private readonly copies = new Map<string, Set<string>>()

  /** A text that bash evaluates, as it is written; says whether it is plain. */
  evaluate(text: string): boolean {
    for (const name of namesIn(text)) this.evaluated.add(name)
    return isPlain(text)
  }

  /** A value that a variable gets, as it is written. */
  assign(name: string, value: string): void {
    if (!isPlain(value)) this.unknownValues.add(name)
    const copies = this.copies.get(name) ?? new Set()
    for (const copied of namesIn(value)) copies.add(copied)
    this.copies.set(name, copies)
  }

  /** Whether a variable is evaluated that may hold a value that nobody has seen. */
  get reachesUnknown(): boolean {
    const reached = new Set(this.evaluated)
    for (const name of reached) for (const copied of this.copies.get(name) ?? []) reached.add(copied)
    return reached.size > 0 &&
      (this.unknownValues.has(unknown) || [...this.unknownValues].some((name) => reached.has(name)))
  }
}

/** Operators of `[[` whose operands are arithmetic, and those that take the name of a variable. */
export const evaluatingOperator = /^-(eq|ne|lt|le|gt|ge|v|R)$/

/** Builtins that take names of variables, subscripts included, or arithmetic. */
const takesNames: ReadonlySet<string> = new Set([
  "declare",
  "export",
  "getopts",
  "let",
  "local",
  "mapfile",
  "read",
  "readarray",
  "readonly",
  "typeset",
  "unset"
])

/** Those that fill them with what nobody has seen yet. */
const fillsVariables: ReadonlySet<string> = new Set(["getopts", "mapfile", "read", "readarray"])

/** A word of a command: as it is written, without its quotes, and whether it may become several. */
export interface WrittenWord {
  readonly written: string
  readonly text: string
  readonly splits: boolean
}

/** What a command does with variables: words that it evaluates, and variables that it fills with what is not known. */
export const evaluatedBy = (
  name: string,
  args: ReadonlyArray<WrittenWord>
): { readonly evaluated: ReadonlyArray<string>; readonly filled: ReadonlyArray<string> } => {
  const operands = args.filter(({ text }) => !/^[-+]\w/.test(text))
  if (takesNames.has(name)) {
    // With `-i` and `-n` the value counts as well, as all of what `let` takes does.
    const values = name === "let" || args.some(({ text }) => /^-\w*[in]/.test(text))
    const evaluated = operands.map(({ text, written }) => values ? written : nameOf(text))
    return {
      evaluated: evaluated.filter((word) => !/^\w*\+?$/.test(word)),
      filled: operands.filter(({ text, written }) =>
        fillsVariables.has(name) || (text.includes("=") && !isPlain(written))
      ).map(({ text }) => nameOf(text))
    }
  }
  if (name === "printf" && args[0]?.text.startsWith("-v") === true) {
    const variable = args[0].text.slice(2) || (args[1]?.text ?? "")
    return { evaluated: /^\w*$/.test(variable) ? [] : [variable], filled: [variable] }
  }
  if (name !== "test" && name !== "[") return { evaluated: [], filled: [] }
  return {
    evaluated: args.flatMap(({ splits, text, written }, index) => {
      const before = args[index - 1]?.text ?? ""
      const mayFollowOperator = /^-[vR]$/.test(before) || before.includes(unknown)
      return splits || (mayFollowOperator && (text.includes(unknown) || text.includes("["))) ? [written] : []
    }),
    filled: []
  }
}

const nameOf = (word: string): string => /^[^=]*/.exec(word)?.[0].replace(/\+$/, "") ?? ""
