/**
 * Artifacts: bounded files of a session that hold what did not fit a result.
 *
 * A new file per artifact, 0600, in the session's own folder. Writing past the bound drops the rest and says so.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import type { ArtifactWriter } from "../tool/index.ts"

const defaultMaxBytes = 100 * 1024 * 1024

/** A part of a file name that every file system takes. */
const safe = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^\.+/, "").slice(0, 80) || "output"

const create = async (
  folder: string,
  name: string
): Promise<{ readonly file: string; readonly handle: fs.FileHandle }> => {
  const { ext, name: stem } = path.parse(safe(name))
  for (let attempt = 1;; attempt++) {
    const file = path.join(folder, attempt === 1 ? `${stem}${ext}` : `${stem}-${attempt}${ext}`)
    try {
      return { file, handle: await fs.open(file, "wx", 0o600) }
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
    }
  }
}

/** Opens an artifact in `folder`. What the operating system refuses is a defect here: the caller says that it was not kept. */
export const openArtifact = (folder: string, name: string, maxBytes = defaultMaxBytes): Effect.Effect<ArtifactWriter> =>
  Effect.map(Effect.promise(() => create(folder, name)), ({ file, handle }): ArtifactWriter => {
    let written = 0
    let open = true
    return {
      path: file,
      write: (chunk) =>
        Effect.promise(async () => {
          const room = Math.max(0, maxBytes - written)
          if (!open || room === 0) return chunk.byteLength === 0
          const part = chunk.byteLength <= room ? chunk : chunk.subarray(0, room)
          try {
            await handle.appendFile(part)
          } catch {
            // A full disk is no reason for the call to fail: what was kept stays, the rest is dropped.
            written = maxBytes
            return false
          }
          written += part.byteLength
          return part.byteLength === chunk.byteLength
        }),
      close: Effect.promise(async () => {
        if (!open) return
        open = false
        await handle.close()
      })
    }
  })
