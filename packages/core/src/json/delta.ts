import type { JsonValue } from "./json.ts"

export type PathSegment = string | number
export type Path = ReadonlyArray<PathSegment>

/** One change of a JSON document. Paths are from the root; lengths and indexes of strings are in UTF-16 units. */
export type Operation =
  /** Set the member or element at the path (an array index may be its length, which appends). */
  | readonly ["set", Path, JsonValue]
  /** Delete an object's member. */
  | readonly ["delete", Path]
  /** Append to a string. */
  | readonly ["append", Path, string]
  /** Drop the first `n` units of a string. */
  | readonly ["truncate", Path, number]
  /** In an array: at an index, remove `n` elements and insert these. */
  | readonly ["splice", Path, number, number, ReadonlyArray<JsonValue>]
  /** Replace the whole document. */
  | readonly ["replace", JsonValue]
