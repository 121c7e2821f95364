/**
 * The first file of the command: as little as possible before the program proper is loaded.
 *
 * It answers `--version` by itself, refuses a Node that is too old, turns on the compile cache (here and not by an
 * environment variable, which the agent's child processes would inherit), and turns whatever escapes the program into one
 * line without a stack. It imports nothing statically but Node's own modules, the package's version and what is as small.
 */
import { accessSync, constants, mkdirSync } from "node:fs"
import * as module from "node:module"
import { isAbsolute, join } from "node:path"
import metadata from "../package.json" with { type: "json" }
import { homeFolder } from "./home.ts"
import { printable } from "./run/text.ts"

const argv = process.argv.slice(2)

/** Where compiled code is kept: beside the bundle if this user may write there, else in the user's cache folder if any. */
function compileCacheFolder(): string | null {
  const beside = join(import.meta.dirname, "compile-cache")
  try {
    mkdirSync(beside, { recursive: true })
    accessSync(beside, constants.W_OK)
    return beside
  } catch {
    const { BEZEL_CACHE_DIR: own, XDG_CACHE_HOME: base = "" } = process.env
    if (own) return join(own, "compile-cache")
    const home = homeFolder()
    if (isAbsolute(base)) return join(base, "bezel", "compile-cache")
    return home === null ? null : join(home, ".cache", "bezel", "compile-cache")
  }
}

/** The plugin that an error came from, if plugins were loaded (`host/plugin-faults.ts` says how that is known). */
function whoseFault(error: unknown): string | null {
  const find: unknown = Reflect.get(globalThis, Symbol.for("bezel.whose-fault"))
  const found: unknown = typeof find === "function" ? Reflect.apply(find, undefined, [error]) : null
  return typeof found === "string" ? found : null
}

const firstLine = (error: unknown): string =>
  printable((error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "")

/** One line for a person; with `--verbose` the stack as well. An uncaught error of minified code would print its source. */
function report(error: unknown): void {
  const plugin = whoseFault(error)
  process.stderr.write(
    plugin === null
      ? `bezel: ${firstLine(error)} (this is a fault of Bezel; please report it)\n`
      : `bezel: ${plugin} threw an error outside of all calls, which ends the process: ${firstLine(error)}\n`
  )
  if (argv.includes("--verbose") && error instanceof Error) process.stderr.write(`${error.stack}\n`)
}

function supported(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > 22 || (major === 22 && minor >= 19)
}

if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
  process.stdout.write(`${metadata.version}\n`)
} else if (!supported(process.versions.node)) {
  process.stderr.write(`bezel: Node ${process.versions.node} is too old; Bezel needs 22.19 or newer\n`)
  process.exitCode = 2
} else {
  // Node announces features that it still calls experimental on stderr, where only our own lines belong.
  process.removeAllListeners("warning")
  const compiled = import.meta.url.endsWith(".mjs") ? compileCacheFolder() : null
  if (compiled !== null) module.enableCompileCache(compiled)
  const crash = (error: unknown) => {
    report(error)
    process.exit(1)
  }
  // A promise that was let go leaves everything else as it was; a throw may have left something half done.
  const onRejection = (error: unknown) => {
    const plugin = whoseFault(error)
    if (plugin === null) return crash(error)
    console.error(`bezel: ${plugin} let a promise fail that it did not wait for: ${firstLine(error)}`)
  }
  process.on("uncaughtException", crash).on("unhandledRejection", onRejection)
  try {
    const { main } = await import("./main.ts")
    await main(argv, metadata.version)
  } catch (error) {
    report(error)
    process.exitCode = 1
  }
  // All that had to end has ended; idle connections of an HTTP client would keep the process for a while.
  // That something could not be written is told in an event behind this, and ends the process with another code.
  process.stdout.write("", () => process.stderr.write("", () => setImmediate(() => process.exit())))
}
