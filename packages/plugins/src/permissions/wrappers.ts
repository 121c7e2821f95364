/**
 * Commands that run other commands: how to get from `timeout -k 5 30 sudo rm x` to `rm x`.
 *
 * A wrapper is looked through only if each of its options is known; otherwise a value could be taken for the command, and the
 * command go unseen. What cannot be looked through is said, so that a person decides.
 */
import { unknown } from "./pattern.ts"

/** What a wrapper runs: a command as words, or a script for a shell to parse. */
interface Wrapped {
  readonly command?: ReadonlyArray<string>
  readonly script?: string
  /** Environment that it sets for the command, `NAME=value` each. */
  readonly assignments?: ReadonlyArray<string>
  /** The wrapper itself must be allowed too: it gives rights, or acts by itself. */
  readonly own: boolean
  /** It runs the command in another directory. */
  readonly movesDirectory?: boolean
  /** Files that it writes. */
  readonly writes?: ReadonlyArray<string>
}

export type Unwrapped = ReadonlyArray<Wrapped> | { readonly problem: string } | null

interface WrapperOptions {
  /** Short options without and with a value; `optional` ones have it attached or not at all. */
  readonly flags?: string
  readonly valued?: string
  readonly optional?: string
  /** Long options without and with a value, without the dashes. */
  readonly longFlags?: ReadonlyArray<string>
  readonly longValued?: ReadonlyArray<string>
  /** Words between the options and the command. */
  readonly positional?: number
  /** Words with a `=` may stand before the command, whatever name is before it. */
  readonly assignments?: boolean
}

interface Parsed {
  readonly options: ReadonlyMap<string, string>
  readonly assignments: ReadonlyArray<string>
  readonly rest: ReadonlyArray<string>
}

/** Reads the options in front of a command; `null` if one is not known or not readable. */
const parseOptions = (words: ReadonlyArray<string>, spec: WrapperOptions): Parsed | null => {
  const options = new Map<string, string>()
  const assignments: Array<string> = []
  let index = 0
  const optional = spec.optional ?? ""
  for (; index < words.length; index++) {
    const word = words[index] ?? ""
    if (!word.startsWith("-") || word === "-") break
    if (word.includes(unknown)) return null
    if (word === "--") {
      index++
      break
    }
    if (word.startsWith("--")) {
      const [name = "", value] = word.slice(2).split(/=(.*)/s)
      const takesValue = spec.longValued?.includes(name) === true
      if (!takesValue && spec.longFlags?.includes(name) !== true) return null
      options.set(name, value ?? (takesValue ? words[++index] ?? "" : ""))
      continue
    }
    for (let letter = 1; letter < word.length; letter++) {
      const name = word.charAt(letter)
      if ((spec.flags ?? "").includes(name)) options.set(name, "")
      else if ((spec.valued ?? "").includes(name) || optional.includes(name)) {
        const attached = word.slice(letter + 1)
        options.set(name, attached !== "" || optional.includes(name) ? attached : words[++index] ?? "")
        break
      } else return null
    }
  }
  if (spec.assignments === true) {
    for (; words[index]?.includes("=") === true; index++) assignments.push(words[index] ?? "")
  }
  const rest = words.slice(index)
  if ([...options.values(), ...rest.slice(0, spec.positional ?? 0)].some((value) => value.includes(unknown))) {
    return null
  }
  return { options, assignments, rest: rest.slice(spec.positional ?? 0) }
}

const plain: { readonly [name: string]: WrapperOptions } = {
  timeout: {
    flags: "vfp",
    valued: "sk",
    longFlags: ["preserve-status", "foreground", "verbose"],
    longValued: ["signal", "kill-after"],
    positional: 1
  },
  nice: { valued: "n", flags: "0123456789", longValued: ["adjustment"] },
  nohup: {},
  setsid: { flags: "cfw", longFlags: ["ctty", "fork", "wait"] },
  ionice: { flags: "t", valued: "cn", longFlags: ["ignore"], longValued: ["class", "classdata"] },
  chrt: { flags: "abfimoRrv", valued: "TPD", positional: 1 },
  taskset: { flags: "ac", longFlags: ["all-tasks", "cpu-list"], positional: 1 },
  stdbuf: { valued: "ioe", longValued: ["input", "output", "error"] },
  time: { flags: "pqv", valued: "f", longFlags: ["portability", "quiet", "verbose"], longValued: ["format"] },
  builtin: {},
  exec: { flags: "cl", valued: "a" },
  busybox: {},
  unbuffer: { flags: "p" },
  flock: {
    flags: "snxueoF",
    valued: "wE",
    longFlags: ["shared", "exclusive", "nonblock", "unlock", "close", "no-fork"],
    longValued: ["timeout", "wait", "conflict-exit-code"],
    positional: 1
  },
  strace: { flags: "fqcCinrtTvxyY", valued: "aeEIpPsSu" },
  fakeroot: {},
  catchsegv: {}
}

