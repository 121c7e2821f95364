/**
 * What must hold of the scripted session once it has come to its end, however often its process was killed on the way.
 * Each check that does not hold is one sentence.
 */
import type { Message } from "@bezel/core/model"
import type { ConversationRecord, EntryRecord, InputRecord, StorageError, StorageReader } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import { deepStrictEqual } from "node:assert"
import { callIDs, inputs, type LifeEnd, openBackend, openScripted, type Shown, worldOf } from "./session-script.ts"
import type { Life } from "./session-script.ts"

export interface Ending {
  readonly life: Pick<Life, "backend" | "folder">
  /** All that was said, by every life in turn. */
  readonly told: ReadonlyArray<string>
  /** How often a person had been asked when the last life began. */
  readonly askedBefore: number
  /** What the last life said. */
  readonly last: ReadonlyArray<string>
  readonly end: LifeEnd
}

const differs = (actual: unknown, expected: unknown): boolean => {
  try {
    deepStrictEqual(actual, expected)
    return false
  } catch {
    return true
  }
}

/** Calls whose results do not follow them at once, one each and in order. */
export const pairingFaults = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages.flatMap((message, index) => {
    if (message.role !== "assistant") return []
    const calls = message.content.flatMap((part) => part.type === "tool-call" ? [part.id] : [])
    const next = messages[index + 1]
    const results = next?.role === "tool" ? next.content.map((result) => result.id) : []
    return results.join() === calls.join() ? [] : [`the calls ${calls.join()} have the results ${results.join()}`]
  })

interface Stored {
  readonly reader: StorageReader
  readonly conversations: ReadonlyArray<ConversationRecord>
  readonly entries: ReadonlyArray<EntryRecord>
}

const told = (lines: ReadonlyArray<string>, what: string): ReadonlyArray<ReadonlyArray<string>> =>
  lines.map((line) => line.split(" ")).filter(([first]) => first === what).map(([, ...rest]) => rest)

const read = Effect.fnUntraced(function*(reader: StorageReader): Effect.fn.Return<Stored, StorageError> {
  const conversations = yield* reader.conversations
  const entries = (yield* Effect.forEach(conversations, ({ id }) => reader.entries({ conversation: id }))).flat()
  return { reader, conversations, entries }
})

/** Nothing acknowledged is lost. */
const lossFaults = Effect.fnUntraced(function*({ told: lines }: Ending, { entries, reader }: Stored) {
  const faults: Array<string> = []
  const kinds = new Map(entries.map((entry) => [entry.id, entry.kind]))
  for (const [id = "", kind] of told(lines, "entry")) {
    if (kinds.get(id) !== kind) faults.push(`the entry ${id} was shown as ${kind} and is ${kinds.get(id) ?? "gone"}`)
  }
  for (const [id = "", request] of told(lines, "input")) {
    const input = yield* reader.input(id)
    if (input?.requestID !== request) {
      faults.push(`the input ${id} was accepted for ${request} and is of ${input?.requestID ?? "nobody"}`)
    }
  }
  for (const [id = "", status, answer] of told(lines, "ended")) {
    const input = yield* reader.input(id)
    if (input?.status !== status || input?.answer !== answer) {
      faults.push(
        `the input ${id} was told to be ${status} with ${answer} and is ${input?.status} with ${input?.answer}`
      )
    }
  }
  for (const what of ["job", "fork"]) {
    const ids = new Set(told(lines, what).map(([id]) => id))
    if (ids.size > 1) faults.push(`the ${what} was ${[...ids].join(" and ")}`)
  }
  return faults
})

