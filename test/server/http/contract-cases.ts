/** The sets of cases that the contract of the routes is made of: each right answer, and each kind of wrong input. */
import { Plugin } from "@bezel/core/host"
import { historySession } from "@bezel/plugins/history"
import { expect } from "@effect/vitest"
import { join } from "node:path"
import { type Answer, type TestServer, tokens } from "./fixture.ts"

export interface Wrong {
  readonly what: string
  readonly path?: string
  readonly body?: unknown
  readonly raw?: string
  readonly headers?: Record<string, string>
  readonly status: number
  readonly code: string
}

/** What is asked of one route, and what must come. */
export interface Case {
  /** With `:id` and the like filled in. */
  readonly path: (world: World) => string
  readonly body?: (world: World) => unknown
  readonly status: number
  readonly check?: (answer: Answer, world: World) => unknown
  readonly wrong?: (world: World) => ReadonlyArray<Wrong>
}

/** What stands before a case. */
export interface World {
  readonly server: TestServer
  /** A session that has been prompted once and is idle. */
  readonly id: string
  /** An entry of it. */
  readonly entry: string
}

const notFound = (path: string, body?: unknown): Wrong => ({
  what: "of a session that is not there",
  path,
  ...(body === undefined ? {} : { body }),
  status: 404,
  code: "not_found"
})

const bodies = (field: string): ReadonlyArray<Wrong> => [
  { what: "with a body that is no JSON", raw: "{", status: 400, code: "invalid_request" },
  { what: "with a body of another type", raw: "[]", status: 422, code: "invalid_arguments" },
  { what: "with a field that there is not", body: { nonsense: 1 }, status: 422, code: "invalid_arguments" },
  { what: "with a field of another type", body: { [field]: { a: 1 } }, status: 422, code: "invalid_arguments" },
  {
    what: "with a body that says to be text",
    raw: "{}",
    headers: { "content-type": "text/plain" },
    status: 415,
    code: "unsupported_media_type"
  }
]

const unnamed: ReadonlyArray<Wrong> = [
  { what: "with an agent that is not there", body: { agent: "x" } },
  { what: "with a model that is not there", body: { model: { provider: "x", model: "scripted" } } }
].map((wrong) => ({ ...wrong, status: 422, code: "invalid_arguments" }))

const missing = "/session/ses_missing"

export const history = Plugin.define({ id: "bezel.history", session: historySession })

