/**
 * `AGENTS.md`: what a project and its user want every agent to know.
 *
 * Files from the root of the git work tree down to the location, then the user's own. Each is bounded, and so is the whole; what
 * was cut and what could not be read is said in the text, so that nobody wonders why a rule was not followed.
 *
 * A project's file must lie in the project: what a link leads to is sent to a provider, and nobody was asked about a
 * repository's links. The user's own may be a link to anywhere.
 */
import { leadsOutOfProject, projectFolders, realPathWithin } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"

const instructionsFileName = "AGENTS.md"

/** Bytes of one file, and of all together. */
const maxFileBytes = 32 * 1024
const maxTotalBytes = 64 * 1024

type Found =
  | { readonly file: string; readonly text: string; readonly isCut: boolean }
  | { readonly file: string; readonly problem: string }

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error"

const wording: Record<string, string> = {
  EACCES: "no permission",
  EPERM: "no permission",
  EISDIR: "it is a folder",
  ELOOP: "its links go in a circle"
}

/** The first bytes of a file as text, never half a character. */
const readHead = async ({ file, root }: Candidate, maxBytes: number): Promise<Found | null> => {
  let handle: fs.FileHandle
  try {
    const real = root === null ? file : await realPathWithin(root, file)
    if (real === null) return { file, problem: leadsOutOfProject }
    // O_NONBLOCK: a FIFO of that name must not hold up every request.
    handle = await fs.open(real, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    const code = codeOf(cause)
    return code === "ENOENT" || code === "ENOTDIR" ? null : { file, problem: wording[code] ?? code }
  }
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) return { file, problem: stat.isDirectory() ? "it is a folder" : "it is not a regular file" }
    const buffer = new Uint8Array(maxBytes + 1)
    let filled = 0
    while (filled < buffer.length) {
      const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    const isCut = filled > maxBytes
    const text = new TextDecoder("utf-8").decode(buffer.subarray(0, Math.min(filled, maxBytes)), { stream: isCut })
    if (text.includes("\u0000")) return { file, problem: "it is not text" }
    return { file, text: text.trim(), isCut }
  } catch (cause) {
    return { file, problem: wording[codeOf(cause)] ?? codeOf(cause) }
  } finally {
    await handle.close()
  }
}

interface Candidate {
  readonly file: string
  /** The real path of the project that it must lie in; `null`: of none. */
  readonly root: string | null
}

/** The files to look for, in order: the project's, outermost first, then the user's. */
const candidates = Effect.fnUntraced(function*(location: string, configDirectory: string) {
  const own = path.join(configDirectory, instructionsFileName)
  const folders = yield* projectFolders(location)
  const files = folders.map((folder): Candidate => {
    const file = path.join(folder, instructionsFileName)
    return { file, root: file === own ? null : folders[0] ?? folder }
  })
  return files.some(({ file }) => file === own) ? files : [...files, { file: own, root: null }]
})

/** What is wrong with files that are there, one sentence each. */
export const instructionProblems = Effect.fnUntraced(function*(location: string, configDirectory: string) {
  const problems: Array<string> = []
  for (const candidate of yield* candidates(location, configDirectory)) {
    const found = yield* Effect.promise(() => readHead(candidate, maxFileBytes))
    if (found !== null && "problem" in found) problems.push(unread(found))
  }
  return problems
})

const unread = ({ file, problem }: { readonly file: string; readonly problem: string }): string =>
  `${file} could not be read: ${problem}.`

/** The section's text, or `null` if there is nothing to say. */
export const instructions = Effect.fnUntraced(function*(location: string, configDirectory: string) {
  const parts: Array<string> = []
  let left = maxTotalBytes
  for (const candidate of yield* candidates(location, configDirectory)) {
    const found = yield* Effect.promise(() => readHead(candidate, Math.min(maxFileBytes, left)))
    if (found === null) continue
    if ("problem" in found) {
      parts.push(`(${unread(found)})`)
      continue
    }
    left = Math.max(0, left - Buffer.byteLength(found.text))
    if (found.text === "" && !found.isCut) continue
    const rest = found.isCut
      ? `\n(The rest of ${found.file} is left out because it is too long. Read it if you need it.)`
      : ""
    parts.push(`Instructions from ${found.file}:\n\n${found.text}${rest}`)
  }
  return parts.length === 0 ? null : parts.join("\n\n")
})
