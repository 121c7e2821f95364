/**
 * Deliveries that are longer than a frame, in parts. A value that is replicated may be as large as its authority lets it get (a
 * long conversation with its pictures), and a client that could not have it would show nothing. Calls and their results keep to
 * the frame's limit: whoever makes them can ask for less.
 *
 * The parts of a message follow each other with nothing of the same direction between them. Only a host sends them, and what a
 * client takes is bounded.
 */

interface Part {
  readonly _tag: "Part"
  readonly text: string
  readonly more: boolean
}

/** How many times the limit of a frame a message may have in parts. */
const mostFrames = 16

/** What of a part's frame is not its text. */
const overhead = 64

/** Characters of a message in parts, at most. */
export const partsLimit = (frameLimit: number): number => frameLimit * mostFrames

/** By how the frames that are made here begin. */
export const isPartFrame = (frame: string): boolean => frame.startsWith(`{"_tag":"Part"`)

/** The frames of a message's text, or `null` if it is too long for that, too. */
export const partsOf = (text: string, frameLimit: number): ReadonlyArray<string> | null => {
  if (text.length > partsLimit(frameLimit)) return null
  const frames: Array<string> = []
  // A unit takes three bytes at most; only half a pair of surrogates, as a cut leaves it, is written with six.
  const length = Math.max(1, Math.floor((frameLimit - overhead) / 3) - 2)
  for (let at = 0; at < text.length; at += length) {
    const part: Part = { _tag: "Part", text: text.slice(at, at + length), more: at + length < text.length }
    frames.push(JSON.stringify(part))
  }
  return frames
}

const isPart = (message: { readonly _tag: string }): message is Part =>
  message._tag === "Part" && "text" in message && typeof message.text === "string" &&
  "more" in message && typeof message.more === "boolean"

/** Puts messages together again. */
export class Parts {
  private texts: Array<string> = []
  private length = 0
  private readonly limit: number

  constructor(frameLimit: number) {
    this.limit = partsLimit(frameLimit)
  }

  /** The text of the message that this completes; `more` while parts are missing; `wrong` if it is no part, or one too many. */
  take(message: { readonly _tag: string }): { readonly text: string } | "more" | "wrong" {
    if (!isPart(message)) return "wrong"
    this.length += message.text.length
    if (this.length > this.limit) return "wrong"
    this.texts.push(message.text)
    if (message.more) return "more"
    const text = this.texts.join("")
    this.texts = []
    this.length = 0
    return { text }
  }
}
