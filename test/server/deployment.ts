/** A fleet over folders of its own, with real session hosts: in this process, or in processes. */
import { Plugin } from "@bezel/core/host"
import { SessionStore } from "@bezel/core/session"
import { Settings } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { call, emptySettings, scriptedModel, temporaryDirectory, testGlobals } from "@bezel/core/testing"
import { clientToolsSession } from "@bezel/plugins/client-tools"
import { sessionDirectoryPlugin } from "@bezel/plugins/session-directory"
import { type HostProcesses, inlineLocations, Placement } from "@bezel/server"
import { processPlacement } from "@bezel/server/process"
import { Fleet } from "@bezel/server/serve"
import { Context, Effect, Layer } from "effect"
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fleetLayer } from "../../packages/server/src/serve/make-fleet.ts"
import { makeRoll } from "../../packages/server/src/serve/roll.ts"
import { whoPlugin } from "./who.ts"

export type Isolation = "none" | "location" | "session"

const settings = Layer.succeed(
  Settings,
  Settings.of({
    user: Effect.succeed(emptySettings),
    forLocation: () => Effect.succeed(emptySettings),
    keys: []
  })
)

/** Lets clients offer tools. */
const clientTools = Plugin.define({ id: "bezel.client-tools", session: clientToolsSession })

/** Hosts answer `hello`, and then `hello again`; busy ones in processes of their own go on saying `hello`. With `tools`, they call `stock`. */
export const fleetOver = (isolation: Isolation, mode: "plain" | "busy" | "tools" = "plain") =>
  Effect.gen(function*() {
    const root = yield* temporaryDirectory
    const data = join(root, "data")
    const work = join(root, "work")
    for (const path of [data, work]) mkdirSync(path, { recursive: true })
    const sessions = SessionStore.layer({ directory: data, version: "test" }).pipe(
      Layer.provideMerge(SessionStorage.layer({ directory: data }))
    )
    const plugins = () => Effect.succeed(Plugin.sources("coordinator", [sessionDirectoryPlugin]))
    const stored = yield* Layer.build(sessions)
    const placement: Layer.Layer<
      HostProcesses | Placement | SessionStorage | SessionStore,
      Error
    > = isolation === "none"
      ? Placement.inline.pipe(
        Layer.provideMerge(inlineLocations({ plugins, coordinatorFirst: true })),
        Layer.provideMerge(
          testGlobals([
            sessionDirectoryPlugin,
            ...(mode === "busy" ? [whoPlugin] : []),
            ...(mode === "tools" ? [clientTools] : [])
          ], {
            sessions: stored,
            model: scriptedModel(mode === "tools" ? [[call("stock", {})], "Three."] : ["hello", "hello again"])
          })
        )
      )
      : processPlacement({
        command: [process.execPath, join(import.meta.dirname, "host-program.ts")],
        state: join(root, "state"),
        plugins,
        isolation,
        options: { data, mode }
      }).pipe(Layer.provideMerge(Layer.merge(Layer.succeedContext(stored), settings)))

    const roll = makeRoll(join(root, "sessions.json"))
    const context = yield* Layer.build(fleetLayer({ lists: {}, roll }).pipe(Layer.provideMerge(placement)))
    return {
      root,
      data,
      work,
      roll,
      fleet: Context.get(context, Fleet),
      /** Process ids of the hosts that run. */
      hosts: (): ReadonlyArray<number> =>
        readdirSync(join(root, "state/run/hosts")).map((name) =>
          JSON.parse(readFileSync(join(root, "state/run/hosts", name), "utf8")).process.pid
        )
    }
  })
