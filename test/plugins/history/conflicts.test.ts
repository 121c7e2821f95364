import { temporaryDirectory } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { bash, edit, git, world, write } from "./fixture.ts"

/** Until the clock of the file system has gone on: what comes then has a later time than the file. */
const nextTick = (path: string) =>
  Effect.gen(function*() {
    const probe = `${yield* temporaryDirectory}/probe`
    const since = fs.statSync(path).ctimeMs
    do {
      fs.writeFileSync(probe, "")
      yield* Effect.yieldNow
    } while (fs.statSync(probe).ctimeMs <= since)
  })

describe("files that others have changed", () => {
  it.live("only what the session changed is put back: a file of its repository that was edited by hand stays", () =>
    Effect.gen(function*() {
      const { ask, file, read, stage } = yield* world([bash("echo session > x; echo session > new"), "done"], {
        files: { "a/x": "a\n", "b/x": "b\n" },
        isRepository: true,
        location: "a"
      })
      fs.writeFileSync(file("b/x"), "by hand, before\n")
      yield* ask("go")
      fs.writeFileSync(file("b/x"), "by hand, after\n")
      expect(yield* stage()).toMatchObject({ status: "staged", conflicts: [] })
      expect(read("a/x")).toBe("a\n")
      expect(read("a/new")).toBeNull()
      expect(read("b/x")).toBe("by hand, after\n")
    }).pipe(Effect.scoped))

  it.live("a file that no longer holds what the session wrote is a conflict, and then nothing at all is done", () =>
    Effect.gen(function*() {
      const { ask, context, file, read, stage } = yield* world([
        [...write("a.txt", "session\n"), ...write("b.txt", "session\n")],
        bash("echo session > c.txt; rm d.txt"),
        "done"
      ], { files: { "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n" } })
      yield* ask("go")
      fs.writeFileSync(file("a.txt"), "by hand\n")
      fs.rmSync(file("c.txt"))
      fs.writeFileSync(file("d.txt"), "again\n")
      const refused = yield* stage()
      expect(refused.status).toBe("conflict")
      expect(refused.conflicts.map(({ path, reason }) => `${path.split("/").at(-1)}: ${reason}`)).toEqual([
        "a.txt: it has been changed since this session changed it",
        "c.txt: it has been deleted since this session changed it",
        "d.txt: it is there again since this session deleted it"
      ])
      expect(read("b.txt")).toBe("session\n")
      expect(yield* context).toContain("go")
      const kept = yield* stage("last", { conflicts: "keep" })
      expect(kept.status).toBe("staged")
      expect(kept.conflicts).toHaveLength(3)
      expect(read("b.txt")).toBe("b\n")
      expect([read("a.txt"), read("c.txt"), read("d.txt")]).toEqual(["by hand\n", null, "again\n"])
      expect(yield* context).toBe("[]")
    }).pipe(Effect.scoped))

  it.live("a change by hand between two changes of the session is not undone with them", () =>
    Effect.gen(function*() {
      const { ask, file, read, stage } = yield* world([
        edit("a.txt", "one", "two"),
        "done",
        edit("a.txt", "two", "three"),
        "done"
      ], { files: { "a.txt": "one\n" } })
      yield* ask("first")
      fs.writeFileSync(file("a.txt"), "two by hand\n")
      yield* ask("second")
      const both = (yield* stage("last", { dryRun: true })).to
      expect(both).not.toBe("")
      const first = yield* stage("e1", { dryRun: true }).pipe(Effect.flip)
      expect(String(first)).toContain("no entry")
      const second = yield* stage()
      expect(second).toMatchObject({ status: "staged", conflicts: [] })
      expect(read("a.txt")).toBe("two by hand\n")
      const all = yield* stage()
      expect(all.status).toBe("conflict")
      expect(read("a.txt")).toBe("two by hand\n")
    }).pipe(Effect.scoped))

  it.live("what a person changes while no command runs is not the session's, also within a turn", () =>
    Effect.gen(function*() {
      const { ask, file, read, stage } = yield* world([
        bash("echo 1 > out.txt"),
        "first done",
        bash("echo 2 > other.txt"),
        "done"
      ], { files: { "mine.txt": "mine\n" } })
      yield* ask("go")
      fs.writeFileSync(file("mine.txt"), "by hand\n")
      fs.writeFileSync(file("new-by-hand.txt"), "by hand\n")
      yield* nextTick(file("new-by-hand.txt"))
      yield* ask("on")
      fs.writeFileSync(file("later.txt"), "by hand\n")
      expect(yield* stage("last")).toMatchObject({ conflicts: [] })
      expect(yield* stage("last")).toMatchObject({ conflicts: [] })
      expect(read("mine.txt")).toBe("by hand\n")
      expect(read("new-by-hand.txt")).toBe("by hand\n")
      expect(read("later.txt")).toBe("by hand\n")
      expect(read("out.txt")).toBeNull()
      expect(read("other.txt")).toBeNull()
    }).pipe(Effect.scoped))

  it.live("clearing refuses as well when a file is not as it was put back", () =>
    Effect.gen(function*() {
      const { ask, clear, context, file, read, stage } = yield* world([
        [...write("a.txt", "session\n"), ...write("b.txt", "session\n")],
        "done"
      ], { files: { "a.txt": "a\n" } })
      yield* ask("go")
      yield* stage()
      fs.writeFileSync(file("a.txt"), "by hand\n")
      expect(yield* clear).toMatchObject({ status: "conflict" })
      expect(read("b.txt")).toBeNull()
      expect(yield* context).toBe("[]")
    }).pipe(Effect.scoped))

  it.live("a folder that has become a link out of the place is not written through", () =>
    Effect.gen(function*() {
      const { ask, directory, file, stage } = yield* world([bash("rm sub/a.txt"), "done"], {
        files: { "sub/a.txt": "a\n", "else/keep.txt": "" }
      })
      yield* ask("go")
      yield* stage("last", { dryRun: true })
      fs.rmdirSync(file("sub"))
      fs.symlinkSync(`${directory}/else`, file("sub"))
      const refused = yield* stage()
      expect(refused).toMatchObject({ status: "conflict" })
      expect(refused.conflicts[0]?.reason).toContain("not a folder any more")
      expect(fs.readdirSync(file("else"))).toEqual(["keep.txt"])
    }).pipe(Effect.scoped))
})

