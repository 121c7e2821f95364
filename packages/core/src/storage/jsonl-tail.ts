/**
 * What was committed since the index's checkpoint, in memory: the same rows as the index has, for as many commits as fit
 * before the next checkpoint. A writer adds what it appends, a reader what it finds behind the checkpoint.
 */
import type { DocumentLine, Group, Place, RecordLine } from "./jsonl-format.ts"
import type { DocumentRow, EntryRow, GapRow, InputRow, JsonlIndex, StateRow, TaskRow } from "./jsonl-index.ts"
import { isLiveInput, isLiveTask } from "./records.ts"

export interface TailDocument {
  readonly row: DocumentRow
  /** What the index has of it is obsolete. */
  readonly fresh: boolean
  readonly states: Array<StateRow>
}

const idNumber = /^[a-z](\d{1,15})$/

/** The number in an id, or `null` when it is of another form. */
export const numberOf = (id: string): number | null => {
  const match = idNumber.exec(id)
  return match === null ? null : Number(match[1])
}

export class JsonlTail {
  readonly conversations = new Map<string, Place>()
  readonly entries = new Map<string, EntryRow>()
  readonly ordinals = new Set<number>()
  readonly tasks = new Map<string, TaskRow>()
  readonly inputs = new Map<string, InputRow>()
  readonly requests = new Map<string, string>()
  readonly documents = new Map<string, TailDocument>()
  readonly commits: Array<{ readonly sequence: number; readonly place: Place }> = []
  readonly gaps: Array<GapRow> = []
  /** Greatest number in an entry's id. */
  mark = 0
  maxOrdinal = -1
  /** How many commits it has. */
  count = 0

  /** What is known of a document before its next change. */
  documentRow(index: JsonlIndex, document: string): DocumentRow | null {
    return this.documents.get(document)?.row ?? index.document(document)
  }

  /** Adds a change of a document of which `row` was known. */
  addDocument(row: DocumentRow | null, line: DocumentLine, place: Place, sequence: number): void {
    const known = this.documents.get(line.document)
    const base = "base" in line
    const first = row?.first ?? sequence
    const state: StateRow = { sequence, base, place }
    // Sizes are those of the lines: they only decide when a fresh base is worth writing.
    const next: DocumentRow = {
      first,
      retained: line.retained,
      baseSize: base ? place.length : row?.baseSize ?? 0,
      replaySize: base ? 0 : (row?.replaySize ?? 0) + place.length
    }
    if (base && !line.retained) this.documents.set(line.document, { row: next, fresh: true, states: [state] })
    else {
      const states = known?.states ?? []
      states.push(state)
      this.documents.set(line.document, { row: next, fresh: known?.fresh ?? false, states })
    }
  }

  /** Adds one record of commit `sequence`. Cannot fail. */
  add(record: Exclude<RecordLine, DocumentLine>, place: Place, sequence: number): void {
    if ("entry" in record) {
      const { conversation, head, id, kind, ordinal } = record.entry
      // An entry never changes, so one that is there twice is the first.
      if (this.entries.has(id) || this.ordinals.has(ordinal)) return
      this.entries.set(id, { id, ordinal, sequence, conversation, kind, head: head !== null, place })
      this.ordinals.add(ordinal)
      this.mark = Math.max(this.mark, numberOf(id) ?? 0)
      this.maxOrdinal = Math.max(this.maxOrdinal, ordinal)
    } else if ("task" in record) {
      const { id, ordinal } = record.task
      this.tasks.set(id, { id, ordinal, live: isLiveTask(record.task), place })
    } else if ("input" in record) {
      const { id, ordinal, requestID } = record.input
      this.inputs.set(id, { id, ordinal, live: isLiveInput(record.input), request: requestID, place })
      if (requestID !== null) this.requests.set(requestID, id)
    } else if ("conversation" in record) this.conversations.set(record.conversation.id, place)
    else this.gaps.push(record.gap)
  }

  /** Ends a commit whose records were added. */
  end(sequence: number, hasEvents: boolean, place: Place): void {
    if (hasEvents) this.commits.push({ sequence, place })
    this.count++
  }

  addGroup(index: JsonlIndex, group: Group): void {
    const { sequence } = group
    for (const { place, record } of group.records) {
      if ("document" in record) this.addDocument(this.documentRow(index, record.document), record, place, sequence)
      else this.add(record, place, sequence)
    }
    this.end(group.sequence, group.events.length > 0, group.place)
  }
}
