/** Entry kinds of extensions: a name, and a Schema that says what its data is. */
import * as Schema from "effect/Schema"
import { type EntryKind, HarnessError } from "./api.ts"

/** Entries under `bezel.` are the core's; the one that anybody may write. */
export const noticeKind = "bezel.notice"

/** Whether a name is the core's. */
export const isReserved = (kind: string): boolean => kind === "bezel" || kind.startsWith("bezel.")

/** Why an extension may not write entries of this kind, or `null`. */
export const entryFault = (
  kind: string,
  entry: { readonly model?: ReadonlyArray<unknown> | undefined; readonly wake?: boolean } & object
): HarnessError | null => {
  if (entry.wake === true && (entry.model ?? []).length === 0) {
    return new HarnessError({
      code: "invalid",
      message: "An entry that the model cannot see asks for no answer to it."
    })
  }
  if (!isReserved(kind)) {
    return kind === ""
      ? new HarnessError({ code: "invalid", message: "An entry kind needs a name." })
      : null
  }
  if (kind !== noticeKind) {
    return new HarnessError({
      code: "not_permitted",
      message: `Entries named "${kind}" are written by Bezel alone; use a kind of your own, or "${noticeKind}".`
    })
  }
  if (entry.model?.length !== 1) {
    return new HarnessError({ code: "invalid", message: "A notice is exactly one user message." })
  }
  if ("head" in entry || "edits" in entry) {
    return new HarnessError({
      code: "not_permitted",
      message: "A notice has no head and no edits; only Bezel moves where a context starts."
    })
  }
  return null
}

export const Entry = {
  /** Defines a kind by name and data; throws a `HarnessError` for a name under `bezel.`. */
  define: <A>(kind: string, data: Schema.Codec<A, unknown>): EntryKind<A> => {
    if (isReserved(kind)) {
      throw new HarnessError({
        code: "not_permitted",
        message: `The entry kind "${kind}" is not yours to define: names under "bezel." are the core's.`
      })
    }
    const isData = Schema.is(data)
    return { kind, is: (entry): entry is never => entry.kind === kind && isData(entry.data) }
  }
} as const
