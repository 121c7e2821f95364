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

export class Inbox {
  private frames: Array<string> = []
  private waiting = 0
  private paused = false
  private ended = false
  private cut = false
  private readonly flow: Flow | null
  private readonly filled = Latch.makeUnsafe(false)

  constructor(flow: Flow | null) {
    this.flow = flow
  }

  push(frames: ReadonlyArray<string>): void {
    if (this.ended) return
    for (const frame of frames) {
      this.frames.push(frame)
      this.waiting += frame.length
    }
    if (this.waiting > highWater && !this.paused) {
      this.paused = true
      this.flow?.pause()
    }
    this.filled.openUnsafe()
  }

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
  run(onFrame: (frame: string) => Effect.Effect<void>): Effect.Effect<void> {
    const next: Effect.Effect<void> = Effect.suspend(() => {
      if (this.frames.length === 0) {
        if (this.ended) return Effect.void
        this.filled.closeUnsafe()
        return Effect.flatMap(this.filled.await, () => next)
      }
      const batch = this.frames
      this.frames = []
      this.waiting = 0
      return Effect.flatMap(
        Effect.forEach(batch, (frame) => this.cut ? Effect.void : onFrame(frame), { discard: true }),
        () => {
          if (this.paused) {
            this.paused = false
            this.flow?.resume()
          }
          return next
        }
      )
    })
    return next
  }
}
