/**
 * Reads a JSONL session beside whoever writes it: each read is of one state, the newest whole commit.
 *
 * The writer's index is used where it fits. Where a line is not what was stored, or there is no index, the reader makes an
 * index of its own from every line, so that what is whole is found and what is missing is known.
 */
import { storageError } from "./database.ts"
import { damageMessage, newerVersion } from "./jsonl-format.ts"
import type { Damage } from "./jsonl-format.ts"
import { JsonlIndex } from "./jsonl-index.ts"
import type { Checkpoint } from "./jsonl-index.ts"
import { checkpointOf, openIndex, readWhole, usable } from "./jsonl-open.ts"
import { Segments } from "./jsonl-segments.ts"
import { JsonlSession } from "./jsonl-session.ts"
import { versionOf } from "./migrate-jsonl.ts"
import { StorageError } from "./storage.ts"

/** Commits that a reader keeps in memory before it looks whether the writer's index has come nearer. */
const readerTail = 5_000

/** Refuses a journal of another version by name. */
const checkVersion = (folder: string, known: number): void => {
  const segments = new Segments(folder)
  try {
    const version = versionOf(segments)
    if (version === null || version === known) return
    if (version > known) throw newerVersion(folder, version, known)
    throw new StorageError({
      kind: "older_version",
      message:
        `${folder}: these files have format ${version}, and this Bezel reads ${known}; go on with the session once to bring it up to date`,
      path: folder
    })
  } finally {
    segments.close()
  }
}

/** The session as a reader sees it, from one moment to the next. */
export class ReaderState {
  readonly folder: string
  session: JsonlSession
  damage: Array<string> = []
  /** Reads by an index of its own, made from every line. */
  #own = false
  /** What an index that does not fit knew. */
  #known: Checkpoint | null = null
  readonly #warn: (message: string) => void

  readonly #version: number

  constructor(folder: string, version: number, warn: (message: string) => void) {
    this.folder = folder
    this.#version = version
    this.#warn = warn
    checkVersion(folder, version)
    const index = openIndex(folder, true)
    if (index !== null) {
      this.#known = checkpointOf(index)
      this.session = new JsonlSession(folder, index, version)
      try {
        const fits = index.snapshot(() => {
          if (!usable(this.session)) return false
          this.session.resume()
          this.#advance()
          return true
        })
        if (fits) return
      } catch (error) {
        if (storageError(error, folder).kind !== "corrupt") {
          this.session.close()
          throw error
        }
      }
      this.session.close()
    }
    this.session = this.#readAll()
  }

  #readAll(): JsonlSession {
    this.#own = true
    const session = new JsonlSession(this.folder, new JsonlIndex(":memory:"), this.#version)
    try {
      this.#note(session, readWhole(session, this.#known))
      return session
    } catch (error) {
      session.close()
      throw error
    }
  }

  #note(session: JsonlSession, damage: ReadonlyArray<Damage>): void {
    for (const item of damage) {
      const message = damageMessage(session.segments.path(item.segment), item)
      this.damage.push(message)
      this.#warn(message)
    }
  }

  #advance(): void {
    const { session } = this
    if (
      !this.#own && session.tail.count > readerTail &&
      session.index.checkpoint().sequence > session.position.sequence - readerTail
    ) {
      session.resume()
    }
    this.#note(session, session.advance().damage)
    if (this.#own && session.tail.count > readerTail) session.checkpoint()
  }

  read<A>(evaluate: (session: JsonlSession) => A): A {
    try {
      return this.session.index.snapshot(() => {
        this.#advance()
        return evaluate(this.session)
      })
    } catch (error) {
      if (this.#own || storageError(error, this.folder).kind !== "corrupt") throw error
      // What is damaged is told, and the rest is found by the lines themselves.
      const session = this.#readAll()
      this.session.close()
      this.session = session
      return evaluate(session)
    }
  }
}
