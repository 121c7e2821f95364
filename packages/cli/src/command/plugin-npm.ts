/**
 * The user's npm in the folder of plugins: what it installs and takes away there, what its lock file knows, and the peers of
 * what is installed.
 *
 * npm would install peers by itself, those too that a plugin must get from the program, where a second copy would be another
 * Effect. So it is told to leave them all alone, and what is missing beside the program's own is installed by name.
 */
import { readPackage } from "@bezel/plugins/packages"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { Exit, exitCode } from "../exit.ts"
import { isShared } from "../plugin-modules.ts"
import { oneLine } from "../run/text.ts"

const failed = (message: string) => new Exit(exitCode.failed, message)

/** No scripts, exact versions, copies of local folders. npm leaves peers alone: some of them are the program's own. */
const always = [
  "--ignore-scripts",
  "--save-exact",
  "--install-links",
  "--legacy-peer-deps",
  "--package-lock",
  "--location=project",
  "--no-audit",
  "--no-fund",
  "--no-update-notifier",
  "--loglevel=error"
]

/** Runs the user's npm in a folder; a failure is what npm says of it, in one line. */
export const npm = (
  folder: string,
  command: "install" | "uninstall",
  what: ReadonlyArray<string>
): Effect.Effect<void, Exit> =>
  Effect.callback<void, Exit>((resume) => {
    const child = spawn("npm", [command, ...always, "--", ...what], {
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
      // npm chooses versions that fit the Node it runs on: that is the one that plugins will run on.
      env: { ...process.env, PATH: [dirname(process.execPath), process.env.PATH ?? ""].join(delimiter) }
    })
    const errors: Array<string> = []
    child.stderr.setEncoding("utf8").on("data", (text: string) => errors.push(text))
    child.once("error", (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(failed(
        error.code === "ENOENT"
          ? "there is no npm on the PATH, and packages are installed with it; install Node.js with npm (https://nodejs.org)"
          : `npm cannot be started: ${error.message}`
      ))))
    child.once("close", (code) => {
      if (code === 0) return resume(Effect.void)
      const lines = errors.join("").split("\n").map((line) => line.replace(/^npm (error|ERR!) ?/, "").trim())
      const told = lines.filter((line) => line !== "" && !/^(code|A complete log|errno|syscall)\b/.test(line)).slice(
        0,
        3
      )
      resume(Effect.fail(failed(`npm ${command} failed: ${oneLine(told.join(" "), 400) || `it ended with ${code}`}`)))
    })
    return Effect.sync(() => child.kill())
  })

/** What npm has to install, as it stands in the folder's `package.json`. */
export const installed = (folder: string): { readonly [name: string]: string } => {
  const own = readPackage(folder)
  return own === null ? {} : own.dependencies
}

/** What the lock file says of each package by its name: the version and the digest of its contents. */
export const locked = (
  folder: string,
  name: string
): { readonly version: string; readonly integrity: string } | null => {
  try {
    const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8"))
    const { integrity, version } = packages[`node_modules/${name}`]
    return typeof version === "string" && typeof integrity === "string" ? { version, integrity } : null
  } catch {
    return null
  }
}

/** npm's files as they are now. */
export const lockedFiles = (folder: string) => {
  const files = ["package.json", "package-lock.json"].map((name) => join(folder, name)).filter((file) =>
    existsSync(file)
  )
  const contents = files.map((file) => [file, readFileSync(file)] as const)
  const known = new Map(Object.keys(installed(folder)).map((name) => [name, locked(folder, name)]))
  return {
    of: (name: string) => known.get(name) ?? null,
    restore: () => {
      for (const [file, content] of contents) writeFileSync(file, content)
    }
  }
}

// --------------------------------------------------------------------------------------------------------------- peers

/** Where `package.json` says which of its dependencies nobody has asked for: they are peers of others. */
const peersField = "bezelPeers"

interface Lock {
  readonly packages: {
    readonly [path: string]: {
      readonly peerDependencies?: { readonly [name: string]: string }
      readonly peerDependenciesMeta?: { readonly [name: string]: { readonly optional?: boolean } }
    }
  }
}

const readJson = <A>(file: string, otherwise: A): A => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return otherwise
  }
}

/** The peers that installed packages must have, beside those that the program gives them: name and range. */
const wantedPeers = (folder: string): ReadonlyMap<string, string> => {
  const { packages } = readJson<Lock>(join(folder, "package-lock.json"), { packages: {} })
  const wanted = Object.values(packages ?? {}).flatMap(({ peerDependencies = {}, peerDependenciesMeta = {} }) =>
    Object.entries(peerDependencies).filter(([name]) => !isOwn(name) && peerDependenciesMeta[name]?.optional !== true)
  )
  return new Map(wanted)
}

/** What the program gives, or is. */
const isOwn = (name: string): boolean => isShared(name) || name === "bezel" || name.startsWith("@bezel/")

const peersIn = (folder: string): ReadonlyArray<string> => {
  const { [peersField]: peers = [] } = readJson<{ readonly [peersField]?: ReadonlyArray<string> }>(
    join(folder, "package.json"),
    {}
  )
  return peers
}

const notePeers = (folder: string, peers: ReadonlyArray<string>) => {
  const file = join(folder, "package.json")
  const { [peersField]: _, ...manifest } = readJson<{ readonly [key: string]: unknown }>(file, {})
  writeFileSync(
    file,
    `${JSON.stringify({ ...manifest, ...(peers.length === 0 ? {} : { [peersField]: peers }) }, null, 2)}\n`
  )
}

/** Installs the peers that are missing, and theirs. Each is tried once. */
export const addPeers = (folder: string, tried: ReadonlyArray<string> = []): Effect.Effect<void, Exit> =>
  Effect.suspend(() => {
    const missing = [...wantedPeers(folder)].filter(([name]) =>
      !tried.includes(name) && !existsSync(join(folder, "node_modules", name))
    )
    if (missing.length === 0) return Effect.void
    return Effect.gen(function*() {
      yield* npm(folder, "install", missing.map(([name, range]) => `${name}@${range}`))
      notePeers(folder, [...new Set([...peersIn(folder), ...missing.map(([name]) => name)])])
      yield* addPeers(folder, [...tried, ...missing.map(([name]) => name)])
    })
  })

/** Takes peers away again that nobody needs any more. */
export const removeIdlePeers = (folder: string): Effect.Effect<void, Exit> =>
  Effect.suspend(() => {
    const wanted = wantedPeers(folder)
    const idle = peersIn(folder).filter((name) => !wanted.has(name))
    if (idle.length === 0) return Effect.void
    return Effect.gen(function*() {
      yield* npm(folder, "uninstall", idle)
      notePeers(folder, peersIn(folder).filter((name) => !idle.includes(name)))
      yield* removeIdlePeers(folder)
    })
  })
