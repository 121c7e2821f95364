import { temporaryDirectory } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { blobID } from "../../../packages/plugins/src/history/file-state.ts"
import { parseIndex } from "../../../packages/plugins/src/history/git-index.ts"
import { knownOfIndex, stampOf } from "../../../packages/plugins/src/history/known-files.ts"
import { WorkTree } from "../../../packages/plugins/src/history/work-tree.ts"
import { commitAll, git } from "./fixture.ts"

const limits = { maxFileBytes: 1_000_000, maxNewFiles: 1_000, maxNewBytes: 10_000_000, excluded: [] }

const prepared = async (directory: string, folder: string): Promise<WorkTree> => {
  const tree = new WorkTree(directory, folder, limits)
  expect(await tree.prepare(AbortSignal.timeout(60_000))).toBeNull()
  return tree
}

/** A tree that has been looked at once, by this process or one before it. */
const begun = (directory: string, folder: string) => Effect.promise(() => prepared(directory, folder))

const namesOf = async (tree: WorkTree, directory: string): Promise<ReadonlyArray<string>> => {
  const { differences } = await tree.look()
  tree.isCurrent = true
  return differences.map(({ path: at }) => path.relative(directory, at)).sort()
}

const put = (directory: string, files: { readonly [name: string]: string }): void => {
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.writeFileSync(path.join(directory, name), content)
  }
}

/** Until a file is so old that its times tell whether it was changed again. */
const aged = (file: string) =>
  Effect.gen(function*() {
    const since = fs.statSync(file).ctimeMs
    while (Date.now() - since < 50) yield* Effect.yieldNow
  })

const place = Effect.map(temporaryDirectory, (directory) => fs.realpathSync(directory))

describe("the index of git", () => {
  for (const version of ["2", "3", "4"]) {
    it.live(`is read as git itself does, version ${version}`, () =>
      Effect.gen(function*() {
        const directory = yield* place
        const long = `${"deep/".repeat(60)}file-${"x".repeat(200)}`
        put(directory, { a: "1\n", "b/ü ü": "2\n", [long]: "3\n", [`${long}2`]: "4\n", "b/run": "5\n" })
        fs.chmodSync(path.join(directory, "b/run"), 0o755)
        fs.symlinkSync("a", path.join(directory, "link"))
        commitAll(directory)
        // Only an index with such an entry needs the third version.
        if (version === "3") {
          put(directory, { later: "6\n" })
          git(directory, "add", "-N", "later")
        }
        git(directory, "update-index", "--index-version", version)
        const index = fs.readFileSync(path.join(directory, ".git/index"))
        expect(index.readUInt32BE(4)).toBe(Number(version))
        const listed = git(directory, "ls-files", "-s", "-z").split("\0").flatMap((line) => {
          const [, mode, id, at] = /^(\d+) (\w+) 0\t(.*)$/.exec(line) ?? []
          return mode === undefined ? [] : [`${mode === "120000" ? "link" : "file"} ${id} ${at}`]
        })
        expect(parseIndex(index)?.map(({ id, path, type }) => `${type} ${id} ${path}`)).toEqual(listed)
        for (const { ctimeMs, mtimeMs, path: at, size } of parseIndex(index) ?? []) {
          const stats = fs.lstatSync(path.join(directory, at))
          if (at !== "later") {
            expect([size, mtimeMs, ctimeMs]).toEqual([stats.size, stats.mtimeMs, stats.ctimeMs])
          }
        }
      }).pipe(Effect.scoped))
  }

  it.live("that is cut off, split or of another kind is none", () =>
    Effect.gen(function*() {
      const directory = yield* place
      put(directory, { a: "1\n", b: "2\n" })
      commitAll(directory)
      const index = fs.readFileSync(path.join(directory, ".git/index"))
      expect(parseIndex(index)).toHaveLength(2)
      for (const length of [0, 3, 11, 12, 40, 100]) expect(parseIndex(index.subarray(0, length))).toBeNull()
      expect(parseIndex(Buffer.from("no index at all"))).toBeNull()
      git(directory, "update-index", "--split-index")
      put(directory, { a: "1 more\n" })
      git(directory, "add", "a")
      expect(parseIndex(fs.readFileSync(path.join(directory, ".git/index")))).toBeNull()
    }).pipe(Effect.scoped))
})

