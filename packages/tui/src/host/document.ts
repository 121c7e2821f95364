/**
 * A screen's blocks as the parts of a document: groups of groups are taken apart, so that a transcript is a part per entry
 * and what is not on the screen is not laid out. What a group consists of is kept with it (weakly).
 */
import type { Block, GroupBlock } from "../block.ts"
import type { DocumentParts } from "./viewport.ts"

const known = new WeakMap<GroupBlock, ReadonlyArray<Block>>()

/** The parts of a block. A group that holds something else than groups is one part: its rows belong together. */
const partsOf = (block: Block): ReadonlyArray<Block> => {
  if (block.kind !== "group") return [block]
  const found = known.get(block)
  if (found !== undefined) return found
  const parts = block.children.length > 0 && block.children.every(({ kind }) => kind === "group")
    ? block.children.flatMap(partsOf)
    : [block]
  known.set(block, parts)
  return parts
}

/** Parts that are blocks: one that is the same object looks the same. */
export interface BlockDocument extends DocumentParts {
  readonly block: (part: number) => Block | undefined
}

/** `last` are rows that stand behind all blocks. */
export const documentOf = (
  blocks: ReadonlyArray<Block>,
  rowsOf: (block: Block) => ReadonlyArray<string>,
  last: ReadonlyArray<string>
): BlockDocument => {
  // A transcript of thousands is one of these; it is not copied for each frame.
  const runs = blocks.map(partsOf)
  const length = runs.reduce((sum, run) => sum + run.length, 1)
  const block = (part: number): Block | undefined => {
    let index = part
    for (const run of runs) {
      if (index < run.length) return run[index]
      index -= run.length
    }
    return undefined
  }
  return {
    length,
    end: blocks.at(-1),
    block,
    rows: (part) => {
      const found = block(part)
      return found === undefined ? part === length - 1 ? last : [] : rowsOf(found)
    }
  }
}
