/** What an hour of work costs many clients of one session over real sockets: equal views for all, and nothing for others. */
import { Plugin } from "@bezel/core/host"
import { call as callTool, say } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { createClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { connect, type Socket } from "node:net"
import { startTestServer, type TestServer, tokens } from "./fixture.ts"

interface Event {
  readonly id: string | null
  readonly type: string
  readonly data: { readonly [field: string]: unknown }
}

/** The events of a stream, until the reader leaves. */
async function* eventsOf(server: TestServer, path: string, lastID: string | null): AsyncGenerator<Event> {
  const leaving = new AbortController()
  const response = await fetch(server.url + path, {
    headers: { authorization: `Bearer ${tokens.read}`, ...(lastID === null ? {} : { "last-event-id": lastID }) },
    signal: leaving.signal
  })
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for await (const chunk of response.body ?? []) {
      rest += decoder.decode(chunk, { stream: true })
      const blocks = rest.split("\n\n")
      rest = blocks.pop() ?? ""
      for (const block of blocks) {
        const field = (name: string) =>
          block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null
        const data = field("data")
        if (data !== null) yield { id: field("id"), type: field("event") ?? "", data: JSON.parse(data) }
      }
    }
  } finally {
    leaving.abort()
  }
}

/** What a client knows of a session by its events alone. */
interface View {
  /** Durable events, in order. */
  readonly events: Array<unknown>
  /** Text of each answer, by its generation and part. */
  readonly texts: Record<string, string>
  gaps: number
}

interface Follow {
  /** Where it begins; `null`: with what comes from now on. */
  readonly after: string | null
  /** After how many events it leaves and comes back by the last id that it has seen; never, if left out. */
  readonly dropEvery?: number
  readonly isOver: (event: Event) => boolean
  readonly begun?: () => void
}

const follow = async (server: TestServer, id: string, { after, begun, dropEvery, isOver }: Follow): Promise<View> => {
  const view: View = { events: [], texts: {}, gaps: 0 }
  let place = after
  /** Of a commit whose last event, and so its id, has not come yet. */
  let pending: Array<unknown> = []
  for (;;) {
    let count = 0
    for await (const event of eventsOf(server, `/session/${id}/event`, place)) {
      if (event.type === "ready") {
        place = event.id
        begun?.()
      } else if (event.type === "gap") {
        view.gaps++
      } else if (event.type === "delta") {
        const key = `${String(event.data.task)} ${String(event.data.part)}`
        view.texts[key] = (view.texts[key] ?? "").slice(0, Number(event.data.offset)) + String(event.data.text)
      } else if (typeof event.data.sequence === "number") {
        pending.push(event.data)
        if (event.id !== null) {
          place = event.id
          view.events.push(...pending)
          pending = []
          if (isOver(event)) return view
        }
      }
      if (dropEvery !== undefined && ++count >= dropEvery) break
    }
    pending = []
  }
}

/** A connection that asks for a stream and never takes anything of it. */
const neverReading = (server: TestServer, id: string): Socket => {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.pause()
  socket.on("error", () => {})
  socket.write(
    `GET /session/${id}/event HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${tokens.read}\r\n\r\n`
  )
  return socket
}

const measured = async (server: TestServer, name: string): Promise<number> =>
  Number(new RegExp(`^${name} (\\d+)$`, "m").exec((await server.call("GET", "/metrics")).text)?.[1])

/** As long as a stream waits for who does not read. If it held up anybody, it would be for at least that long. */
const stalledMillis = 8_000

const kilobytes = (count: number, of: string) => of.padEnd(1_024, ".").slice(0, 1_024).repeat(count)

/** A tool whose input is large and whose result is short. */
const note = Plugin.define({
  id: "test.note",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "note",
        tool({
          description: "Takes a note.",
          input: Schema.Struct({ text: Schema.String }),
          execute: () => Effect.succeed("noted")
        })
      )
    ))
})

/** A tool that prints so many pieces of 2 kB. */
const printing = Plugin.define({
  id: "test.printing",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "print",
        tool({
          description: "Prints.",
          input: Schema.Struct({ pieces: Schema.Finite }),
          execute: ({ pieces }, call) =>
            Effect.gen(function*() {
              const piece = `${"x".repeat(2_047)}\n`
              for (let index = 0; index < pieces; index++) {
                yield* call.stream(piece)
                if (index % 64 === 0) yield* Effect.yieldNow
              }
            })
        })
      )
    ))
})

