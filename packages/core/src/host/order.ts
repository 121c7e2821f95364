/**
 * Finding an order of plugins that works, for error messages: as close to the given one as the needs allow.
 */

/** `user` needs what `provider` provides, so `provider` must stand before it. */
export interface Need {
  readonly user: string
  readonly provider: string
}

/**
 * The given ids reordered so that each provider stands before its users, otherwise as given; `null` if they need each other in
 * a circle.
 */
export const workingOrder = (ids: ReadonlyArray<string>, needs: ReadonlyArray<Need>): ReadonlyArray<string> | null => {
  const order: Array<string> = []
  const visiting = new Set<string>()
  const place = (id: string): boolean => {
    if (order.includes(id)) return true
    if (visiting.has(id)) return false
    visiting.add(id)
    const providers = needs.filter((need) => need.user === id && need.provider !== id && ids.includes(need.provider))
    const placed = providers.every((need) => place(need.provider))
    visiting.delete(id)
    order.push(id)
    return placed
  }
  return ids.map(place).every((placed) => placed) ? order : null
}