describe("a look at a work tree", () => {
  it.live("sees what git sees, whatever was done: kinds, ignored files, folders and links in each other's place", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const folder = `${yield* place}/tree`
      put(directory, {
        ".gitignore": "*.log\n/out/\n!keep.log\nsub/*.tmp\n",
        "a.txt": "a\n",
        "same.txt": "same\n",
        "gone/deep/x": "x\n",
        "gone/deep/y": "y\n",
        "dir/one": "1\n",
        "dir/two": "2\n",
        file: "f\n",
        "sub/.gitignore": "*.local\n!seen.local\n",
        "sub/a.c": "c\n",
        "out/tracked": "although ignored\n",
        "elsewhere/one": "other\n"
      })
      git(directory, "init", "-q")
      git(directory, "add", "-A", "-f")
      git(directory, "commit", "-q", "-m", "start")
      const tree = yield* begun(directory, folder)
      expect(yield* Effect.promise(() => namesOf(tree, directory))).toEqual([])
      const at = (name: string) => path.join(directory, name)
      put(directory, {
        "a.txt": "b\n",
        "same.txt": "same\n",
        "x.log": "",
        "keep.log": "",
        "out/new": "",
        "out/tracked": "changed\n",
        "sub/b.tmp": "",
        "sub/b.local": "",
        "sub/seen.local": "",
        "new/deep/er": "",
        "new/x.log": ""
      })
      fs.rmSync(at("gone"), { recursive: true })
      fs.rmSync(at("dir"), { recursive: true })
      fs.symlinkSync("elsewhere", at("dir"))
      fs.rmSync(at("file"))
      put(directory, { "file/inside": "" })
      fs.chmodSync(at("sub/a.c"), 0o755)
      execFileSync("mkfifo", [at("pipe")])
      const { differences } = yield* Effect.promise(() => tree.look())
      const seen = differences.map(({ path: file }) => path.relative(directory, file)).sort()
      const status = git(directory, "status", "--porcelain", "-z", "-uall", "--no-renames").split("\0")
        .flatMap((line) => line === "" ? [] : [line.slice(3)])
      // A pipe has no content to keep.
      expect(seen).toEqual([...new Set(status)].filter((name) => name !== "pipe").sort())
      // Not what is behind the link.
      expect(differences.find(({ path: file }) => file === at("dir/one"))?.after).toEqual({ type: "absent" })
      expect(seen).toContain("out/tracked")
      expect(yield* Effect.promise(() => namesOf(tree, directory))).toEqual([])
      // A process that comes after a crash goes on from there.
      put(directory, { "a.txt": "c\n" })
      const again = yield* begun(directory, folder)
      expect(again.isCurrent).toBe(false)
      expect(yield* Effect.promise(() => namesOf(again, directory))).toEqual(["a.txt"])
    }).pipe(Effect.scoped))

  it.live("names what git ignores and was changed: a file by itself, a folder when something came or went", () =>
    Effect.gen(function*() {
      const directory = yield* place
      put(directory, { ".gitignore": "*.env\nbuild/\n", "a.env": "1\n", "b.env": "1\n", "build/x": "", c: "" })
      commitAll(directory)
      const tree = yield* begun(directory, `${yield* place}/tree`)
      tree.isCurrent = true
      put(directory, { "a.env": "22\n", "build/y": "", "new.env": "" })
      const { differences, ignored } = yield* Effect.promise(() => tree.look())
      expect(differences).toEqual([])
      expect(ignored.map(({ path: at }) => path.relative(directory, at)).sort()).toEqual(["a.env", "build", "new.env"])
    }).pipe(Effect.scoped))

  for (const isRepository of [true, false]) {
    it.live(`sees each change, also of the same length in the same tick, ${isRepository ? "in" : "outside of"} a repository`, () =>
      Effect.gen(function*() {
        const directory = yield* place
        put(directory, { a: "0000\n" })
        if (isRepository) commitAll(directory)
        // Right behind the index: what git calls racy.
        put(directory, { a: "before\n" })
        const tree = yield* begun(directory, `${yield* place}/tree`)
        expect(yield* Effect.promise(() => namesOf(tree, directory))).toEqual([])
        const missed: Array<number> = []
        for (let number = 1_000; number < 1_300; number++) {
          fs.writeFileSync(path.join(directory, "a"), `${number}\n`)
          const { differences } = yield* Effect.promise(() => tree.look())
          const after = differences[0]?.after
          if (after?.type !== "file" || after.id !== blobID(Buffer.from(`${number}\n`))) missed.push(number)
        }
        expect(missed).toEqual([])
      }).pipe(Effect.scoped))
  }

  it.live("sees what was changed under times that were set back to what they had been", () =>
    Effect.gen(function*() {
      const directory = yield* place
      put(directory, { a: "0000\n", b: "0000\n" })
      const old = new Date(Date.now() - 1e9)
      for (const name of ["a", "b"]) fs.utimesSync(path.join(directory, name), old, old)
      yield* aged(path.join(directory, "b"))
      const tree = yield* begun(directory, `${yield* place}/tree`)
      fs.writeFileSync(path.join(directory, "a"), "1111\n")
      fs.utimesSync(path.join(directory, "a"), old, old)
      expect(yield* Effect.promise(() => namesOf(tree, directory))).toEqual(["a"])
    }).pipe(Effect.scoped))

  it.live("keeps what git has not as it is on the disk: line ends, filters, an index that was never written", () =>
    Effect.gen(function*() {
      const directory = yield* place
      put(directory, { ".gitattributes": "* text=auto eol=crlf\n", "a.txt": "1\r\n2\r\n" })
      commitAll(directory)
      const tree = yield* begun(directory, `${yield* place}/tree`)
      const known = tree.known(path.join(directory, "a.txt"))
      expect(known).toMatchObject({ id: blobID(Buffer.from("1\r\n2\r\n")), size: 6 })
      expect((yield* Effect.promise(() => tree.content(blobID(Buffer.from("1\r\n2\r\n")))))?.toString()).toBe(
        "1\r\n2\r\n"
      )
    }).pipe(Effect.scoped))

  it.live("in a copy of a repository, whose index has other times, keeps only what git has not, however many files", () =>
    Effect.gen(function*() {
      const original = yield* place
      put(original, Object.fromEntries(Array.from({ length: 30 }, (_, number) => [`f${number}`, `${number}\n`])))
      commitAll(original)
      const directory = path.join(yield* place, "copy")
      fs.cpSync(original, directory, { recursive: true })
      put(directory, { f7: "changed\n", own: "new\n" })
      const tree = new WorkTree(directory, `${yield* place}/tree`, { ...limits, maxNewFiles: 5, maxNewBytes: 20 })
      expect(yield* Effect.promise(() => tree.prepare(AbortSignal.timeout(60_000)))).toBeNull()
      const content = (text: string) => Effect.promise(() => tree.content(blobID(Buffer.from(text))))
      expect([String(yield* content("changed\n")), String(yield* content("new\n"))]).toEqual(["changed\n", "new\n"])
      expect(yield* content("8\n")).toBeNull()
      expect(yield* Effect.promise(() => namesOf(tree, directory))).toEqual([])
    }).pipe(Effect.scoped))

  it.live("keeps what was seen in a file that stays small, and says the same from it", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const folder = `${yield* place}/tree`
      put(directory, { a: "1\n", b: "1\n" })
      const tree = yield* begun(directory, folder)
      fs.rmSync(path.join(directory, "b"))
      for (let number = 0; number < 2_100; number++) {
        fs.writeFileSync(path.join(directory, "a"), `${number}\n`)
        yield* Effect.promise(() => tree.look())
      }
      const size = fs.statSync(`${folder}/seen.jsonl`).size
      expect(yield* Effect.promise(async () => namesOf(await prepared(directory, folder), directory))).toEqual([])
      expect(fs.statSync(`${folder}/seen.jsonl`).size).toBeLessThan(size / 100)
      expect(yield* Effect.promise(async () => namesOf(await prepared(directory, folder), directory))).toEqual([])
    }).pipe(Effect.scoped))

  it.live("does not follow an index that names what is not below the work tree", () =>
    Effect.gen(function*() {
      const outer = yield* place
      put(outer, { "secret.txt": "s\n", "tree/aaaaaaaaa.txt": "a\n" })
      const directory = path.join(outer, "tree")
      commitAll(directory)
      const file = path.join(directory, ".git/index")
      const index = fs.readFileSync(file)
      index.write("../secret.txt", index.indexOf("aaaaaaaaa.txt"))
      fs.writeFileSync(file, index)
      const tree = yield* begun(directory, `${yield* place}/tree`)
      expect(tree.known(path.join(outer, "secret.txt"))).toBeUndefined()
      expect(tree.known(path.join(directory, "aaaaaaaaa.txt"))).toBeDefined()
    }).pipe(Effect.scoped))
})

