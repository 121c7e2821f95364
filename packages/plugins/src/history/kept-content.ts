/**
 * Contents that taking back may need, one behind the other in one file of the session, named as git names blobs.
 *
 * Appending costs a fraction of a file for each. A record that a crash has torn is left out at the next opening, as is what
 * is damaged; a content is given only if it is what it is named for. Bounded: `collect` removes what nobody needs any more.
 *
 *     record: "BZC1", 20 bytes of name, length as kept (4 bytes), 1 if compressed (4 bytes), the content
 */
import * as fs from "node:fs"
import { promisify } from "node:util"
import * as Zlib from "node:zlib"
import { blobID } from "./file-state.ts"

const deflate = promisify<Uint8Array, Zlib.ZlibOptions, Buffer>(Zlib.deflate)
const inflate = promisify<Uint8Array, Zlib.ZlibOptions, Buffer>(Zlib.inflate)

/** Smaller contents are kept as they are: compressing one takes longer than writing it. */
const largeBytes = 64 * 1024

const magic = Buffer.from("BZC1")
const headerBytes = 32
const idPattern = /^[0-9a-f]{40}$/

interface Place {
  readonly at: number
  readonly bytes: number
  readonly isDeflated: boolean
}

export class KeptContent {
  readonly path: string
  /** Bytes that have been written, for whoever counts them. */
  written = 0
  readonly #maxBytes: number
  #places: Map<string, Place> | null = null

  /** `maxBytes`: the largest content that is kept. */
  constructor(path: string, maxBytes: number) {
    this.path = path
    this.#maxBytes = maxBytes
  }

  has(id: string): boolean {
    return this.#all().has(id)
  }

  async put(id: string, content: Uint8Array): Promise<void> {
    if (this.has(id)) return
    const deflated = content.byteLength < largeBytes ? null : await deflate(content, { level: 1 })
    if (!this.has(id)) this.#append(id, deflated ?? content, deflated !== null)
  }

  #append(id: string, content: Uint8Array, isDeflated: boolean): void {
    const file = fs.openSync(this.path, "a", 0o600)
    try {
      const at = fs.fstatSync(file).size
      try {
        fs.appendFileSync(file, Buffer.concat([headerOf(id, content.byteLength, isDeflated), content]))
      } catch (error) {
        // A full disk: half a record would be in the way of the next.
        fs.ftruncateSync(file, at)
        throw error
      }
      this.#all().set(id, { at, bytes: content.byteLength, isDeflated })
      this.written += headerBytes + content.byteLength
    } finally {
      fs.closeSync(file)
    }
  }

  /** `null` for one that is not there, or not what it is named for. */
  async get(id: string): Promise<Buffer | null> {
    const content = await this.#get(id)
    if (content !== null) return content
    // A process in which a sub-agent's session was opened by itself may have written here, or moved what is here.
    this.#places = null
    return this.#get(id)
  }

  async #get(id: string): Promise<Buffer | null> {
    const place = this.#all().get(id)
    if (place === undefined) return null
    try {
      const kept = this.#read(place)
      // A little more than what may be kept, so that a damaged file cannot fill the memory.
      const content = place.isDeflated ? await inflate(kept, { maxOutputLength: this.#maxBytes + 65_536 }) : kept
      return blobID(content) === id ? content : null
    } catch {
      return null
    }
  }

  #read({ at, bytes }: Place): Buffer {
    const file = fs.openSync(this.path, "r")
    try {
      const kept = Buffer.alloc(bytes)
      const read = fs.readSync(file, kept, 0, bytes, at + headerBytes)
      return kept.subarray(0, read)
    } finally {
      fs.closeSync(file)
    }
  }

  /** Every content with the bytes that it takes. */
  list(): ReadonlyArray<{ readonly id: string; readonly bytes: number }> {
    return [...this.#all()].map(([id, { bytes }]) => ({ id, bytes: headerBytes + bytes }))
  }

  /** Removes all but these. */
  async collect(needed: ReadonlySet<string>): Promise<void> {
    const places = this.#all()
    if ([...places.keys()].every((id) => needed.has(id))) return
    const temporary = `${this.path}.tmp`
    const kept = new Map<string, Place>()
    const file = fs.openSync(temporary, "w", 0o600)
    try {
      let at = 0
      const copy = (id: string, place: Place) => {
        fs.writeFileSync(file, Buffer.concat([headerOf(id, place.bytes, place.isDeflated), this.#read(place)]))
        kept.set(id, { ...place, at })
        at += headerBytes + place.bytes
      }
      const before = new Set(places.keys())
      for (const id of before) {
        const place = needed.has(id) ? places.get(id) : undefined
        if (place === undefined) continue
        copy(id, place)
        await new Promise((resume) => setImmediate(resume))
      }
      for (const [id, place] of places) if (!before.has(id)) copy(id, place)
    } finally {
      fs.closeSync(file)
    }
    fs.renameSync(temporary, this.path)
    this.#places = kept
  }

  #all(): Map<string, Place> {
    return this.#places ??= readPlaces(this.path)
  }
}

const headerOf = (id: string, bytes: number, isDeflated: boolean): Buffer => {
  const header = Buffer.alloc(headerBytes)
  magic.copy(header)
  header.write(id, 4, "hex")
  header.writeUInt32BE(bytes, 24)
  header.writeUInt32BE(isDeflated ? 1 : 0, 28)
  return header
}

/** What is in a file. Behind a damaged record the next whole one is looked for. */
const readPlaces = (path: string): Map<string, Place> => {
  const places = new Map<string, Place>()
  if (!fs.existsSync(path)) return places
  const file = fs.openSync(path, "r")
  try {
    const { size } = fs.fstatSync(file)
    const header = Buffer.alloc(headerBytes)
    for (let at = 0; at + headerBytes <= size;) {
      fs.readSync(file, header, 0, headerBytes, at)
      const bytes = header.readUInt32BE(24)
      const form = header.readUInt32BE(28)
      if (header.compare(magic, 0, 4, 0, 4) !== 0 || form > 1 || at + headerBytes + bytes > size) {
        const next = findNext(file, at + 1, size)
        if (next === null) break
        at = next
        continue
      }
      const id = header.toString("hex", 4, 24)
      if (idPattern.test(id)) places.set(id, { at, bytes, isDeflated: form === 1 })
      at += headerBytes + bytes
    }
    return places
  } finally {
    fs.closeSync(file)
  }
}

const findNext = (file: number, from: number, size: number): number | null => {
  const chunk = Buffer.alloc(1024 * 1024)
  for (let at = from; at < size; at += chunk.length - magic.length) {
    const read = fs.readSync(file, chunk, 0, chunk.length, at)
    const index = chunk.subarray(0, read).indexOf(magic)
    if (index >= 0) return at + index
  }
  return null
}