/** Nothing happens twice, and everything ends. */
const endFaults = Effect.fnUntraced(function*({ end, life }: Ending, { conversations, entries, reader }: Stored) {
  const faults: Array<string> = []
  const owned = conversations.filter((conversation) => conversation.owner !== null)
  const count = (what: string, actual: number, least: number, most = least): void => {
    if (actual < least || actual > most) {
      faults.push(`${actual} ${what}, not ${least === most ? least : `${least} to ${most}`}`)
    }
  }
  const records: Array<InputRecord> = []
  count("conversations of the call that asks", owned.length, 1)
  for (const request of [...Object.values(inputs), ...owned.map(({ id }) => `${id}/question`)]) {
    const input = yield* reader.inputByRequest(request)
    if (input === null) faults.push(`the input of ${request} is gone`)
    else records.push(input)
  }
  for (const input of records) {
    if (input.status !== "done") {
      faults.push(`the input ${input.id} of ${input.requestID} is ${input.status} (${input.reason})`)
    }
    const placed = entries.filter((entry) =>
      entry.kind === "bezel.user" && differs(entry.data, { input: input.id }) === false
    )
    count(`entries of the input ${input.id}`, placed.length, 1)
  }
  count("entries of inputs", entries.filter((entry) => entry.kind === "bezel.user").length, records.length)
  count("live tasks", (yield* reader.liveTasks).length, 0)
  count("live inputs", (yield* reader.liveInputs).length, 0)
  count("summaries", entries.filter((entry) => entry.kind === "bezel.summary").length, 1)
  const notices = entries.filter((entry) => entry.kind === "bezel.notice")
  count("notices of the job", notices.filter((entry) => entry.conversation === "c1").length, 1)
  count("seeds of the owned conversation", notices.filter((entry) => entry.conversation === owned[0]?.id).length, 1)

  const failed = new Map<string, boolean>()
  const results = entries.filter((entry) => entry.kind === "bezel.tool_result").flatMap((entry) => entry.model ?? [])
  for (const message of results) {
    if (message.role !== "tool") continue
    for (const result of message.content) {
      if (failed.has(result.id)) faults.push(`the call ${result.id} has two results`)
      failed.set(result.id, result.isFailure)
    }
  }
  count("results", failed.size, callIDs.length)
  if (["c-safe", "c-keyed", "c-agent"].some((id) => failed.get(id) !== false)) {
    faults.push("a call that may be repeated failed")
  }

  const world = worldOf(life.folder)
  for (const [log, id] of [["unsafe.log", "c-unsafe"], ["guarded.log", "c-guarded"]] as const) {
    count(
      `effects of ${id}, which has ${failed.get(id) === false ? "succeeded" : "failed"}`,
      world.lines(log).length,
      failed.get(id) === false ? 1 : 0,
      1
    )
  }
  count("effects of the key", world.accepted().length, 1)
  count("runs of the job", world.lines("job.log").length, 1)
  for (const shown of [end.main, end.fork]) {
    if (shown.view.turn !== null || shown.view.inbox.length > 0) faults.push("a turn or an input is left in the view")
    faults.push(...pairingFaults(shown.context))
  }
  const answer = end.main.context.at(-1)
  const text = answer?.role === "assistant"
    ? answer.content.map((part) => part.type === "text" ? part.text : "").join("")
    : ""
  if (text !== "answer to last") faults.push(`the last answer is "${text}"`)
  return faults
})

/** No number names two records, and the next one names none. */
const identityFaults = Effect.fnUntraced(
  function*({ told: lines }: Ending, { conversations, entries, reader }: Stored) {
    const faults: Array<string> = []
    const requests = yield* Effect.forEach(Object.values(inputs), (request) => reader.inputByRequest(request))
    const jobs = new Set(told(lines, "job").map(([id]) => id ?? ""))
    const ids = [
      ...conversations.map((conversation) => conversation.id),
      ...entries.map((entry) => entry.id),
      ...requests.flatMap((input) => input === null ? [] : [input.id]),
      ...jobs
    ]
    const numbers = ids.map((id) => Number(id.slice(1)))
    if (new Set(numbers).size !== numbers.length) faults.push(`a number was used twice: ${ids.join()}`)
    if (Math.max(...numbers) >= (yield* reader.nextID)) faults.push("the next number was used before")
    return faults
  }
)

/** Forks and owned conversations are made whole, also those that nobody was told of. */
const settingsFaults = Effect.fnUntraced(function*(_: Ending, { conversations, reader }: Stored) {
  const faults: Array<string> = []
  for (const { id, owner, parent } of conversations) {
    const settings = JSON.stringify(yield* reader.document(`rewindable:${id}`))
    if (parent !== null && !settings.includes('"thinking":"low"')) {
      faults.push(`a fork has not the settings of where it began: ${settings}`)
    }
    if (owner !== null && !settings.includes('"agent":"other"')) {
      faults.push(`an owned conversation has not what it was seeded with: ${settings}`)
    }
  }
  return faults
})

/** What watchers were shown is what storage has. */
const viewFaults = Effect.fnUntraced(function*({ end, life }: Ending, { conversations }: Stored) {
  const faults: Array<string> = []
  const { harness } = yield* openScripted({ ...life, say: () => {} })
  for (const [name, shown] of Object.entries(end) as ReadonlyArray<[string, Shown]>) {
    const id = shown.view.conversation.id
    const conversation = conversations.some((record) => record.id === id) ? yield* harness.conversation(id) : null
    if (conversation === null) faults.push(`the conversation ${id} is gone`)
    else if (differs((yield* conversation.snapshot).view, shown.view)) {
      faults.push(`the view of ${name} is not what storage has`)
    }
    if (differs(shown.followed, shown.view)) faults.push(`the envelopes of ${name} do not add up to its view`)
  }
  return faults
}, Effect.scoped)

export const faultsOf = (ending: Ending) =>
  Effect.gen(function*() {
    const faults: Array<string> = ending.last.filter((line) => line.startsWith("report"))
    const stored = yield* Effect.scoped(Effect.gen(function*() {
      const stored = yield* Effect.flatMap(openBackend(ending.life), read)
      for (const check of [lossFaults, endFaults, identityFaults, settingsFaults]) {
        faults.push(...yield* check(ending, stored))
      }
      return stored
    }))
    faults.push(...yield* viewFaults(ending, stored))
    const asked = worldOf(ending.life.folder).lines("asked.log").length
    const decided = ending.told.length > ending.last.length &&
      ending.told.slice(0, -ending.last.length).includes("decided")
    if (decided && asked > ending.askedBefore) faults.push("a person was asked again what they had decided")
    return faults
  })
