/**
 * A command: its name, its options and arguments, and what it does. The table of commands is the one source of the grammar,
 * of `--help` and of the completions.
 */
import type { Options, Values } from "./option.ts"

/** What every command gets beside its own arguments. */
export interface Environment {
  readonly version: string
  /** `--set key=value`, in order. */
  readonly set: ReadonlyArray<string>
  readonly color: boolean
  readonly verbose: boolean
}

export interface Positional {
  readonly placeholder: string
  readonly required: boolean
  /** Takes all that is left. */
  readonly many: boolean
}

/** A command with its option types erased, as the table holds it. */
export interface Command {
  /** `""` for the terminal, `"run"`, `"session list"`. */
  readonly name: string
  readonly summary: string
  readonly positionals: ReadonlyArray<Positional>
  readonly options: Options
  readonly examples: ReadonlyArray<string>
  /** Set on a command whose name is reserved: what it is for. */
  readonly notBuilt: boolean
  /** Reads the options and gives what to do, or the faults of the values. */
  readonly bind: (
    given: ReadonlyMap<string, ReadonlyArray<string>>,
    positionals: ReadonlyArray<string>
  ) => { readonly execute: (environment: Environment) => Promise<number> } | BadValue
}

export interface BadValue {
  readonly key: string
  readonly expected: string
}

/** A command's work; the number is its exit code. */
export type Execute<O extends Options> = (
  options: Values<O>,
  positionals: ReadonlyArray<string>,
  environment: Environment
) => Promise<number>

/** What a command is about to be called with. */
export interface Call<O extends Options> {
  readonly options: Values<O>
  readonly positionals: ReadonlyArray<string>
  readonly environment: Environment
}

interface Definition<O extends Options> {
  readonly name: string
  readonly summary: string
  /** `PROMPT…`, `[PATH]`, `ID`: brackets make it optional, dots take all that is left. */
  readonly arguments?: ReadonlyArray<string>
  readonly options: O
  readonly examples: ReadonlyArray<string>
  /** Loads the command's code, when it is called. */
  readonly load: (call: Call<O>) => Promise<Execute<O>>
}

const positional = (written: string): Positional => ({
  placeholder: written.replace(/^\[|\]$/g, ""),
  required: !written.startsWith("["),
  many: written.includes("…")
})

export function command<const O extends Options>(definition: Definition<O>): Command {
  return {
    name: definition.name,
    summary: definition.summary,
    positionals: (definition.arguments ?? []).map(positional),
    options: definition.options,
    examples: definition.examples,
    notBuilt: false,
    bind: (given, positionals) => {
      const values: { [key: string]: unknown } = {}
      for (const [key, option] of Object.entries(definition.options)) {
        const read = option.read(given.get(key) ?? [])
        if ("expected" in read) return { key, expected: read.expected }
        values[key] = read.value
      }
      // Every key of `O` has just been read by its own option: the one place where its type is put back together.
      const options = values as Values<O>
      return {
        execute: async (environment) =>
          (await definition.load({ options, positionals, environment }))(options, positionals, environment)
      }
    }
  }
}

/** A name that is reserved for what is not there yet; it takes any arguments and says so. */
export const notBuilt = (name: string, summary: string): Command => ({
  name,
  summary: `${summary} (not built yet)`,
  positionals: [],
  options: {},
  examples: [],
  notBuilt: true,
  bind: () => ({
    execute: (environment) => {
      process.stderr.write(`bezel: bezel ${name} is not built yet in version ${environment.version}\n`)
      return Promise.resolve(2)
    }
  })
})
