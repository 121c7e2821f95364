/**
 * Images by their path: terminals paste a file that is dropped on them as its path, quoted or escaped as for a shell.
 *
 * The file is read where the person sits, who has chosen it, as `bezel run --file` does.
 */
import type { FilePart } from "@bezel/core/model"
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, isAbsolute, join } from "node:path"
import { fileURLToPath } from "node:url"
import { imageType } from "../tools/image.ts"

const maxBytes = 5 * 1024 * 1024

/** The absolute path that a pasted text is, or `null`. */
export const pastedPath = (pasted: string): string | null => {
  const text = pasted.trim()
  if (text === "" || text.length > 4_000 || /[\n\r\0]/.test(text)) return null
  if (text.startsWith("file://")) {
    try {
      return fileURLToPath(text)
    } catch {
      return null
    }
  }
  const quoted = /^(['"])(.*)\1$/.exec(text)
  const plain = quoted?.[2] ?? text.replace(/\\(.)/g, "$1")
  const path = plain.startsWith("~/") ? join(homedir(), plain.slice(2)) : plain
  return isAbsolute(path) && /\.(png|jpe?g|gif|webp)$/i.test(path) ? path : null
}

/** The image that a pasted text names; `null` where it is no path of one that can be sent. */
export const pastedImage = (pasted: string): FilePart | null => {
  const path = pastedPath(pasted)
  if (path === null) return null
  try {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = fstatSync(descriptor)
      if (!stats.isFile() || stats.size > maxBytes) return null
      const bytes = readFileSync(descriptor)
      const mediaType = imageType(bytes)
      return mediaType === null
        ? null
        : { type: "file", mediaType, fileName: basename(path), data: bytes.toString("base64") }
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return null
  }
}
