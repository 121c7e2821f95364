import { Plugin } from "@bezel/core/host"
import { InteractionBroker } from "@bezel/core/service"
import { call, run, say, scriptedModel, type ScriptedTurn, testSessionHost } from "@bezel/core/testing"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { session as tools } from "@bezel/plugins/tools/session"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-shells-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

/** A session whose model makes these calls, one answer each; what it was told of them. */
const world = (
  options: { readonly [name: string]: unknown },
  ...script: ReadonlyArray<ScriptedTurn>
) =>
  Effect.gen(function*() {
    const home = yield* temporary
    const directory = path.join(home, "p")
    fs.mkdirSync(directory)
    const model = scriptedModel([...script, "done"])
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.tools", session: tools }),
      Plugin.define({ id: "bezel.permissions", session: permissions })
    ], {
      directory,
      model,
      entries: {
        "bezel.tools": { required: true },
        "bezel.permissions": { required: true, options: { stateDirectory: path.join(home, "state"), ...options } }
      }
    })
    const { id } = yield* host.session.create({})
    yield* Context.get(host.services, InteractionBroker).unattended(id, "deny")
    const results = () =>
      (model.requests.at(-1)?.messages ?? []).flatMap((message) =>
        message.role === "tool" ? message.content.map(({ result }) => String(result)) : []
      )
    return { directory, home, host, id, model, results, go: host.ask(id, "go") }
  })

const bash = (command: string, more: object = {}) => [call("bash", { command, ...more })]

describe("the working directory of commands", () => {
  it.live("is where the last command of the conversation ended, and is said when it changes", () =>
    Effect.gen(function*() {
      const { directory, go, results } = yield* world(
        { yes: true },
        bash("mkdir -p sub/deep && cd sub"),
        bash("cd deep; false"),
        bash("pwd"),
        bash("cd ../.. && rm -r sub && pwd"),
        bash("pwd")
      )
      expect(yield* go).toBe("done")
      const [made, failed, first, back, last] = results()
      expect(made).toContain(`exit code 0; the working directory is now ${directory}/sub]`)
      expect(failed).toContain(`exit code 1; the working directory is now ${directory}/sub/deep]`)
      expect(first).toBe(`${directory}/sub/deep\n[exit code 0]`)
      expect(back).toContain(`${directory}\n`)
      expect(last).toBe(`${directory}\n[exit code 0]`)
    }))

  const lasting: ReadonlyArray<readonly [what: string, command: string, where: string]> = [
    ["of a subshell does not last", "(cd sub)", ""],
    ["of a command that replaces the shell does not last", "cd sub; exec true", ""],
    ["lasts behind an exit", "cd sub; exit 3", "/sub"],
    ["lasts behind a syntax error in eval", "cd sub; eval 'if'", "/sub"],
    ["lasts in a name that a shell would take apart", `mkdir "a'b c"; cd "a'b c"`, "/a'b c"],
    ["does not last behind a trap of the command's own", "trap 'true' EXIT; cd sub", ""],
    ["of a link is the real one", "ln -s sub link; cd link", "/sub"]
  ]
  it.live.each(lasting)("%s", ([, command, where]) =>
    Effect.gen(function*() {
      const { directory, go, results } = yield* world({ yes: true }, bash("mkdir sub"), bash(command), bash("pwd"))
      expect(yield* go).toBe("done")
      expect(results().at(-1)).toBe(`${directory}${where}\n[exit code 0]`)
    }))

  it.live("is not written into what a command opens", () =>
    Effect.gen(function*() {
      const { directory, go, results } = yield* world(
        { yes: true },
        bash("exec 3>kept 4>&3; echo mine >&3; mkdir sub; cd sub"),
        bash("exec 3>&-; pwd")
      )
      expect(yield* go).toBe("done")
      expect(results()[0]).toContain(`the working directory is now ${directory}/sub]`)
      expect(results()[1]).toBe(`${directory}/sub\n[exit code 0]`)
      expect(fs.readFileSync(path.join(directory, "kept"), "utf8")).toBe("mine\n")
    }))

  it.live("can be said with a call, and is the workspace again when it is gone", () =>
    Effect.gen(function*() {
      const { directory, go, results } = yield* world(
        { yes: true },
        bash("mkdir sub"),
        bash("pwd", { directory: "sub" }),
        bash("rmdir ../sub"),
        bash("pwd")
      )
      expect(yield* go).toBe("done")
      expect(results()[1]).toBe(`${directory}/sub\n[exit code 0]`)
      expect(results()[3]).toBe(`${directory}\n[exit code 0]`)
    }))

  it.live("is part of what rules judge: a path is judged from there", () =>
    Effect.gen(function*() {
      const { directory, go, results } = yield* world(
        { allow: ["bash(mkdir *)", "bash(cd *)", "bash(cat *)", "bash(touch *)"], deny: ["read(secrets/**)"] },
        bash("mkdir -p sub/deep"),
        bash("cat key", { directory: "secrets" }),
        bash("touch ../other", { directory: "sub" }),
        bash("cat other", { directory: "/etc" })
      )
      fs.mkdirSync(path.join(directory, "secrets"))
      fs.writeFileSync(path.join(directory, "secrets/key"), "k")
      expect(yield* go).toBe("done")
      const [, denied, allowed, elsewhere] = results()
      expect(denied).toContain("denies reading key")
      expect(allowed).toContain("exit code 0")
      expect(elsewhere).toContain("exit code 1")
    }))

  it.live("outside of the workspace takes a rule with each command, also where everything else is allowed", () =>
    Effect.gen(function*() {
      const { go, results } = yield* world(
        { yes: true },
        bash("ls", { directory: ".." }),
        bash("ls", { directory: "nope" })
      )
      expect(yield* go).toBe("done")
      expect(results()[0]).toMatch(/--yes does not cover it: outside the location/)
      expect(results()[1]).toMatch(/could not be started in .*nope: the directory is gone/)
    }))
})

