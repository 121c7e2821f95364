/**
 * The `apply_patch` tool: changes several files by one patch, all of it or nothing (see `patch-format`, `patch-text`).
 *
 * Everything is worked out before anything is written; a write that fails takes back those before it. Files are held by their
 * real paths meanwhile. A crash in the middle of the writing can leave some files written and some not, each of them whole; the
 * call is taken up again at the next opening and says which (see `patch-crash`).
 */
import type { JsonValue } from "@bezel/core/json"
import { sizeOf, tool, ToolFailure, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BigIntStats } from "node:fs"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import type { ApplyPatchDetails } from "./contract.ts"
import { unifiedDiff } from "./diff.ts"
import type { FileState } from "./file-state.ts"
import { cutOffText, digestOf, outcomeOf, type PlannedFile } from "./patch-crash.ts"
import { parsePatch, type PatchOperation } from "./patch-format.ts"
import { applyHunks } from "./patch-text.ts"
import { attempt, checkPath, resolvePath, showPath } from "./paths.ts"
import { diffText } from "./read.ts"
import { replaceFile } from "./replace-file.ts"
import { existing } from "./write.ts"

const MAX_FILE_BYTES = 32 * 1024 * 1024
const MAX_FILES = 200

const Patch = Schema.String.check(
  Schema.makeFilter((text: string) => {
    const read = parsePatch(text)
    return "problem" in read ? read.problem : undefined
  })
).annotate({
  description: "The patch, from *** Begin Patch to *** End Patch."
})

const Input = Schema.Struct({ patch: Patch })

const description = `Changes files by a patch, all of it or nothing. The patch:
*** Begin Patch
*** Add File: path/new.txt
+each line of the new file
*** Update File: path/old.txt
*** Move to: path/other.txt (optional)
@@ a line above the change, such as a function's (optional)
 a line of context
-a line to remove
+a line to add
*** Delete File: path/gone.txt
*** End Patch
Give three lines of context around a change; hunks stand in the order of the file. Paths are relative to the workspace.`

const operationsOf = (patch: string): ReadonlyArray<PatchOperation> => {
  const read = parsePatch(patch)
  return "problem" in read ? [] : read
}

const pathsOf = (operation: PatchOperation): ReadonlyArray<string> =>
  operation.kind === "update" && operation.moveTo !== null ? [operation.path, operation.moveTo] : [operation.path]

const onlyEdits = (operations: ReadonlyArray<PatchOperation>): boolean =>
  operations.length > 0 && operations.every((operation) => operation.kind === "update" && operation.moveTo === null)

/** A file as it is and as it is to be; `null` stands for a file that there is not. */
interface Change {
  readonly path: string
  readonly shown: string
  readonly stats: BigIntStats | null
  readonly before: Buffer | null
  after: Buffer | null
}

const refuse = (message: string) => Effect.fail(new ToolFailure({ message: `${message} Nothing was changed.` }))

/** Works out what every file becomes, reading each once. */
const plan = (directory: string, operations: ReadonlyArray<PatchOperation>) =>
  Effect.gen(function*() {
    const changes = new Map<string, Change>()
    const changeOf = (name: string) =>
      Effect.gen(function*() {
        yield* checkPath(name)
        const path = resolvePath(directory, name)
        const known = changes.get(path)
        if (known !== undefined) return known
        const shown = showPath(directory, path)
        const stats = yield* existing(path, shown)
        if (stats !== null && stats.size > BigInt(MAX_FILE_BYTES)) {
          return yield* refuse(`${shown} is too large for a patch (${sizeOf(Number(stats.size))}).`)
        }
        const before = stats === null ? null : yield* attempt("Cannot read", shown, () => FileSystem.readFile(path))
        const change: Change = { path, shown, stats, before, after: before }
        changes.set(path, change)
        return change
      })
    for (const operation of operations) {
      const change = yield* changeOf(operation.path)
      if (operation.kind === "add") {
        if (change.after !== null) {
          return yield* refuse(`${change.shown} exists already, so it cannot be added; update it instead.`)
        }
        change.after = Buffer.from(operation.lines.map((line) => `${line}\n`).join(""), "utf8")
        continue
      }
      if (change.after === null) return yield* refuse(`There is no file ${change.shown} to ${operation.kind}.`)
      if (operation.kind === "delete") {
        change.after = null
        continue
      }
      const applied = applyHunks(change.after.toString("latin1"), operation.hunks)
      if (typeof applied !== "string") {
        return yield* refuse(
          `A hunk of ${change.shown} (line ${applied.hunk.at} of the patch) does not fit: ${applied.why}. Read the file and make the patch anew.`
        )
      }
      const content = Buffer.from(applied, "latin1")
      if (operation.moveTo === null) {
        change.after = content
        continue
      }
      const target = yield* changeOf(operation.moveTo)
      if (target === change) {
        change.after = content
        continue
      }
      if (target.after !== null) {
        return yield* refuse(`${change.shown} cannot be moved: ${target.shown} exists already.`)
      }
      change.after = null
      target.after = content
    }
    return [...changes.values()].filter(({ after, before }) =>
      after === null ? before !== null : before === null || !after.equals(before)
    )
  })

