/** The transcript of a conversation as it stands: what was taken back is left out, what was summarized is there. Pure. */
import type { EntryHead } from "../storage/index.ts"

interface Entry {
  readonly id: string
  readonly kind: string
  readonly head?: EntryHead | null
}

interface Node<E> {
  readonly entry: E
  readonly before: Node<E> | null
}

/** Of all entries of one conversation, oldest first, those that stand. */
export const standingEntries = <E extends Entry>(entries: Iterable<E>): ReadonlyArray<E> => {
  const nodes = new Map<string, Node<E>>()
  let newest: Node<E> | null = null
  for (const entry of entries) {
    const head = entry.head ?? null
    if (head !== null && "at" in head) newest = nodes.get(head.at) ?? null
    else if (entry.kind === "bezel.rewind") newest = null
    newest = { entry, before: newest }
    nodes.set(entry.id, newest)
  }
  const list: Array<E> = []
  for (let node = newest; node !== null; node = node.before) list.push(node.entry)
  return list.toReversed()
}
