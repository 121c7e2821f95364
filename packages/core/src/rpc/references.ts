/**
 * The references that one connection holds. Their numbers are the client's and mean nothing on any other connection.
 *
 *   reserved ── the method returned ──▶ held ── released, completed and its grace is over, provider gone ──▶ gone
 *      └── released meanwhile, or the method failed ──▶ gone
 *
 * All steps are synchronous. Each one that ends a hold gives back what is to be run for its owner.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Instance, Issued } from "../service/index.ts"

interface Held {
  readonly issued: Issued
  readonly instance: Instance
  /** The instance of the provider that it is from. */
  readonly parent: Instance
}

export class References {
  private readonly held = new Map<number, Held>()
  /** Of each instance that stands for a reference, also while a call to it is open that has outlived it. */
  private readonly providers = new WeakMap<Instance, Instance>()
  /** Of calls that are open; true once released. */
  private readonly reserved = new Map<number, boolean>()

  get size(): number {
    return this.held.size + this.reserved.size
  }

  get(reference: number): Instance | undefined {
    return this.held.get(reference)?.instance
  }

  /** False when the number is taken. */
  reserve(reference: number): boolean {
    if (this.held.has(reference) || this.reserved.has(reference)) return false
    this.reserved.set(reference, false)
    return true
  }

  /** The call that reserved the number is over. */
  settle(reference: number): void {
    this.reserved.delete(reference)
  }

  /**
   * Null when it was released before it was there. One that a reference's method has returned is of the same provider, and
   * stands by itself: giving the one back leaves the other.
   */
  hold(reference: number, issued: Issued, from: Instance): Instance | null {
    const released = this.reserved.get(reference)
    this.reserved.delete(reference)
    if (released !== false) return null
    const parent = this.providers.get(from) ?? from
    const instance: Instance = {
      token: issued.token,
      owner: parent.owner,
      session: parent.session,
      key: null,
      generation: reference,
      closed: Latch.makeUnsafe(false),
      implementation: issued.implementation
    }
    issued.holders++
    this.providers.set(instance, parent)
    this.held.set(reference, { issued, instance, parent })
    return instance
  }

  release(reference: number): Effect.Effect<void> {
    if (this.reserved.has(reference)) this.reserved.set(reference, true)
    const held = this.held.get(reference)
    if (held === undefined) return Effect.void
    this.held.delete(reference)
    held.instance.closed.openUnsafe()
    return --held.issued.holders === 0 ? aside(held.issued.released) : Effect.void
  }

  /** Ends those whose provider is gone. */
  sweep(): Effect.Effect<void> {
    const gone = [...this.held].filter(([, { parent }]) => parent.closed.isOpen())
    return gone.length === 0 ? Effect.void : all(gone.map(([reference]) => this.release(reference)))
  }

  clear(): Effect.Effect<void> {
    return all([...this.held.keys()].map((reference) => this.release(reference)))
  }
}

/** Code of a plugin: however it ends, and if it never does, nothing here waits for it. */
const aside = (released: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.asVoid(Effect.forkDetach(
    Effect.catchCause(
      released,
      (cause) => Effect.logError("What was to run once nobody held a reference any more failed.", cause)
    ),
    { startImmediately: true }
  ))

const all = (effects: ReadonlyArray<Effect.Effect<void>>): Effect.Effect<void> =>
  Effect.forEach(effects, (effect) => effect, { discard: true })
