/**
 * What is attached to a prompt while it is written: images, each by a mark that stands for it in the text.
 *
 * The text is the one place that says what is attached: taking a mark out takes its image away, and a prompt that comes back
 * (from the queue, or by the up arrow) brings its images again. Images that no text has named for long are forgotten.
 */
import type { FilePart } from "@bezel/core/model"
import { type Block, describeImage, span, text } from "@bezel/tui"
import type { PastedImage } from "./pasted-image.ts"

/** Images that are remembered beside those that the editor has. */
const remembered = 32
/** Rows above the editor, at most. */
const shownRows = 4

export interface Attachments {
  /** What goes into the text instead of what was pasted. */
  readonly paste: (pasted: string) => string
  /** The images whose marks a text has, in its order. */
  readonly of: (text: string) => ReadonlyArray<FilePart>
  /** The text by which files that were sent with `text` are attached again. */
  readonly again: (text: string, files: ReadonlyArray<FilePart>) => string
  /** What the editor's text has attached, a row each. */
  readonly blocks: (text: () => string) => ReadonlyArray<Block>
}

/** Mentioned files are attached anew from the text when it is sent. */
const isMentioned = (text: string, name: string): boolean => text.includes(`@${name}`) || text.includes(`@"${name}`)

/** `refused` is told why a pasted file is not attached. */
export const makeAttachments = (
  pastedImage: (pasted: string) => PastedImage | null,
  refused: (why: string) => void
): Attachments => {
  const files = new Map<string, FilePart>()
  const described = new WeakMap<FilePart, Block>()

  const marked = (text: string): ReadonlyArray<readonly [string, FilePart]> =>
    [...files].map(([mark, file]) => [text.indexOf(mark), mark, file] as const)
      .filter(([place]) => place >= 0)
      .sort(([a], [b]) => a - b)
      .map(([, mark, file]) => [mark, file] as const)

  const remember = (mark: string, file: FilePart): string => {
    files.delete(mark)
    files.set(mark, file)
    for (const oldest of files.keys()) {
      if (files.size <= remembered) break
      files.delete(oldest)
    }
    return mark
  }

  /** A mark that stands for nothing else. */
  const markFor = (file: FilePart): string => {
    const name = (file.fileName ?? "image").replace(/[[\]\n\r]/g, "_")
    for (let number = 1;; number++) {
      const mark = number === 1 ? `[${name}]` : `[${name} ${number}]`
      const known = files.get(mark)
      if (known === undefined || known.data === file.data) return mark
    }
  }

  return {
    paste: (pasted) => {
      const found = pastedImage(pasted)
      if (found === null) return pasted
      if ("refused" in found) {
        refused(found.refused)
        return pasted
      }
      return `${remember(markFor(found.image), found.image)} `
    },
    of: (text) => marked(text).map(([mark, file]) => (remember(mark, file), file)),
    again: (text, sent) => {
      let again = text
      for (const file of sent) {
        const name = file.fileName ?? "image"
        if (isMentioned(text, name)) continue
        const mark = markFor(file)
        remember(mark, file)
        if (!again.includes(mark)) again = `${again}${again === "" || /\s$/.test(again) ? "" : " "}${mark}`
      }
      return again
    },
    blocks: (written) => {
      // Asked for at each frame, and mostly there is nothing.
      if (files.size === 0) return []
      const attached = marked(written())
      const blocks = attached.slice(0, shownRows).map(([mark, file]) => {
        const known = described.get(file)
        if (known !== undefined) return known
        const block = text([mark.slice(1, -1), span(`  ${describeImage(file)}`, { color: "muted" })], {
          wrap: "clip",
          marker: span("+ ", { color: "accent" })
        })
        described.set(file, block)
        return block
      })
      return attached.length > shownRows
        ? [...blocks, text(span(`  ${attached.length - shownRows} more`, { color: "muted" }))]
        : blocks
    }
  }
}