const put = async ({ path, stats }: Change, content: Buffer | null): Promise<BigIntStats | null> => {
  if (content === null) {
    await FileSystem.rm(path)
    return null
  }
  await FileSystem.mkdir(NodePath.dirname(path), { recursive: true })
  return replaceFile(path, content, stats)
}

/** Writes all, and removes when that is done; when one fails, those before it are put back. */
const write = (changes: ReadonlyArray<Change>) =>
  Effect.uninterruptible(Effect.gen(function*() {
    const done: Array<{ readonly change: Change; readonly stats: BigIntStats | null }> = []
    const isRemoval = ({ after }: Change) => after === null
    for (const change of [...changes.filter((one) => !isRemoval(one)), ...changes.filter(isRemoval)]) {
      const stats = yield* attempt("Cannot write", change.shown, () => put(change, change.after)).pipe(
        Effect.catch((error) =>
          Effect.gen(function*() {
            const lost: Array<string> = []
            for (const { change: earlier } of done.toReversed()) {
              yield* Effect.tryPromise(() => put(earlier, earlier.before)).pipe(
                Effect.catch(() => Effect.sync(() => lost.push(earlier.shown)))
              )
            }
            return yield* new ToolFailure({
              message: lost.length === 0
                ? `${error.message} Nothing was changed.`
                : `${error.message} These could not be put back and are changed: ${lost.join(", ")}.`
            })
          })
        )
      )
      done.push({ change, stats })
    }
    return done
  }))

const plannedOf = ({ after, before, path }: Change): PlannedFile => ({
  path,
  before: digestOf(before),
  after: digestOf(after)
})

const changeOf = ({ after, before, path }: PlannedFile | Change): ApplyPatchDetails["files"][number] => ({
  path,
  change: before === null ? "added" : after === null ? "deleted" : "updated"
})

const memoName = "files"

/** What a crash left of an earlier run of the same call; `null` if that had changed nothing, so that it can run anew. */
const afterCrash = (directory: string, planned: JsonValue) =>
  Effect.gen(function*() {
    const outcome = yield* Effect.promise(() => outcomeOf(planned, MAX_FILE_BYTES))
    if (outcome === null || (outcome.changed.length === 0 && outcome.other.length === 0)) return null
    if (outcome.unchanged.length > 0 || outcome.other.length > 0) {
      return yield* new ToolFailure({ message: cutOffText(outcome, (path) => showPath(directory, path)) })
    }
    const details: ApplyPatchDetails = { files: outcome.changed.map(changeOf), diff: null }
    const shown = outcome.changed.map(({ after, before, path }) =>
      summary({ after, before, shown: showPath(directory, path) })
    )
    return toolResult({ content: `Done:\n${shown.join("\n")}`, details })
  })

const summary = (
  { after, before, shown }: { readonly after: unknown; readonly before: unknown; readonly shown: string }
): string => `${before === null ? "A" : after === null ? "D" : "M"} ${shown}`

const diffOf = ({ after, before, shown }: Change): string | null => {
  const old = before === null ? "" : diffText(before)
  const next = after === null ? "" : diffText(after)
  return old === null || next === null ? null : unifiedDiff(shown, old, next)
}

export const applyPatchTool = (directory: string, files: FileState) =>
  tool({
    description,
    input: Input,
    // Run again, it writes nothing that it began to write before.
    replay: "safe",
    // Whoever may only edit may not make, remove or rename files.
    permission: ({ patch }) => {
      const operations = operationsOf(patch)
      return {
        access: onlyEdits(operations) ? "edit" : "write",
        subjects: [...new Set(operations.flatMap(pathsOf).map((path) => resolvePath(directory, path)))]
      }
    },
    execute: Effect.fn("tools.apply_patch")(function*({ patch }, call) {
      const operations = operationsOf(patch)
      const paths = [...new Set(operations.flatMap(pathsOf).map((path) => resolvePath(directory, path)))].sort()
      if (paths.length > MAX_FILES) {
        return yield* refuse(`A patch may change ${MAX_FILES} files, and this is for ${paths.length}.`)
      }
      const run = Effect.gen(function*() {
        const planned = yield* call.memo(memoName)
        const earlier = planned === undefined ? null : yield* afterCrash(directory, planned)
        if (earlier !== null) return earlier
        const changes = yield* plan(directory, operations)
        if (changes.length === 0) return yield* refuse("All files have what the patch makes of them already.")
        yield* call.memo(memoName, changes.map(plannedOf))
        for (const { change, stats } of yield* write(changes)) {
          if (stats !== null) files.saw(call.sessionID, change.path, stats)
        }
        const diffs = changes.map(diffOf)
        const details: ApplyPatchDetails = {
          files: changes.map(changeOf),
          diff: diffs.includes(null) ? null : diffs.join("")
        }
        return toolResult({ content: `Done:\n${changes.map(summary).join("\n")}`, details })
      })
      // In one order, so that two patches never wait for each other.
      return yield* paths.reduceRight((inner, path) => files.exclusive(path, inner), run)
    })
  })
