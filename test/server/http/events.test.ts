/** Event streams: what a follower gets, also one that comes back, one that reads slowly, and one that never reads. */
import { call as callTool, say, type ScriptedTurn, wait } from "@bezel/core/testing"
import { createClient, makeEffectClient, type Placed, type SessionEvent } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { connect, createServer } from "node:net"
import { sink, startTestServer, type TestServer, tokens } from "./fixture.ts"

interface Frame {
  readonly id: string | null
  readonly event: string
  readonly data: Record<string, unknown>
}

const parse = (text: string): ReadonlyArray<Frame> =>
  text.split("\n\n").filter((block) => block.includes("data:")).map((block) => {
    const field = (name: string) =>
      block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
    return { id: field("id") ?? null, event: field("event") ?? "", data: JSON.parse(field("data") ?? "null") }
  })

/** Reads a stream until enough has been seen, and leaves it then. */
const read = async (
  url: string,
  path: string,
  isEnough: (frames: ReadonlyArray<Frame>) => boolean,
  headers: Record<string, string> = {}
): Promise<ReadonlyArray<Frame>> => {
  const leaving = new AbortController()
  const response = await fetch(url + path, {
    headers: { authorization: `Bearer ${tokens.read}`, ...headers },
    signal: leaving.signal
  })
  expect(response.status).toBe(200)
  const frames: Array<Frame> = []
  let rest = ""
  const decoder = new TextDecoder()
  if (response.body === null) throw new Error("no body")
  for await (const chunk of response.body) {
    const piece = decoder.decode(chunk, { stream: true })
    rest += piece
    if (!piece.includes("\n")) continue
    // A piece of a frame at the end is none yet.
    const end = rest.lastIndexOf("\n\n")
    if (end < 0) continue
    frames.push(...parse(rest.slice(0, end + 2)))
    rest = rest.slice(end + 2)
    if (isEnough(frames)) break
  }
  leaving.abort()
  return frames
}

const turnsOf = (frames: ReadonlyArray<Frame>) => frames.filter(({ event }) => event === "turn.ended").length
const hasEnded = (frames: ReadonlyArray<Frame>) => turnsOf(frames) > 0
const durable = (frames: ReadonlyArray<Frame>) =>
  frames.filter(({ data }) => typeof data.sequence === "number" && data.type !== "ready")

/** A session with so many finished turns. */
const sessionWith = async (server: TestServer, turns: number): Promise<string> => {
  const { json: { id } } = await server.call("POST", "/session", { body: {} })
  for (let turn = 0; turn < turns; turn++) {
    const { json } = await server.call("POST", `/session/${id}/prompt`, { body: { text: `Prompt ${turn}` } })
    await server.call("POST", `/session/${id}/wait?input=${json.inputID}`)
  }
  return id
}

/** A way to the server on which an event stream breaks after each of so many pieces. */
const dropping = (url: string, pieces: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer((near) => {
            const far = connect(Number(new URL(url).port), "127.0.0.1")
            let isStream = false
            let passed = 0
            near.on("data", (data) => {
              if (data.toString("latin1").includes("/event")) isStream = true
              far.write(data)
            }).on("error", () => {}).on("close", () => far.destroy())
            far.on("data", (data) => {
              near.write(data)
              if (isStream && ++passed >= pieces) near.end()
            }).on("error", () => {}).on("close", () => near.end())
          })
          server.listen(0, "127.0.0.1", () => resolve(server))
        })
      ),
      (server) => Effect.sync(() => server.close())
    ),
    (server) => {
      const address = server.address()
      return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
    }
  )

