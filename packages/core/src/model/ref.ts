/**
 * Names of models: `provider/model`. The provider is what stands before the first slash; a model's own id may contain more
 * (`openrouter/meta/llama-3`).
 */
import type { ModelRef } from "./model.ts"

/** Reads `provider/model`, or gives a sentence that says what is wrong with it. */
export const parseModelRef = (text: string): ModelRef | { readonly error: string } => {
  const name = text.trim()
  const slash = name.indexOf("/")
  if (slash > 0 && slash < name.length - 1) return { provider: name.slice(0, slash), model: name.slice(slash + 1) }
  return { error: `"${text}" is not a model name: write provider/model, like bezel/offline` }
}

/** The name of a model as people write it. */
export const formatModelRef = (ref: ModelRef): string => `${ref.provider}/${ref.model}`

/** Edits between two words: insertions, deletions, replacements and swapped neighbours each count one. */
const distance = (a: string, b: string): number => {
  let before: ReadonlyArray<number> = []
  let above = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (before[j - 2] ?? 0) + 1)
      }
      row.push(least)
    }
    before = above
    above = row
  }
  return above[b.length] ?? 0
}

/** Those of `known` that somebody who wrote `name` may have meant, nearest first, three at most. */
export const closeMatches = (name: string, known: ReadonlyArray<string>): ReadonlyArray<string> => {
  // Names come from people, so they are short; what is not would cost quadratic time for no use.
  const wanted = name.toLowerCase().slice(0, 100)
  return known
    .map((candidate) => {
      const lower = candidate.toLowerCase().slice(0, 100)
      const part = wanted.length >= 3 && (lower.includes(wanted) || wanted.includes(lower))
      return { candidate, edits: part ? 1 : distance(wanted, lower) }
    })
    .filter(({ candidate, edits }) => edits <= Math.max(2, Math.floor(candidate.length / 3)))
    .sort((a, b) => a.edits - b.edits)
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}
