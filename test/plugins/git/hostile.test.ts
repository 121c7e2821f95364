/**
 * Repositories whose own settings name programs: looking at one, and taking snapshots of it, runs none of them. Each case is
 * first shown to be one: the person's own git, or the command that it is about, does run the program.
 */
import { Plugin } from "@bezel/core/host"
import { call, scriptedModel, temporaryDirectory, testSessionHost } from "@bezel/core/testing"
import { Git } from "@bezel/plugins/git/contract"
import { session as git } from "@bezel/plugins/git/session"
import { session as history } from "@bezel/plugins/history/session"
import { session as tools } from "@bezel/plugins/tools/session"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { trustedPath } from "../../../packages/plugins/src/git/process.ts"
import { findRipgrep } from "../../../packages/plugins/src/tools/search-ripgrep.ts"

interface Scene {
  readonly root: string
  /** A program that leaves a mark; as a filter it hands its input on. */
  readonly evil: string
  /** Git as a person runs it, without settings of whoever runs the tests. */
  readonly git: (...args: ReadonlyArray<string>) => string
  readonly write: (name: string, text: string) => void
}

interface Vector {
  readonly prepare: (scene: Scene) => void
  /** Something that does run it. */
  readonly control?: (scene: Scene) => unknown
  readonly status?: { readonly [name: string]: unknown }
}

const personally = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" }

const makeScene = Effect.gen(function*() {
  const outside = fs.realpathSync(yield* temporaryDirectory)
  const root = path.join(outside, "repository")
  fs.mkdirSync(root)
  const evil = path.join(outside, "evil")
  const mark = path.join(outside, "ran")
  fs.writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> '${mark}'\n[ $# -gt 0 ] || cat\n`, { mode: 0o755 })
  const scene: Scene = {
    root,
    evil,
    git: (...args) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
        cwd: root,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        timeout: 20_000,
        env: personally
      }),
    write: (name, text) => {
      fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
      fs.writeFileSync(path.join(root, name), text)
    }
  }
  scene.git("init", "-q", "-b", "main")
  scene.write("a.txt", "a\n")
  scene.write("b/c.txt", "c\n")
  scene.git("add", ".")
  scene.git("commit", "-q", "-m", "first")
  const ran = () => fs.existsSync(mark)
  return { ...scene, ran, forget: () => fs.rmSync(mark, { force: true }) }
})

/** The same size as before, so that only its content tells whether it has changed. */
const touch = ({ write }: Scene) => write("a.txt", "b\n")
const quietly = ({ git }: Scene, ...args: ReadonlyArray<string>) => {
  try {
    return git(...args)
  } catch {
    return null
  }
}
const status = (scene: Scene) => quietly(scene, "status")

const filtered = (scene: Scene, ...settings: ReadonlyArray<string>) => {
  scene.write(".gitattributes", "* filter=x diff=x merge=x\n")
  scene.git("add", ".")
  scene.git("commit", "-q", "-m", "attributes")
  for (const setting of settings) scene.git("config", `filter.x.${setting}`, scene.evil)
  touch(scene)
}

const promisor = (scene: Scene, url: string) => {
  scene.git("config", "core.repositoryFormatVersion", "1")
  scene.git("config", "extensions.partialClone", "origin")
  scene.git("config", "remote.origin.promisor", "true")
  scene.git("config", "remote.origin.url", url)
  scene.git("config", "protocol.allow", "always")
  scene.git("config", "protocol.ext.allow", "always")
  // An object that is needed and missing: git would fetch it.
  const tree = scene.git("rev-parse", "HEAD^{tree}").trim()
  fs.rmSync(path.join(scene.root, ".git/objects", tree.slice(0, 2), tree.slice(2)))
}

