/** Bezel inside a program: the same client, its hosts in this process, and tools of the program's own. */
import { call, modelPlugin, scriptedModel, temporaryDirectory } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Bezel, type EmbeddedBezel } from "bezel"
import { Effect, Schema } from "effect"
import { mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const open = (extra: object = {}) =>
  Effect.gen(function*() {
    const folder = realpathSync(yield* temporaryDirectory)
    const directory = join(folder, "work")
    const other = join(folder, "other")
    for (const place of [directory, other]) mkdirSync(place)
    writeFileSync(join(directory, "hello.txt"), "Hello, file.\n")
    const bezel = yield* Effect.acquireRelease(
      Effect.promise(() => Bezel.open({ folder, directory, set: ["model=bezel/offline"], ...extra })),
      (opened: EmbeddedBezel) => Effect.promise(() => opened.close())
    )
    return { bezel, directory, other }
  })

describe("Bezel.open", () => {
  it.live("runs a session in this process: a tool of Bezel's own, its events, and the answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { bezel, directory } = yield* open()
      yield* Effect.promise(async () => {
        const session = await bezel.session.create({ title: "one" })
        expect(session.location.directory).toBe(directory)
        const types: Array<string> = []
        const following = (async () => {
          for await (const event of bezel.session.events(session.id)) {
            types.push(event.type)
            if (event.type === "ready") void bezel.session.prompt(session.id, "read hello.txt")
            if (event.type === "turn.ended") break
          }
        })()
        await following
        expect(types).toContain("tool.finished")
        expect((await bezel.session.wait(session.id)).text).toContain("Hello, file.")
        expect((await bezel.location.plugins()).map(({ id }) => id)).toContain("bezel.program")
        expect((await bezel.health()).status).toBe("ok")
        await expect(bezel.session.get("ses_none")).rejects.toMatchObject({ code: "not_found" })
      })
    })))

  it.live("offers tools of the program where locations are up already, and where they come up later", () =>
    Effect.scoped(Effect.gen(function*() {
      const { bezel, directory, other } = yield* open()
      yield* Effect.promise(async () => {
        await bezel.session.create({ location: directory })
        await bezel.session.create({ location: other })
        const names = async (location: string) => (await bezel.location.tools(location)).map(({ name }) => name)
        expect(await names(directory)).not.toContain("weather")
        const remove = await bezel.tools.register("weather", {
          description: "Says how the weather is.",
          input: Schema.Struct({ place: Schema.String }),
          execute: ({ place }) => `It rains in ${place}.`
        })
        expect(await names(directory)).toContain("weather")
        expect(await names(other)).toContain("weather")
        await remove()
        expect(await names(directory)).not.toContain("weather")
        expect(await names(other)).not.toContain("weather")
      })
    })))

  it.live("has the model call a function of the program, after a person's yes", () =>
    Effect.scoped(Effect.gen(function*() {
      const model = scriptedModel([[call("weather", { place: "Berlin" })], "It rains."])
      const { bezel } = yield* open({ plugins: [modelPlugin(model)], set: ["model=test/scripted"] })
      yield* Effect.promise(async () => {
        const asked: Array<unknown> = []
        await bezel.tools.register("weather", {
          description: "Says how the weather is.",
          input: Schema.Struct({ place: Schema.String }),
          execute: ({ place }, { sessionID }) => {
            asked.push({ place, sessionID })
            return { rain: true }
          }
        })
        const { id } = await bezel.session.create()
        const events = bezel.session.events(id)[Symbol.asyncIterator]()
        await events.next()
        const { inputID } = await bezel.session.prompt(id, "How is the weather?")
        for (;;) if ((await events.next()).value.type === "interaction.opened") break
        const [approval] = await bezel.session.interactions(id)
        expect(approval).toMatchObject({ interaction: "bezel.approval", request: { tool: "weather" } })
        expect(asked).toEqual([])
        await bezel.session.answer(id, approval?.id ?? "", { response: { decision: "once" } })
        expect(await bezel.session.wait(id, { input: inputID })).toMatchObject({ status: "done", text: "It rains." })
        expect(asked).toEqual([{ place: "Berlin", sessionID: id }])
        expect(JSON.stringify(model.requests[1]?.messages)).toContain("rain")
        await events.return?.()
      })
    })))

  it.live("closes whole, and the sessions are there when it is opened again", () =>
    Effect.scoped(Effect.gen(function*() {
      const folder = realpathSync(yield* temporaryDirectory)
      yield* Effect.promise(async () => {
        const first = await Bezel.open({ folder, directory: folder })
        const { id } = await first.session.create({ title: "kept" })
        await first.session.ask(id, "hello")
        await first.close()
        const second = await Bezel.open({ folder, directory: folder })
        expect((await second.session.list()).items.map(({ title }) => title)).toEqual(["kept"])
        expect((await second.session.transcript(id)).length).toBe(2)
        await second.close()
      })
    })))
})