describe("events of a session", () => {
  it.live("resume exactly after the id that was seen, however often the connection is lost before anything comes", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["One.", "Two.", "Three."])
      yield* Effect.promise(async () => {
        const id = await sessionWith(server, 2)
        const path = `/session/${id}/event`
        const all = durable(
          await read(server.url, `${path}?after=0`, (frames) => turnsOf(frames) === 2)
        )
        const ids = [...new Set(all.map(({ data }) => data.sequence))]
        expect(ids.length).toBeGreaterThan(5)
        const cursor = String(ids[2])
        for (let drop = 0; drop < 2; drop++) {
          const first = await read(server.url, path, () => true, { "last-event-id": cursor })
          expect(first[0]).toMatchObject({ id: cursor, event: "ready" })
        }
        const expected = all.filter(({ data }) => Number(data.sequence) > Number(cursor))
        const isAll = (frames: ReadonlyArray<Frame>) => durable(frames).length >= expected.length
        expect(durable(await read(server.url, path, isAll, { "last-event-id": cursor }))).toEqual(expected)
      })
    })))

  it.live("put the id of a commit at its last event, so that nobody resumes in the middle of one", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["One."])
      yield* Effect.promise(async () => {
        const id = await sessionWith(server, 1)
        const frames = durable(await read(server.url, `/session/${id}/event?after=0`, hasEnded))
        for (const [index, { data, id }] of frames.entries()) {
          const isLast = frames[index + 1]?.data.sequence !== data.sequence
          expect(id).toBe(isLast ? String(data.sequence) : null)
        }
      })
    })))

  it.live("say one gap, and where they go on, to a client whose place is none of theirs", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["One.", "Two."])
      yield* Effect.promise(async () => {
        const id = await sessionWith(server, 1)
        for (const place of ["99999", "another.7", "-1", "1e3"]) {
          const [first] = await read(server.url, `/session/${id}/event`, () => true, { "last-event-id": place })
          expect([place, first?.event, first?.id]).toEqual([place, "gap", String(first?.data.sequence)])
        }
        const following = read(server.url, `/session/${id}/event`, hasEnded, { "last-event-id": "99999" })
        await server.call("POST", `/session/${id}/prompt`, { body: { text: "More" } })
        const frames = await following
        expect(frames.filter(({ event }) => event === "gap").length).toBe(1)
        expect(durable(frames).filter(({ event }) => event !== "gap")[0]).toMatchObject({ event: "entry.added" })
      })
    })))

  it.live("show an answer while it is written, whole at its end, with few bytes for each character", () =>
    Effect.scoped(Effect.gen(function*() {
      const words = Array.from({ length: 400 }, (_, index) => `word${index} `)
      const turn: ScriptedTurn = words.flatMap((word, index) => index % 20 === 0 ? [wait(5), say(word)] : [say(word)])
      const server = yield* startTestServer([[say(...words.slice(0, 200)), wait("150 millis")], turn])
      yield* Effect.promise(async () => {
        const { json: { id } } = await server.call("POST", "/session", { body: {} })
        const following = read(server.url, `/session/${id}/event`, hasEnded)
        await server.call("POST", `/session/${id}/prompt`, { body: { text: "Go" } })
        const frames = await following
        const deltas = frames.filter(({ event }) => event === "delta")
        let text = ""
        for (const { data } of deltas) text = text.slice(0, Number(data.offset)) + String(data.text)
        expect(text).toBe(words.slice(0, 200).join(""))
        const bytes = deltas.reduce((sum, frame) => sum + JSON.stringify(frame.data).length + 40, 0)
        expect(bytes / text.length).toBeLessThan(4)
        const completed = frames.findIndex(({ event }) => event === "generation.completed")
        expect(frames.findLastIndex(({ event }) => event === "delta")).toBeLessThan(completed)
      })
    })))

  it.live("are the same for ten clients that follow one session, with what is read of it afterwards", () =>
    Effect.scoped(Effect.gen(function*() {
      const count = 6
      const answers = Array.from(
        { length: count },
        (_, index) => [say(`Answer ${index}, `), wait("20 millis"), say("and its end.")]
      )
      const { url } = yield* startTestServer(answers)
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        const follow = async (
          begin: () => void
        ): Promise<{ readonly durable: ReadonlyArray<unknown>; readonly texts: unknown }> => {
          const seen: Array<Placed<SessionEvent>> = []
          const texts: Record<string, string> = {}
          let ended = 0
          for await (const event of client.session.events(id)) {
            if (event.type === "ready") begin()
            else if (event.type === "delta" && "part" in event) {
              const task = `${event.task} ${event.part}`
              texts[task] = `${(texts[task] ?? "").slice(0, Number(event.offset))}${event.text}`
            } else if (event.type !== "tool.output") seen.push(event)
            if (event.type === "turn.ended" && ++ended === count) break
          }
          return { durable: seen, texts }
        }
        const begun: Array<Promise<void>> = []
        const views = Array.from({ length: 10 }, () => {
          let begin = () => {}
          begun.push(
            new Promise((resolve) => {
              begin = resolve
            })
          )
          return follow(begin)
        })
        await Promise.all(begun)
        for (let turn = 0; turn < count; turn++) await client.session.ask(id, `Prompt ${turn}`)
        const [first, ...others] = await Promise.all(views)
        for (const other of others) expect(other).toEqual(first)
        expect(Object.values(first?.texts ?? {})).toEqual(
          answers.flatMap((_, index) => [`Answer ${index}, `, "and its end."])
        )
        const transcript = await client.session.transcript(id)
        expect(transcript.length).toBe(count * 2)
        const states = await Promise.all(Array.from({ length: 10 }, () => client.session.view(id)))
        expect(new Set(states.map((view) => JSON.stringify(view))).size).toBe(1)
      })
    })))

  it.live("cost a server little for a client that never reads, which is dropped; nobody else notices", () =>
    Effect.scoped(Effect.gen(function*() {
      // More than the buffers of two sockets hold.
      const count = 20
      const large = "x".repeat(1_048_576)
      const calls = Array.from({ length: count }, (_, index) => callTool("sink", { text: large }, `call_${index}`))
      const server = yield* startTestServer([calls, "Done.", "More."], {
        plugins: [sink],
        limits: { waitingBytes: 65_536, stalledMillis: 2_000 }
      })
      yield* Effect.promise(async () => {
        const id = await sessionWith(server, 1)
        const path = `/session/${id}/event?after=0`
        const { hostname, port } = new URL(server.url)
        const socket = connect(Number(port), hostname)
        socket.pause()
        socket.on("error", () => {})
        socket.write(
          `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${tokens.read}\r\n\r\n`
        )
        const started = (frames: ReadonlyArray<Frame>) => frames.filter(({ event }) => event === "tool.started").length
        const frames = await read(server.url, path, hasEnded)
        expect(started(frames)).toBe(count)
        // Nobody else notices.
        const { json: { inputID } } = await server.call("POST", `/session/${id}/prompt`, { body: { text: "Go on" } })
        const outcome = await server.call("POST", `/session/${id}/wait?input=${inputID}`)
        expect(outcome.json).toMatchObject({ status: "done", text: "More." })
        // Nothing is read until the server has given it up, which its count says.
        for (;;) {
          const { text } = await server.call("GET", "/metrics")
          if (/^bezel_http_dropped_streams_total 1$/m.test(text)) break
        }
        socket.destroy()
        const last = frames.findLast(({ id }) => id !== null)?.id ?? ""
        const resumed = await read(server.url, `/session/${id}/event`, hasEnded, { "last-event-id": last })
        expect(started(resumed)).toBe(0)
        expect(resumed.map(({ event }) => event)).toContain("generation.completed")
      })
    })))

  it.live("end soon for a reader who has enough, and the server has nothing of it any more", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["One."])
      const client = makeEffectClient({ url: server.url, token: tokens.admin })
      const { id } = yield* client.session.create()
      yield* client.session.ask(id, "Hi")
      const three = yield* client.session.events(id, { after: "0" }).pipe(Stream.take(3), Stream.runCollect)
      expect(three.length).toBe(3)
      yield* Effect.promise(async () => {
        for (;;) {
          const { text } = await server.call("GET", "/metrics")
          if (/^bezel_http_streams 0$/m.test(text)) break
        }
      })
    })))

  it.live("end when the session is deleted, which they do not hold up", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer()
      yield* Effect.promise(async () => {
        const { json: { id } } = await server.call("POST", "/session", { body: {} })
        let begin = () => {}
        const begun = new Promise<void>((resolve) => {
          begin = resolve
        })
        const following = read(server.url, `/session/${id}/event`, () => {
          begin()
          return false
        })
        await begun
        expect((await server.call("DELETE", `/session/${id}`)).status).toBe(204)
        expect((await following).map(({ event }) => event)).toEqual(["ready"])
      })
    })))

  it.live("are one stream for a client across lost connections", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["One.", "Two.", "Three."])
      const client = makeEffectClient({ token: tokens.admin, url: yield* dropping(server.url, 4) })
      const { id } = yield* client.session.create()
      const turns = yield* Effect.forkScoped(
        client.session.events(id).pipe(
          Stream.filter(({ type }) => type === "turn.ended"),
          Stream.take(3),
          Stream.runCollect
        )
      )
      for (const text of ["1", "2", "3"]) yield* client.session.ask(id, text)
      const ended = yield* Fiber.join(turns)
      expect(ended.map((event) => "sequence" in event ? event.sequence : 0)).toEqual(
        [...new Set(ended.map((event) => "sequence" in event ? event.sequence : 0))].toSorted((a, b) =>
          Number(a) - Number(b)
        )
      )
      expect(ended.length).toBe(3)
    })))

  it.live("tell when something is asked and when it is settled, also to those who come later", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[callTool("ask", { text: "Well?" })], "Done."])
      yield* Effect.promise(async () => {
        const { json: { id } } = await server.call("POST", "/session", { body: {} })
        const path = `/session/${id}/event`
        const opened = (frames: ReadonlyArray<Frame>) => frames.some(({ event }) => event === "interaction.opened")
        const first = read(server.url, path, (frames) => opened(frames) && hasEnded(frames))
        await server.call("POST", `/session/${id}/prompt`, { body: { text: "Ask" } })
        const late = (await read(server.url, path, opened)).find(({ event }) => event === "interaction.opened")
        await server.call("POST", `/session/${id}/interaction/${String(late?.data.id)}`, { body: { declined: true } })
        expect((await first).filter(({ event }) => event.startsWith("interaction.")).map(({ data }) => data)).toEqual([
          late?.data,
          { type: "interaction.closed", id: late?.data.id, outcome: "declined" }
        ])
      })
    })))
})