const vectors: { readonly [name: string]: Vector } = {
  "a clean filter": { prepare: (scene) => filtered(scene, "clean"), control: status, status: { changed: 1 } },
  "a filter process": { prepare: (scene) => filtered(scene, "process"), control: status, status: { changed: 1 } },
  "a filter that is required": {
    prepare: (scene) => {
      filtered(scene, "clean", "smudge")
      scene.git("config", "filter.x.required", "true")
    },
    control: status,
    status: { changed: 1 }
  },
  "a filter with a name that is hard to switch off": {
    prepare: (scene) => {
      filtered(scene)
      scene.write(".gitattributes", "* filter=x=y\n")
      fs.appendFileSync(path.join(scene.root, ".git/config"), `[filter "x=y"]\n\tclean = ${scene.evil}\n`)
    },
    control: status
  },
  "a filter in a file that the settings include": {
    prepare: (scene) => {
      filtered(scene)
      scene.write("settings", `[filter "x"]\n\tclean = ${scene.evil}\n[core]\n\tfsmonitor = ${scene.evil}\n`)
      scene.git("config", "include.path", "../settings")
      scene.git("config", "includeIf.onbranch:main.path", "../settings")
    },
    control: status
  },
  "a filter by the attributes and settings of one work tree": {
    prepare: (scene) => {
      fs.mkdirSync(path.join(scene.root, ".git/info"), { recursive: true })
      fs.writeFileSync(path.join(scene.root, ".git/info/attributes"), "[attr]evil filter=x\n*.txt evil\n")
      scene.git("config", "extensions.worktreeConfig", "true")
      scene.git("config", "--worktree", "filter.x.clean", scene.evil)
      touch(scene)
    },
    control: status
  },
  "core.fsmonitor": {
    prepare: ({ evil, git }) => git("config", "core.fsmonitor", evil),
    control: status,
    status: { changed: 0 }
  },
  "core.pager": {
    prepare: ({ evil, git }) => {
      git("config", "core.pager", evil)
      git("config", "pager.status", evil)
    }
  },
  "diff.external and textconv": {
    prepare: (scene) => {
      filtered(scene)
      scene.git("config", "diff.external", scene.evil)
      scene.git("config", "diff.x.textconv", scene.evil)
      scene.git("config", "diff.x.command", scene.evil)
    },
    control: (scene) => quietly(scene, "diff"),
    status: { changed: 1 }
  },
  hooks: {
    prepare: ({ evil, git, root }) => {
      const hooks = path.join(root, "hooks")
      fs.mkdirSync(hooks)
      for (const name of ["post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout"]) {
        fs.copyFileSync(evil, path.join(hooks, name))
        fs.copyFileSync(evil, path.join(root, ".git/hooks", name))
      }
      git("config", "core.hooksPath", hooks)
    },
    control: ({ git }) => git("checkout", "-q", "-b", "other"),
    status: { branch: "other" }
  },
  aliases: {
    prepare: ({ evil, git }) => {
      for (const name of ["status", "config", "ls-files", "update-index", "cat-file", "my"]) {
        git("config", `alias.${name}`, `!${evil}`)
      }
    },
    control: ({ git }) => git("my")
  },
  "a submodule with settings of its own": {
    prepare: (scene) => {
      const inner = path.join(scene.root, "inner")
      fs.mkdirSync(inner)
      const within = (...args: ReadonlyArray<string>) => scene.git("-C", inner, ...args)
      within("init", "-q")
      fs.writeFileSync(path.join(inner, "x"), "x\n")
      fs.writeFileSync(path.join(inner, ".gitattributes"), "* filter=x\n")
      within("add", ".")
      within("commit", "-q", "-m", "inner")
      scene.write(".gitmodules", '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n')
      scene.git("add", ".gitmodules", "inner")
      scene.git("commit", "-q", "-m", "submodule")
      scene.git("config", "status.submoduleSummary", "true")
      scene.git("config", "diff.ignoreSubmodules", "none")
      within("config", "filter.x.clean", scene.evil)
      within("config", "core.fsmonitor", scene.evil)
      fs.writeFileSync(path.join(inner, "x"), "y\n")
    },
    control: status
  },
  "core.worktree": {
    prepare: ({ git, root }) => {
      const elsewhere = path.join(path.dirname(root), "elsewhere")
      fs.mkdirSync(elsewhere)
      fs.writeFileSync(path.join(elsewhere, "secret"), "secret")
      git("config", "core.worktree", elsewhere)
    },
    // Neither a deleted file nor an unknown one: the work tree is where it is.
    status: { changed: 0, untracked: 0 }
  },
  "a remote that missing objects are fetched from": {
    prepare: (scene) => {
      promisor(scene, "ssh://host.invalid/x")
      scene.git("config", "core.sshCommand", scene.evil)
      scene.git("config", "core.askPass", scene.evil)
      scene.git("config", "credential.helper", scene.evil)
    },
    control: status
  },
  "a remote that is a program": {
    prepare: (scene) => promisor(scene, `ext::${scene.evil} %S`),
    control: status
  },
  "a remote whose other side is a program": {
    prepare: (scene) => {
      promisor(scene, scene.root)
      scene.git("config", "remote.origin.uploadpack", scene.evil)
    },
    control: status
  },
  "a git folder elsewhere, and a program to show signatures": {
    prepare: (scene) => {
      filtered(scene, "clean")
      scene.git("config", "gpg.program", scene.evil)
      scene.git("config", "log.showSignature", "true")
      fs.renameSync(path.join(scene.root, ".git"), path.join(scene.root, "..", "real"))
      scene.write(".git", "gitdir: ../real\n")
    },
    control: status,
    status: { changed: 1 }
  }
}

