/** Commands of a person around calls and turns: what they are told, what they can stop, and what their failing does. */
import { Plugin } from "@bezel/core/host"
import { call, testSessions } from "@bezel/core/testing"
import { HooksSetting } from "@bezel/plugins/hooks"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { eventually, noting, world } from "./world.ts"

const say = (text: string) => call("say", { text })

describe("a command before a tool", () => {
  it.live("is told of the call and its session, in the location, and lets it through", () =>
    Effect.gen(function*() {
      const { host, notes, ran, results, start } = yield* world(
        (folder) => ({ beforeTool: [{ command: noting(folder, `pwd > '${folder}/where'; echo checked`) }] }),
        [[say("a")], "ok"]
      )
      const id = yield* start
      expect(yield* host.ask(id, "go")).toBe("ok")
      expect(notes()).toEqual([{
        event: "beforeTool",
        sessionID: id,
        conversationID: "c1",
        directory: host.location.directory,
        call: {
          id: expect.any(String),
          name: "say",
          arguments: { text: "a" },
          access: "say",
          subjects: ["a"]
        }
      }])
      expect(results()[0]).toMatchObject({ isFailure: false, result: "a" })
      expect(ran).toEqual(["say a"])
    }).pipe(Effect.scoped))

  it.live.each([
    ["exit code 2, with its error output as the reason", "echo 'not on a Friday' >&2; exit 2", "not on a Friday"],
    ["JSON, with the reason in it", `echo '{"decision":"block","reason":"not on a Friday"}'`, "not on a Friday"]
  ])("blocks it by %s", ([, command, reason]) =>
    Effect.gen(function*() {
      const { host, ran, results, start } = yield* world(
        () => ({ beforeTool: [{ match: "say", command: command ?? "" }] }),
        [[say("a"), call("other", { text: "b" })], "ok"]
      )
      expect(yield* host.ask(yield* start, "go")).toBe("ok")
      expect(results()).toMatchObject([
        { isFailure: true, result: `A hook of the user blocked this call: ${reason}` },
        { isFailure: false, result: "b" }
      ])
      expect(ran).toEqual(["other b"])
    }).pipe(Effect.scoped))

  it.live.each([
    ["ends otherwise", "echo oops >&2; exit 1", "it ended with exit code 1: oops"],
    ["is killed", "kill -9 $$", "it was ended by SIGKILL"],
    ["takes too long", "sleep 60", "it took longer than 0.3 s and was ended"],
    ["prints an answer that is not known", `echo '{"continue":false}'`, "what it printed is JSON, but not an answer"],
    ["prints half an answer", `echo '{"decision":'`, "what it printed is JSON, but not an answer"],
    ["is not there", "/no/such/hook", "it ended with exit code 127"]
  ])("that %s denies: a gate never allows by failing", ([, command, problem]) =>
    Effect.gen(function*() {
      const { host, ran, results, start } = yield* world(
        () => ({ beforeTool: [{ command: command ?? "", timeout: 0.3 }] }),
        [[say("a")], "ok"]
      )
      expect(yield* host.ask(yield* start, "go")).toBe("ok")
      expect(results()[0]).toMatchObject({ isFailure: true, result: expect.stringContaining(problem ?? "") })
      expect(results()[0]?.result).toContain("which has to allow it")
      expect(ran).toEqual([])
    }).pipe(Effect.scoped))

  it.live("as a program that cannot be started denies too, and needs no shell", () =>
    Effect.gen(function*() {
      const { host, ran, results, start } = yield* world(
        () => ({
          beforeTool: [
            { match: ["say"], command: ["/no/such/hook"] },
            { match: "oth*", command: ["node", "-e", "console.log(JSON.stringify({decision:'allow'}))"] }
          ]
        }),
        [[say("a"), call("other", { text: "$HOME" })], "ok"]
      )
      yield* host.ask(yield* start, "go")
      expect(results()[0]?.result).toContain("it could not be started: there is no program /no/such/hook")
      expect(ran).toEqual(["other $HOME"])
    }).pipe(Effect.scoped))

  it.live("changes what the call runs with, in turn, and the rules see what they made of it", () =>
    Effect.gen(function*() {
      const change = (from: string, to: string) =>
        `node -e 'let s="";process.stdin.on("data",d=>s+=d).on("end",()=>{const a=JSON.parse(s).call.arguments;console.log(JSON.stringify({arguments:{text:a.text.replace("${from}","${to}")}}))})'`
      const { host, ran, results, start } = yield* world(
        () => ({ beforeTool: [{ command: change("a", "b") }, { command: change("b", "c") }] }),
        [[say("a"), say("xa")], "ok"],
        { rules: { say: { "*": "allow", xc: "deny" } } }
      )
      yield* host.ask(yield* start, "go")
      expect(ran).toEqual(["say c"])
      expect(results()[0]).toMatchObject({ isFailure: false, result: "c" })
      expect(results()[1]).toMatchObject({ isFailure: true, result: expect.stringContaining("denies") })
    }).pipe(Effect.scoped))

  it.live("is asked again about a call that another plugin changes behind it, and is not gone around", () =>
    Effect.gen(function*() {
      const rewriting = Plugin.define({
        id: "test.rewriting",
        session: (ctx) =>
          Effect.gen(function*() {
            const namespace = yield* ctx.namespace("rewriting", {})
            yield* ctx.hooks(namespace, "tool", { beforeTool: () => Effect.succeed({ args: { text: "forbidden" } }) })
          })
      })
      const { host, notes, ran, results, start } = yield* world(
        (folder) => ({
          beforeTool: [{
            command: noting(folder, `tail -n 1 '${folder}/notes' | grep -q forbidden && exit 2 || exit 0`)
          }]
        }),
        [[say("a")], "ok"],
        { later: [rewriting] }
      )
      yield* host.ask(yield* start, "go")
      expect(notes().map((note) => note.call?.arguments)).toEqual([{ text: "a" }, { text: "forbidden" }])
      expect(results()[0]).toMatchObject({ isFailure: true, result: "A hook of the user blocked this call." })
      expect(ran).toEqual([])
    }).pipe(Effect.scoped))
})

