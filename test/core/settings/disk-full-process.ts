/**
 * A process that saves settings, trust and keys where there is no room for them. Arguments: a folder to keep them in, a
 * folder with projects, whether to use up what room there is, and the project that there is no room for. Prints one JSON
 * line: what was refused, what was on the disk
 * before and after, and what it is once there is room.
 */
import { AppPaths, Trust } from "@bezel/core/settings"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"
import * as path from "node:path"
import { makeCredentialStore } from "../../../packages/plugins/src/accounts/index.ts"
import { makeUserSettings } from "../../../packages/plugins/src/preferences/index.ts"

const [, , home = "", projects = "", fill = "no", other = ""] = process.argv
const folders = { config: path.join(home, "config"), data: path.join(home, "data"), state: path.join(home, "state") }

const save = (project: string, length: number) => {
  const text = "x".repeat(length)
  const trusting = Effect.provide(
    Effect.flatMap(Trust, (trust) => trust.grant(path.join(projects, project))),
    Trust.layer.pipe(
      Layer.provideMerge(AppPaths.layerTest(home)),
      Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromEnv({ env: {} })))
    )
  )
  const told = (effect: Effect.Effect<unknown, { readonly message: string }>) =>
    Effect.match(effect, { onSuccess: () => null, onFailure: ({ message }) => message })
  return Effect.all({
    settings: told(makeUserSettings(folders.config).set("theme", text)),
    keys: told(makeCredentialStore(folders.data).setKey("acme", Redacted.make(text))),
    trust: told(trusting)
  })
}

/** Everything but the ballast and locks, with what is in it. */
const kept = (): ReadonlyArray<readonly [string, string]> =>
  Object.values(folders).flatMap((folder) => fs.readdirSync(folder).map((name) => path.join(folder, name)))
    .filter((file) => !file.includes(".lock")).map((file) => [path.relative(home, file), fs.readFileSync(file, "utf8")])

const ballast = path.join(home, "ballast")

const useUp = (): string => {
  const file = fs.openSync(ballast, "w")
  try {
    for (let wrote = 0; wrote < 2_000_000;) wrote += fs.writeSync(file, Buffer.alloc(512))
    return "there is no end to it"
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error)
  } finally {
    fs.closeSync(file)
  }
}

await Effect.runPromise(Effect.gen(function*() {
  const first = yield* save("one", 10)
  const before = kept()
  const filled = fill === "fill" ? useUp() : null
  const refused = yield* save(other, 5_000)
  const after = kept()
  fs.rmSync(ballast, { force: true })
  const again = yield* save("one", 20)
  process.stdout.write(`${JSON.stringify({ first, filled, before, refused, after, again, end: kept() })}\n`)
}))
