/**
 * Where jobs run: OS processes under a key, owned by nobody's fiber.
 *
 * Starting is idempotent per key, so a job that was interrupted between "start" and "started" may simply start again. What
 * became of a process is said, not guessed: `unknown` means that this host cannot tell any more.
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export interface ProcessSpec {
  /** Program and arguments; no shell is involved. */
  readonly command: ReadonlyArray<string>
  readonly directory: string
  readonly env: { readonly [name: string]: string }
}

export type ProcessStatus =
  | { readonly state: "running"; readonly pid: number }
  | { readonly state: "exited"; readonly code: number | null; readonly signal: string | null }
  | { readonly state: "unknown" }

export class ProcessHostError extends Schema.TaggedError<ProcessHostError>()("ProcessHostError", {
  message: Schema.String
}) {}

export interface ProcessHost {
  /** Starts a process under `key`, or gives what runs (or ran) under it already. */
  readonly start: (key: string, spec: ProcessSpec) => Effect.Effect<ProcessStatus, ProcessHostError>
  readonly status: (key: string) => Effect.Effect<ProcessStatus, ProcessHostError>
  /** Ends the process and what it started, first kindly, then not. Nothing if there is none. */
  readonly kill: (key: string) => Effect.Effect<void, ProcessHostError>
  /** The newest `maxCharacters` of its standard output and error, in order of writing. */
  readonly output: (key: string, maxCharacters: number) => Effect.Effect<string, ProcessHostError>
}
