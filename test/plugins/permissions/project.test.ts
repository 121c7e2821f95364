import { call, temporaryDirectory } from "@bezel/core/testing"
import { ProjectPermissions } from "@bezel/plugins/permissions"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { makeProjectGrants } from "../../../packages/plugins/src/permissions/project-grants.ts"
import { bash, codes, person, world } from "./world.ts"

describe("what is allowed for a project", () => {
  it.live("holds in its other sessions and after a restart, in a private file outside the project", () =>
    Effect.gen(function*() {
      const stateDirectory = yield* temporaryDirectory
      const directory = fs.realpathSync(yield* temporaryDirectory)
      const options = { stateDirectory }
      const first = yield* world([[bash("make")], "one", [bash("make")], "two"], { options, directory })
      const { asked } = yield* person(first.host, first.sessionID, () => Effect.succeed({ decision: "project" }))
      yield* first.host.ask(first.sessionID, "1")
      const other = yield* Effect.orDie(first.host.session.create({ title: "other" }))
      yield* first.host.ask(other.id, "2")
      expect(asked).toHaveLength(1)
      expect(first.ran).toEqual(["bash make", "bash make"])

      expect(fs.readdirSync(directory)).toEqual([])
      const [name = ""] = fs.readdirSync(path.join(stateDirectory, "grants"))
      const file = path.join(stateDirectory, "grants", name)
      expect(fs.statSync(file).mode & 0o777).toBe(0o600)
      expect(fs.statSync(path.dirname(file)).mode & 0o777).toBe(0o700)
      expect(JSON.parse(fs.readFileSync(file, "utf8"))).toEqual({
        version: 1,
        location: directory,
        rules: ["bash(make)"]
      })

      const again = yield* world([[bash("make")], "three"], { options, directory })
      yield* again.host.ask(again.sessionID, "3")
      expect(again.ran).toEqual(["bash make"])
    }).pipe(Effect.scoped))

  it.live("holds in that location only, and beats no deny, also one that comes later", () =>
    Effect.gen(function*() {
      const options = { stateDirectory: yield* temporaryDirectory }
      const directory = fs.realpathSync(yield* temporaryDirectory)
      yield* makeProjectGrants(options.stateDirectory, directory).add(["bash(make)", "write(./**)"])

      const script = [[bash("make"), call("write", { path: "a" }), call("write", { path: "secret/b" })], "done"]
      const denied = yield* world(script, {
        options,
        directory,
        rules: { bash: { "make*": "deny" }, write: { secret: "deny", "*": "ask" } }
      })
      yield* denied.host.ask(denied.sessionID, "go")
      expect(denied.ran).toEqual(["write a"])
      expect(yield* codes(denied.host, denied.sessionID)).toEqual(["denied_by_rule", null, "denied_by_rule"])

      const elsewhere = yield* world(script, { options })
      yield* elsewhere.host.ask(elsewhere.sessionID, "go")
      expect(elsewhere.ran).toEqual([])
    }).pipe(Effect.scoped))

  it.live("can be seen and taken back by a person, and is asked again from the next call on", () =>
    Effect.gen(function*() {
      const options = { stateDirectory: yield* temporaryDirectory }
      const { host, ran, sessionID } = yield* world([[bash("make")], "one", [bash("make")], "two"], { options })
      const { asked, connection } = yield* person(host, sessionID, () => Effect.succeed({ decision: "project" }))
      yield* host.ask(sessionID, "1")
      const permissions = yield* connection.use(ProjectPermissions)
      const { file, rules } = yield* permissions.list()
      expect(rules).toEqual(["bash(make)"])
      expect(fs.existsSync(file)).toBe(true)
      yield* permissions.remove({ rule: "bash(make)" })
      expect((yield* permissions.list()).rules).toEqual([])
      yield* host.ask(sessionID, "2")
      expect(asked).toHaveLength(2)
      expect(ran).toHaveLength(2)
    }).pipe(Effect.scoped))

  it.live("holds for the session where it cannot be kept", () =>
    Effect.gen(function*() {
      const stateDirectory = path.join(yield* temporaryDirectory, "file")
      fs.writeFileSync(stateDirectory, "in the way")
      const { host, ran, sessionID } = yield* world([[bash("make")], "one", [bash("make")], "two"], {
        options: { stateDirectory }
      })
      const { asked } = yield* person(host, sessionID, () => Effect.succeed({ decision: "project" }))
      yield* host.ask(sessionID, "1")
      yield* host.ask(sessionID, "2")
      expect(asked).toHaveLength(1)
      expect(ran).toHaveLength(2)
    }).pipe(Effect.scoped))

  it.live("is nothing in a file that is damaged, for another folder, or no file", () =>
    Effect.gen(function*() {
      const state = yield* temporaryDirectory
      const grants = makeProjectGrants(state, "/work/a")
      yield* grants.add(["bash(make)"])
      expect(yield* grants.list).toEqual(["bash(make)"])
      for (
        const content of [
          "",
          "{",
          "[]",
          JSON.stringify({ version: 1, location: "/work/b", rules: ["bash"] }),
          JSON.stringify({ version: 2, location: "/work/a", rules: ["bash"] }),
          JSON.stringify({ version: 1, location: "/work/a", rules: [1] })
        ]
      ) {
        fs.writeFileSync(grants.file, content)
        expect(yield* grants.list).toEqual([])
      }
      const target = path.join(state, "planted.json")
      fs.writeFileSync(target, JSON.stringify({ version: 1, location: "/work/a", rules: ["bash"] }))
      fs.rmSync(grants.file)
      fs.symlinkSync(target, grants.file)
      expect(yield* grants.list).toEqual([])
      yield* grants.add(["bash(x)"])
      expect(yield* grants.list).toEqual(["bash(x)"])
      expect(fs.readFileSync(target, "utf8")).toContain('["bash"]')
    }).pipe(Effect.scoped))
})