describe("what is put back", () => {
  it.live("a folder that a file has taken the place of, and a file that a folder has taken the place of", () =>
    Effect.gen(function*() {
      const { ask, clear, file, read, stage } = yield* world([
        bash("rm -r dir; echo file > dir; rm plain; mkdir -p plain/deep; echo in > plain/deep/f"),
        "done"
      ], { files: { "dir/a": "a\n", "dir/b": "b\n", plain: "plain\n" }, isRepository: true })
      yield* ask("go")
      const staged = yield* stage()
      expect(staged.conflicts).toEqual([])
      expect(read("dir/a")).toBe("a\n")
      expect(read("plain")).toBe("plain\n")
      yield* clear
      expect(read("dir")).toBe("file\n")
      expect(read("plain/deep/f")).toBe("in\n")
      fs.writeFileSync(file("plain/deep/mine"), "by hand\n")
      expect((yield* stage()).status).toBe("conflict")
      expect(read("dir")).toBe("file\n")
    }).pipe(Effect.scoped))

  it.live("permissions, links and line ends as they were, also where the repository would convert them", () =>
    Effect.gen(function*() {
      const { ask, directory, file, read, stage } = yield* world([
        bash("chmod 600 crlf.txt; printf 'new\\n' > crlf.txt; rm -f secret link; ln -s elsewhere link"),
        "done"
      ], { files: { ".gitattributes": "* text=auto eol=crlf\n", "crlf.txt": "1\r\n2\r\n", secret: "s\n" } })
      fs.chmodSync(file("secret"), 0o600)
      fs.chmodSync(file("crlf.txt"), 0o640)
      fs.symlinkSync("crlf.txt", file("link"))
      git(directory, "init", "-q")
      git(directory, "add", "-A")
      git(directory, "commit", "-q", "-m", "start")
      yield* ask("go")
      expect((yield* stage()).conflicts).toEqual([])
      expect(read("crlf.txt")).toBe("1\r\n2\r\n")
      expect(fs.statSync(file("crlf.txt")).mode & 0o777).toBe(0o640)
      expect(fs.statSync(file("secret")).mode & 0o777).toBe(0o600)
      expect(fs.readlinkSync(file("link"))).toBe("crlf.txt")
    }).pipe(Effect.scoped))

  it.live("not what git ignores, nor repositories inside, nor files that are too large to keep, which is said", () =>
    Effect.gen(function*() {
      const { ask, directory, file, read, stage } = yield* world([
        bash(
          "echo x > build.log; echo y > cache/y; head -c 5000 /dev/zero > big; mkdir inner; cd inner; git init -q; echo 1 > f"
        ),
        "done"
      ], {
        files: { ".gitignore": "*.log\ncache/\n", "old.log": "", "cache/x": "" },
        isRepository: true,
        settings: { maxFile: 1_000 }
      })
      yield* ask("go")
      const staged = yield* stage()
      expect(staged).toMatchObject({ status: "staged", files: [] })
      expect(staged.notes.join("\n")).toContain("big stays as it is")
      expect(staged.notes).toContain(
        "Commands changed what git ignores, which is not kept and stays as it is: build.log, cache/."
      )
      expect(staged.notes).toContain(
        `What commands changed outside of ${directory}, if they did, is not known and stays as it is.`
      )
      expect(read("build.log")).toBe("x\n")
      expect(fs.existsSync(file("inner/f"))).toBe(true)
    }).pipe(Effect.scoped))

  it.live("one turn after another, and all that was taken back comes back at once", () =>
    Effect.gen(function*() {
      const { ask, clear, context, read, stage } = yield* world([
        edit("a.txt", "0", "1"),
        "done",
        bash("echo 2 > a.txt; echo b > b.txt"),
        "done",
        edit("a.txt", "2", "3"),
        "done"
      ], { files: { "a.txt": "0\n" } })
      yield* ask("first")
      yield* ask("second")
      yield* ask("third")
      yield* stage()
      expect(read("a.txt")).toBe("2\n")
      yield* stage()
      expect([read("a.txt"), read("b.txt")]).toEqual(["1\n", null])
      yield* stage()
      expect(read("a.txt")).toBe("0\n")
      expect(yield* context).toBe("[]")
      expect(yield* clear).toMatchObject({ status: "cleared", prompt: "first" })
      expect([read("a.txt"), read("b.txt")]).toEqual(["3\n", "b\n"])
      expect(yield* context).toContain("third")
      expect(String(yield* Effect.flip(clear))).toContain("Nothing has been taken back")
    }).pipe(Effect.scoped))

  it.live("nothing any more once the conversation has gone on; what was taken back does not count twice", () =>
    Effect.gen(function*() {
      const { ask, clear, read, stage } = yield* world([
        edit("a.txt", "0", "1"),
        "done",
        edit("a.txt", "0", "5"),
        "done"
      ], { files: { "a.txt": "0\n" } })
      yield* ask("first")
      yield* stage()
      yield* ask("other")
      expect(String(yield* Effect.flip(clear))).toContain("gone on")
      expect(read("a.txt")).toBe("5\n")
      expect(yield* stage()).toMatchObject({ status: "staged", prompt: "other", conflicts: [] })
      expect(read("a.txt")).toBe("0\n")
    }).pipe(Effect.scoped))

  it.live("both of two calls that write one file at once", () =>
    Effect.gen(function*() {
      const { ask, read, stage } = yield* world([
        [...edit("a.txt", "one", "1"), ...edit("a.txt", "two", "2"), ...bash("echo three > b.txt")],
        "done"
      ], { files: { "a.txt": "one two\n" } })
      yield* ask("go")
      expect(read("a.txt")).toBe("1 2\n")
      expect((yield* stage()).conflicts).toEqual([])
      expect(read("a.txt")).toBe("one two\n")
      expect(read("b.txt")).toBeNull()
    }).pipe(Effect.scoped))

  it.live("what a command and then a tool did to one file", () =>
    Effect.gen(function*() {
      const { ask, read, stage } = yield* world([
        [...bash("echo command > a.txt")],
        edit("a.txt", "command", "edited"),
        bash("echo again >> a.txt"),
        "done"
      ], { files: { "a.txt": "start\n" } })
      yield* ask("go")
      expect(read("a.txt")).toBe("edited\nagain\n")
      expect((yield* stage()).conflicts).toEqual([])
      expect(read("a.txt")).toBe("start\n")
    }).pipe(Effect.scoped))

  it.live("the user's repository is not touched by any of it", () =>
    Effect.gen(function*() {
      const { ask, directory, stage } = yield* world([bash("echo 2 > a.txt; echo n > n.txt"), "done"], {
        files: { "a.txt": "1\n" },
        isRepository: true
      })
      const state = () =>
        [
          git(directory, "rev-parse", "HEAD"),
          git(directory, "for-each-ref"),
          git(directory, "count-objects", "-v"),
          git(directory, "stash", "list"),
          fs.readdirSync(`${directory}/.git`).sort().join(),
          fs.readFileSync(`${directory}/.git/index`).toString("base64")
        ].join("\n")
      const before = state()
      yield* ask("go")
      yield* stage()
      expect(state()).toBe(before)
    }).pipe(Effect.scoped))
})

