/**
 * Every route of the OpenAPI document, with whatever its schemas allow and what they do not: there is an answer, it is no 500,
 * and the server lives.
 */
import { say, type ScriptedTurn } from "@bezel/core/testing"
import { openApi } from "@bezel/sdk/api"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { startTestServer, type TestServer, tokens } from "./fixture.ts"

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly anyOf?: ReadonlyArray<Schema>
  readonly allOf?: ReadonlyArray<Schema>
  readonly enum?: ReadonlyArray<unknown>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: Schema
}

interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly in: string; readonly schema: Schema }>
  readonly body: Schema | null
}

const document = openApi()
const schemas = document.components.schemas as Readonly<Record<string, Schema>>
const operations: ReadonlyArray<Operation> = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]): Operation => {
    const { parameters, requestBody } = operation as {
      readonly parameters: Operation["parameters"]
      readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
    }
    return {
      method: method.toUpperCase(),
      path,
      parameters,
      body: requestBody?.content["application/json"]?.schema ?? null
    }
  })
)

const odd = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "null",
    "..",
    "%00",
    "💥",
    "a/b",
    "__proto__",
    "constructor",
    "-1",
    "1e999",
    "NaN",
    "\r\nx: y"
  ),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 200 })
)

const anything = fc.oneof(fc.jsonValue({ maxDepth: 4 }), odd, fc.constantFrom(null, true, 0, -1, 1e308, [], {}))

/** What a schema allows, more or less. */
const valueOf = (schema: Schema, depth = 0): fc.Arbitrary<unknown> => {
  if (depth > 4) return fc.constant(null)
  const name = schema.$ref?.split("/").at(-1)
  if (name !== undefined) return valueOf(schemas[name] ?? {}, depth)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => valueOf(one, depth + 1)))
  switch (schema.type) {
    case "string":
      return odd
    case "integer":
      return fc.integer()
    case "number":
      return fc.double()
    case "boolean":
      return fc.boolean()
    case "array":
      return fc.array(valueOf(schema.items ?? {}, depth + 1), { maxLength: 3 })
    case "object": {
      const { properties = {}, required = [] } = schema
      return fc.record(
        Object.fromEntries(Object.entries(properties).map(([key, of]) => [key, valueOf(of, depth + 1)])),
        { requiredKeys: [...required].filter((key) => key in properties) }
      )
    }
    default:
      return anything
  }
}

const known = ["known-session", "e3", "i2", "c1"]

interface Request {
  readonly operation: Operation
  readonly path: Readonly<Record<string, string>>
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly body: unknown
}

const requestOf = (operation: Operation): fc.Arbitrary<Request> => {
  const text = (schema: Schema) => fc.oneof(valueOf(schema).map((value) => String(value)), odd)
  const inPath = operation.parameters.filter((parameter) => parameter.in === "path")
  const inQuery = operation.parameters.filter((parameter) => parameter.in === "query")
  return fc.record({
    operation: fc.constant(operation),
    path: fc.record(Object.fromEntries(inPath.map(({ name, schema }) => [
      name,
      // Mostly what is there, or nothing behind it would ever be reached.
      fc.oneof({ weight: 3, arbitrary: fc.constant(name === "id" ? "known-session" : "known") }, {
        weight: 1,
        arbitrary: text(schema)
      })
    ]))),
    query: fc.array(
      fc.oneof(
        ...inQuery.map(({ name, schema }) => text(schema).map((value): readonly [string, string] => [name, value])),
        fc.tuple(odd, odd)
      ),
      { maxLength: 3 }
    ),
    body: operation.body === null
      ? fc.oneof(fc.constant(undefined), anything)
      : fc.oneof({ weight: 4, arbitrary: valueOf(operation.body) }, { weight: 1, arbitrary: anything })
  })
}

const send = async (server: TestServer, sessionID: string, { body, operation, path, query }: Request) => {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name] ?? ""
    return value === "known-session"
      ? sessionID
      : value === "known"
      ? known[1] ?? ""
      : encodeURIComponent(value.toWellFormed())
  })
  const parameters = new URLSearchParams([...query].map(([name, value]) => [name, value]))
  // Nobody wants to wait for a wait.
  if (filled.endsWith("/wait")) parameters.set("timeout", "0.01")
  const leaving = new AbortController()
  const response = await fetch(`${server.url}${filled}?${parameters}`, {
    method: operation.method,
    headers: { authorization: `Bearer ${tokens.admin}`, "content-type": "application/json" },
    signal: leaving.signal,
    ...(body === undefined || operation.method === "GET" ? {} : { body: JSON.stringify(body) ?? "" })
  })
  if (response.headers.get("content-type")?.includes("event-stream") === true) {
    leaving.abort()
    return { status: response.status, text: "" }
  }
  return { status: response.status, text: await response.text() }
}

for (const operation of operations) {
  it.live(
    `${operation.method} ${operation.path} answers whatever comes, and never with a 500`,
    () =>
      Effect.scoped(Effect.gen(function*() {
        const turns = Array.from({ length: 400 }, (): ScriptedTurn => [say("Hello.")])
        const server = yield* startTestServer(turns)
        yield* Effect.promise(async () => {
          const { json: { id } } = await server.call("POST", "/session", { body: {} })
          await server.call("POST", `/session/${id}/prompt`, { body: { text: "Hi" } })
          await server.call("POST", `/session/${id}/wait`)
          await fc.assert(
            fc.asyncProperty(requestOf(operation), async (request) => {
              const { status, text } = await send(server, id, request)
              expect([status, text].join(" ")).not.toMatch(/^500/)
              if (status >= 400) {
                expect(JSON.parse(text)).toMatchObject({
                  error: { code: expect.any(String), message: expect.any(String) }
                })
              }
            }),
            { numRuns: 40, interruptAfterTimeLimit: 8_000 }
          )
          expect((await server.call("GET", "/health")).status).toBe(200)
        })
      })),
    30_000
  )
}