const privileged: { readonly [name: string]: WrapperOptions } = {
  sudo: {
    flags: "AbEHnPSksi",
    valued: "ugpCDRrtTU",
    longFlags: [
      "askpass",
      "background",
      "preserve-env",
      "set-home",
      "non-interactive",
      "preserve-groups",
      "stdin",
      "login",
      "shell"
    ],
    longValued: ["user", "group", "prompt", "close-from", "chdir", "chroot", "role", "type", "command-timeout"],
    assignments: true
  },
  doas: { flags: "ns", valued: "uC" },
  chroot: { longValued: ["userspec", "groups"], longFlags: ["skip-chdir"], positional: 1 }
}

const shells: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash"])

/** They run other commands, in ways of their own that are not read here. */
const opaque: ReadonlySet<string> = new Set([
  "choom",
  "dbus-run-session",
  "entr",
  "i386",
  "ld.so",
  "linux32",
  "linux64",
  "nsenter",
  "parallel",
  "prlimit",
  "runcon",
  "runuser",
  "script",
  "setarch",
  "setpriv",
  "sg",
  "ssh-agent",
  "start-stop-daemon",
  "su",
  "systemd-run",
  "uclampset",
  "unshare",
  "x86_64"
])

/** Options of builtins that name a command, or a file for the name of one. */
const opaqueOptions: { readonly [name: string]: RegExp } = {
  bind: /^-\w*x/,
  compgen: /^-\w*C/,
  complete: /^-\w*C/,
  enable: /^-\w*f/,
  hash: /^-\w*p/,
  jobs: /^-\w*x/,
  mapfile: /^-\w*C/,
  readarray: /^-\w*C/
}

const cannotTell = (name: string) => ({ problem: `cannot tell which command ${name} would run` })

const afterOptions = (name: string, words: ReadonlyArray<string>, spec: WrapperOptions, own: boolean): Unwrapped => {
  const parsed = parseOptions(words, spec)
  if (parsed === null) return cannotTell(name)
  if (parsed.rest.length === 0) return null
  return [{ command: parsed.rest, assignments: parsed.assignments, own }]
}

const unwrapEnv = (words: ReadonlyArray<string>): Unwrapped => {
  const separate = words.filter((word, index) => !(word === "-" && index === 0))
  const parsed = parseOptions(separate, {
    flags: "i0v",
    valued: "uCS",
    longFlags: ["ignore-environment", "null", "debug"],
    longValued: ["unset", "chdir", "split-string"],
    assignments: true
  })
  if (parsed === null) return cannotTell("env")
  const split = parsed.options.get("S") ?? parsed.options.get("split-string")
  const movesDirectory = parsed.options.has("C") || parsed.options.has("chdir")
  if (split !== undefined) {
    // Its own small quoting language is the shell's but for what `\\` and `$` mean.
    if (/[\\$]/.test(split)) return cannotTell("env")
    return [{ script: [split, ...parsed.rest].join(" "), assignments: parsed.assignments, own: false, movesDirectory }]
  }
  if (parsed.rest.length === 0) return null
  return [{ command: parsed.rest, assignments: parsed.assignments, own: false, movesDirectory }]
}

