/** From a path as somebody wrote it to the one name of that place. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import type { LocationRef } from "./location.ts"

/** The path is no directory that can be used. */
export class LocationUnavailable extends Schema.TaggedError<LocationUnavailable>()("LocationUnavailable", {
  directory: Schema.String,
  message: Schema.String
}) {}

const reason = (cause: unknown): string => {
  const code = cause instanceof Error && "code" in cause ? cause.code : null
  if (code === "ENOENT") return "it does not exist"
  if (code === "EACCES") return "this user may not read it"
  if (code === "ENOTDIR") return "a part of its path is not a directory"
  if (code === "ELOOP") return "its symbolic links go in a circle"
  return String(code ?? cause)
}

/** Resolves symbolic links and checks that the directory is there. */
export const resolveLocation = (
  directory: string,
  workspaceID: string | null = null
): Effect.Effect<LocationRef, LocationUnavailable> =>
  Effect.tryPromise({
    try: async () => {
      const real = await fs.realpath(path.resolve(directory))
      return { real, isDirectory: (await fs.stat(real)).isDirectory() }
    },
    catch: (cause) =>
      new LocationUnavailable({ directory, message: `The directory ${directory} cannot be used: ${reason(cause)}.` })
  }).pipe(Effect.flatMap(({ isDirectory, real }) =>
    isDirectory
      ? Effect.succeed({ directory: real, workspaceID })
      : Effect.fail(
        new LocationUnavailable({ directory, message: `${directory} cannot be used: it is not a directory.` })
      )
  ))
