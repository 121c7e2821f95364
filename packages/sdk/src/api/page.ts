/** Lists come in pages: `next` leads to the following one and is absent at the end. */
import * as Schema from "effect/Schema"

/** What a page gave as `next`. Opaque. */
export const cursor = Schema.optionalKey(Schema.NonEmptyString)

/** How many at most; a page also ends at about 1 MiB. */
export const limit = Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 })))

export const pageOf = <S extends Schema.Top>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), next: Schema.optionalKey(Schema.String) })

export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly next?: string
}
