/**
 * Requests of the HTTP API, from a target and a caller to an answer, whatever carries them: a socket, or a program that has
 * the server in itself.
 *
 * Every request gets exactly one answer, and every error has the one shape. What is not valid never reaches a handler.
 */
import type { ServerGroup, SessionGroup } from "@bezel/sdk/api"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"
import { type Caller, mayDo } from "../serve/caller.ts"
import { ApiFailure, failure, refused, toFailure } from "./failure.ts"
import { type AnyHandler, type Call, EventStream, type Handlers, JsonText, TextAnswer, type Write } from "./handler.ts"
import type { LocationHandlers } from "./handler.ts"
import { parseJson, saysJson } from "./json-body.ts"
import type { Metrics } from "./metrics.ts"
import { makeRouteTable, type Match, type Route } from "./route-table.ts"

export interface ApiRequest {
  readonly method: string
  /** Path and query, as in the request line. */
  readonly target: string
  readonly header: (name: string) => string | undefined
  /** Reads the body whole, within the limit of whoever carries the request. */
  readonly body: Effect.Effect<Uint8Array, ApiFailure>
  /** Who calls, or why nobody may. */
  readonly caller: Caller | ApiFailure
  /** Counts a failed attempt of who calls to show who they are, and says what they are told. */
  readonly refuse: (why: string) => ApiFailure
}

export interface Headers {
  readonly [name: string]: string
}

/** Where the answer goes. One of the two is called, once. */
export interface Responder {
  readonly end: (status: number, headers: Headers, body: string) => void
  readonly open: (status: number, headers: Headers) => Write
}

export interface HttpApi {
  /** Completes when the answer has been given whole. */
  readonly handle: (request: ApiRequest, respond: Responder) => Effect.Effect<void>
}

export interface Groups {
  readonly session: Handlers<typeof SessionGroup>
  readonly location: LocationHandlers
  readonly server: Handlers<typeof ServerGroup>
}

const json = "application/json; charset=utf-8"

/** Answers with a failure. */
export const endWith = (error: ApiFailure, respond: Pick<Responder, "end">): void =>
  respond.end(error.status, { "content-type": json, ...error.headers }, JSON.stringify(error.body))

/** The decoded parts of a path, or `null` where it is none. */
const segmentsOf = (path: string): ReadonlyArray<string> | null => {
  if (!path.startsWith("/")) return null
  const parts = path.slice(1).split("/")
  if (!path.includes("%")) return parts
  try {
    return parts.map(decodeURIComponent)
  } catch {
    return null
  }
}

const noQuery = {}

const queryOf = (text: string): { readonly [name: string]: string } | ApiFailure => {
  if (text === "") return noQuery
  const query: Record<string, string> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in query) {
      return failure("invalid_request", `The parameter ${JSON.stringify(name.slice(0, 80))} stands there twice.`)
    }
    query[name] = value
  }
  return { ...query }
}

/** Queries that are remembered, and how long each may be. */
const mostQueries = 256
const longestKept = 200

const decodeAnew = (route: Route, queryText: string): object | ApiFailure => {
  const query = queryOf(queryText)
  if (query instanceof ApiFailure) return query
  if (route.query === null) {
    const [name] = Object.keys(query)
    return name === undefined
      ? {}
      : failure("invalid_request", `This route takes no parameter ${JSON.stringify(name.slice(0, 80))}.`)
  }
  const decoded = route.query(query)
  return Exit.isSuccess(decoded)
    ? { query: decoded.value }
    : refused("invalid_request", "The parameters do not fit", issueOf(decoded))
}

/** Handlers by the name of their route. The erasure point: each gets what its own endpoint's schemas decoded. */
const byName = (groups: Groups): ReadonlyMap<string, AnyHandler> =>
  new Map(
    Object.entries(groups).flatMap(([group, handlers]) =>
      Object.entries(handlers).map(([name, handler]) => [`${group}.${name}`, handler as AnyHandler] as const)
    )
  )