describe("a command in the background", () => {
  it.live("gives a job at once, shows what it printed, and tells the model of its end", () =>
    Effect.gen(function*() {
      const { directory, go, host, id, model, results } = yield* world(
        { yes: true },
        bash("echo begun; while [ ! -e stop ]; do sleep 0.05; done; echo over; exit 7", { background: true }),
        ({ messages }) => [call("job_output", { job: /job (\S+)\./.exec(JSON.stringify(messages))?.[1] ?? "?" })]
      )
      expect(yield* go).toBe("done")
      const job = /^Started as job (\S+)\. /.exec(results()[0] ?? "")?.[1] ?? "?"
      expect(results()[1]).toMatch(new RegExp(`^The job ${job} is running\\.`))
      const told = yield* Deferred.make<void>()
      model.add([call("job_output", { job })], [run(Effect.asVoid(Deferred.succeed(told, undefined))), say("ended")])
      fs.writeFileSync(path.join(directory, "stop"), "")
      yield* Deferred.await(told)
      yield* host.session.wait(id)
      // Nobody has asked: its end began the turn.
      expect(JSON.stringify(model.requests.at(-2)?.messages.at(-1))).toContain(
        `The job ${job} (echo begun; while [ ! -e stop ]; do sleep 0.05; done; echo over; exit 7) failed with exit code 7. ` +
          `Its last output:\\nbegun\\nover`
      )
      expect(yield* host.session.finalText(id)).toBe("ended")
      expect(results().at(-1)).toMatch(/^The job \S+ has ended with exit code 7\.\nbegun\nover/)
    }), 30_000)

  it.live("is stopped with all that it started", () =>
    Effect.gen(function*() {
      const { directory, go, results } = yield* world(
        { yes: true },
        bash("sleep 600 & echo $! > pid; echo $$ > shell; wait", { background: true }),
        bash("while [ ! -s pid ] || [ ! -s shell ]; do sleep 0.05; done"),
        ({ messages }) => [call("job_stop", { job: /as job (\S+)\./.exec(JSON.stringify(messages))?.[1] ?? "?" })],
        ({ messages }) => [call("job_stop", { job: /as job (\S+)\./.exec(JSON.stringify(messages))?.[1] ?? "?" })]
      )
      expect(yield* go).toBe("done")
      expect(results()[2]).toMatch(/^Stopped the job/)
      expect(results()[3]).toMatch(/^The job \S+ was stopped\./)
      const isGone = (file: string) => {
        try {
          process.kill(Number(fs.readFileSync(path.join(directory, file), "utf8")), 0)
          return false
        } catch {
          return true
        }
      }
      while (!isGone("pid") || !isGone("shell")) yield* Effect.sleep("20 millis")
    }), 30_000)

  it.live("of another conversation, or none, is told", () =>
    Effect.gen(function*() {
      const { go, results } = yield* world({ yes: true }, [call("job_output", { job: "nope" })], [
        call("job_stop", { job: "t1" })
      ])
      expect(yield* go).toBe("done")
      expect(results()[0]).toBe('There is no job "nope" of this conversation.')
      expect(results()[1]).toMatch(/^There is no job|^The job/)
    }))

  it.live("is judged as a command like others", () =>
    Effect.gen(function*() {
      const { go, results } = yield* world({ deny: ["bash(rm *)"] }, bash("rm -r x", { background: true }))
      expect(yield* go).toBe("done")
      expect(results()[0]).toContain("denies the command")
    }))
})
