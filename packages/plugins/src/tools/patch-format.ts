/**
 * The patch format that several models are trained on, read into operations. Pure.
 *
 *     *** Begin Patch
 *     *** Add File: new.txt          every following line begins with +
 *     *** Update File: old.txt       hunks; before them optionally: *** Move to: other.txt
 *     @@ class A                     where a hunk begins: after this line (optional, several narrow it down)
 *      context / -removed / +added   and optionally: *** End of File
 *     *** Delete File: gone.txt
 *     *** End Patch
 *
 * What models get slightly wrong is taken: blank space around markers, an empty line for an empty line of context, a fence or a
 * here document around all of it. What could mean two things is refused with its line.
 */

export interface Hunk {
  /** Line of the patch at which it begins, from 1. */
  readonly at: number
  /** Lines of the file after which it is, in order. */
  readonly after: ReadonlyArray<string>
  readonly lines: ReadonlyArray<{ readonly sign: " " | "-" | "+"; readonly text: string }>
  /** It reaches to the end of the file. */
  readonly toEnd: boolean
}

export type PatchOperation =
  | { readonly kind: "add"; readonly path: string; readonly lines: ReadonlyArray<string> }
  | { readonly kind: "delete"; readonly path: string }
  | {
    readonly kind: "update"
    readonly path: string
    readonly moveTo: string | null
    readonly hunks: ReadonlyArray<Hunk>
  }

/** What is wrong, in one sentence with the line of the patch. */
export interface BrokenPatch {
  readonly problem: string
}

const marker = /^\*\*\*\s*(Begin Patch|End Patch|End of File|(Add File|Update File|Delete File|Move to):\s*(.*?))\s*$/

interface Marker {
  readonly what: string
  readonly value: string
}

const markerOf = (line: string): Marker | null => {
  const match = marker.exec(line)
  if (match === null) return null
  const [, whole = "", what, value = ""] = match
  return what === undefined ? { what: whole, value: "" } : { what, value }
}

class Broken extends Error {}

const broken = (line: number, what: string): never => {
  throw new Broken(`Line ${line} of the patch: ${what}`)
}

/** Reads lines one after the other. */
class Reader {
  at = 0
  readonly #lines: ReadonlyArray<string>

  constructor(lines: ReadonlyArray<string>) {
    this.#lines = lines
  }

  get line(): string | undefined {
    return this.#lines[this.at]
  }

  get number(): number {
    return this.at + 1
  }
}

const signs = { " ": " ", "-": "-", "+": "+" } as const

const isSign = (text: string): text is keyof typeof signs => Object.hasOwn(signs, text)

const readHunk = (reader: Reader): Hunk => {
  const at = reader.number
  const after: Array<string> = []
  const lines: Array<Hunk["lines"][number]> = []
  let toEnd = false
  for (let line = reader.line; line?.startsWith("@@") === true; line = reader.line) {
    // As in unified diffs, numbers of lines say nothing that holds.
    const header = line.slice(2).replace(/^\s*-\d+(,\d+)?\s+\+\d+(,\d+)?\s*@@/, "").trim()
    if (header !== "" && header !== "@@") after.push(header)
    reader.at++
  }
  for (let line = reader.line; line !== undefined; line = reader.line) {
    if (line.startsWith("@@")) break
    const found = markerOf(line)
    if (found?.what === "End of File") {
      toEnd = true
      reader.at++
      break
    }
    if (found !== null) break
    const sign = line.slice(0, 1)
    if (line === "") lines.push({ sign: " ", text: "" })
    else if (isSign(sign)) lines.push({ sign, text: line.slice(1) })
    else broken(reader.number, `begins with neither a space, - nor +: ${JSON.stringify(line.slice(0, 80))}`)
    reader.at++
  }
  // An empty line before the next marker is only for the eye.
  while (lines.at(-1)?.sign === " " && lines.at(-1)?.text === "" && lines.length > 1 && !toEnd) lines.pop()
  if (!lines.some(({ sign }) => sign !== " ")) broken(at, "this hunk changes nothing; it has no line with - or +")
  return { at, after, lines, toEnd }
}

const readUpdate = (reader: Reader, path: string): PatchOperation => {
  let moveTo: string | null = null
  const moved = reader.line === undefined ? null : markerOf(reader.line)
  if (moved?.what === "Move to") {
    if (moved.value === "") broken(reader.number, "names no file to move to")
    moveTo = moved.value
    reader.at++
  }
  const hunks: Array<Hunk> = []
  for (let line = reader.line; line !== undefined; line = reader.line) {
    if (line.trim() === "") reader.at++
    else if (markerOf(line) === null || markerOf(line)?.what === "End of File") hunks.push(readHunk(reader))
    else break
  }
  if (hunks.length === 0 && moveTo === null) broken(reader.number, `says nothing to change in ${path}`)
  return { kind: "update", path, moveTo, hunks }
}

const readAdd = (reader: Reader, path: string): PatchOperation => {
  const lines: Array<string> = []
  for (let line = reader.line; line !== undefined; line = reader.line) {
    if (line.startsWith("+")) lines.push(line.slice(1))
    else if (markerOf(line) !== null) break
    else if (line.trim() !== "") broken(reader.number, `each line of the new file ${path} begins with +`)
    reader.at++
  }
  return { kind: "add", path, lines }
}

const unwrapped = (patch: string): ReadonlyArray<string> => {
  const lines = patch.replace(/^\uFEFF/, "").split(/\r?\n/)
  const first = lines.findIndex((line) => markerOf(line.trim())?.what === "Begin Patch")
  const last = lines.findLastIndex((line) => markerOf(line.trim())?.what === "End Patch")
  if (first === -1) return broken(1, "a patch begins with *** Begin Patch")
  if (last < first) return broken(lines.length, "a patch ends with *** End Patch")
  const odd = lines.slice(0, first).find((line) =>
    line.trim() !== "" && !/^\s*(```|.*<<-?\s*['"]?\w+['"]?\s*$)/.test(line)
  )
  return odd === undefined
    ? lines.slice(0, last)
    : broken(1, `nothing may stand before *** Begin Patch, found ${JSON.stringify(odd.slice(0, 80))}`)
}

/** The operations of a patch, in its order. */
export const parsePatch = (patch: string): ReadonlyArray<PatchOperation> | BrokenPatch => {
  try {
    const reader = new Reader(unwrapped(patch))
    const operations: Array<PatchOperation> = []
    while (reader.line !== undefined && markerOf(reader.line.trim())?.what !== "Begin Patch") reader.at++
    reader.at++
    for (let line = reader.line; line !== undefined; line = reader.line) {
      const found = markerOf(line)
      const at = reader.number
      reader.at++
      if (line.trim() === "") continue
      if (found === null) {
        return broken(
          at,
          `expected *** Add File, Update File or Delete File, found ${JSON.stringify(line.slice(0, 80))}`
        )
      }
      if (found.value === "" && found.what.endsWith("File")) return broken(at, "names no file")
      if (found.what === "Add File") operations.push(readAdd(reader, found.value))
      else if (found.what === "Delete File") operations.push({ kind: "delete", path: found.value })
      else if (found.what === "Update File") operations.push(readUpdate(reader, found.value))
      else return broken(at, `*** ${found.what} has no place here`)
    }
    return operations.length === 0 ? broken(reader.number, "it changes no file") : operations
  } catch (error) {
    if (error instanceof Broken) return { problem: error.message }
    throw error
  }
}
