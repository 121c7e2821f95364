import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, it, onTestFinished, vi } from "vitest"
import { pluginsAreLikely, telemetryIsLikely } from "../../packages/cli/src/plugin-hint.ts"

function makeHome() {
  const folder = mkdtempSync(join(tmpdir(), "bezel-hint-"))
  vi.stubEnv("HOME", folder)
  vi.stubEnv("XDG_CONFIG_HOME", "")
  vi.stubEnv("BEZEL_CONFIG_DIR", "")
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true, force: true })
  })
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  const work = join(folder, "a/b")
  mkdirSync(work, { recursive: true })
  return { work, write }
}

it("plugins are not expected where nothing mentions them", () => {
  const { work, write } = makeHome()
  write(".config/bezel/bezel.jsonc", '{ "model": "a/b" }')
  write("a/bezel.jsonc", "{}")
  expect(pluginsAreLikely(work, ["theme=dark"])).toBe(false)
})

it.each([
  ["the user's settings name some", ".config/bezel/bezel.jsonc", '{ "plugins": ["x"] }'],
  ["there are files in the user's plugin folder", ".config/bezel/plugins/x.ts", ""],
  ["the settings of a folder above name some", "a/bezel.jsonc", '{ /* none */ "plugins": [] }'],
  ["the settings in .bezel name some", "a/b/.bezel/bezel.jsonc", '{ "plugins": [] }'],
  ["a project has a plugin folder", "a/.bezel/plugins/x.ts", ""]
])("plugins are expected when %s", (_, path, content) => {
  const { work, write } = makeHome()
  write(path, content)
  expect(pluginsAreLikely(work, [])).toBe(true)
})

it("plugins are expected when the command line names some", () => {
  expect(pluginsAreLikely(makeHome().work, ['plugins=["./x.ts"]'])).toBe(true)
})

it("traces are only looked for where the user's own settings mention them", () => {
  const { write } = makeHome()
  write(".config/bezel/bezel.jsonc", '{ "model": "a/b" }')
  write("a/bezel.jsonc", '{ "telemetry": {} }')
  expect(telemetryIsLikely(["theme=dark"])).toBe(false)
  expect(telemetryIsLikely(["telemetry.otlp.endpoint=http://127.0.0.1:4318"])).toBe(true)
  write(".config/bezel/bezel.jsonc", '{ "telemetry": {} }')
  expect(telemetryIsLikely([])).toBe(true)
})