describe("the session's own files", () => {
  /** Sessions whose files hold an artifact each. */
  const withFiles = (rules: Parameters<typeof world>[1] = {}) =>
    Effect.gen(function*() {
      const made = yield* world([], rules)
      const folder = yield* Effect.orDie(made.host.session.folder(made.sessionID))
      fs.writeFileSync(path.join(folder, "out.txt"), "x")
      return { ...made, file: path.join(folder, "out.txt") }
    })

  it.live("can be read without a rule; writing them, and those of another session, takes one", () =>
    Effect.gen(function*() {
      const { file, host, model, ran, sessionID } = yield* withFiles()
      const other = yield* Effect.orDie(host.session.create({ title: "other" }))
      const foreign = path.join(yield* Effect.orDie(host.session.folder(other.id)), "out.txt")
      fs.writeFileSync(foreign, "x")
      model.add(
        [
          call("read", { path: file }),
          call("read", { path: foreign }),
          call("read", { path: `${path.dirname(file)}/../secret` }),
          call("write", { path: file })
        ],
        "done"
      )
      yield* host.ask(sessionID, "go")
      expect(ran).toEqual([`read ${file}`])
      expect(yield* codes(host, sessionID)).toEqual([null, "unattended", "unattended", "unattended"])
    }).pipe(Effect.scoped))

  it.live("cannot be read where a rule denies it, and a link in them leads nowhere else", () =>
    Effect.gen(function*() {
      const { file, host, model, ran, sessionID } = yield* withFiles({ rules: { read: { "*.txt": "deny" } } })
      const link = path.join(path.dirname(file), "link")
      fs.symlinkSync("/etc/hostname", link)
      model.add([call("read", { path: file }), call("read", { path: link })], "done")
      yield* host.ask(sessionID, "go")
      expect(ran).toEqual([])
      expect(yield* codes(host, sessionID)).toEqual(["denied_by_rule", "unattended"])
    }).pipe(Effect.scoped))

  it.live("are inside for commands that --yes allows", () =>
    Effect.gen(function*() {
      const { file, host, model, ran, sessionID } = yield* withFiles({ options: { yes: true } })
      model.add([bash(`grep x ${file}`), bash("grep x /etc/hostname")], "done")
      yield* host.ask(sessionID, "go")
      expect(ran).toEqual([`bash grep x ${file}`])
    }).pipe(Effect.scoped))
})