describe("what is no work of a session", () => {
  for (const isRepository of [true, false]) {
    it.live(`is left out: Bezel's own folders below the place, ${isRepository ? "in" : "outside of"} a repository`, () =>
      Effect.gen(function*() {
        const directory = fs.realpathSync(yield* temporaryDirectory)
        const env = Object.fromEntries(
          ["BEZEL_DATA_DIR", "BEZEL_STATE_DIR", "BEZEL_CACHE_DIR"].map((name) => [name, `${directory}/own [x] ${name}`])
        )
        fs.mkdirSync(`${directory}/own [x] BEZEL_DATA_DIR`)
        fs.writeFileSync(`${directory}/own [x] BEZEL_DATA_DIR/log`, "1\n")
        const { ask, read, stage } = yield* world([
          bash(
            "for d in own*; do echo 2 > \"$d/log\"; done; mkdir 'own [x] BEZEL_STATE_DIR'; echo 2 > 'own [x] BEZEL_STATE_DIR/log'; echo w > work"
          ),
          "done"
        ], { directory, isRepository }).pipe(
          Effect.provideService(
            ConfigProvider.ConfigProvider,
            ConfigProvider.fromEnv({ env })
          )
        )
        yield* ask("go")
        const staged = yield* stage()
        expect(staged.files.map(({ path }) => path)).toEqual([`${directory}/work`])
        expect(read("own [x] BEZEL_DATA_DIR/log")).toBe("2\n")
        expect(read("own [x] BEZEL_STATE_DIR/log")).toBe("2\n")
      }).pipe(Effect.scoped))
  }
})

describe("what a command left running", () => {
  it.live("changes until the turn ends is taken back as well", () =>
    Effect.gen(function*() {
      const { ask, read, stage } = yield* world([
        bash("(while [ ! -e go ]; do sleep 0.02; done; echo late > late.txt; echo > seen) > /dev/null 2>&1 &"),
        bash("touch go; while [ ! -e seen ]; do sleep 0.02; done"),
        "done"
      ])
      yield* ask("go")
      expect(read("late.txt")).toBe("late\n")
      expect(yield* stage()).toMatchObject({ status: "staged", conflicts: [] })
      expect([read("late.txt"), read("go"), read("seen")]).toEqual([null, null, null])
    }).pipe(Effect.scoped))
})