export const makeHttpApi = (groups: Groups, metrics: Metrics): HttpApi => {
  const table = makeRouteTable()
  const handlers = byName(groups)

  const findRoute = (request: ApiRequest, path: string) => {
    const segments = segmentsOf(path)
    const match = segments === null ? null : table.match(request.method, segments)
    const { caller } = request
    if (match?.type === "found" && match.route.scope === "none") return match
    // Who may not call learns nothing of what there is.
    if (caller instanceof ApiFailure) return caller
    if (match === null) return failure("invalid_request", "The path of the request is malformed.")
    switch (match.type) {
      case "none":
        return failure(
          "not_found",
          `There is no route ${JSON.stringify(path.slice(0, 200))}; /docs lists those that there are.`
        )
      case "method":
        return new ApiFailure({
          code: "method_not_allowed",
          message: `This route takes ${match.allowed.join(" and ")}, not ${request.method.slice(0, 20)}.`,
          headers: { allow: match.allowed.join(", ") }
        })
      case "found": {
        const { scope } = match.route
        return scope === "none" || mayDo(caller, scope)
          ? match
          : failure("forbidden", `This needs a token of scope ${scope}; the one that was shown has ${caller.scope}.`)
      }
    }
  }

  const payloadOf = (request: ApiRequest, decodePayload: NonNullable<Route["payload"]>) =>
    Effect.flatMap(request.body, (bytes): Effect.Effect<unknown, ApiFailure> => {
      const contentType = request.header("content-type")
      if (bytes.length > 0 && contentType !== undefined && !saysJson(contentType)) {
        return Effect.fail(
          failure("unsupported_media_type", "The body must be JSON, with Content-Type: application/json.")
        )
      }
      const parsed = parseJson(bytes)
      if (parsed instanceof ApiFailure) return Effect.fail(parsed)
      const decoded = decodePayload(parsed.value)
      return Exit.isSuccess(decoded)
        ? Effect.succeed(decoded.value)
        : Effect.fail(refused("invalid_arguments", "The body does not fit", issueOf(decoded)))
    })

  /** Clients ask the same again and again, and what a query says never changes. */
  const queries = new Map<string, object>()

  const decode = (route: Route, queryText: string): object | ApiFailure => {
    const key = `${route.name} ${queryText}`
    const known = queries.get(key)
    if (known !== undefined) return known
    const decoded = decodeAnew(route, queryText)
    if (decoded instanceof ApiFailure) return decoded
    if (queries.size >= mostQueries) queries.clear()
    if (queryText.length <= longestKept) queries.set(key, decoded)
    return decoded
  }

  /** What a request asks for: all that can be looked at without waiting. */
  const answering = (request: ApiRequest, found: Extract<Match, { readonly type: "found" }>, queryText: string) => {
    const { params, route } = found
    const query = decode(route, queryText)
    if (query instanceof ApiFailure) return query
    const handler = handlers.get(route.name)
    if (handler === undefined) return failure("unsupported", "This server does not have this route.")
    const caller = request.caller instanceof ApiFailure ? nobody : request.caller
    const call: Call = { caller, header: request.header, refuse: request.refuse }
    return route.payload === null
      ? handler({ params, ...query }, call)
      : Effect.flatMap(payloadOf(request, route.payload), (payload) => handler({ params, ...query, payload }, call))
  }

  const deliver = (route: Route, respond: Responder) => (value: unknown): Effect.Effect<void, never, Scope.Scope> => {
    if (value instanceof EventStream) {
      return value.run(respond.open(200, { "content-type": "text/event-stream; charset=utf-8" }))
    }
    if (value instanceof TextAnswer) respond.end(route.status, { "content-type": value.contentType }, value.text)
    else if (value instanceof JsonText) respond.end(route.status, { "content-type": json }, value.text)
    else if (value === undefined) respond.end(route.status, {}, "")
    else respond.end(route.status, { "content-type": json }, JSON.stringify(value))
    return Effect.void
  }

  /** A defect, told by a number under which the log has the rest. */
  const incidentOf = (name: string, cause: Cause.Cause<unknown>, failed: (error: ApiFailure) => void) => {
    const incident = randomBytes(6).toString("hex")
    return Effect.andThen(
      Effect.logError(`A request of ${name} failed (incident ${incident}).`, cause),
      Effect.sync(() =>
        failed(failure("internal", `Bezel failed to answer; its log explains incident ${incident}.`, { incident }))
      )
    )
  }

  return {
    handle: (request, respond) =>
      Effect.suspend(() => {
        const began = performance.now()
        let name = "unknown"
        let opened = false
        const watched: Responder = {
          end: (status, headers, body) => {
            opened = true
            metrics.answered(name, status)
            respond.end(status, headers, body)
          },
          open: (status, headers) => {
            opened = true
            metrics.answered(name, status)
            return respond.open(status, headers)
          }
        }
        const failed = (error: ApiFailure) => {
          if (!opened) endWith(error, watched)
        }
        const at = request.target.indexOf("?")
        const found = findRoute(request, at < 0 ? request.target : request.target.slice(0, at))
        const asked = found instanceof ApiFailure
          ? found
          : answering(request, found, at < 0 ? "" : request.target.slice(at + 1))
        if (found instanceof ApiFailure || asked instanceof ApiFailure) {
          if (!(found instanceof ApiFailure)) name = found.route.name
          failed(asked instanceof ApiFailure ? asked : failure("internal", "The request was not understood."))
          metrics.took(name, performance.now() - began)
          return Effect.void
        }
        name = found.route.name
        return Effect.onExit(
          Effect.matchCauseEffect(Effect.scoped(Effect.flatMap(asked, deliver(found.route, watched))), {
            onSuccess: () => Effect.void,
            onFailure: (cause): Effect.Effect<void> => {
              const [reason] = cause.reasons
              if (cause.reasons.length === 1 && reason?._tag === "Fail") {
                return Effect.sync(() => failed(toFailure(reason.error)))
              }
              return Cause.hasInterruptsOnly(cause) ? Effect.interrupt : incidentOf(name, cause, failed)
            }
          }),
          () => Effect.sync(() => metrics.took(name, performance.now() - began))
        )
      })
  }
}

const nobody: Caller = { name: "nobody", scope: "read" }

const issueOf = (exit: Exit.Failure<unknown, { readonly issue: Parameters<typeof refused>[2] }>) => {
  for (const reason of exit.cause.reasons) if (reason._tag === "Fail") return reason.error.issue
  throw new Error("A schema died over a value, which is a defect of the schema.")
}
