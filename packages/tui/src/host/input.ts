/**
 * Input: what arrives from the terminal in one read, as keys and pastes.
 *
 * A paste is one edit and never submits. With brackets the terminal says where it begins and ends. Without them it is
 * recognised by its shape: many characters in one read, or a line break with more text behind it, which nobody types. What
 * follows within a moment still belongs to it, because a long paste takes several reads.
 */

/** More characters in one read than somebody types ahead, or a script sends as one line. */
const burst = 1_024
/** How long after an unbracketed paste further input is taken to be the rest of it. */
const pasteWindowMillis = 60

const pasteStart = "\x1b[200~"
const pasteEnd = "\x1b[201~"

export interface InputTarget {
  readonly key: (sequence: string) => void
  readonly paste: (text: string) => void
}

/** One sequence after another, as pi-tui splits them; `\r`, a printable character, or a whole escape sequence. */
const isText = (sequence: string): boolean =>
  sequence === "\r" || sequence === "\n" || sequence === "\t" || (sequence.codePointAt(0) ?? 0) >= 32

/**
 * Collects the sequences of one read, then hands them on. `nextTurn` runs its argument after the current read has been
 * split, `now` is in milliseconds.
 */
export const makeInput = (
  target: InputTarget,
  nextTurn: (flush: () => void) => void,
  now: () => number
): (sequence: string) => void => {
  let batch: Array<string> = []
  let pasteUntil = 0

  const isPaste = (run: ReadonlyArray<string>): boolean => {
    if (now() < pasteUntil) return run.length > 1 || run[0] === "\r" || run[0] === "\n"
    const breaks = run.flatMap((sequence, index) => sequence === "\r" || sequence === "\n" ? [index] : [])
    const first = breaks[0]
    if (first === undefined) return false
    // "abc⏎" in one read is a line typed ahead, or sent by a script: it means to be submitted. "abc⏎def" is neither.
    return run.length >= burst || (first < run.length - 1 && breaks.length < run.length)
  }

  const emitRun = (run: ReadonlyArray<string>): void => {
    if (run.length === 0) return
    if (isPaste(run)) {
      pasteUntil = now() + pasteWindowMillis
      target.paste(run.join(""))
      return
    }
    for (const sequence of run) target.key(sequence)
  }

  const flush = (): void => {
    const sequences = batch
    batch = []
    let run: Array<string> = []
    for (const sequence of sequences) {
      if (isText(sequence)) {
        run.push(sequence)
        continue
      }
      emitRun(run)
      run = []
      if (sequence.startsWith(pasteStart)) {
        const end = sequence.lastIndexOf(pasteEnd)
        target.paste(sequence.slice(pasteStart.length, end < 0 ? undefined : end))
      } else {
        target.key(sequence)
      }
    }
    emitRun(run)
  }

  return (sequence) => {
    if (batch.length === 0) nextTurn(flush)
    batch.push(sequence)
  }
}
