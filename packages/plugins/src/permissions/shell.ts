/**
 * What a command line would do, read off its syntax tree: the simple commands it would run and the files it would redirect to.
 *
 * The grammar is bash's (`unbash`). Commands are found wherever the shell would run one: in pipelines, lists, subshells,
 * functions, loops, `$(…)`, backticks, process substitutions, the body of a here-document, the argument of a wrapper. Nothing
 * is executed and no file is looked at. Whatever cannot be told for certain is a problem, and a problem means that a person is
 * asked; the reading never guesses in favour of the command.
 */
import {
  type Assignment,
  type Command,
  forEachChild,
  parse,
  type Redirect,
  type Script,
  type SyntaxNode,
  type Word,
  type WordPart
} from "unbash"
import { evaluatedBy, evaluatingOperator, Evaluation, type WrittenWord } from "./evaluation.ts"
import { unknown } from "./pattern.ts"
import { readsScriptFromInput, unwrap } from "./wrappers.ts"

/** One simple command, its words without quotes. Unknown parts are `unknown` characters. */
export interface SimpleCommand {
  /** Name and arguments with one space between. */
  readonly text: string
  /** `NAME=value` that it gets in its environment, without those that cannot change what it does. */
  readonly assignments: ReadonlyArray<string>
  readonly words: ReadonlyArray<string>
}

export interface ShellReading {
  readonly commands: ReadonlyArray<SimpleCommand>
  /** Targets of redirections, as written, unknown parts included. */
  readonly writes: ReadonlyArray<string>
  readonly reads: ReadonlyArray<string>
  /** Words that could name a path outside: absolute, below the home folder, or climbing up. */
  readonly paths: ReadonlyArray<string>
  /** A command changes the directory, so relative paths after it are not those of the start. */
  readonly movesDirectory: boolean
  /** Why this cannot be judged by rules alone; one sentence each. */
  readonly problems: ReadonlyArray<string>
}

/** Longer than any command that a person could judge. */
const maxLength = 64 * 1024
/** Scripts inside scripts (`sh -c "sh -c …"`). */
const maxNesting = 8

/** Environment that changes how a command's output looks and not what it does. */
const harmlessVariable =
  /^(LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|CI|TERM|COLUMNS|LINES|NODE_ENV|DEBUG|RUST_BACKTRACE)$/

/** Files that take or give nothing. */
const harmlessFile = /^\/dev\/(null|stdin|stdout|stderr|tty|zero|full|fd\/\d+)$/

class Reader {
  readonly commands: Array<SimpleCommand> = []
  readonly writes: Array<string> = []
  readonly reads: Array<string> = []
  readonly paths: Array<string> = []
  readonly problems = new Set<string>()
  movesDirectory = false
  readonly evaluation = new Evaluation()

  script(source: string, nesting: number): void {
    if (source.includes(unknown)) this.problems.add("it contains a NUL character")
    else if (source.length > maxLength) this.problems.add(`it is longer than ${maxLength} characters`)
    else if (nesting > maxNesting) this.problems.add("it nests scripts too deeply")
    else this.visit(parse(source), nesting)
  }

  visit(node: SyntaxNode, nesting: number): void {
    switch (node.type) {
      case "Script":
        this.errors(node)
        break
      case "CommandExpansion":
      case "ProcessSubstitution":
      case "ArithmeticCommandExpansion":
        if (node.script === undefined) this.problems.add("a command inside it cannot be read")
        break
      case "ArithmeticExpansion":
        this.evaluate(node.text.replace(/^\$(\(\(|\[)|(\)\)|\])$/g, ""))
        break
      case "ArithmeticCommand":
        this.evaluate(node.body)
        break
      case "ArithmeticWord":
        this.evaluate(node.value)
        break
      case "ArithmeticFor":
        if ([node.initialize, node.test, node.update].some((part) => part !== undefined && holdsCommand(part))) {
          this.evaluate(unknown)
        }
        break
      case "TestUnary":
        if (evaluatingOperator.test(node.operator)) this.evaluate(node.operand.text)
        break
      case "TestBinary":
        if (evaluatingOperator.test(node.operator)) {
          this.evaluate(node.left.text)
          this.evaluate(node.right.text)
        }
        break
      case "Assignment":
        this.steers(node.name)
        if (node.index !== undefined) this.evaluate(node.index.text)
        for (const { text } of node.value.type === "Word" ? [node.value] : node.value.elements) {
          this.evaluation.assign(node.name, mayBeFiles(text) ? unknown : text)
          if (node.value.type === "ArrayValue") this.evaluate(/^\[(.*?)\]\+?=/s.exec(text)?.[1] ?? "")
        }
        break
      case "For":
      case "Select":
        for (const { text } of node.wordlist ?? [{ text: unknown }]) {
          this.evaluation.assign(node.name.text, mayBeFiles(text) ? unknown : text)
        }
        break
      case "ParameterExpansion":
        if (node.index !== undefined && !["@", "*"].includes(node.index.text)) this.evaluate(node.index.text)
        if (node.prefix === "!" && node.operation?.type !== "Names") this.evaluate(node.parameter)
        if (node.operation?.type === "Slice") {
          this.evaluate(node.operation.offset.text)
          this.evaluate(node.operation.length?.text ?? "")
        }
        if (node.operation?.type === "Default") this.evaluation.assign(node.parameter, node.operation.operand.text)
        if (node.operation?.type === "Unknown") this.problems.add(`the expansion ${node.text} is not understood`)
        // `${x@P}` runs the command substitutions in the value of x.
        if (node.operation?.type === "Transform" && node.operation.operand.value === "P") {
          this.problems.add(`the expansion ${node.text} runs what is in a variable`)
        }
        break
      case "Redirect":
        this.redirect(node)
        break
      case "Command":
        this.command(node, nesting)
        break
      default:
        break
    }
    forEachChild(node, (child) => this.visit(child, nesting))
  }

