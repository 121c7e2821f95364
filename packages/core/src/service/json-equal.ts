/** Deep equality of strict JSON. The order of keys does not count; shared parts cost nothing. */
import { isJsonObject } from "../json/index.ts"
import type { JsonValue } from "../json/index.ts"

export const jsonEqual = (left: JsonValue | undefined, right: JsonValue | undefined): boolean => {
  if (left === right) return true
  if (Array.isArray(left)) {
    return Array.isArray(right) && left.length === right.length &&
      left.every((item: JsonValue, index) => jsonEqual(item, right[index]))
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false
  const keys = Object.keys(left)
  return keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && jsonEqual(left[key], right[key]))
}