describe("a command after a tool", () => {
  it.live("is told of the result, and adds to it or objects to it", () =>
    Effect.gen(function*() {
      const { host, notes, results, start } = yield* world(
        (folder) => ({
          afterTool: [
            { command: noting(folder, `echo '{"message":"formatted"}'`) },
            { match: "other", command: "echo 'does not compile' >&2; exit 2" }
          ]
        }),
        [[say("a"), call("other", { text: "b" }), call("fails", { text: "c" })], "ok"]
      )
      yield* host.ask(yield* start, "go")
      expect(notes().map(({ call: noted, event, result }) => [event, noted?.name, result]).sort()).toEqual([
        ["afterTool", "fails", { status: "error", text: "it broke" }],
        ["afterTool", "other", { status: "ok", text: "b" }],
        ["afterTool", "say", { status: "ok", text: "a" }]
      ])
      expect(results()).toMatchObject([
        { isFailure: false, result: "a\nformatted" },
        { isFailure: true, result: "b\nformatted\nA hook of the user objects to this result: does not compile" },
        { isFailure: true, result: "it broke\nformatted" }
      ])
    }).pipe(Effect.scoped))

  it.live("that fails warns and changes nothing", () =>
    Effect.gen(function*() {
      const { host, results, start } = yield* world(
        () => ({ afterTool: [{ command: "exit 9" }] }),
        [[say("a")], "ok"]
      )
      expect(yield* host.ask(yield* start, "go")).toBe("ok")
      expect(results()[0]).toMatchObject({ isFailure: false, result: "a" })
    }).pipe(Effect.scoped))
})