  errors(script: Script & { readonly errors?: ReadonlyArray<{ readonly message: string }> | undefined }): void {
    for (const error of script.errors ?? []) this.problems.add(`it does not parse: ${error.message}`)
  }

  /** Notes a variable whose value bash itself takes for a command or a script. */
  steers(name: string): void {
    if (/^(BASH_ALIASES|BASH_CMDS|BASH_ENV|ENV|PROMPT_COMMAND|PS4)$/.test(name)) {
      this.problems.add(`${name} says what a shell runs`)
    }
  }

  /** Notes a text that bash evaluates, as it is written. */
  evaluate(text: string): void {
    if (!this.evaluation.evaluate(text)) this.problems.add("it evaluates a value that is known only when it runs")
  }

  builtin(name: string, args: ReadonlyArray<WrittenWord>): void {
    const { evaluated, filled } = evaluatedBy(name, args)
    for (const text of evaluated) this.evaluate(text)
    for (const variable of filled) this.evaluation.assign(variable.includes(unknown) ? unknown : variable, unknown)
  }

  redirect(node: Redirect): void {
    if (node.target === undefined) return void this.problems.add("a redirection has no target")
    const target = textOf(node.target)
    const copiesDescriptor = node.operator === ">&" || node.operator === "<&"
    if (copiesDescriptor && /^(\d+-?|-)$/.test(target)) return
    this.path(node.target)
    if (harmlessFile.test(target)) return
    if (node.operator === "<" || node.operator === "<&") this.reads.push(target)
    else this.writes.push(target)
  }

  command(node: Command, nesting: number): void {
    const assignments = node.prefix.filter((item) => item.type === "Assignment")
    if (node.name === undefined) return this.assignmentsAlone(assignments)
    const args = node.suffix.filter((item) => item.type === "Word" || item.type === "Assignment")
    for (const arg of args) if (arg.type === "Word") this.path(arg)
    const words = [textOf(node.name), ...args.map((arg) => arg.type === "Word" ? textOf(arg) : assignmentText(arg))]
    this.builtin(
      words[0] ?? "",
      args.map((arg, index) => ({ written: arg.text, text: words[index + 1] ?? "", splits: splits(arg) }))
    )
    this.simple(words, assignments.map(assignmentText), nesting)
    if (readsScriptFromInput([baseName(words[0] ?? ""), ...words.slice(1)])) this.input(node, words[0] ?? "", nesting)
  }

  /** A shell that takes its script from its input: read along if the script stands here, else nobody knows what it runs. */
  input(node: Command, name: string, nesting: number): void {
    const inputs = [...node.prefix, ...node.suffix].flatMap((item) =>
      item.type === "HereDoc"
        ? [item.body.text]
        : item.type === "HereString" && item.target !== undefined
        ? [textOf(item.target)]
        : []
    )
    if (inputs.length === 0 || inputs.some((text) => text.includes(unknown))) {
      this.problems.add(`${name} would run whatever its input says`)
      return
    }
    for (const text of inputs) this.script(text, nesting + 1)
  }