describe("events of the server", () => {
  it.live("tell of sessions that come, change and go, and resume", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer()
      yield* Effect.promise(async () => {
        const client = createClient({ url: server.url, token: tokens.admin })
        const before = await client.session.create({ title: "before" })
        const events = client.events()[Symbol.asyncIterator]()
        const next = async (type: string) => {
          for (;;) {
            const { value } = await events.next()
            if (value.type === type) return value
          }
        }
        await next("ready")
        const { id } = await client.session.create({ title: "new" })
        const created = await next("session.created")
        expect(created).toMatchObject({ session: { id, title: "new" } })
        await client.session.update(before.id, { title: "changed" })
        expect(await next("session.changed")).toMatchObject({ session: { id: before.id, title: "changed" } })
        await client.session.remove(before.id)
        expect(await next("session.deleted")).toMatchObject({ sessionID: before.id })
        await events.return?.()
        const isDeleted = (frames: ReadonlyArray<Frame>) => frames.some(({ event }) => event === "session.deleted")
        const rest = await read(server.url, "/event", isDeleted, { "last-event-id": created.cursor ?? "" })
        expect(rest.map(({ event }) => event)).toEqual(["ready", "session.changed", "session.deleted"])
        const [, gap] = await read(server.url, "/event", (seen) => seen.length > 1, { "last-event-id": "another.3" })
        expect(gap?.event).toBe("gap")
      })
    })))
})
