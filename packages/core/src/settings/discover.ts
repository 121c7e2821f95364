/**
 * Finds and reads the settings documents of the user, of a project and of the command line.
 */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import type { JsonObject, JsonValue } from "../json/index.ts"
import { parseSettings, type SettingsDocument, settingsError } from "./document.ts"
import { SettingsError } from "./error.ts"
import { projectFolders, readRegularFile, realDirectory } from "./files.ts"

export const settingsFileName = "bezel.jsonc"

/** The names of a project's settings in one directory, the later wins. */
const projectFileNames: ReadonlyArray<string> = [settingsFileName, path.join(".bezel", settingsFileName)]

/** With `root`, the document is a project's, and must lie in it. */
export const readDocument = Effect.fnUntraced(
  function*(file: string, root: string | null = null): Effect.fn.Return<SettingsDocument | null, SettingsError> {
    const text = yield* Effect.mapError(
      readRegularFile(file, undefined, root),
      (problem) => settingsError("unreadable", { file, line: 0, path: [] }, `cannot be read: ${problem.reason}`)
    )
    if (text === null) return null
    return yield* Effect.try({
      try: () => parseSettings(file, text),
      catch: (cause) =>
        cause instanceof SettingsError
          ? cause
          : settingsError("syntax", { file, line: 1, path: [] }, "cannot be read as JSON with comments")
    })
  }
)

export interface ProjectFolder {
  readonly directory: string
  readonly documents: ReadonlyArray<SettingsDocument>
}

/** The project's folders that hold in a location, outermost first, each with its documents in order. */
export const readProject = Effect.fnUntraced(
  function*(directory: string, userFile: string): Effect.fn.Return<ReadonlyArray<ProjectFolder>, SettingsError> {
    // Somebody who works inside the config folder must not meet the own settings a second time, as a stranger's.
    const userFolder = yield* realDirectory(path.dirname(userFile))
    const folders: Array<ProjectFolder> = []
    const chain = yield* projectFolders(directory)
    for (const folder of chain) {
      const documents: Array<SettingsDocument> = []
      for (const name of projectFileNames) {
        const file = path.join(folder, name)
        if ((yield* realDirectory(path.dirname(file))) === userFolder) continue
        const document = yield* readDocument(file, chain[0])
        if (document !== null) documents.push(document)
      }
      folders.push({ directory: folder, documents })
    }
    return folders
  }
)

const overrideSegments = (dotted: string): ReadonlyArray<string> | null => {
  const segments: Array<string> = []
  let rest = dotted
  for (;;) {
    const match = /^(?:"((?:[^"\\]|\\.)*)"|([^".=]+))(\.|$)/.exec(rest)
    if (match === null) return null
    segments.push(match[1] !== undefined ? match[1].replace(/\\(.)/g, "$1") : match[2] ?? "")
    rest = rest.slice(match[0].length)
    if (match[3] === "") return segments
  }
}

/** An override, with its value as JSON and as plain text where both can be meant (`--set model=1`). */
export interface Override {
  readonly text: string
  readonly section: string
  readonly candidates: ReadonlyArray<JsonObject>
}

const nested = (segments: ReadonlyArray<string>, value: JsonValue): JsonValue =>
  segments.reduceRight<JsonValue>((inner, segment) => ({ [segment]: inner }), value)

/** Reads `key=value`. Throws `SettingsError`. */
export const parseOverride = (text: string): Override => {
  const fail = (what: string) => settingsError("syntax", { file: `--set ${text}`, line: 0, path: [] }, what)
  const quoted = /^(?:"(?:[^"\\]|\\.)*"|[^"=])*/.exec(text)?.[0] ?? ""
  if (text[quoted.length] !== "=") throw fail("expected key=value, for example --set compaction.threshold=0.7")
  const segments = overrideSegments(quoted.trim())
  const section = segments?.[0]
  if (segments === null || section === undefined || segments.includes("__proto__")) {
    throw fail("expected a dotted key before the = sign, for example compaction.threshold")
  }
  const written = text.slice(quoted.length + 1)
  const values: Array<JsonValue> = [written]
  try {
    values.unshift(JSON.parse(written) as JsonValue)
  } catch {
    // Not JSON: plain text, as most values on a command line are.
  }
  return { text, section, candidates: values.map((value) => nested(segments, value) as JsonObject) }
}
