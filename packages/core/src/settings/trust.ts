/**
 * Which project folders the user trusts, bound to what each of them sets.
 *
 * Trust is given to a location's whole project and kept per directory with a hash of the settings (their values; comments and
 * spacing do not matter) and of the files there that take effect beside them (`trustedFolders`). Any change asks anew. The record is a
 * private file in the state folder, replaced as a whole; a damaged record trusts nothing. Files elsewhere that the settings or
 * an index file name (a plugin in the source tree) are not part of the hash: who trusts a project trusts the code that it names.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { createHash } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import type { JsonValue } from "../json/index.ts"
import { type ProjectFolder, readProject, settingsFileName } from "./discover.ts"
import { type SettingsError, TrustError } from "./error.ts"
import { leadsOutOfProject, readRegularFile, writePrivateFile } from "./files.ts"
import { AppPaths } from "./paths.ts"

export interface TrustStatus {
  /**
   * `nothing`: the project sets nothing, there is nothing to trust. `changed`: it was trusted with other settings.
   */
  readonly status: "nothing" | "trusted" | "untrusted" | "changed"
  /** The directories that set something, outermost first. */
  readonly folders: ReadonlyArray<string>
  /** What they set: settings files with their sections, and folders whose files take effect. */
  readonly sets: ReadonlyArray<{ readonly file: string; readonly keys: ReadonlyArray<string> }>
  /** Names all of that; changes with it. */
  readonly hash: string
}

export interface TrustShape {
  readonly status: (directory: string) => Effect.Effect<TrustStatus, SettingsError | TrustError>
  /**
   * Trusts the project of a location as it is now. With the hash of the status that a person was shown, it fails if the
   * project has changed since.
   */
  readonly grant: (directory: string, shownHash?: string) => Effect.Effect<TrustStatus, SettingsError | TrustError>
  /** The same answer for folders that have been read already. */
  readonly statusOf: (folders: ReadonlyArray<ProjectFolder>) => Effect.Effect<TrustStatus, TrustError>
}

const TrustFile = Schema.fromJsonString(Schema.Struct({
  version: Schema.Literal(1),
  folders: Schema.Record(Schema.String, Schema.Struct({ hash: Schema.String, grantedAt: Schema.Finite }))
}))
type TrustFile = typeof TrustFile.Type

const nothingTrusted: TrustFile = { version: 1, folders: {} }