/** By route: `group.endpoint`. */
export const cases: { readonly [route: string]: Case } = {
  "session.list": {
    path: () => "/session?limit=10",
    status: 200,
    check: ({ items }) => expect(items.length).toBeGreaterThan(0),
    wrong: () => [
      { what: "with a limit that is none", path: "/session?limit=many", status: 400, code: "invalid_request" },
      { what: "with a limit that is too large", path: "/session?limit=1001", status: 400, code: "invalid_request" },
      { what: "with a cursor of nobody", path: "/session?cursor=nonsense", status: 400, code: "invalid_request" },
      { what: "with a parameter that there is not", path: "/session?limits=1", status: 400, code: "invalid_request" },
      { what: "with a parameter twice", path: "/session?limit=1&limit=2", status: 400, code: "invalid_request" }
    ]
  },
  "session.create": {
    path: () => "/session",
    body: ({ server }) => ({
      title: "made",
      location: server.directory,
      model: { provider: "test", model: "scripted" }
    }),
    status: 201,
    check: ({ id, status, title }) =>
      expect({ id, status, title }).toMatchObject({ status: "starting", title: "made" }),
    wrong: ({ server }) => [
      ...bodies("title"),
      ...unnamed,
      {
        what: "in a location that is no directory",
        body: { location: join(server.directory, "hello.txt") },
        status: 422,
        code: "invalid_arguments"
      },
      { what: "under a parent that is not there", body: { parentID: "ses_missing" }, status: 404, code: "not_found" },
      { what: "with a title of a novel", body: { title: "x".repeat(501) }, status: 422, code: "invalid_arguments" }
    ]
  },
  "session.active": { path: () => "/session/active", status: 200 },
  "session.import": {
    path: () => "/session/import",
    body: ({ id }) => ({ session: exportOf(id) }),
    status: 201,
    check: ({ id }, world) => expect(id).not.toBe(world.id),
    wrong: () => [
      ...bodies("location"),
      { what: "of what is no session", body: { session: { a: 1 } }, status: 422, code: "invalid_arguments" }
    ]
  },
  "session.get": {
    path: ({ id }) => `/session/${id}`,
    status: 200,
    check: ({ id }, world) => expect(id).toBe(world.id),
    wrong: () => [notFound(missing)]
  },
  "session.update": {
    path: ({ id }) => `/session/${id}`,
    body: () => ({ title: "renamed", archived: false, agent: "plan" }),
    status: 200,
    check: ({ agent, title }) => expect({ agent, title }).toEqual({ agent: "plan", title: "renamed" }),
    wrong: () => [...bodies("archived"), ...unnamed, notFound(missing, { title: "x" })]
  },
  "session.remove": {
    path: ({ server: { extra } }) => `/session/${extra.removed}`,
    status: 204,
    wrong: () => [notFound(missing)]
  },
  "session.messages": {
    path: ({ id }) => `/session/${id}/message?limit=1`,
    status: 200,
    check: ({ items, next }) =>
      expect({ kind: items[0]?.kind, next: typeof next }).toEqual({ kind: "bezel.assistant", next: "string" }),
    wrong: ({ id }) => [
      notFound(`${missing}/message`),
      {
        what: "with a cursor of nobody",
        path: `/session/${id}/message?cursor=-1`,
        status: 400,
        code: "invalid_request"
      }
    ]
  },
  "session.message": {
    path: ({ entry, id }) => `/session/${id}/message/${entry}`,
    status: 200,
    check: ({ id }, { entry }) => expect(id).toBe(entry),
    wrong: ({ id }) => [
      notFound(`${missing}/message/e1`),
      { what: "of a message that is not there", path: `/session/${id}/message/e999`, status: 404, code: "not_found" }
    ]
  },
  "session.context": {
    path: ({ id }) => `/session/${id}/context`,
    status: 200,
    check: ({ items }) => expect(items.map(({ role }) => role)).toEqual(["user", "assistant"]),
    wrong: () => [notFound(`${missing}/context`)]
  },
  "session.view": {
    path: ({ id }) => `/session/${id}/view`,
    status: 200,
    check: ({ revision, view }) =>
      expect([revision, view]).toMatchObject([expect.any(Number), {
        entries: [{ kind: "bezel.user" }, expect.anything()]
      }]),
    wrong: () => [notFound(`${missing}/view`)]
  },
  "session.history": {
    path: ({ id }) => `/session/${id}/history?limit=2`,
    status: 200,
    check: ({ items, next }) => expect(next).toBe(`${items.at(-1)?.sequence}`),
    wrong: ({ id }) => [
      notFound(`${missing}/history`),
      {
        what: "after a negative sequence",
        path: `/session/${id}/history?after=-1`,
        status: 400,
        code: "invalid_request"
      }
    ]
  },
  "session.events": {
    path: ({ id }) => `/session/${id}/event?after=0`,
    status: 200,
    wrong: () => [notFound(`${missing}/event`)]
  },
  "session.prompt": {
    path: ({ id }) => `/session/${id}/prompt`,
    body: () => ({ text: "More", requestID: "r1", whenBusy: "followUp" }),
    status: 202,
    check: ({ status }) => expect(status).toBe("accepted"),
    wrong: () => [
      ...bodies("text"),
      notFound(`${missing}/prompt`, { text: "Hi" }),
      { what: "that is empty", body: { text: "  " }, status: 422, code: "invalid_arguments" },
      {
        what: "with a way that there is not",
        body: { text: "Hi", whenBusy: "later" },
        status: 422,
        code: "invalid_arguments"
      }
    ]
  },
  "session.command": {
    path: ({ id }) => `/session/${id}/command`,
    body: () => ({ name: "greet", arguments: "the world" }),
    status: 202,
    check: ({ status }) => expect(status).toBe("accepted"),
    wrong: () => [
      ...bodies("name"),
      notFound(`${missing}/command`, { name: "greet" }),
      { what: "that there is not", body: { name: "nothing" }, status: 404, code: "not_found" }
    ]
  },
  "session.reset": {
    path: ({ server: { extra } }) => `/session/${extra.reset}/reset`,
    body: () => ({ handoff: "Go on." }),
    status: 204,
    wrong: () => [...bodies("handoff"), notFound(`${missing}/reset`, {})]
  },
  "session.config": {
    path: ({ id }) => `/session/${id}/config`,
    body: () => ({ thinking: "low" }),
    status: 204,
    wrong: () => [...bodies("thinking"), ...unnamed, notFound(`${missing}/config`, {})]
  },
  "session.abortInput": {
    path: ({ id, server: { extra } }) => `/session/${id}/input/${extra.input}`,
    status: 200,
    check: ({ status }) => expect(status).toBe("ended"),
    wrong: ({ id }) => [
      notFound(`${missing}/input/i1`),
      { what: "of an input that is not there", path: `/session/${id}/input/i999`, status: 404, code: "not_found" }
    ]
  },
  "session.resume": {
    path: ({ id }) => `/session/${id}/resume`,
    status: 204,
    wrong: () => [notFound(`${missing}/resume`)]
  },
  "session.interrupt": {
    path: ({ id }) => `/session/${id}/interrupt`,
    body: () => ({ reason: "test" }),
    status: 204,
    wrong: () => [...bodies("reason"), notFound(`${missing}/interrupt`, {})]
  },
  "session.wait": {
    path: ({ id }) => `/session/${id}/wait?timeout=20`,
    status: 200,
    check: ({ status, text }) => expect({ status, text: typeof text }).toEqual({ status: "idle", text: "string" }),
    wrong: ({ id }) => [
      notFound(`${missing}/wait`),
      {
        what: "for a time that is none",
        path: `/session/${id}/wait?timeout=soon`,
        status: 400,
        code: "invalid_request"
      },
      { what: "for ever", path: `/session/${id}/wait?timeout=601`, status: 400, code: "invalid_request" },
      { what: "for an input that is not there", path: `/session/${id}/wait?input=i999`, status: 404, code: "not_found" }
    ]
  },
  "session.compact": {
    path: ({ server: { extra } }) => `/session/${extra.compacted}/compact`,
    body: () => ({}),
    status: 200,
    check: ({ status }) => expect(["completed", "failed"]).toContain(status),
    wrong: () => [...bodies("instructions"), notFound(`${missing}/compact`, {})]
  },
  "session.fork": {
    path: ({ id }) => `/session/${id}/fork`,
    body: ({ entry }) => ({ at: entry }),
    status: 201,
    check: ({ id }, world) => expect(id).not.toBe(world.id),
    wrong: () => [
      ...bodies("at"),
      notFound(`${missing}/fork`, { at: "e1" }),
      { what: "at an entry that is not there", body: { at: "e999" }, status: 404, code: "not_found" }
    ]
  },
  "session.revert": {
    path: ({ id }) => `/session/${id}/revert`,
    body: () => ({ to: "last", dryRun: true }),
    status: 200,
    check: ({ prompt, status }) => expect({ prompt, status }).toEqual({ prompt: "Hi", status: "planned" }),
    wrong: () => [
      ...bodies("to"),
      notFound(`${missing}/revert`, { to: "e1" }),
      { what: "to an entry that is not there", body: { to: "e999" }, status: 404, code: "not_found" }
    ]
  },
  "session.clearRevert": {
    path: ({ server: { extra } }) => `/session/${extra.reverted}/revert`,
    status: 200,
    check: ({ status }) => expect(status).toBe("cleared"),
    wrong: ({ id }) => [
      notFound(`${missing}/revert`),
      {
        what: "with a way that there is not",
        path: `/session/${id}/revert?conflicts=win`,
        status: 400,
        code: "invalid_request"
      }
    ]
  },
  "session.interactions": {
    path: ({ server: { extra } }) => `/session/${extra.asking}/interaction`,
    status: 200,
    check: ({ items }) => expect(items).toMatchObject([{ interaction: "test.ask", request: { text: "Well?" } }]),
    wrong: () => [notFound(`${missing}/interaction`)]
  },
  "session.answer": {
    path: ({ server: { extra } }) => `/session/${extra.asking}/interaction/${extra.question}`,
    body: () => ({ response: { yes: true } }),
    status: 204,
    wrong: ({ server: { extra } }) => [
      { what: "with a body that is no JSON", raw: "{", status: 400, code: "invalid_request" },
      { what: "with nothing", body: {}, status: 422, code: "invalid_arguments" },
      { what: "with both", body: { response: 1, declined: true }, status: 422, code: "invalid_arguments" },
      {
        what: "with an answer that its question does not take",
        body: { response: 5 },
        status: 422,
        code: "invalid_arguments"
      },
      notFound(`${missing}/interaction/1`, { declined: true }),
      {
        what: "to a question that nobody asks",
        path: `/session/${extra.asking}/interaction/none`,
        body: { declined: true },
        status: 404,
        code: "not_found"
      }
    ]
  },
  "session.offerTool": {
    path: ({ id }) => `/session/${id}/tool`,
    body: () => ({ name: "lamp", description: "Turns a lamp on.", inputSchema: { type: "object" } }),
    status: 200,
    wrong: () => [
      ...bodies("name"),
      notFound(`${missing}/tool`, { name: "lamp", description: "Turns a lamp on." }),
      {
        what: "with a name that no model can call",
        body: { name: "a lamp", description: "Turns it on." },
        status: 422,
        code: "invalid_arguments"
      },
      {
        what: "with a schema that is no object's",
        body: { name: "lamp", description: "Turns it on.", inputSchema: { type: "string" } },
        status: 422,
        code: "invalid_arguments"
      },
      {
        what: "under the name of another tool",
        body: { name: "ask", description: "Asks." },
        status: 409,
        code: "conflict"
      },
      {
        what: "that may take for ever",
        body: { name: "lamp", description: "Turns it on.", timeout: 3_601 },
        status: 422,
        code: "invalid_arguments"
      }
    ]
  },
  "session.answerTool": {
    path: ({ server: { extra } }) => `/session/${extra.asking}/tool/${extra.toolCall}`,
    body: () => ({ result: "It is on." }),
    status: 204,
    wrong: ({ id, server: { extra } }) => [
      { what: "with a body that is no JSON", raw: "{", status: 400, code: "invalid_request" },
      { what: "with nothing", body: {}, status: 422, code: "invalid_arguments" },
      { what: "with both", body: { result: 1, error: "no" }, status: 422, code: "invalid_arguments" },
      { what: "with too much", body: { result: "x".repeat(1_048_577) }, status: 413, code: "too_large" },
      notFound(`${missing}/tool/none`, { result: 1 }),
      {
        what: "to a call that there is not",
        path: `/session/${extra.asking}/tool/none`,
        status: 404,
        code: "not_found"
      },
      {
        what: "to a call of another session",
        path: `/session/${id}/tool/${extra.toolCall}`,
        status: 404,
        code: "not_found"
      }
    ]
  },
  "session.export": {
    path: ({ id }) => `/session/${id}/export`,
    status: 200,
    check: ({ bezel }) => expect(bezel).toBe("session"),
    wrong: () => [notFound(`${missing}/export`)]
  },
  "location.get": {
    path: ({ server }) => `/location?directory=${encodeURIComponent(server.directory)}`,
    status: 200,
    check: ({ sessions }) => expect(sessions).toBeGreaterThan(0),
    wrong: () => [elsewhere("/location?directory=")]
  },
  ...Object.fromEntries(
    ["tool", "model", "agent", "command", "skill", "plugin"].map((name): [string, Case] => [`location.${name}s`, {
      path: () => `/${name}`,
      status: 200,
      check: ({ items }) => expect(Array.isArray(items)).toBe(true),
      wrong: () => [elsewhere(`/${name}?location=`)]
    }])
  ),
  "location.file": {
    path: () => "/file?path=hello.txt",
    status: 200,
    check: ({ content }) => expect(content).toBe("Hello, file.\n"),
    wrong: () => [
      elsewhere("/file?path=passwd&location="),
      { what: "without a path", path: "/file", status: 400, code: "invalid_request" },
      { what: "that is not there", path: "/file?path=none.txt", status: 404, code: "not_found" },
      { what: "that is a folder", path: "/file?path=.", status: 400, code: "invalid_request" },
      { what: "above the location", path: "/file?path=../data/catalogue.db", status: 403, code: "forbidden" },
      { what: "by its whole path", path: "/file?path=/etc/passwd", status: 403, code: "forbidden" },
      { what: "behind a link that leads out", path: "/file?path=out/passwd", status: 403, code: "forbidden" },
      { what: "that is a link that leads out", path: "/file?path=secret", status: 403, code: "forbidden" },
      { what: "with a NUL", path: "/file?path=a%00b", status: 400, code: "invalid_request" }
    ]
  },
  "location.findFiles": {
    path: () => "/file/search?query=HELLO",
    status: 200,
    check: ({ items }) => expect(items).toEqual([{ path: "hello.txt" }]),
    wrong: () => [
      elsewhere("/file/search?query=passwd&location="),
      { what: "for nothing", path: "/file/search", status: 400, code: "invalid_request" }
    ]
  },
  "server.health": { path: () => "/health", status: 200, check: ({ status }) => expect(status).toBe("ok") },
  "server.login": {
    path: () => "/login",
    body: () => ({ code: "a-code" }),
    status: 200,
    check: ({ scope, token }) => expect({ scope, token }).toEqual({ scope: "read", token: tokens.read }),
    wrong: () => [
      ...bodies("code"),
      { what: "with a code that is none", body: { code: "guess" }, status: 401, code: "unauthorized" }
    ]
  },
  "server.events": { path: () => "/event", status: 200 },
  "server.metrics": { path: () => "/metrics", status: 200 }
}

const elsewhere = (path: string): Wrong => ({
  what: "of a place where nobody works",
  path: `${path}${encodeURIComponent("/etc")}`,
  status: 404,
  code: "not_found"
})

/** What was exported of each session. */
export const exported = new Map<string, unknown>()
const exportOf = (id: string) => exported.get(id)