/** A session in the repository, in which a command and a tool write, with its status and its snapshots. */
const useBezel = (directory: string) =>
  Effect.gen(function*() {
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.tools", session: tools }),
      Plugin.define({ id: "bezel.history", session: history }),
      Plugin.define({ id: "bezel.git", session: git })
    ], {
      directory,
      model: scriptedModel([
        [call("bash", { command: "echo made > made.txt" })],
        [call("write", { path: "written.txt", content: "x" })],
        "done"
      ])
    })
    const client = yield* host.connect()
    const service = yield* client.use(Git)
    yield* service.refresh()
    const first = service.status.value
    const { id } = yield* host.session.create({})
    expect(yield* host.ask(id, "go")).toBe("done")
    yield* service.refresh()
    return { first, host, id, service }
  })

describe("a hostile repository", () => {
  it.live.each(Object.entries(vectors))("runs nothing by %s", ([, vector]) =>
    Effect.gen(function*() {
      const scene = yield* makeScene
      vector.prepare(scene)
      if (vector.control !== undefined) {
        expect(scene.ran()).toBe(false)
        vector.control(scene)
        expect(scene.ran()).toBe(true)
        scene.forget()
        // What git has noted of times meanwhile is void: everything is looked at again.
        const soon = new Date(Date.now() + 10_000)
        fs.utimesSync(path.join(scene.root, "a.txt"), soon, soon)
      }
      const { first } = yield* useBezel(scene.root)
      expect(scene.ran()).toBe(false)
      if (vector.status !== undefined) expect(first).toMatchObject({ root: scene.root, ...vector.status })
    }), 60_000)

  it.live("does not make a folder in it a repository of its own", () =>
    Effect.gen(function*() {
      const scene = yield* makeScene
      const bare = path.join(scene.root, "b")
      scene.git("init", "-q", "--bare", bare)
      fs.appendFileSync(
        path.join(bare, "config"),
        `[core]\n\tfsmonitor = ${scene.evil}\n\tbare = false\n\tworktree = .\n`
      )
      execFileSync("git", ["status"], { cwd: bare, env: personally, stdio: "ignore" })
      expect(scene.ran()).toBe(true)
      scene.forget()
      const { first } = yield* useBezel(bare)
      expect(first).toMatchObject({ root: scene.root, branch: "main" })
      expect(scene.ran()).toBe(false)
    }), 60_000)

  it.live("brings no git of its own", () =>
    Effect.gen(function*() {
      const scene = yield* makeScene
      const bin = path.join(scene.root, "node_modules/.bin")
      fs.mkdirSync(bin, { recursive: true })
      fs.copyFileSync(scene.evil, path.join(bin, "git"))
      const before = process.env.PATH
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          process.env.PATH = before
        })
      )
      const link = path.join(scene.root, "../link")
      fs.symlinkSync(scene.root, link)
      process.env.PATH = `node_modules/.bin:${bin}:${link}/node_modules/.bin:${before}`
      spawnSync("git", ["status"], { cwd: scene.root })
      expect(scene.ran()).toBe(true)
      scene.forget()
      const { first } = yield* useBezel(scene.root)
      expect(first).toMatchObject({ branch: "main" })
      expect(scene.ran()).toBe(false)
    }), 60_000)

  it.live("brings no ripgrep of its own to searches in it", () =>
    Effect.gen(function*() {
      const scene = yield* makeScene
      const bin = path.join(scene.root, "node_modules/.bin")
      fs.mkdirSync(bin, { recursive: true })
      fs.copyFileSync(scene.evil, path.join(bin, "rg"))
      const before = process.env.PATH
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          process.env.PATH = before
        })
      )
      process.env.PATH = `${bin}:${before}`
      expect(findRipgrep(process.env.PATH)).toBe(path.join(bin, "rg"))
      const model = scriptedModel([[call("search", { pattern: "export" })], "done"])
      const host = yield* testSessionHost([Plugin.define({ id: "bezel.tools", session: tools })], {
        directory: scene.root,
        model
      })
      const { id } = yield* host.session.create({})
      expect(yield* host.ask(id, "go")).toBe("done")
      expect(scene.ran()).toBe(false)
    }), 60_000)

  it.live("is not led by variables of git in the environment", () =>
    Effect.gen(function*() {
      const scene = yield* makeScene
      const variables = {
        GIT_DIR: "/nowhere",
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "core.fsmonitor",
        GIT_CONFIG_VALUE_0: scene.evil
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => Object.assign(process.env, variables)),
        () => Effect.sync(() => Object.keys(variables).forEach((name) => delete process.env[name]))
      )
      const { first } = yield* useBezel(scene.root)
      expect(first).toMatchObject({ branch: "main", changed: 0 })
      expect(scene.ran()).toBe(false)
    }), 60_000)
})

