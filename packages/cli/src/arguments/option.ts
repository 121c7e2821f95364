/**
 * Options of a command, described once: from the description come parsing, help and completions.
 *
 * An option is written `--name value` or `--name=value`; a flag takes no value. The name on the command line is the key of
 * the description with dashes (`maxSteps` → `--max-steps`). Values are read by `read`, which answers with the value or with
 * what would be right.
 */

/** Why a value is not accepted: what would be right, to follow "--name takes". */
export interface Refused {
  readonly expected: string
}

export interface Option<A> {
  /** What stands for the value in help, or `null` for a flag. */
  readonly placeholder: string | null
  readonly description: string
  /** One letter, `-x`, or `null`. */
  readonly short: string | null
  readonly choices: ReadonlyArray<string> | null
  /** From the values as given, in order; empty when the option is absent. */
  readonly read: (values: ReadonlyArray<string>) => { readonly value: A } | Refused
}

/** Descriptions by key. The erased form, as help and completions see it. */
export interface Options {
  readonly [key: string]: Option<unknown>
}

/** What a command gets for its descriptions. */
export type Values<O extends Options> = { readonly [K in keyof O]: O[K] extends Option<infer A> ? A : never }

export const optionName = (key: string): string => "--" + key.replace(/[A-Z]/g, (letter) => "-" + letter.toLowerCase())

interface Extra {
  readonly short?: string
  readonly choices?: ReadonlyArray<string>
}

const make = <A>(
  placeholder: string | null,
  description: string,
  read: Option<A>["read"],
  extra: Extra = {}
): Option<A> => ({ placeholder, description, read, short: extra.short ?? null, choices: extra.choices ?? null })

export const flag = (description: string, extra?: Extra): Option<boolean> =>
  make<boolean>(null, description, (values) => ({ value: values.length > 0 }), extra)

/** The last one given counts. */
export const text = (placeholder: string, description: string, extra?: Extra): Option<string | null> =>
  make<string | null>(placeholder, description, (values) => {
    const value = values.at(-1)
    if (value === "") return { expected: placeholder }
    return { value: value ?? null }
  }, extra)

/** May be given several times. */
export const texts = (placeholder: string, description: string, extra?: Extra): Option<ReadonlyArray<string>> =>
  make<ReadonlyArray<string>>(
    placeholder,
    `${description}; may be repeated`,
    (values) => values.includes("") ? { expected: placeholder } : { value: values },
    extra
  )

export const choice = <const C extends string>(
  choices: ReadonlyArray<C>,
  initial: C,
  description: string
): Option<C> =>
  make<C>(choices.join("|"), `${description} (default ${initial})`, (values) => {
    const given = values.at(-1) ?? initial
    const value = choices.find((item) => item === given)
    return value === undefined ? { expected: `one of ${choices.join(", ")}` } : { value }
  }, { choices })

/** A number over 0, or `null` when absent. */
export const positive = (placeholder: string, description: string): Option<number | null> =>
  make<number | null>(placeholder, description, (values) => {
    const given = values.at(-1)
    if (given === undefined) return { value: null }
    const value = Number(given)
    return given.trim() !== "" && Number.isFinite(value) && value > 0 ? { value } : { expected: "a number over 0" }
  })

/** A whole number of at least `least`, or `null` when absent. */
export const whole = (placeholder: string, least: number, description: string): Option<number | null> =>
  make<number | null>(placeholder, description, (values) => {
    const given = values.at(-1)
    if (given === undefined) return { value: null }
    const value = Number(given)
    return /^\d+$/.test(given) && Number.isSafeInteger(value) && value >= least
      ? { value }
      : { expected: `a whole number, ${least} or more` }
  })