/** JSON with members in one order, so that equal settings hash alike. */
const canonical = (value: JsonValue): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([left], [right]) => left < right ? -1 : 1)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`
}

/**
 * Folders of a project whose files take effect once it is trusted: all that is in them, or, where `index` names one, that file
 * in each folder directly below.
 */
const trustedFolders: ReadonlyArray<{ readonly name: string; readonly index: string | null }> = [
  { name: ".bezel/plugins", index: null },
  { name: ".bezel/agents", index: null },
  { name: ".bezel/commands", index: null },
  ...[".bezel/skills", ".claude/skills", ".agents/skills"].map((name) => ({ name, index: "SKILL.md" }))
]

/** Bounds for what is hashed of each; beyond them the project cannot be trusted, rather than half of it. */
const maxPluginFiles = 2000
const maxPluginBytes = 8 * 1024 * 1024

const filesBelow = Effect.fnUntraced(
  function*(top: string): Effect.fn.Return<ReadonlyArray<string>, TrustError> {
    const found: Array<string> = []
    const pending = [top]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const folder = next
      const entries = yield* Effect.promise(() => fs.readdir(folder, { withFileTypes: true }).catch(() => []))
      for (const entry of entries) {
        const file = path.join(folder, entry.name)
        if (entry.isDirectory()) pending.push(file)
        else found.push(file)
        if (found.length + pending.length > maxPluginFiles) {
          return yield* new TrustError({
            path: folder,
            message: `${folder} holds more than ${maxPluginFiles} files, too many to check before trusting them`
          })
        }
      }
    }
    return found.sort()
  }
)

/** The file of that name in each folder below. */
const indexFilesBelow = (top: string, index: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.promise(async () => {
    const names = await fs.readdir(top).catch((): Array<string> => [])
    const files = names.sort().map((name) => path.join(top, name, index))
    const there = await Promise.all(files.map((file) => fs.lstat(file).then(() => true, () => false)))
    return files.filter((_, at) => there[at] === true)
  })

interface FolderState {
  readonly directory: string
  readonly hash: string
  readonly sets: ReadonlyArray<{ readonly file: string; readonly keys: ReadonlyArray<string> }>
}

const folderState = Effect.fnUntraced(
  function*(folder: ProjectFolder, root: string): Effect.fn.Return<FolderState | null, TrustError> {
    const folders = yield* Effect.forEach(trustedFolders, ({ index, name }) => {
      const file = path.join(folder.directory, name)
      return Effect.map(
        index === null ? filesBelow(file) : indexFilesBelow(file, index),
        (files) => ({ file, files })
      )
    })
    const files = folders.flatMap((each) => each.files)
    const documents = folder.documents.filter((document) =>
      Object.keys(document.value).some((key) => key !== "$schema")
    )
    if (documents.length === 0 && files.length === 0) return null
    const hash = createHash("sha256")
    for (const document of documents) {
      hash.update(`settings\0${path.relative(folder.directory, document.file)}\0${canonical(document.value)}\0`)
    }
    for (const file of files) {
      const text = yield* Effect.catch(
        readRegularFile(file, maxPluginBytes, root),
        (problem) =>
          // Whoever would use it refuses it too, so what is in it does not matter.
          problem.reason === leadsOutOfProject
            ? Effect.succeed(leadsOutOfProject)
            : Effect.fail(
              new TrustError({ path: file, message: `Cannot check ${file} before trusting it: ${problem.reason}` })
            )
      )
      hash.update(`plugin\0${path.relative(folder.directory, file)}\0${text ?? ""}\0`)
    }
    return {
      directory: folder.directory,
      hash: hash.digest("hex"),
      sets: [
        ...documents.map((document) => ({
          file: document.file,
          keys: Object.keys(document.value).filter((key) => key !== "$schema")
        })),
        ...folders.filter((each) => each.files.length > 0).map(({ file }) => ({ file, keys: [] }))
      ]
    }
  }
)

/** The record of trusted folders. Global. */
export class Trust extends Context.Service<Trust, TrustShape>()("@bezel/core/settings/Trust") {
  static readonly layer = Layer.effect(
    Trust,
    Effect.gen(function*() {
      const paths = yield* AppPaths
      const file = path.join(paths.state, "trust.json")
      const writing = yield* Semaphore.make(1)
      const userFile = path.join(paths.config, settingsFileName)

      const read = Effect.gen(function*() {
        const text = yield* Effect.mapError(
          readRegularFile(file),
          (problem) =>
            new TrustError({ path: file, message: `Cannot read the trusted folders in ${file}: ${problem.reason}` })
        )
        if (text === null) return nothingTrusted
        return Option.getOrElse(Schema.decodeUnknownOption(TrustFile)(text), () => nothingTrusted)
      })

      const describe = (states: ReadonlyArray<FolderState>, trusted: TrustFile): TrustStatus => {
        const of = (state: FolderState) =>
          Object.hasOwn(trusted.folders, state.directory) ? trusted.folders[state.directory]?.hash : undefined
        const status = states.length === 0
          ? "nothing"
          : states.every((state) => of(state) === state.hash)
          ? "trusted"
          : states.some((state) => of(state) !== undefined && of(state) !== state.hash)
          ? "changed"
          : "untrusted"
        return {
          status,
          folders: states.map((state) => state.directory),
          sets: states.flatMap((state) => state.sets),
          hash: createHash("sha256").update(states.map((state) => `${state.directory}\0${state.hash}\0`).join(""))
            .digest("hex")
        }
      }

      const statesOf = Effect.fnUntraced(function*(folders: ReadonlyArray<ProjectFolder>) {
        const states: Array<FolderState> = []
        for (const folder of folders) {
          const state = yield* folderState(folder, folders[0]?.directory ?? folder.directory)
          if (state !== null) states.push(state)
        }
        return states
      })

      return Trust.of({
        statusOf: Effect.fnUntraced(function*(folders: ReadonlyArray<ProjectFolder>) {
          const states = yield* statesOf(folders)
          return describe(states, states.length === 0 ? nothingTrusted : yield* read)
        }),
        status: Effect.fn("Trust.status")(function*(directory: string) {
          return describe(yield* statesOf(yield* readProject(directory, userFile)), yield* read)
        }),
        grant: Effect.fn("Trust.grant")(function*(directory: string, shownHash?: string) {
          const states = yield* statesOf(yield* readProject(directory, userFile))
          if (shownHash !== undefined && describe(states, nothingTrusted).hash !== shownHash) {
            return yield* new TrustError({
              path: directory,
              message:
                `The settings of ${directory} changed while you were asked; look at them again before you trust them`
            })
          }
          const grantedAt = yield* Clock.currentTimeMillis
          const next = yield* writing.withPermits(1)(Effect.gen(function*() {
            const before = yield* read
            const granted = Object.fromEntries(
              states.map((state) => [state.directory, { hash: state.hash, grantedAt }])
            )
            const next: TrustFile = { version: 1, folders: { ...before.folders, ...granted } }
            const wrong = (reason: string) =>
              new TrustError({ path: file, message: `Cannot remember the trusted folder in ${file}: ${reason}` })
            yield* Effect.mapError(paths.ensure("state"), (error) => wrong(error.message))
            yield* Effect.mapError(
              writePrivateFile(file, JSON.stringify(next, null, 2) + "\n"),
              (problem) => wrong(problem.reason)
            )
            return next
          }))
          return describe(states, next)
        })
      })
    })
  )
}
