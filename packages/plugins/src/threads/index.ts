/**
 * Work in a thread of its own: what somebody else has made can take minutes and gigabytes to decode, however small it is. All
 * of that ends with the thread, which is ended when it has answered, when its limits are reached, and when nobody waits any more.
 *
 * The thread's file answers one message with one message.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { Worker } from "node:worker_threads"

export interface ThreadLimits {
  readonly time: Duration.Input
  /** Bytes that the process may grow by meanwhile, about. */
  readonly memory: number
}

/** `died`: it ended without an answer, of its own memory limit for example. */
export type ThreadEnd<A> =
  | { readonly type: "answered"; readonly answer: A }
  | { readonly type: "slow" | "large" | "died" | "missing" }

const looking = "100 millis"

/** `folder/name` in the sources; in the command's bundle it stands once, beside the chunks or above them. */
const fileOf = (path: string): URL | undefined => {
  const name = path.slice(path.lastIndexOf("/") + 1)
  return [`../${path}.ts`, `../${path}.js`, `./${name}.cjs`, `../${name}.cjs`]
    .map((place) => new URL(place, import.meta.url))
    .find((url) => existsSync(url))
}

/** Runs the thread's file `path` below the folder of the features. What it answers is what its author says, so `A` is believed. */
export const inThread = <A>(path: string, request: unknown, limits: ThreadLimits): Effect.Effect<ThreadEnd<A>> =>
  Effect.suspend(() => {
    const file = fileOf(path)
    if (file === undefined) return Effect.succeed<ThreadEnd<A>>({ type: "missing" })
    const answered = Effect.callback<ThreadEnd<A>>((resume) => {
      const worker = new Worker(file)
      const died = () => resume(Effect.succeed({ type: "died" }))
      worker.once("message", (answer: A) => resume(Effect.succeed({ type: "answered", answer })))
      worker.once("error", died)
      worker.once("exit", died)
      worker.postMessage(request, [])
      return Effect.promise(() => worker.terminate())
    })
    const before = process.memoryUsage.rss()
    const grown = Effect.sleep(looking).pipe(
      Effect.repeat({ until: () => process.memoryUsage.rss() - before > limits.memory }),
      Effect.as<ThreadEnd<A>>({ type: "large" })
    )
    const late = Effect.as(Effect.sleep(limits.time), { type: "slow" } satisfies ThreadEnd<A>)
    return Effect.raceAllFirst([answered, grown, late])
  })