describe("the status", () => {
  it.live(
    "is that of git: line ends, modes, a split index, what is ignored, a work tree of a branch, SHA-256",
    () =>
      Effect.gen(function*() {
        const scene = yield* makeScene
        scene.git("config", "core.autocrlf", "true")
        scene.git("config", "core.fileMode", "false")
        scene.write(".gitignore", "*.log\n")
        scene.write("x.log", "ignored\n")
        fs.appendFileSync(path.join(scene.root, ".git/info/exclude"), "*.own\n")
        scene.write("y.own", "ignored too\n")
        scene.write("a.txt", "a\r\n")
        fs.chmodSync(path.join(scene.root, "b/c.txt"), 0o755)
        // An index without times, so that contents are compared.
        fs.rmSync(path.join(scene.root, ".git/index"))
        scene.git("read-tree", "HEAD")
        scene.git("update-index", "--split-index")
        const { first } = yield* useBezel(scene.root)
        expect(first).toMatchObject({ changed: 0, staged: 0, untracked: 1 })
        expect(scene.git("status", "--porcelain")).toBe("?? .gitignore\n?? made.txt\n?? written.txt\n")

        scene.git("branch", "base")
        scene.git("worktree", "add", "-q", "-b", "side", "../side")
        scene.git("config", "branch.side.remote", ".")
        scene.git("config", "branch.side.merge", "refs/heads/base")
        const side = path.join(scene.root, "../side")
        fs.writeFileSync(path.join(side, "new"), "new")
        scene.git("-C", side, "add", "new")
        scene.git("-C", side, "commit", "-q", "-m", "second")
        fs.rmSync(path.join(side, "a.txt"))
        const { first: there } = yield* useBezel(side)
        expect(there).toMatchObject({ branch: "side", upstream: "base", ahead: 1, behind: 0, changed: 1, untracked: 0 })

        const modern = fs.realpathSync(yield* temporaryDirectory)
        scene.git("init", "-q", "-b", "main", "--object-format=sha256", modern)
        fs.writeFileSync(path.join(modern, "a"), "a")
        scene.git("-C", modern, "add", "a")
        const { first: empty } = yield* useBezel(modern)
        expect(empty).toMatchObject({ head: null, staged: 1, untracked: 0 })
        scene.git("-C", modern, "commit", "-q", "-m", "first")
        fs.writeFileSync(path.join(modern, "a"), "b")
        const { first: full, service } = yield* useBezel(modern)
        expect(full).toMatchObject({ staged: 0, changed: 1 })
        expect(full?.head).toHaveLength(64)
        yield* service.status.changes.pipe(Stream.filter((now) => now?.untracked === 2), Stream.runHead)
      }),
    60_000
  )

  it("is asked of a git that is found in absolute folders outside of the work tree", () => {
    expect(trustedPath("/usr/bin:bin:./x::/w/bin:/w:/workshop/bin:/bin", "/w")).toBe("/usr/bin:/workshop/bin:/bin")
    expect(trustedPath(undefined, "/w")).toBe("")
  })
})
