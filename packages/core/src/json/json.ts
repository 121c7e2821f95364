/**
 * Strict JSON: what may cross a process boundary, enter storage or be replicated. No `undefined`, no `NaN`, no
 * class instances, no functions. A value of this type survives `JSON.parse(JSON.stringify(value))` unchanged.
 */
export type JsonValue = null | boolean | number | string | JsonArray | JsonObject

export type JsonArray = ReadonlyArray<JsonValue>

export interface JsonObject {
  readonly [key: string]: JsonValue
}
