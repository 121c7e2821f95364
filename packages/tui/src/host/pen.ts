/**
 * The pen: bytes that turn rows of a terminal's main screen into other ones, with movements that are relative to the cursor.
 *
 * Where on the screen the rows stand need not be known, so what a terminal does with its own history does not matter. Rows
 * that are not there yet are made by line feeds, which scroll at the bottom of the screen; nothing is ever scrolled back or
 * cleared that the pen did not write.
 */
import { deleteKittyImage } from "@earendil-works/pi-tui"

const kitty = "\x1b_G"
const iterm = "\x1b]1337;File="

/** A row that an image begins on. */
export const isImage = (row: string): boolean => row.includes(kitty) || row.includes(iterm)

/** Value of a parameter of an image's first sequence, 0 if it has none. */
const parameter = (row: string, name: string): number => {
  const from = row.indexOf(kitty)
  if (from === -1) return 0
  const head = row.slice(from + kitty.length, row.indexOf(";", from))
  return Number(head.split(",").find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? 0)
}

/** Terminals put these two letters of Thai and Lao into more cells than they take; apart, they are alike everywhere. */
const apart = (row: string): string =>
  /[\u0e33\u0eb3]/.test(row) ? row.replaceAll("\u0e33", "\u0e4d\u0e32").replaceAll("\u0eb3", "\u0ecd\u0eb2") : row

const painted = (row: string): string => row.includes("\x1b") ? `${apart(row)}\x1b[0m` : apart(row)

/** How many letters both begin with that are one column each, whatever stands next to them. */
const commonStart = (before: string, after: string): number => {
  let length = 0
  for (const limit = Math.min(before.length, after.length); length < limit; length++) {
    const code = after.charCodeAt(length)
    if (code !== before.charCodeAt(length) || code < 0x20 || code > 0x7e) break
  }
  // What follows may join with the last one.
  return Math.max(0, length - 1)
}

/** Below this much in common, writing a row again takes fewer bytes. */
const worthKeeping = 6

export class Pen {
  /** The row that the cursor is in, and the last one that there is; from 0, or below for rows further up. */
  row: number
  #last: number
  #out = ""

  constructor(row: number, count: number) {
    this.row = row
    this.#last = Math.max(row, count - 1)
  }

  /** What was drawn so far, as bytes for the terminal. */
  get written(): string {
    return this.#out
  }

  write(bytes: string): void {
    this.#out += bytes
  }

  /** Goes to a row, in whatever column; makes it if it is not there. */
  to(row: number): void {
    const within = Math.min(row, this.#last)
    if (within < this.row) this.#out += `\x1b[${this.row - within}A`
    if (within > this.row) this.#out += `\x1b[${within - this.row}B`
    if (row > within) this.#out += "\r\n".repeat(row - within)
    this.#last = Math.max(this.#last, row)
    this.row = row
  }

  /** Erases this row and all below it. */
  clearFrom(row: number): void {
    this.to(row)
    this.#out += "\r\x1b[J"
    this.#last = row
  }

  /** Takes images away that stand on these rows. */
  forget(rows: ReadonlyArray<string>): void {
    for (const row of rows) {
      const id = parameter(row, "i")
      if (id > 0) this.#out += deleteKittyImage(id)
    }
  }

  /** Turns rows into others that stand in the same place. Of images, none is drawn that is taller than the screen. */
  draw(before: ReadonlyArray<string>, after: ReadonlyArray<string>, height: number): void {
    this.forget(before.filter((row, index) => row !== after[index]))
    for (let index = 0; index < after.length; index++) {
      const row = after[index] ?? ""
      const old = before[index]
      if (row === old) continue
      const isNew = index > this.#last
      this.to(index)
      if (isImage(row)) {
        index += this.#image(row, Math.min(parameter(row, "r"), after.length - index), height)
        continue
      }
      const kept = old === undefined || isImage(old) ? 0 : commonStart(old, row)
      if (kept > worthKeeping) this.#out += `\x1b[${kept + 1}G${old === row.slice(0, old?.length) ? "" : "\x1b[K"}`
      else if (!isNew) this.#out += "\r\x1b[2K"
      this.#out += painted(kept > worthKeeping ? row.slice(kept) : row)
    }
    if (after.length < before.length) this.clearFrom(after.length)
  }

  /** Draws an image over rows that are made first, since drawing must not scroll; gives how many more they are. */
  #image(row: string, rows: number, height: number): number {
    const first = this.row
    this.#out += "\r\x1b[2K"
    for (let below = 1; below < rows; below++) {
      this.to(first + below)
      this.#out += "\r\x1b[2K"
    }
    if (rows <= height) {
      this.to(first)
      this.#out += `\r${row}\r`
    }
    return Math.max(0, rows - 1)
  }
}