describe("the stamp of a file", () => {
  it("is none for what was changed when git wrote its index, or later", () => {
    const entry = { path: "a", type: "file", id: "0".repeat(40), size: 1, ino: 1, ctimeMs: 100.5 } as const
    expect(knownOfIndex({ ...entry, mtimeMs: 100.5 }, 200.5).stamp).not.toBeNull()
    expect(knownOfIndex({ ...entry, mtimeMs: 200.5 }, 200.5).stamp).toBeNull()
    expect(knownOfIndex({ ...entry, mtimeMs: 100.5, ctimeMs: 300.5 }, 200.5).stamp).toBeNull()
    // Whole seconds say little.
    expect(knownOfIndex({ ...entry, mtimeMs: 1_000, ctimeMs: 1_000 }, 2_000.5).stamp).toBeNull()
  })

  const stats = (ctimeMs: number): fs.Stats => Object.assign(fs.statSync("."), { ctimeMs })
  const now = Date.now()
  it("is none within a tick of the clock, or when the last change lies ahead since the clock was set back", () => {
    expect(stampOf(stats(now - 5.5), now)).toBeNull()
    expect(stampOf(stats(now + 3_600_000.5), now)).toBeNull()
    expect(stampOf(stats(now - 500.5), now)).not.toBeNull()
    // Where the file system keeps whole seconds.
    const second = Math.floor(now / 1_000) * 1_000
    expect(stampOf(stats(second - 1_000), second)).toBeNull()
    expect(stampOf(stats(second - 3_000), second)).not.toBeNull()
  })
})
