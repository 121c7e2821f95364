import type { Materialization } from "../tool/index.ts"

/**
 * The materializations of answers whose calls still run, by generation task. They live in memory only: after a restart a
 * call is matched by its stored declaration instead.
 */
export interface Materializations {
  readonly keep: (generation: string, materialization: Materialization) => void
  readonly of: (generation: string) => Materialization | undefined
  readonly drop: (generation: string) => void
}

export const makeMaterializations = (): Materializations => {
  const kept = new Map<string, Materialization>()
  return {
    keep: (generation, materialization) => {
      kept.set(generation, materialization)
    },
    of: (generation) => kept.get(generation),
    drop: (generation) => {
      kept.delete(generation)
    }
  }
}
