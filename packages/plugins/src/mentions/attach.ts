/**
 * Attaches what a prompt mentions: text (or some lines of it), images, PDF documents, the entries of a folder.
 *
 * Only what the rules allow to be read without asking: a text that somebody pasted may name any file. All is bounded: a file,
 * the number of files, and the whole; what is cut says so, and the read tool has the rest.
 */
import type { FilePart } from "@bezel/core/model"
import type { PromptAddition } from "@bezel/core/session"
import { describeBinary, looksBinary, sizeOf } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as os from "node:os"
import * as path from "node:path"
import { imageType } from "../tools/image.ts"
import { resolvePath, showPath } from "../tools/paths.ts"
import { walk } from "../tools/walk.ts"
import { type Lines, mentionsIn, type MentionText, type Reading } from "./parse.ts"

const maxMentions = 20
const maxTextBytes = 64 * 1024
const maxAllBytes = 256 * 1024
const maxFileBytes = 5 * 1024 * 1024
const maxFileParts = 5
const maxEntries = 300

export interface AttachOptions {
  /** The location's directory. */
  readonly directory: string
  /** Whether a real path may be read, or a folder listed, without asking. */
  readonly mayRead: (access: "read" | "list", file: string) => Effect.Effect<boolean>
  /** Names of what is attached already, which is not attached twice. */
  readonly attached: ReadonlySet<string>
}

type Kind = "file" | "folder" | "other" | "absent"

const kindOf = (file: string): Effect.Effect<Kind> =>
  Effect.promise(() =>
    fs.stat(file).then(
      (stats): Kind => stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other",
      (): Kind => "absent"
    )
  )

const expandHome = (name: string): string =>
  name === "~" || name.startsWith("~/") ? path.join(os.homedir(), name.slice(1)) : name

interface Found {
  readonly file: string
  readonly kind: Kind
  readonly lines: Lines | null
}

/** The first reading that is there. */
const find = (directory: string, readings: ReadonlyArray<Reading>) =>
  Effect.gen(function*() {
    for (const reading of readings) {
      if (reading.path.includes("\u0000")) continue
      const file = resolvePath(directory, expandHome(reading.path))
      const kind = yield* kindOf(file)
      if (kind !== "absent") return { file, kind, lines: reading.lines } satisfies Found
    }
    return null
  })

const textPart = (fileName: string, text: string): FilePart => ({
  type: "file",
  mediaType: "text/plain",
  fileName,
  data: Buffer.from(text).toString("base64")
})

/** The first bytes of an opened regular file; opening waits for nobody. */
const readHead = async (
  file: string,
  most: number
): Promise<{ readonly bytes: Buffer; readonly size: number } | null> => {
  const handle = await fs.open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) return null
    const buffer = Buffer.alloc(most + 1)
    let filled = 0
    while (filled < buffer.length) {
      const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return { bytes: buffer.subarray(0, filled), size: Math.max(stats.size, filled) }
  } finally {
    await handle.close()
  }
}

const cutText = (bytes: Buffer, most: number): string =>
  new TextDecoder().decode(bytes.subarray(0, most), { stream: bytes.length > most })

const linesOf = (text: string, { from, to }: Lines): string => text.split("\n").slice(from - 1, to).join("\n")

const folderText = (file: string, directory: string) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    let more = false
    yield* walk({
      directory: file,
      workspace: directory,
      depth: 2,
      visit: ({ kind, segments }) =>
        Effect.sync(() => {
          more = lines.length >= maxEntries
          if (!more) lines.push(segments.join("/").replaceAll(/\p{Cc}/gu, "?") + (kind === "directory" ? "/" : ""))
          return !more
        })
    })
    return lines.length === 0 ? "(empty)" : lines.join("\n") + (more ? "\n…" : "")
  })

class Room {
  left = maxAllBytes
  parts = maxFileParts
}

type Attached = { readonly part: FilePart } | { readonly notice: string }

const attachFile = (found: Found, shown: string, room: Room): Effect.Effect<Attached> =>
  Effect.gen(function*() {
    const most = found.lines === null ? Math.min(maxTextBytes, room.left) : maxFileBytes
    const notice = (why: string): Attached => ({ notice: `${shown} is not attached: ${why}.` })
    const head = yield* Effect.tryPromise(() => readHead(found.file, maxFileBytes)).pipe(
      Effect.orElseSucceed(() => "unreadable" as const)
    )
    if (head === "unreadable") return notice("it cannot be read")
    if (head === null) return notice("it is no regular file")
    const { bytes, size } = head
    const mediaType = imageType(bytes) ??
      (bytes.subarray(0, 5).toString("latin1") === "%PDF-" ? "application/pdf" : null)
    if (mediaType !== null) {
      if (size > maxFileBytes) return notice(`it has ${sizeOf(size)}, over the limit of ${sizeOf(maxFileBytes)}`)
      if (room.parts === 0) return notice(`${maxFileParts} images and documents are attached already`)
      room.parts--
      return { part: { type: "file", mediaType, fileName: shown, data: bytes.toString("base64") } }
    }
    if (looksBinary(bytes)) return notice(`it is ${describeBinary(bytes)}, not text`)
    if (room.left === 0 && size > 0) return notice("what is mentioned is too much together")
    const text = found.lines === null ? cutText(bytes, most) : linesOf(cutText(bytes, maxFileBytes), found.lines)
    const buffer = Buffer.from(text)
    const kept = cutText(buffer, Math.min(maxTextBytes, room.left))
    room.left -= Buffer.byteLength(kept)
    const isCut = kept.length < text.length || (found.lines === null && size > most)
    const name = found.lines === null ? shown : `${shown}:${found.lines.from}-${found.lines.to}`
    return { part: textPart(name, isCut ? `${kept}\n[The rest is left out; read ${shown} for it.]` : kept) }
  })

const attachOne = (options: AttachOptions, mention: MentionText, room: Room) =>
  Effect.gen(function*() {
    const found = yield* find(options.directory, mention.readings)
    if (found === null) return null
    const shown = showPath(options.directory, found.file)
    const mayRead = yield* options.mayRead(found.kind === "folder" ? "list" : "read", found.file)
    if (!mayRead) return { notice: `${mention.text} is not attached: no rule allows to read ${shown} without asking.` }
    if (found.kind === "other") return { notice: `${mention.text} is not attached: it is no regular file.` }
    if (found.kind === "file") return yield* attachFile(found, shown, room)
    const text = yield* folderText(found.file, options.directory)
    if (Buffer.byteLength(text) > room.left) {
      return { notice: `${shown} is not attached: what is mentioned is too much together.` }
    }
    room.left -= Buffer.byteLength(text)
    return { part: textPart(`${shown}/`, text) }
  })

/** What the mentions of a text attach. */
export const attachMentions = Effect.fn("mentions.attach")(
  function*(text: string, options: AttachOptions): Effect.fn.Return<PromptAddition> {
    const files: Array<FilePart> = []
    const notices: Array<string> = []
    const room = new Room()
    for (const mention of mentionsIn(text, maxMentions)) {
      const attached = yield* attachOne(options, mention, room)
      if (attached === null) continue
      if ("part" in attached) {
        if (!options.attached.has(attached.part.fileName ?? "")) files.push(attached.part)
      } else notices.push(attached.notice)
    }
    return { files, notices }
  }
)
