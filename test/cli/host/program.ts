/**
 * Boots a location with the plugin files of a folder and runs the steps given as JSON: `write` a file, `reload` a plugin or all,
 * `ask` for a tool's answer, `list` the plugins. Prints, below the log, what each step
 * gave, as one JSON array.
 */
import { LocationMap, PluginKernel, SessionPlugins } from "@bezel/core/host"
import { Plugin, SessionHost } from "@bezel/core/host"
import { AppPaths } from "@bezel/core/settings"
import { call, emptySettings, modelPlugin, scriptedModel, testGlobals } from "@bezel/core/testing"
import { Context, Effect, Layer } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { outsidePlugins, outsideSources } from "../../../packages/cli/src/host/outside-plugins.ts"

type Step =
  | { readonly write: string; readonly text: string }
  | { readonly reload: ReadonlyArray<string> }
  | { readonly ask: string }
  | { readonly list: true }

const [folder = "", steps = "[]"] = process.argv.slice(2)

const write = (file: string, text: string) => {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), text)
}

const program = Effect.gen(function*() {
  const given: ReadonlyArray<Step> = JSON.parse(steps)
  const first = given.findIndex((step) => !("write" in step))
  for (const step of given.slice(0, first)) if ("write" in step) write(step.write, step.text)
  const model = scriptedModel([])
  const plugins = Layer.effect(
    SessionPlugins,
    Effect.gen(function*() {
      const outside = yield* outsidePlugins(folder, emptySettings, true)
      return SessionPlugins.of({
        forLocation: () =>
          Effect.succeed([...Plugin.sources("session", [modelPlugin(model)]), ...outsideSources("session", outside)])
      })
    })
  ).pipe(Layer.provide(AppPaths.layer))
  const globals = yield* Layer.build(LocationMap.layer.pipe(Layer.provide(plugins), Layer.provide(testGlobals([]))))
  const services = yield* Context.get(globals, LocationMap).get(folder)
  const { session, tools } = Context.get(services, SessionHost)
  const kernel = Context.get(services, PluginKernel)
  const { id } = yield* session.create()
  const outputs: Array<unknown> = []
  for (const step of given.slice(first)) {
    if ("write" in step) write(step.write, step.text)
    else if ("reload" in step) {
      const reload = kernel.reload(step.reload.length === 0 ? {} : { plugins: step.reload })
      outputs.push(yield* Effect.catch(reload, ({ message }) => Effect.succeed(message)))
    } else if ("list" in step) {
      outputs.push((yield* kernel.plugins).slice(1).map((plugin) => [plugin.id, plugin.version, plugin.state]))
    } else {
      model.add([call(step.ask, {})], "end")
      const { inputID } = yield* session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* session.wait(id, inputID)
      const told = model.requests.at(-1)?.messages.at(-1)
      outputs.push(told?.role === "tool" ? told.content[0]?.result : (yield* tools.list).map(({ name }) => name))
    }
  }
  return outputs
})

process.stdout.write(`\n${JSON.stringify(await Effect.runPromise(Effect.scoped(program)))}`)
