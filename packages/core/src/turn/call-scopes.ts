/**
 * What hooks take before a call, given back when it has ended: exactly once, last taken first, whether the call was run,
 * blocked or aborted. Each hook has a scope of its own, so that one that cannot let go is named, and holds up nobody.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { defaultHookLimit, failureText, type HarnessReport, type RegisteredHook, withLimit } from "../harness/index.ts"
import { ToolFailure, type ToolResult } from "../tool/index.ts"

export interface CallScopes {
  /** Gives a handler the call's scope. */
  readonly provide: <A, E>(hook: RegisteredHook, handler: Effect.Effect<A, E, Scope.Scope>) => Effect.Effect<A, E>
  /** Closes the scopes behind the call, with the exit that its result stands for. */
  readonly around: <A extends { readonly result: ToolResult }, E>(call: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

const exitOf = (exit: Exit.Exit<{ readonly result: ToolResult }, unknown>): Exit.Exit<ToolResult, unknown> => {
  if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
  const { result } = exit.value
  if (!result.isError) return Exit.succeed(result)
  const message = result.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n")
  return Exit.fail(new ToolFailure({ message }))
}

export const makeCallScopes = (
  session: { readonly report: (report: HarnessReport) => void },
  options: { readonly hookLimit?: Duration.Input },
  conversationID: string
): CallScopes => {
  const taken: Array<{ readonly hook: RegisteredHook; readonly scope: Scope.Closeable }> = []

  const close = ({ hook, scope }: (typeof taken)[number], exit: Exit.Exit<unknown, unknown>) =>
    Effect.forkDetach(Scope.close(scope, exit)).pipe(
      Effect.flatMap((closing) =>
        withLimit(
          Fiber.join(closing),
          hook.options.limit ?? options.hookLimit ?? defaultHookLimit,
          hook.namespace,
          () => false
        )
      ),
      Effect.catchCause((cause) => {
        const message = `What a hook of "${hook.namespace}" took before a call was not given back: ${
          failureText(cause)
        }`
        session.report({ level: "warning", message, conversationID })
        return Effect.logWarning(message, cause)
      }),
      // Fibers of their own: that of an aborted call can wait no more, and a release that never ends cannot be interrupted.
      Effect.forkDetach,
      Effect.flatMap(Fiber.await),
      Effect.asVoid
    )

  return {
    provide: (hook, handler) =>
      Effect.suspend(() => {
        const scope = Scope.makeUnsafe()
        taken.push({ hook, scope })
        return Scope.provide(handler, scope)
      }),
    around: (call) =>
      Effect.onExit(call, (exit) =>
        Effect.forEach(
          taken.toReversed(),
          (one) => one.scope.state._tag === "Empty" ? Scope.close(one.scope, exit) : close(one, exitOf(exit)),
          { discard: true }
        ))
  }
}
