/** Finds what somebody probably meant: the nearest name, when it is near enough to be worth saying. */

/** Number of insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
export function distance(from: string, to: string): number {
  const rows = Array.from({ length: from.length + 1 }, (_, row) => [row])
  const at = (row: number, column: number) => rows[row]?.[column] ?? (row === 0 ? column : Number.POSITIVE_INFINITY)
  for (let row = 1; row <= from.length; row++) {
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      const cost = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + (same ? 0 : 1),
        swapped ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY
      )
      rows[row]?.push(cost)
    }
  }
  return at(from.length, to.length)
}

export function nearest(word: string, names: Iterable<string>): string | null {
  let best: { readonly name: string; readonly distance: number } | null = null
  for (const name of names) {
    const near = name.startsWith(word) && word.length > 2 ? 1 : distance(word, name)
    if (best === null || near < best.distance) best = { name, distance: near }
  }
  return best !== null && best.distance <= Math.max(1, Math.floor(word.length / 3)) ? best.name : null
}
