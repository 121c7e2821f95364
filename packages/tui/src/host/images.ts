/**
 * Which images a frame draws, for a renderer that would clear the terminal's history to draw one that has no room yet.
 *
 * An image is drawn where its rows are all on the screen. One that is appended below it comes in two steps: rows as empty as
 * it is tall, which scroll the screen, and then the image in them. What has scrolled away without it stays empty below its
 * description, and of many that come at once only the last are drawn: a long session is not sent through a slow line whole.
 * Plain synchronous code, on the path of every frame.
 */

/** Images that one frame draws at most. */
const mostAtOnce = 6

const kittyStart = "\x1b_G"

/** Rows of the image that begins on this row; 0 where none does. */
const rowsOf = (row: string): number => {
  const at = row.indexOf(kittyStart)
  if (at < 0) return 0
  const keys = row.slice(at + kittyStart.length, row.indexOf(";", at))
  return Number(/(?:^|,)r=(\d+)/.exec(keys)?.[1] ?? 1)
}

export interface Shown {
  readonly rows: ReadonlyArray<string>
  /** Another frame has to follow at once: rows were left out, or an image. */
  readonly isPart: boolean
}

/** What is on the screen: rows as they were written, and which of them is at its top. `null`: all is written anew. */
export interface Written {
  readonly rows: ReadonlyArray<string>
  readonly top: number
}

/** The rows of a frame on a screen of `height` rows, images left out where they cannot be drawn. */
export const withImages = (rows: ReadonlyArray<string>, written: Written | null, height: number): Shown => {
  const images = rows.flatMap((row, at) => {
    const count = rowsOf(row)
    return count === 0 || written?.rows[at] === row ? [] : [{ at, count }]
  })
  if (images.length === 0) return { rows, isPart: false }
  const shown = [...rows]
  for (const [index, { at, count }] of images.entries()) {
    const isLate = index < images.length - mostAtOnce || count > height
    if (written === null) {
      if (isLate) shown[at] = ""
    } else if (isLate || at < written.top) {
      shown[at] = ""
    } else if (at + count > written.top + height) {
      shown[at] = ""
      shown.length = at + count
      return { rows: shown, isPart: true }
    }
  }
  return { rows: shown, isPart: false }
}
