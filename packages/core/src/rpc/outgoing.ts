/**
 * Frames on their way to a peer. Those of one turn leave together, but many of them in parts, so that the peer works on the
 * first ones while the others are made. What the medium does not take waits here, bounded: a peer that does not read is
 * given up, what waited for it is dropped, and the last frame it can read says why.
 *
 * A hot path, so plain TypeScript.
 */
import type { ServiceError } from "../service/index.ts"
import { isPartFrame } from "./parts.ts"
import { farewell } from "./transport.ts"

/** How frames get onto the medium. */
export interface Medium {
  /** Takes these frames; false when nothing more may follow until `Outgoing.drained`. */
  readonly write: (frames: ReadonlyArray<string>) => boolean
  /** Sends what was taken, then closes; `reason` is why the peer is sent away, for media that can say so. */
  readonly end: (reason: ServiceError | null) => void
  /** Closes now. */
  readonly destroy: () => void
  /** Whether the peer's answer to a write can come before `write` has returned; then nothing leaves in the midst of a turn. */
  readonly answersAtOnce?: boolean
}

/** Characters that the medium is given at once, which can not be dropped any more. */
const batchLength = 262_144

/** As many frames leave before the turn that makes them is over. */
const partFrames = 16

/** How long a peer has to take the last frame. */
const farewellMillis = 5_000

export class Outgoing {
  private frames: Array<string> = []
  private waiting = 0
  /** How many of those that wait are of messages in parts, which may be longer than all that may wait else. */
  private parts = 0
  private blocked = false
  private scheduled = false
  private reason: ServiceError | null = null
  private state: "open" | "leaving" | "closed" = "open"
  private readonly medium: Medium
  private readonly limit: number
  private readonly partsLimit: number

  /** `limit` is how many characters may wait, `partsLimit` how many of messages in parts beside them. */
  constructor(medium: Medium, limit: number, partsLimit: number) {
    this.medium = medium
    this.limit = limit
    this.partsLimit = partsLimit
  }

  /** False when the peer is gone, or is given up; `full` says that this frame is one too many. */
  push(frame: string): "taken" | "gone" | "full" {
    if (this.state !== "open") return "gone"
    const isPart = isPartFrame(frame)
    const beside = isPart ? this.parts : this.waiting - this.parts
    if (beside > 0 && beside + frame.length > (isPart ? this.partsLimit : this.limit)) return "full"
    this.frames.push(frame)
    this.waiting += frame.length
    if (isPart) this.parts += frame.length
    if (this.blocked) return "taken"
    if (this.frames.length >= partFrames && this.medium.answersAtOnce !== true) this.flush()
    else if (!this.scheduled) {
      this.scheduled = true
      queueMicrotask(() => {
        this.scheduled = false
        this.flush()
      })
    }
    return "taken"
  }

  /** Sends what waits, as far as the medium takes it. */
  flushNow(): void {
    if (this.frames.length > 0) this.flush()
  }

  /** The medium takes more again. */
  drained(): void {
    this.blocked = false
    this.flush()
  }

  /** Closes after what waits, or, where the peer is sent away, after the frame that says why and nothing else. */
  leave(reason: ServiceError | null): void {
    if (this.state !== "open") return
    this.state = "leaving"
    this.reason = reason
    if (reason !== null) {
      const last = farewell(reason)
      this.frames = [last]
      this.waiting = last.length
      this.parts = 0
    }
    setTimeout(() => this.destroy(), farewellMillis).unref()
    if (!this.blocked) this.flush()
  }

  /** The medium is gone. */
  closed(): void {
    this.state = "closed"
    this.frames = []
    this.waiting = 0
    this.parts = 0
  }

  private destroy(): void {
    if (this.state === "closed") return
    this.medium.destroy()
  }

  private flush(): void {
    while (!this.blocked && this.frames.length > 0 && this.state !== "closed") {
      const batch = this.take()
      if (!this.medium.write(batch)) this.blocked = true
    }
    if (this.state === "leaving" && this.frames.length === 0) this.medium.end(this.reason)
  }

  private take(): ReadonlyArray<string> {
    if (this.waiting <= batchLength) {
      const all = this.frames
      this.frames = []
      this.waiting = 0
      this.parts = 0
      return all
    }
    let count = 0
    let length = 0
    while (count < this.frames.length && length < batchLength) {
      const frame = this.frames[count++] ?? ""
      length += frame.length
      if (isPartFrame(frame)) this.parts -= frame.length
    }
    this.waiting -= length
    return this.frames.splice(0, count)
  }
}