describe("an hour of work in one session", { timeout: 240_000 }, () => {
  it.live("gives ten clients over HTTP equal views, whether they stay, come and go, or come late", () =>
    Effect.scoped(Effect.gen(function*() {
      // A turn every eighteen seconds, each with two requests to the model and a call.
      const turns = 200
      const server = yield* startTestServer(
        Array.from({ length: turns }, (_, turn) => [
          [say(`Turn ${turn}: `, "I note it."), callTool("note", { text: kilobytes(36, `note ${turn} `) })],
          [say(...Array.from({ length: 16 }, (_, piece) => kilobytes(1, `${turn}.${piece} `)))]
        ]).flat(),
        { plugins: [note], limits: { waitingBytes: 65_536, stalledMillis } }
      )
      yield* Effect.promise(async () => {
        const client = createClient({ url: server.url, token: tokens.admin })
        const { id } = await client.session.create({})
        let ended = 0
        const isOver = () => {
          let seen = 0
          return ({ type }: Event) => type === "turn.ended" && ++seen === turns
        }
        const until = (turn: number) => {
          let seen = turn
          return ({ type }: Event) => type === "turn.ended" && ++seen === turns
        }
        const begun: Array<Promise<void>> = []
        const start = (options: Omit<Follow, "begun">) => {
          const { promise, resolve } = Promise.withResolvers<void>()
          begun.push(promise)
          return follow(server, id, { ...options, begun: resolve })
        }
        const staying = Array.from({ length: 4 }, () => start({ after: null, isOver: isOver() }))
        const dropping = [7, 23, 61].map((dropEvery) => start({ after: "0", dropEvery, isOver: isOver() }))
        await Promise.all(begun)
        const silent = neverReading(server, id)
        const late: Array<Promise<View>> = []
        let slowest = 0
        for (let turn = 0; turn < turns; turn++) {
          if (turn === 80) {
            late.push(start({ after: null, isOver: until(turn) }))
            await Promise.all(begun)
          }
          const began = performance.now()
          expect(await client.session.ask(id, `Prompt ${turn}`)).toMatchObject({ status: "done" })
          slowest = Math.max(slowest, performance.now() - began)
          ended++
          if (turn === 130) late.push(start({ after: "0", isOver: isOver() }))
        }
        expect(ended).toBe(turns)
        const [first, ...others] = await Promise.all([...staying, ...dropping])
        const [joined, fromStart] = await Promise.all(late)
        expect(first?.events.length).toBeGreaterThan(2_000)
        expect([first, ...others, joined, fromStart].map((view) => view?.gaps)).toEqual(
          Array.from({ length: 9 }, () => 0)
        )
        for (const other of [...others, fromStart]) expect(other?.events).toEqual(first?.events)
        expect(joined?.events).toEqual(first?.events.slice(-(joined?.events.length ?? 0)))
        expect(joined?.events.length).toBeGreaterThan(1_000)
        for (const view of await Promise.all(staying)) {
          const texts = Object.values(view.texts)
          expect(texts).toHaveLength(turns * 2)
          expect(texts.every((text) => /^Turn \d+: I note it\.$/.test(text) || text.length === 16 * 1_024)).toBe(true)
          expect(view.texts).toEqual(first?.texts)
        }
        // What is read anew agrees with what was followed.
        const transcript = await client.session.transcript(id)
        const answers = transcript.filter(({ kind }) => kind === "bezel.assistant")
        expect(answers).toHaveLength(turns * 2)
        const views = await Promise.all(Array.from({ length: 10 }, () => client.session.view(id)))
        expect(new Set(views.map((view) => JSON.stringify(view))).size).toBe(1)

        // Who never reads has held up nobody, and is given up.
        expect(slowest).toBeLessThan(stalledMillis)
        await expect.poll(() => measured(server, "bezel_http_dropped_streams_total"), { timeout: 20_000 }).toBe(1)
        silent.destroy()
      })
    })))

  it.live("with 100,000 updates of 2 kB costs bounded memory for a client that never reads", () =>
    Effect.scoped(Effect.gen(function*() {
      const pieces = 100_000
      const server = yield* startTestServer([[callTool("print", { pieces })], "Printed."], {
        plugins: [printing],
        limits: { waitingBytes: 65_536, stalledMillis }
      })
      yield* Effect.promise(async () => {
        const client = createClient({ url: server.url, token: tokens.admin })
        const { id } = await client.session.create({})
        const silent = Array.from({ length: 5 }, () => neverReading(server, id))
        await expect.poll(() => measured(server, "bezel_http_streams"), { timeout: 10_000 }).toBe(5)
        let most = 0
        const now = () => {
          const { external, heapUsed } = process.memoryUsage()
          return (heapUsed + external) / 1_048_576
        }
        const before = now()
        const watching = setInterval(() => {
          most = Math.max(most, now() - before)
        }, 50)
        const reader = follow(server, id, { after: "0", isOver: ({ type }) => type === "turn.ended" })
        expect(await client.session.ask(id, "Print")).toMatchObject({ text: "Printed." })
        clearInterval(watching)
        expect((await reader).gaps).toBe(0)
        // 200 MB were printed, and would wait five times over.
        expect(most).toBeLessThan(100)
        for (const socket of silent) socket.destroy()
      })
    })))
})
