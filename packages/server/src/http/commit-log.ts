/**
 * The newest durable commits of a session, for those who follow it: read once, whoever many they are.
 *
 * What is kept is bounded by bytes. Who is further behind reads from storage at its own pace, or is told of a gap.
 */
import type { HistoryItem } from "@bezel/core/storage"

export interface CommitLog {
  /** The newest sequence that was read. */
  readonly last: () => number
  readonly append: (items: ReadonlyArray<HistoryItem>) => void
  /** Everything after a sequence; `null` if that is not kept any more. */
  readonly after: (sequence: number) => ReadonlyArray<HistoryItem> | null
}

export const makeCommitLog = (start: number, limitBytes = 1_048_576): CommitLog => {
  let kept: Array<{ readonly item: HistoryItem; readonly bytes: number }> = []
  let bytes = 0
  /** Everything after it is kept. */
  let from = start
  let last = start
  return {
    last: () => last,
    append: (items) => {
      for (const item of items) {
        if (item.sequence <= last) continue
        const size = JSON.stringify(item.events).length
        kept.push({ item, bytes: size })
        bytes += size
        last = item.sequence
      }
      let drop = 0
      while (bytes > limitBytes && drop < kept.length) {
        bytes -= kept[drop]?.bytes ?? 0
        from = kept[drop]?.item.sequence ?? from
        drop++
      }
      if (drop > 0) kept = kept.slice(drop)
    },
    after: (sequence) => {
      if (sequence < from) return null
      const at = kept.findIndex(({ item }) => item.sequence > sequence)
      return at < 0 ? [] : kept.slice(at).map(({ item }) => item)
    }
  }
}
