import { AppPaths } from "@bezel/core/settings"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { temporary } from "./support.ts"

const inEnvironment = (env: Record<string, string>) =>
  Effect.provide(
    AppPaths.use((paths) => Effect.succeed(paths)),
    AppPaths.layer.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))))
  )

describe("the folders of a user", () => {
  it.effect("are below the home folder by default", () =>
    Effect.gen(function*() {
      expect(yield* inEnvironment({ HOME: "/home/ada" })).toMatchObject({
        data: "/home/ada/.local/share/bezel",
        config: "/home/ada/.config/bezel",
        state: "/home/ada/.local/state/bezel",
        cache: "/home/ada/.cache/bezel"
      })
    }))

  it.effect("follow XDG, except where it is relative or empty", () =>
    Effect.gen(function*() {
      const paths = yield* inEnvironment({
        HOME: "/home/ada",
        XDG_DATA_HOME: "/data",
        XDG_CONFIG_HOME: "relative",
        XDG_STATE_HOME: ""
      })
      expect(paths).toMatchObject({
        data: "/data/bezel",
        config: "/home/ada/.config/bezel",
        state: "/home/ada/.local/state/bezel"
      })
    }))

  it.effect("are below the home that the system knows of where HOME is no absolute path", () =>
    Effect.gen(function*() {
      const expected = { data: path.join(os.userInfo().homedir, ".local/share/bezel") }
      const before = process.env.HOME
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          process.env.HOME = before
        })
      )
      for (const HOME of ["", "relative", "./here"]) {
        process.env.HOME = HOME
        expect(yield* inEnvironment({ HOME })).toMatchObject(expected)
      }
    }))

  it.effect("are named directly by BEZEL_… variables, which win", () =>
    Effect.gen(function*() {
      const paths = yield* inEnvironment({
        HOME: "/home/ada",
        XDG_DATA_HOME: "/data",
        BEZEL_DATA_DIR: "/own/data",
        BEZEL_CACHE_DIR: "here"
      })
      expect(paths).toMatchObject({ data: "/own/data", cache: path.resolve("here") })
    }))

  it.effect("are created on demand and for this user only", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      const paths = yield* Effect.provide(
        AppPaths.use((paths) => Effect.succeed(paths)),
        AppPaths.layerTest(path.join(home, "deep"))
      )
      expect(fs.existsSync(paths.data)).toBe(false)
      const made = yield* paths.ensure("data", "sessions", "one")
      expect(made).toBe(path.join(paths.data, "sessions", "one"))
      for (const folder of [path.join(home, "deep"), paths.data, made]) {
        expect(fs.statSync(folder).mode & 0o777).toBe(0o700)
      }
      expect(yield* paths.ensure("data", "sessions", "one")).toBe(made)
    }))

  it.effect("a folder that cannot be made and one that lies outside are errors by name", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      const paths = yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths)), AppPaths.layerTest(home))
      fs.writeFileSync(path.join(home, "cache"), "")
      expect((yield* Effect.flip(paths.ensure("cache", "x"))).message).toBe(
        `Cannot create the folder ${path.join(home, "cache", "x")}: ENOTDIR`
      )
      expect((yield* Effect.flip(paths.ensure("data", "..", "elsewhere"))).message).toContain("lies outside")
    }))
})