describe("a call that a command has seen begin", () => {
  const both = (folder: string) => ({
    beforeTool: [{ command: noting(folder) }],
    afterTool: [{ command: noting(folder) }]
  })

  const ends = (notes: ReturnType<Effect.Success<ReturnType<typeof world>>["notes"]>) =>
    notes.map(({ call: noted, event, result }) => [event, noted?.name, result?.status ?? null])

  it.live("is seen to end when rules or a person stop it", () =>
    Effect.gen(function*() {
      const { host, notes, start } = yield* world(both, [[say("a"), call("other", { text: "b" })], "ok"], {
        rules: { say: { a: "deny" } }
      })
      yield* host.ask(yield* start, "go")
      yield* eventually(() => notes().length === 4)
      expect(ends(notes()).sort()).toEqual([
        ["afterTool", "other", "blocked"],
        ["afterTool", "say", "blocked"],
        ["beforeTool", "other", null],
        ["beforeTool", "say", null]
      ])
    }).pipe(Effect.scoped))

  it.live("is seen to end when another command stops it", () =>
    Effect.gen(function*() {
      const { host, notes, start } = yield* world(
        (folder) => ({ ...both(folder), beforeTool: [{ command: noting(folder) }, { command: "exit 2" }] }),
        [[say("a")], "ok"]
      )
      yield* host.ask(yield* start, "go")
      yield* eventually(() => notes().length === 2)
      expect(ends(notes())).toEqual([["beforeTool", "say", null], ["afterTool", "say", "blocked"]])
    }).pipe(Effect.scoped))

  it.live("is seen to end when the turn is interrupted, before the session closes", () =>
    Effect.gen(function*() {
      const found = yield* Effect.scoped(Effect.gen(function*() {
        const { folder, host, notes, ran, start } = yield* world(both, [[call("waits", { text: "a" })], "never"])
        const id = yield* start
        const asked = yield* Effect.forkScoped(host.ask(id, "go"))
        yield* eventually(() => ran.length === 1)
        yield* Effect.orDie(host.session.interrupt(id))
        expect(yield* Fiber.join(asked)).toContain("aborted")
        yield* eventually(() => notes().length === 2)
        return ends(notes()).concat([[folder, undefined, null]])
      }))
      expect(found.slice(0, 2)).toEqual([["beforeTool", "waits", null], ["afterTool", "waits", "aborted"]])
    }))

  it.live("is seen to end by the next process when its own has died", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const directory = process.cwd()
      const { folder, id } = yield* Effect.scoped(Effect.gen(function*() {
        const { folder, host, ran, start } = yield* world(both, [[call("waits", { text: "a" })]], {
          sessions,
          directory
        })
        const id = yield* start
        yield* Effect.forkScoped(host.ask(id, "go"))
        yield* eventually(() => ran.length === 1)
        return { folder: readFileSync(join(folder, "notes"), "utf8"), id }
      }))
      expect(folder.trim().split("\n")).toHaveLength(1)
      const next = yield* world(both, ["gone on"], { sessions, directory })
      yield* Effect.orDie(next.host.session.resume(id))
      yield* eventually(() => next.notes().length === 1)
      expect(next.notes()[0]).toMatchObject({
        event: "afterTool",
        call: { name: "waits", arguments: { text: "a" } },
        result: { status: "error", text: "interrupted" }
      })
    }).pipe(Effect.scoped))
})

