/**
 * What Bezel has stored of a type, as that type again. The one erasure of stored documents: their bytes are checked where they
 * are read (`storage/`), their shape is what the same code, or a migration to it, has written.
 */
export const stored = <A>(value: unknown): A => value as A
