/** What `/plugins` shows: every plugin of the session's host and of this terminal, those that failed first, with why. */
import type { PluginStatus } from "@bezel/core/kernel"
import { type Block, span, text } from "@bezel/tui"

/** A plugin in both hosts; `null` where a host does not have it. */
interface Row {
  readonly id: string
  readonly version: string | null
  readonly session: PluginStatus | null
  readonly terminal: PluginStatus | null
}

const works = (status: PluginStatus | null): boolean => status?.state === "loaded" || status?.state === "starting"
const hasFailed = (status: PluginStatus | null): boolean => status?.state === "failed"

const places = ({ session, terminal }: Row): string =>
  [...(works(session) ? ["session"] : []), ...(works(terminal) ? ["terminal"] : [])].join(", ")

const failures = ({ session, terminal }: Row): ReadonlyArray<Block> =>
  [session, terminal].flatMap((status) =>
    status === null || !hasFailed(status)
      ? []
      : [text(span(status.error ?? `It failed at ${status.phase}.`, { color: "error" }), { indent: 4 })]
  )

/** `session` is `null` when its host could not be asked. */
export const pluginBlocks = (
  session: ReadonlyArray<PluginStatus> | null,
  terminal: ReadonlyArray<PluginStatus>
): ReadonlyArray<Block> => {
  const ids = [...new Set([...session ?? [], ...terminal].map(({ id }) => id))]
  const rows = ids.map((id): Row => {
    const there = session?.find((status) => status.id === id) ?? null
    const here = terminal.find((status) => status.id === id) ?? null
    return { id, version: there?.version ?? here?.version ?? null, session: there, terminal: here }
  })
  const failed = rows.filter((row) => hasFailed(row.session) || hasFailed(row.terminal))
  const others = rows.filter((row) => !failed.includes(row) && places(row) !== "")
  const line = (row: Row, isFailed: boolean): Block =>
    text([
      span(row.id.padEnd(26), isFailed ? { color: "error" } : {}),
      span(`${(row.version ?? "").padEnd(10)} ${places(row)}`, { color: "muted" })
    ], { wrap: "clip", marker: isFailed ? span("✗ ", { color: "error" }) : span("✓ ", { color: "success" }) })
  return [
    ...(session === null
      ? [
        text(
          span("The session's host does not answer, so only this terminal's plugins are here.", { color: "warning" })
        )
      ]
      : []),
    ...failed.flatMap((row) => [line(row, true), ...failures(row)]),
    ...others.map((row) => line(row, false))
  ]
}
