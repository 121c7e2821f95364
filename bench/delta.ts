/**
 * The cost of streaming through a tracked document: `node bench/delta.ts`.
 *
 * Two shapes: 200,000 appends of five characters to one nested string, and 20,000 edits of one leaf of a row among 1,000;
 * each is flushed, encoded, and applied by a replica. Prints milliseconds and the units per second as JSON lines.
 */
import { append, apply, track } from "../packages/core/src/json/index.ts"

const report = (name: string, count: number, run: () => void): void => {
  const start = performance.now()
  run()
  const milliseconds = performance.now() - start
  console.log(
    JSON.stringify({
      name,
      count,
      milliseconds: Math.round(milliseconds),
      perSecond: Math.round(count / milliseconds * 1_000)
    })
  )
}

const expectEqual = (left: unknown, right: unknown): void => {
  if (JSON.stringify(left) !== JSON.stringify(right)) throw new Error("the replica differs")
}

report("append five characters to a nested string", 200_000, () => {
  const base = {
    turn: { message: { parts: [{ type: "text", text: "" }] }, tools: [] as Array<string> },
    other: { a: 1 }
  }
  let replica = base
  const tracked = track(base)
  let bytes = 0
  let value = base
  for (let index = 0; index < 200_000; index++) {
    const part = tracked.draft.turn.message.parts[0]
    if (part === undefined) throw new Error("no part")
    append(part, "text", "abcde")
    const flushed = tracked.flush()
    value = flushed.value
    const wire = JSON.stringify(flushed.operations)
    bytes += wire.length
    replica = apply(replica, JSON.parse(wire))
  }
  expectEqual(replica, value)
  if (bytes > 200_000 * 80) throw new Error("an append carries more than its text")
})

report("set one leaf of a row among 1,000", 20_000, () => {
  const base = { rows: Array.from({ length: 1_000 }, (_, id) => ({ id, state: { value: 0 }, label: `row ${id}` })) }
  let replica = base
  const tracked = track(base)
  let value = base
  for (let index = 0; index < 20_000; index++) {
    const row = tracked.draft.rows[index % 1_000]
    if (row === undefined) throw new Error("no row")
    row.state.value = index
    const flushed = tracked.flush()
    value = flushed.value
    replica = apply(replica, JSON.parse(JSON.stringify(flushed.operations)))
  }
  expectEqual(replica, value)
})
