/**
 * A unified diff of two texts, for people to look at: three lines of context, cost and size bounded. Where two texts
 * have little in common, the differing middle is shown as removed and added whole, which is still a correct diff.
 */

const CONTEXT = 3
const MAX_DISTANCE = 400
const MAX_LENGTH = 64 * 1024

/** `null` if the texts are equal or the diff would be longer than 64 KiB. */
export const unifiedDiff = (name: string, before: string, after: string): string | null => {
  if (before === after) return null
  const left = linesOf(before)
  const right = linesOf(after)
  const hunks = hunksOf(changesOf(left, right), left, right)
  const text = `--- ${before === "" ? "/dev/null" : name}\n+++ ${name}\n${hunks.join("")}`
  return text.length > MAX_LENGTH ? null : text
}

/** Lines with their ends, so that a changed end is a changed line. */
const linesOf = (text: string): ReadonlyArray<string> => text === "" ? [] : text.match(/[^\n]*\n|[^\n]+$/g) ?? []

/** `left[from..to)` becomes `right[start..end)`. */
interface Change {
  readonly from: number
  readonly to: number
  readonly start: number
  readonly end: number
}

const changesOf = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<Change> => {
  let head = 0
  while (head < left.length && head < right.length && left[head] === right[head]) head++
  let tail = 0
  while (
    tail < left.length - head && tail < right.length - head &&
    left[left.length - 1 - tail] === right[right.length - 1 - tail]
  ) tail++
  const middle = shortest(left.slice(head, left.length - tail), right.slice(head, right.length - tail))
  return middle.map(({ end, from, start, to }) => ({
    from: from + head,
    to: to + head,
    start: start + head,
    end: end + head
  }))
}

/** Myers' greedy algorithm, given up for a whole replacement when the texts differ too much. */
const shortest = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<Change> => {
  const whole = [{ from: 0, to: left.length, start: 0, end: right.length }]
  const trace: Array<Map<number, number>> = []
  let reach = new Map<number, number>([[1, 0]])
  for (let d = 0; d <= Math.min(MAX_DISTANCE, left.length + right.length); d++) {
    const next = new Map(reach)
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
      let x = down ? reach.get(k + 1) ?? 0 : (reach.get(k - 1) ?? 0) + 1
      while (x < left.length && x - k < right.length && left[x] === right[x - k]) x++
      next.set(k, x)
      if (x >= left.length && x - k >= right.length) return walkBack(trace, reach, d, left.length, right.length)
    }
    trace.push(reach)
    reach = next
  }
  return whole
}

const walkBack = (
  trace: ReadonlyArray<Map<number, number>>,
  last: Map<number, number>,
  distance: number,
  endX: number,
  endY: number
): ReadonlyArray<Change> => {
  const steps: Array<Change> = []
  let x = endX
  let y = endY
  for (let d = distance; d > 0; d--) {
    const reach = d === distance ? last : trace[d] ?? last
    const k = x - y
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
    const previous = down ? k + 1 : k - 1
    const fromX = reach.get(previous) ?? 0
    const fromY = fromX - previous
    steps.push(
      down
        ? { from: fromX, to: fromX, start: fromY, end: fromY + 1 }
        : { from: fromX, to: fromX + 1, start: fromY, end: fromY }
    )
    x = fromX
    y = fromY
  }
  return steps.toReversed().reduce<Array<Change>>((merged, step) => {
    const before = merged.at(-1)
    if (before !== undefined && before.to === step.from && before.end === step.start) {
      merged[merged.length - 1] = { from: before.from, to: step.to, start: before.start, end: step.end }
    } else merged.push(step)
    return merged
  }, [])
}

const hunksOf = (
  changes: ReadonlyArray<Change>,
  left: ReadonlyArray<string>,
  right: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const groups: Array<Array<Change>> = []
  for (const change of changes) {
    const group = groups.at(-1)
    const before = group?.at(-1)
    if (group !== undefined && before !== undefined && change.from - before.to <= 2 * CONTEXT) group.push(change)
    else groups.push([change])
  }
  return groups.map((group) => hunkOf(group, left, right))
}

const hunkOf = (group: ReadonlyArray<Change>, left: ReadonlyArray<string>, right: ReadonlyArray<string>): string => {
  const first = group[0] ?? { from: 0, to: 0, start: 0, end: 0 }
  const last = group.at(-1) ?? first
  const from = Math.max(0, first.from - CONTEXT)
  const to = Math.min(left.length, last.to + CONTEXT)
  const start = first.start - (first.from - from)
  const end = last.end + (to - last.to)
  const lines: Array<string> = []
  let at = from
  for (const change of group) {
    for (; at < change.from; at++) lines.push(marked(" ", left[at]))
    for (; at < change.to; at++) lines.push(marked("-", left[at]))
    for (let added = change.start; added < change.end; added++) lines.push(marked("+", right[added]))
  }
  for (; at < to; at++) lines.push(marked(" ", left[at]))
  return `@@ -${range(from, to)} +${range(start, end)} @@\n${lines.join("")}`
}

const range = (from: number, to: number): string => {
  const length = to - from
  return length === 1 ? `${from + 1}` : `${length === 0 ? from : from + 1},${length}`
}

const marked = (sign: string, line = ""): string =>
  line.endsWith("\n") ? `${sign}${line}` : `${sign}${line}\n\\ No newline at end of file\n`
