/**
 * Frames that have arrived and wait for the one who handles them, one after another. Where the medium can be held up, it is
 * while much waits, so that a peer that floods is slowed and not stored.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

/** Characters that may wait before the medium is held up. */
const highWater = 1_048_576

export interface Flow {
  readonly pause: () => void
  readonly resume: () => void
}

/** Handles a frame: null when that is done, or what remains to be done before the next one. */
export type OnFrame = (frame: string) => Effect.Effect<void> | null

export class Inbox {
  private frames: Array<string> = []
  private waiting = 0
  private paused = false
  private ended = false
  private cut = false
  /** While nothing remains to be done, frames are handled as they come. */
  private idle: OnFrame | null = null
  private readonly flow: Flow | null
  private readonly filled = Latch.makeUnsafe(false)

  constructor(flow: Flow | null) {
    this.flow = flow
  }

  push(frames: ReadonlyArray<string>): void {
    if (this.ended) return
    let at = 0
    for (let onFrame = this.idle; onFrame !== null && at < frames.length && !this.cut; onFrame = this.idle) {
      const rest = onFrame(frames[at++] ?? "")
      if (rest === null) continue
      this.idle = null
      this.rest = rest
    }
    if (at === frames.length && this.rest === null) return
    for (const frame of at === 0 ? frames : frames.slice(at)) {
      this.frames.push(frame)
      this.waiting += frame.length
    }
    if (this.waiting > highWater && !this.paused) {
      this.paused = true
      this.flow?.pause()
    }
    this.filled.openUnsafe()
  }

  private rest: Effect.Effect<void> | null = null

  /** Nothing more comes; what waits is still handled. */
  end(): void {
    this.ended = true
    this.filled.openUnsafe()
  }

  /** Nothing is handled any more. */
  stop(): void {
    this.cut = true
    this.frames = []
    this.end()
  }

  /** Completes after the end. */
  run(onFrame: OnFrame): Effect.Effect<void> {
    const next: Effect.Effect<void> = Effect.suspend(() => {
      let at = 0
      while (this.rest === null && at < this.frames.length && !this.cut) this.rest = onFrame(this.frames[at++] ?? "")
      if (at > 0) {
        this.frames = this.frames.slice(at)
        this.waiting = this.frames.reduce((sum, frame) => sum + frame.length, 0)
      }
      const rest = this.rest
      if (rest !== null) {
        this.rest = null
        return Effect.flatMap(rest, () => next)
      }
      if (this.paused) {
        this.paused = false
        this.flow?.resume()
      }
      if (this.ended) return Effect.void
      this.filled.closeUnsafe()
      this.idle = onFrame
      return Effect.flatMap(this.filled.await, () => next)
    })
    return next
  }
}
