/**
 * Contents that taking back may need, in a folder of the session: one compressed file each, named as git names blobs.
 *
 * A content is written beside its place and renamed, so that one that is there is whole. Bounded: `collect` removes what no
 * change needs any more.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import { promisify } from "node:util"
import * as Zlib from "node:zlib"
import { blobID } from "./file-state.ts"

const deflate = promisify<Uint8Array, Zlib.ZlibOptions, Buffer>(Zlib.deflate)
const inflate = promisify<Uint8Array, Zlib.ZlibOptions, Buffer>(Zlib.inflate)

/** Up to this size, contents are compressed and written in one step. */
const smallBytes = 128 * 1024

const idPattern = /^[0-9a-f]{40}$/

export class KeptContent {
  readonly folder: string
  /** Bytes that have been written, for whoever counts them. */
  written = 0
  readonly #maxBytes: number

  /** `maxBytes`: the largest content that is kept. */
  constructor(folder: string, maxBytes: number) {
    this.folder = folder
    this.#maxBytes = maxBytes
  }

  #path(id: string): string {
    return NodePath.join(this.folder, id.slice(0, 2), id.slice(2))
  }

  async has(id: string): Promise<boolean> {
    return FileSystem.access(this.#path(id)).then(() => true, () => false)
  }

  async put(id: string, content: Uint8Array): Promise<void> {
    // A small one is written sooner than a thread is asked to.
    if (content.byteLength <= smallBytes) return this.#putNow(id, content)
    if (await this.has(id)) return
    const deflated = await deflate(content, { level: 1 })
    this.#write(id, deflated)
  }

  #putNow(id: string, content: Uint8Array): void {
    if (!fs.existsSync(this.#path(id))) this.#write(id, Zlib.deflateSync(content, { level: 1 }))
  }

  #write(id: string, deflated: Uint8Array): void {
    const path = this.#path(id)
    const temporary = `${path}.${randomBytes(4).toString("hex")}.tmp`
    fs.mkdirSync(NodePath.dirname(path), { recursive: true, mode: 0o700 })
    try {
      fs.writeFileSync(temporary, deflated, { mode: 0o600, flag: "wx" })
      fs.renameSync(temporary, path)
      this.written += deflated.byteLength
    } catch (error) {
      fs.rmSync(temporary, { force: true })
      throw error
    }
  }

  /** `null` for one that is not there, or not what it is named for. */
  async get(id: string): Promise<Buffer | null> {
    if (!idPattern.test(id)) return null
    try {
      // A little more than what may be kept, so that a damaged file cannot fill the memory.
      const content = await inflate(await FileSystem.readFile(this.#path(id)), {
        maxOutputLength: this.#maxBytes + 65_536
      })
      return blobID(content) === id ? content : null
    } catch {
      return null
    }
  }

  /** Every content with the bytes that it takes. */
  async list(): Promise<ReadonlyArray<{ readonly id: string; readonly bytes: number }>> {
    const found: Array<{ readonly id: string; readonly bytes: number }> = []
    for (const part of await FileSystem.readdir(this.folder).catch(() => [])) {
      for (const rest of await FileSystem.readdir(NodePath.join(this.folder, part)).catch(() => [])) {
        const stats = await FileSystem.stat(NodePath.join(this.folder, part, rest)).catch(() => null)
        if (stats !== null) found.push({ id: part + rest, bytes: stats.size })
      }
    }
    return found
  }

  /** Removes all but these. */
  async collect(needed: ReadonlySet<string>): Promise<void> {
    for (const { id } of await this.list()) {
      if (!needed.has(id)) await FileSystem.rm(this.#path(id), { force: true })
    }
  }
}
