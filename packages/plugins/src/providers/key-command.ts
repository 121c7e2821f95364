/**
 * A key that a program prints, such as a password manager.
 *
 * The program is run without a shell, with no terminal to ask on, when the first request needs the key; what it prints is
 * kept in memory for as long as the location is up, and never told. A failure is not kept: the next request tries again.
 */
import { ModelError, type ProviderKey } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { execFile } from "node:child_process"

const limitMillis = 60_000
const maxBytes = 16 * 1024

/** The first line that the command prints. */
export const keyFromCommand = (
  provider: string,
  [program, ...parameters]: readonly [string, ...Array<string>]
): Effect.Effect<ProviderKey, ModelError> => {
  let known: ProviderKey | null = null
  const run = Effect.callback<ProviderKey, ModelError>((resume) => {
    const options = { timeout: limitMillis, killSignal: "SIGKILL", maxBuffer: maxBytes, encoding: "utf8" } as const
    const child = execFile(program, parameters, options, (error, stdout) => {
      const key = stdout.split(/\r?\n/, 1)[0]?.trim() ?? ""
      if (error === null && key !== "") {
        known = { kind: "key", value: Redacted.make(key) }
        return resume(Effect.succeed(known))
      }
      const why = error === null
        ? "printed nothing"
        : error.code === "ENOENT"
        ? "was not found"
        : error.killed === true
        ? `did not end within ${limitMillis / 1000} seconds`
        : `ended with ${
          typeof error.code === "number" ? `exit code ${error.code}` : String(error.code ?? error.signal)
        }`
      resume(Effect.fail(
        new ModelError({
          kind: "auth",
          message: `There is no key for ${provider}: its keyCommand, ${program}, ${why}.`,
          retryable: false,
          retryAfterMs: null
        })
      ))
    })
    child.stdin?.end()
    return Effect.sync(() => child.kill("SIGKILL"))
  })
  return Effect.suspend(() => known === null ? run : Effect.succeed(known))
}
