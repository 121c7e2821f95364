/** Lists of models in files: what is wrong with a damaged one, in words, and what is kept. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { readCatalogue, writeCatalogue } from "../../../packages/plugins/src/providers/catalogue.ts"

const folders = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "bezel-catalogue-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
).pipe(Effect.map((folder) => ({ config: join(folder, "."), cache: join(folder, "cache") })))

it.effect.each<readonly [content: string, why: RegExp]>([
  ["{", /^it is no JSON \(/],
  ["", /^it is no JSON \(/],
  ["[]", /^expected an object$/],
  ["null", /^expected an object$/],
  ['{ "mine": 5 }', /^expected an object at mine$/],
  ['{ "mine": { "large": { "contextWindow": "much" } } }', /^expected .* at mine\.large\.contextWindow$/],
  ['{ "models": { "t": { "zz": { "name": "Z" } } } }', /^expected no member of this name at models\.t\.zz$/],
  [
    '{ "mine": { "a": { "x": 1 }, "b": { "y": 2 } } }',
    /^expected no member of this name at mine\.a\.x, and 1 more like that$/
  ]
])("a file with %j is not used, and it is said why", ([content, why]) =>
  Effect.gen(function*() {
    const { cache, config } = yield* folders
    const file = join(config, "models.json")
    writeFileSync(file, content)
    const { models, warnings } = yield* readCatalogue({ config, cache })
    expect(models).toEqual({})
    expect(warnings).toHaveLength(1)
    expect(warnings[0]?.startsWith(`${file} is not used: `)).toBe(true)
    expect(warnings[0]?.slice(`${file} is not used: `.length)).toMatch(why)
  }).pipe(Effect.scoped))

it.effect("what providers have said is kept beside what was said before, and a person's own word stands above it", () =>
  Effect.gen(function*() {
    const { cache, config } = yield* folders
    yield* writeCatalogue(cache, { a: { one: { name: "One" } } })
    yield* writeCatalogue(cache, { b: { two: { name: "Two" } } })
    writeFileSync(join(config, "models.json"), '{ "a": { "one": { "contextWindow": 5 } }, "c": { "three": {} } }')
    expect(yield* readCatalogue({ config, cache })).toEqual({
      models: { a: { one: { name: "One", contextWindow: 5 } }, b: { two: { name: "Two" } }, c: { three: {} } },
      warnings: []
    })
  }).pipe(Effect.scoped))
