/**
 * Items of a subscription on their way, as the text that goes into a frame.
 *
 * A delivery goes to any number of clients and becomes text once, for all of them. Appends to one place that wait behind
 * each other for a slow client become one: a message that streams in small pieces costs its text, not its pieces. That
 * loses nothing but the moments between, and only within one cause.
 *
 * A hot path, so plain TypeScript.
 */
import type { Operation } from "../json/index.ts"
import type { SpanCarrier } from "../service/index.ts"
import type { Item } from "./wire.ts"

/** An item that waits. Immutable, unless `Outbox` owns it alone. */
export interface Waiting {
  /** Characters of its text, nearly. */
  readonly size: number
  /** The JSON of an `Item`. */
  readonly text: string
  /** What this and `next`, which comes right after it, are together; null to keep them apart. */
  readonly join: (next: Waiting) => Waiting | null
}

/** An item as JSON text, where a frame takes it as it is. */
export class EncodedItem {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const apart = () => null

/** Any item, encoded now. */
export const waiting = (item: Item): Waiting => {
  const text = JSON.stringify(item)
  return { size: text.length, text, join: apart }
}

/** What the text of an append takes beside what is appended. */
const appendOverhead = 160

type Append = Extract<Operation, readonly ["append", ...ReadonlyArray<unknown>]>

class WaitingDelta implements Waiting {
  readonly instance: number
  readonly member: string
  readonly cause: SpanCarrier | null
  readonly operations: ReadonlyArray<Operation>
  readonly append: Append | null
  private sequence: number
  /** Joined text, and how many deliveries it is of; only of a delta that one outbox owns. */
  private joined: string | null = null
  private count = 1
  private encoded: string | null = null

  constructor(
    instance: number,
    member: string,
    sequence: number,
    operations: ReadonlyArray<Operation>,
    cause: SpanCarrier | null
  ) {
    this.instance = instance
    this.member = member
    this.sequence = sequence
    this.operations = operations
    this.cause = cause
    const only = operations.length === 1 ? operations[0] : undefined
    this.append = only?.[0] === "append" ? only : null
  }

  get size(): number {
    if (this.append === null) return this.text.length
    return (this.joined ?? this.append[2]).length + appendOverhead
  }

  get text(): string {
    return this.encoded ??= JSON.stringify({
      type: "delta",
      instance: this.instance,
      member: this.member,
      sequence: this.sequence,
      ...(this.count === 1 ? {} : { count: this.count }),
      operations: this.append === null || this.joined === null
        ? this.operations
        : [["append", this.append[1], this.joined]],
      ...(this.cause === null ? {} : { cause: this.cause })
    })
  }

  join(next: Waiting): Waiting | null {
    if (!(next instanceof WaitingDelta) || this.append === null || next.append === null) return null
    if (
      next.instance !== this.instance || next.member !== this.member ||
      next.sequence !== this.sequence + next.count ||
      !samePath(this.append[1], next.append[1]) || !sameCause(this.cause, next.cause)
    ) return null
    const own = this.joined === null
      ? new WaitingDelta(this.instance, this.member, this.sequence, this.operations, this.cause)
      : this
    own.joined = (this.joined ?? this.append[2]) + (next.joined ?? next.append[2])
    own.sequence = next.sequence
    own.count = this.count + next.count
    own.encoded = null
    return own
  }
}

const samePath = (left: Append[1], right: Append[1]): boolean =>
  left === right || (left.length === right.length && left.every((segment, index) => segment === right[index]))

const sameCause = (left: SpanCarrier | null, right: SpanCarrier | null): boolean =>
  left === right || (left !== null && right !== null && left.spanId === right.spanId && left.traceId === right.traceId)

/** What was made of a delivery for the client before. */
const made = new WeakMap<object, WaitingDelta>()

/** The delta of one delivery, the same object for every client that follows the same member of the same instance. */
export const waitingDelta = (
  instance: number,
  member: string,
  delivery: { readonly sequence: number; readonly cause: SpanCarrier | null },
  operations: () => ReadonlyArray<Operation> | null
): Waiting | null => {
  const known = made.get(delivery)
  if (known !== undefined && known.instance === instance && known.member === member) return known
  const found = operations()
  if (found === null) return null
  const delta = new WaitingDelta(instance, member, delivery.sequence, found, delivery.cause)
  made.set(delivery, delta)
  return delta
}