describe("a command at the end of a turn", () => {
  it.live("is told of the answer, and can have the model go on", () =>
    Effect.gen(function*() {
      const { host, model, notes, start } = yield* world(
        (folder) => ({
          turnEnd: [{
            command: noting(
              folder,
              `test -e '${folder}/tested' || { touch '${folder}/tested'; echo 'run the tests' >&2; exit 2; }`
            )
          }]
        }),
        ["done?", "really done"]
      )
      expect(yield* host.ask(yield* start, "go")).toBe("really done")
      expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain(
        "A hook of the user wants you to go on: run the tests"
      )
      expect(notes().map(({ continued, event, status, text }) => ({ event, status, text, continued }))).toEqual([
        { event: "turnEnd", status: "done", text: "done?", continued: 0 },
        { event: "turnEnd", status: "done", text: "really done", continued: 1 }
      ])
    }).pipe(Effect.scoped))

  it.live("cannot keep it from ending for ever, and begins to count anew with the next", () =>
    Effect.gen(function*() {
      const { host, model, start } = yield* world(
        () => ({ turnEnd: [{ command: "exit 2" }] }),
        Array.from({ length: 12 }, (_, index) => `answer ${index}`)
      )
      const id = yield* start
      expect(yield* host.ask(id, "go")).toBe("answer 5")
      expect(yield* host.ask(id, "go")).toBe("answer 11")
      expect(model.requests).toHaveLength(12)
    }).pipe(Effect.scoped))

  it.live("that fails lets it end, and is told of turns that end otherwise", () =>
    Effect.gen(function*() {
      const { host, notes, ran, start } = yield* world(
        (folder) => ({ turnEnd: [{ command: noting(folder, "exit 5") }] }),
        ["ok", [call("waits", { text: "a" })]]
      )
      const id = yield* start
      expect(yield* host.ask(id, "go")).toBe("ok")
      const asked = yield* Effect.forkScoped(host.ask(id, "go on"))
      yield* eventually(() => ran.length === 1)
      yield* Effect.orDie(host.session.interrupt(id))
      yield* Fiber.join(asked)
      yield* eventually(() => notes().length === 2)
      expect(notes().map(({ status }) => status)).toEqual(["done", "aborted"])
    }).pipe(Effect.scoped))

  it.live("is not told of the turns of sub-agents", () =>
    Effect.gen(function*() {
      const { host, notes, start } = yield* world(
        (folder) => ({ turnEnd: [{ command: noting(folder) }] }),
        ["child", "parent"]
      )
      const id = yield* start
      const child = yield* Effect.orDie(host.session.create({ parentID: id }))
      expect(yield* host.ask(child.id, "go")).toBe("child")
      expect(yield* host.ask(id, "go")).toBe("parent")
      expect(notes().map(({ sessionID }) => sessionID)).toEqual([id])
    }).pipe(Effect.scoped))
})

describe("a command's process", () => {
  it.live("ends with all that it started when its time is over", () =>
    Effect.gen(function*() {
      const { folder, host, start } = yield* world(
        (folder) => ({ beforeTool: [{ timeout: 0.4, command: `sleep 300 & echo $! > '${folder}/pid'; wait` }] }),
        [[say("a")], "ok"]
      )
      yield* host.ask(yield* start, "go")
      const pid = readFileSync(join(folder, "pid"), "utf8").trim()
      expect(existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "").toBe("")
    }).pipe(Effect.scoped))

  it.live("may print without end and read nothing", () =>
    Effect.gen(function*() {
      const { host, ran, start } = yield* world(
        () => ({
          beforeTool: [{ command: "head -c 50000000 /dev/zero | tr '\\\\0' x; head -c 50000000 /dev/zero >&2" }]
        }),
        [[say("x".repeat(1_000_000))], "ok"]
      )
      yield* host.ask(yield* start, "go")
      expect(ran).toHaveLength(1)
    }).pipe(Effect.scoped))
})

describe("hooks of several settings files", () => {
  it("add up, so that a project takes none of the user's away", () => {
    expect(HooksSetting.merge(
      { beforeTool: [{ command: "mine" }], turnEnd: [{ command: "bell" }] },
      { beforeTool: [{ command: "theirs" }], afterTool: [] }
    )).toEqual({
      beforeTool: [{ command: "mine" }, { command: "theirs" }],
      turnEnd: [{ command: "bell" }],
      afterTool: []
    })
    expect(HooksSetting.untrusted).toBe("drop")
  })
})
