/** What `bezel run` asks: the words of the command line or stdin, and the attached files. */
import type { FilePart } from "@bezel/core/model"
import { readFile, stat } from "node:fs/promises"
import { basename, extname, resolve } from "node:path"
import { Exit, exitCode } from "../exit.ts"

export interface ReadPrompt {
  readonly text: string
  /** What of it a person wrote as a prompt: all but what came in on stdin beside words. */
  readonly written: string
  readonly files: ReadonlyArray<FilePart>
}

const mediaTypes: { readonly [extension: string]: string } = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".pdf": "application/pdf"
}

const maxTextBytes = 512 * 1024
const maxFileBytes = 16 * 1024 * 1024
const maxStdinBytes = 16 * 1024 * 1024

async function stdinText(): Promise<string> {
  if (process.stdin.isTTY) {
    throw new Exit(
      exitCode.usage,
      "there is no prompt: give it as an argument or on stdin (bezel run --help shows how)"
    )
  }
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > maxStdinBytes) {
      throw new Exit(exitCode.usage, "the prompt on stdin is over 16 MiB; put it into a file and name that")
    }
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString("utf8")
}

/** Words joined by a space; without any, or with `-` among them, stdin stands there. */
export async function readPrompt(words: ReadonlyArray<string>, paths: ReadonlyArray<string>): Promise<ReadPrompt> {
  const wantsStdin = words.length === 0 || words.includes("-")
  const stdin = wantsStdin ? await stdinText() : ""
  const written = words.length === 0 ? stdin : words.map((word) => word === "-" ? stdin : word).join(" ")
  if (written.trim() === "") throw new Exit(exitCode.usage, "the prompt is empty: give it as an argument or on stdin")
  const attached = await Promise.all(paths.map(attach))
  const typed = words.length === 0 ? stdin : words.filter((word) => word !== "-").join(" ")
  return { text: written, written: typed, files: attached }
}

/** A file part: an image or PDF as it is, everything else as plain text. */
async function attach(path: string): Promise<FilePart> {
  const mediaType = mediaTypes[extname(path).toLowerCase()]
  const limit = mediaType === undefined ? maxTextBytes : maxFileBytes
  const content = await readBounded(path, limit)
  if (mediaType !== undefined) {
    return { type: "file", mediaType, fileName: basename(path), data: content.toString("base64") }
  }
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(content)
    return { type: "file", mediaType: "text/plain", fileName: path, data: content.toString("base64") }
  } catch {
    throw new Exit(exitCode.usage, `--file ${path}: it is neither text nor an image or PDF`)
  }
}

async function readBounded(path: string, limit: number): Promise<Buffer> {
  const refuse = (why: string) => new Exit(exitCode.usage, `--file ${path}: ${why}`)
  try {
    const found = await stat(resolve(path))
    if (!found.isFile()) throw refuse("it is not a file")
    if (found.size > limit) {
      throw refuse(`it has ${Math.ceil(found.size / 1024)} KiB, over the limit of ${limit / 1024} KiB`)
    }
    return await readFile(resolve(path))
  } catch (error) {
    if (error instanceof Exit) throw error
    const code = error instanceof Error && "code" in error ? error.code : null
    throw refuse(code === "ENOENT" ? "it does not exist" : `it cannot be read (${String(code ?? error)})`)
  }
}
