/**
 * The one width function: how many columns a text takes, and how to cut and wrap by columns.
 *
 * All of it is pi-tui's, which measures grapheme clusters (East Asian width, emoji with joiners, combining marks), so that
 * what is measured here and what its renderer checks cannot differ. Never throws; widths below 1 count as 1.
 */
import { sliceByColumn, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui"

/** Columns of a painted text; style sequences take none. */
export const columns = (painted: string): number => visibleWidth(painted)

/** Cut to at most `width` columns, with `…` where something was cut. */
export const clip = (painted: string, width: number, mark = "…"): string => {
  if (width <= 0) return ""
  return visibleWidth(painted) <= width ? painted : fit(truncateToWidth(painted, width, width > 1 ? mark : ""), width)
}

/** Rows of at most `width` columns, broken at words where possible. A cluster wider than the row is left out. */
export const wrap = (painted: string, width: number): ReadonlyArray<string> => {
  const limit = Math.max(1, width)
  return wrapTextWithAnsi(painted, limit).map((line) => fit(line, limit))
}

/** The last guard: never wider than `width`, whatever it costs. */
export const fit = (painted: string, width: number): string => {
  if (visibleWidth(painted) <= width) return painted
  const cut = sliceByColumn(painted, 0, width, true)
  return visibleWidth(cut) <= width ? cut : ""
}