  /** `NAME=value` without a command: harmless for a script's own variables, but a variable that is exported steers what follows. */
  assignmentsAlone(assignments: ReadonlyArray<Assignment>): void {
    for (const assignment of assignments) {
      const text = assignmentText(assignment)
      const isOwn = /^[a-z_][a-z0-9_]*$/.test(assignment.name) && !assignment.name.endsWith("_proxy")
      // A value that looks like code could be evaluated later, by arithmetic for one.
      if (harmlessVariable.test(assignment.name) || (isOwn && !/[$`[]/.test(text.slice(assignment.name.length + 1)))) {
        continue
      }
      this.commands.push({ text, assignments: [], words: [text] })
    }
  }

  simple(words: ReadonlyArray<string>, assignments: ReadonlyArray<string>, nesting: number): void {
    const name = words[0] ?? ""
    if (name.includes(unknown)) {
      this.problems.add("the name of a command in it is known only when it runs")
      return
    }
    if (name === "" || name.startsWith("-") || /\s/.test(name)) {
      this.problems.add(`${JSON.stringify(name)} is a strange name for a command`)
    }
    const effective = assignments.filter((assignment) =>
      !harmlessVariable.test(assignment.slice(0, assignment.indexOf("=")).replace(/\+$/, ""))
    )
    const base = baseName(name)
    if (["cd", "pushd", "popd"].includes(base)) {
      this.movesDirectory = true
      if (base === "cd" && (words.length === 1 || words[1] === "-")) this.paths.push("~")
    }
    const inner = unwrap([base, ...words.slice(1)])
    const own: SimpleCommand = { text: words.join(" "), assignments: effective, words }
    if (inner === null) {
      this.commands.push(own)
      return
    }
    if ("problem" in inner) {
      this.problems.add(inner.problem)
      this.commands.push(own)
      return
    }
    if (inner.some((wrapped) => wrapped.own)) this.commands.push(own)
    for (const wrapped of inner) {
      if (wrapped.movesDirectory === true) this.movesDirectory = true
      for (const file of wrapped.writes ?? []) if (!harmlessFile.test(file)) this.writes.push(file)
      const environment = [...effective, ...wrapped.assignments ?? []]
      if (wrapped.command !== undefined) {
        // `builtin read …` is one as well; how its words were quoted is not known here.
        const [command = "", ...args] = wrapped.command
        this.builtin(command, args.map((text) => ({ written: text, text, splits: text.includes(unknown) })))
        this.simple(wrapped.command, environment, nesting)
      }
      for (const each of environment) {
        const [variable = "", value = ""] = each.split(/\+?=(.*)/s)
        this.steers(variable)
        this.evaluation.assign(variable, value)
      }
      if (wrapped.script !== undefined) {
        const before = this.commands.length
        this.script(wrapped.script, nesting + 1)
        // What a wrapper sets holds for every command of its script.
        for (let index = before; index < this.commands.length; index++) {
          const command = this.commands[index]
          if (command !== undefined) {
            this.commands[index] = {
              ...command,
              assignments: [
                ...environment.filter((each) => !harmlessVariable.test(each.slice(0, each.indexOf("=")))),
                ...command.assignments
              ]
            }
          }
        }
      }
    }
  }

  /** Notes a word that could name a place outside the location. */
  path(word: Word): void {
    const text = atHome(word) ?? textOf(word)
    for (const candidate of [text, /^-{1,2}[\w-]+=(.+)$/s.exec(text)?.[1] ?? ""]) {
      if (candidate.startsWith("/") || candidate.startsWith("~") || /(^|\/)\.\.(\/|$)/.test(candidate)) {
        this.paths.push(candidate)
      }
    }
  }
}

/** Whether a word may become names of files, which anybody may have chosen. */
const mayBeFiles = (written: string): boolean =>
  /[*?]|\[.*\]/s.test(written.replace(/\$\(\([^()]*\)\)|"[^"]*"|'[^']*'|\$\{[^}]*\}|\$[?*]/g, ""))

/** Whether arithmetic holds the output of a command. */
const holdsCommand = (node: SyntaxNode): boolean => {
  if (node.type === "ArithmeticCommandExpansion" || node.type === "CommandExpansion") return true
  let holds = false
  forEachChild(node, (child) => {
    holds = holds || holdsCommand(child)
  })
  return holds
}

/** Whether a word holds what may become several words when it is known. */
const splits = (node: Word | Assignment): boolean =>
  node.type === "Word" &&
  (node.parts ?? []).some(({ type }) =>
    type === "SimpleExpansion" || type === "ParameterExpansion" || type === "CommandExpansion"
  )

const baseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1)

/** `$HOME/…` as `~/…`: the one variable whose value is known well enough to look at a path. */
const atHome = (word: Word): string | null => {
  const match = /^"?\$(?:HOME|\{HOME\})(.*?)"?$/s.exec(word.text)
  return match === null ? null : `~${(match[1] ?? "").replace(/[$*?].*$/s, unknown)}`
}

const partText = (part: WordPart): string => {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return part.value
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.map(partText).join("")
    default:
      return unknown
  }
}

/** A word without its quotes; what only the shell will know is `unknown`. */
const textOf = (word: Word): string => word.parts === undefined ? word.value : word.parts.map(partText).join("")

const assignmentText = (assignment: Assignment): string => {
  const value = assignment.value.type === "Word" ? textOf(assignment.value) : unknown
  return `${assignment.name}${assignment.index === undefined ? "" : unknown}${
    assignment.append === true ? "+" : ""
  }=${value}`
}

/** Reads a command line. Total: whatever the text is, there is an answer. */
export const readCommandLine = (source: string): ShellReading => {
  const reader = new Reader()
  try {
    reader.script(source, 0)
  } catch {
    reader.problems.add("it cannot be parsed")
  }
  if (reader.evaluation.reachesUnknown) {
    reader.problems.add("it evaluates a variable whose value is known only when it runs")
  }
  return {
    commands: reader.commands,
    writes: reader.writes,
    reads: reader.reads,
    paths: reader.paths,
    movesDirectory: reader.movesDirectory,
    problems: [...reader.problems]
  }
}