const unwrapXargs = (words: ReadonlyArray<string>): Unwrapped => {
  const parsed = parseOptions(words, {
    flags: "0prtxo",
    valued: "aEILnPsd",
    optional: "eil",
    longFlags: ["null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "replace", "max-lines", "eof"],
    longValued: ["arg-file", "delimiter", "max-args", "max-procs", "max-chars"]
  })
  if (parsed === null) return cannotTell("xargs")
  const replaced = parsed.options.get("I") ?? parsed.options.get("i") ?? parsed.options.get("replace")
  const command = parsed.rest.length === 0 ? ["echo"] : parsed.rest
  const place = replaced === undefined ? null : replaced === "" ? "{}" : replaced
  return [{
    command: place === null ? [...command, unknown] : command.map((word) => word.split(place).join(unknown)),
    own: false
  }]
}

const unwrapShell = (name: string, words: ReadonlyArray<string>): Unwrapped => {
  let hasScript = false
  let index = 0
  for (; index < words.length; index++) {
    const word = words[index] ?? ""
    if (word === "--" || word === "-") {
      index++
      break
    }
    if (!/^[-+]./.test(word)) break
    if (word.includes(unknown)) return cannotTell(name)
    if (word.startsWith("--")) {
      if (["--rcfile", "--init-file"].includes(word)) return { problem: `${name} would read commands from a file` }
      continue
    }
    if (word.startsWith("-") && word.slice(1).includes("c")) hasScript = true
    if (/[oO]/.test(word.slice(1))) index++
  }
  if (!hasScript) return words[index]?.includes(unknown) === true ? cannotTell(name) : null
  const script = words[index]
  return script === undefined || script.includes(unknown) ? cannotTell(name) : [{ script, own: false }]
}

const unwrapFind = (words: ReadonlyArray<string>): Unwrapped => {
  const found: Array<Wrapped> = []
  const roots = words.slice(
    0,
    words.findIndex((word) => /^[-(!]/.test(word)) === -1 ? undefined : words.findIndex((word) => /^[-(!]/.test(word))
  )
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? ""
    if (/^-(exec|ok)(dir)?$/.test(word)) {
      const end = words.findIndex((each, at) =>
        at > index && (each === ";" || (each === "+" && words[at - 1]?.includes("{}") === true))
      )
      const command = words.slice(index + 1, end === -1 ? undefined : end).map((each) => each.split("{}").join(unknown))
      if (command.length === 0) return cannotTell("find")
      found.push({ command, own: true })
      index = end === -1 ? words.length : end
    } else if (word === "-delete") {
      found.push({ command: ["rm", ...roots, unknown], own: true })
    } else if (/^-f(print0?|printf|ls)$/.test(word)) {
      found.push({ writes: [words[index + 1] ?? unknown], own: true })
    }
  }
  return found.length === 0 ? null : found
}

/** The commands that names will stand for from here on. */
const unwrapAlias = (words: ReadonlyArray<string>): Unwrapped => {
  const values = words.flatMap((word) => /^[^=]+=(.*)$/s.exec(word)?.[1] ?? [])
  if (words.some((word) => word.includes(unknown))) return cannotTell("alias")
  return values.length === 0 ? null : values.map((script) => ({ script, own: true }))
}

const unwrapWatch = (words: ReadonlyArray<string>): Unwrapped => {
  const parsed = parseOptions(words, {
    flags: "bcdegptxwrC",
    valued: "nq",
    longFlags: [
      "beep",
      "color",
      "no-color",
      "differences",
      "errexit",
      "chgexit",
      "no-title",
      "precise",
      "exec",
      "no-wrap",
      "no-rerun"
    ],
    longValued: ["interval", "equexit"]
  })
  if (parsed === null) return cannotTell("watch")
  if (parsed.rest.length === 0) return null
  const script = parsed.rest.join(" ")
  return script.includes(unknown) ? cannotTell("watch") : [{ script, own: false }]
}

/**
 * What these words run besides themselves: `null` if the command is no wrapper (or runs nothing), a problem if that cannot be
 * told. The first word is the command's name, without its folder.
 */
export const unwrap = (words: ReadonlyArray<string>): Unwrapped => {
  const [name = "", ...args] = words
  if (Object.hasOwn(plain, name)) return afterOptions(name, args, plain[name] ?? {}, false)
  if (Object.hasOwn(privileged, name)) return afterOptions(name, args, privileged[name] ?? {}, true)
  if (shells.has(name)) return unwrapShell(name, args)
  if (opaque.has(name) || /^ld-.*\.so(\.\d+)?$/.test(name)) return args.length === 0 ? null : cannotTell(name)
  const opaqueOption = Object.hasOwn(opaqueOptions, name) ? opaqueOptions[name] : undefined
  if (opaqueOption !== undefined && args.some((word) => opaqueOption.test(word))) return cannotTell(name)
  switch (name) {
    case "env":
      return unwrapEnv(args)
    case "xargs":
      return unwrapXargs(args)
    case "find":
      return unwrapFind(args)
    case "watch":
      return unwrapWatch(args)
    case "command":
      // `command -v x` only asks where x is.
      return /^-[pvV]*[vV]/.test(args[0] ?? "") ? null : afterOptions(name, args, { flags: "p" }, false)
    case "source":
    case ".":
      return args[0]?.includes(unknown) === true ? cannotTell(name) : null
    case "alias":
      return unwrapAlias(args)
    case "eval": {
      const script = args.filter((word, index) => !(index === 0 && word === "--")).join(" ")
      if (args.length === 0) return null
      return script.includes(unknown) ? cannotTell("eval") : [{ script, own: false }]
    }
    case "trap": {
      const [script = "", ...signals] = args.filter((word) => word !== "--")
      if (signals.length === 0 || script === "-" || script === "") return null
      return script.includes(unknown) ? cannotTell("trap") : [{ script, own: false }]
    }
    default:
      return null
  }
}

const input = /^(\/dev\/stdin|\/dev\/fd\/\d+|\/proc\/self\/fd\/\d+)$/

/** A shell that was given no script and no file, or its input as one, takes its commands from there. */
export const readsScriptFromInput = (words: ReadonlyArray<string>): boolean => {
  const [name = "", ...args] = words
  if ((shells.has(name) || name === "source" || name === ".") && args.some((word) => input.test(word))) return true
  return shells.has(name) && (args.every((word) => word.startsWith("-")) || args.includes("-s"))
}
