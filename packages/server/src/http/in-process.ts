/**
 * The API without a port: an HTTP client of Effect whose requests go straight to the handlers, for programs that have the
 * server in themselves. It is the same API to the letter, with nobody to authenticate: whoever has the client is the owner.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import type * as Scope from "effect/Scope"
import type { Caller } from "../serve/caller.ts"
import type { HttpApi } from "./api.ts"
import { failure } from "./failure.ts"
import type { Write } from "./handler.ts"

const owner: Caller = { name: "owner", scope: "admin" }

const bodyOf = ({ body }: HttpClientRequest): Uint8Array => {
  switch (body._tag) {
    case "Uint8Array":
      return body.body
    case "Empty":
      return new Uint8Array()
    default:
      // The client sends JSON, which is one of the two.
      throw new Error(`A request with a body of kind ${body._tag} cannot be carried in the process.`)
  }
}

/** A response whose pieces are taken as its reader asks for them; `leave` is called when the reader has enough. */
const streamed = (leave: () => void) => {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null
  let wanted = () => {}
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    start: (started) => {
      controller = started
    },
    pull: () => wanted(),
    cancel: leave
  })
  const write: Write = (text) =>
    Effect.callback<void>((resume) => {
      controller?.enqueue(encoder.encode(text))
      if ((controller?.desiredSize ?? 1) > 0) return resume(Effect.void)
      wanted = () => {
        wanted = () => {}
        resume(Effect.void)
      }
    })
  return { body, write, end: () => controller?.close() }
}

/** The requests that are under way end with the scope. */
export const inProcessClient = (api: HttpApi): Effect.Effect<HttpClient.HttpClient, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const own = Fiber.runIn(scope)
    return HttpClient.make((request, url, signal) =>
      Effect.callback<HttpClientResponse.HttpClientResponse>((resume) => {
        const answer = (response: Response) => resume(Effect.succeed(HttpClientResponse.fromWeb(request, response)))
        let end = () => {}
        const fiber: Fiber.Fiber<void> = own(run(api.handle({
          method: request.method,
          target: `${url.pathname}${url.search}`,
          header: (name) => request.headers[name],
          body: Effect.sync(() => bodyOf(request)),
          caller: owner,
          refuse: (why) => failure("unauthorized", why)
        }, {
          end: (status, headers, text) =>
            answer(new Response(text === "" ? null : text, { status, headers: { ...headers } })),
          open: (status, headers) => {
            const stream = streamed(() => fiber.interruptUnsafe())
            end = stream.end
            answer(new Response(stream.body, { status, headers: { ...headers } }))
            return stream.write
          }
        })))
        const leave = () => fiber.interruptUnsafe()
        signal.addEventListener("abort", leave, { once: true })
        fiber.addObserver(() => {
          signal.removeEventListener("abort", leave)
          // Closed already where its reader has left.
          try {
            end()
          } catch {}
        })
      })
    )
  })
