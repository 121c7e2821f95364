import type { JsonValue } from "@bezel/core/json"
import { emptySettings } from "@bezel/core/testing"
import { makeToolRegistry } from "@bezel/core/tool"
import { webSession } from "@bezel/plugins/web"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { brotliCompressSync, gzipSync } from "node:zlib"
import { isPrivateAddress } from "../../../packages/plugins/src/web/address.ts"
import { decodeText, kindOfText, pageMarkdown } from "../../../packages/plugins/src/web/page.ts"

/** A server on loopback, and the tool with that host allowed or not. */
const world = (
  answer: (request: http.IncomingMessage, response: http.ServerResponse) => void,
  options: { readonly allowed?: boolean } = {}
) =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const server = yield* Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<http.Server>((resolve) => {
          const made = http.createServer(answer).listen(0, "127.0.0.1", () => resolve(made))
        })
      ),
      (made) =>
        Effect.promise(() =>
          new Promise((resolve) => {
            made.closeAllConnections()
            made.close(resolve)
          })
        )
    )
    const { port } = server.address() as AddressInfo
    const registry = yield* makeToolRegistry()
    yield* webSession({
      options: options.allowed === false ? {} : { allowPrivate: true },
      settings: emptySettings,
      tool: {
        transform: (change) =>
          Effect.provideService(
            registry.transform({ plugin: "bezel.web", version: "1", order: 0 }, change),
            Scope.Scope,
            scope
          ),
        reload: registry.reload,
        list: registry.list
      }
    })
    const offer = yield* registry.materialize({ enabled: {}, denied: [] })
    const accept = (args: JsonValue) => offer.accept("web_fetch", args)
    const get = (path: string, more: object = {}) =>
      Effect.suspend(() => {
        const url = path.startsWith("/") ? `http://127.0.0.1:${port}${path}` : path
        const answer = accept({ url, ...more })
        return "refused" in answer
          ? Effect.die(new Error(answer.refused.message))
          : offer.settle(answer.accepted, toolCall, { afterTool: Effect.succeed })
      })
    const text = (path: string, more?: object) =>
      Effect.map(get(path, more), ({ content, isError }) =>
        (isError ? "! " : "") + content.map((part) =>
          part.type === "text" ? part.text : `<${part.mediaType}>`
        ).join("\n"))
    return { port, accept, get, text }
  })

const toolCall = {
  sessionID: "s",
  conversationID: "c",
  taskID: "t",
  callID: "call",
  name: "web_fetch",
  stream: () => Effect.void,
  progress: () => Effect.void,
  memo: (_: string, candidate?: JsonValue) => Effect.succeed(candidate as never),
  onAbort: () => Effect.void,
  task: () => Effect.die(new Error("no task")),
  waitForTask: () => Effect.die(new Error("no task")),
  slot: () => Effect.succeed(null),
  conversation: () => Effect.die(new Error("no conversation")),
  fs: Effect.die(new Error("no files")),
  process: { spawn: () => Effect.die(new Error("no process")) },
  artifact: () => Effect.succeed({ path: "/tmp/artifact", write: () => Effect.succeed(true), close: Effect.void })
}

const html = (body: string) => (_: http.IncomingMessage, response: http.ServerResponse) => {
  response.setHeader("content-type", "text/html; charset=utf-8").end(body)
}

describe("an address", () => {
  it.each([
    ["127.0.0.1", true],
    ["127.8.8.8", true],
    ["0.0.0.0", true],
    ["10.1.2.3", true],
    ["172.16.0.1", true],
    ["172.32.0.1", false],
    ["192.168.1.1", true],
    ["169.254.169.254", true],
    ["100.64.0.1", true],
    ["100.128.0.1", false],
    ["224.0.0.1", true],
    ["255.255.255.255", true],
    ["8.8.8.8", false],
    ["::1", true],
    ["::", true],
    ["fe80::1", true],
    ["fe80::1%eth0", true],
    ["fc00::1", true],
    ["fd12:3456::1", true],
    ["ff02::1", true],
    ["::ffff:127.0.0.1", true],
    ["::ffff:7f00:1", true],
    ["0:0:0:0:0:ffff:a00:1", true],
    ["::ffff:8.8.8.8", false],
    ["64:ff9b::7f00:1", true],
    ["2002:7f00:1::", true],
    ["2001:db8::1", true],
    ["2606:4700::1111", false],
    ["2a00:1450::1", false],
    ["nonsense", true],
    ["", true]
  ])("%s is private: %s", (address, isPrivate) => {
    expect(isPrivateAddress(address)).toBe(isPrivate)
  })
})

describe("web_fetch", () => {
  it.live.each(["", "localhost", "127.0.0.1.", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])(
    "refuses this machine however it is named: %s",
    (host) =>
      Effect.gen(function*() {
        let asked = 0
        const { port, text } = yield* world((_, response) => {
          asked++
          response.end("secret")
        }, { allowed: false })
        const told = yield* text(host === "" ? "/" : `http://${host}:${port}/`)
        expect(told).toMatch(/^! Cannot fetch .*(private network|no such host)/)
        expect(asked).toBe(0)
      })
  )

  it.live("follows a redirect on the same host, and tells of one that leads elsewhere", () =>
    Effect.gen(function*() {
      const { text } = yield* world((request, response) => {
        if (request.url === "/a") response.writeHead(302, { location: "/b" }).end()
        else if (request.url === "/b") response.writeHead(200, { "content-type": "text/plain" }).end("here")
        else if (request.url === "/round") response.writeHead(302, { location: "/round" }).end()
        else response.writeHead(301, { location: "http://169.254.169.254/latest/meta-data" }).end()
      })
      expect(yield* text("/a")).toBe("here")
      expect(yield* text("/out")).toMatch(
        /^! http:.*\/out redirects to http:\/\/169\.254\.169\.254\/latest\/meta-data\. Fetch that/
      )
      expect(yield* text("/round")).toMatch(/redirects more than 5 times/)
    }))

  it.live("gives a page as markdown with whole links, or as it is", () =>
    Effect.gen(function*() {
      const { get, port, text } = yield* world(html(
        "<html><head><title>A  page</title><script>x()</script><style>a{}</style></head><body><h2>Head</h2>" +
          "<p>See <a href='/b?x=1'>this <b>link</b></a>, <a href='javascript:x()'>not that</a> &amp; <img src=x alt='a cat'></p>" +
          "<ul><li>one<li>two</ul><pre><code>a &lt; b</code></pre></body></html>"
      ))
      expect(yield* text("/")).toBe(
        `# A page\n\n## Head\n\nSee [this **link**](http://127.0.0.1:${port}/b?x=1), not that & [image: a cat]\n\n-   one\n-   two\n\n\`\`\`\na < b\n\`\`\``
      )
      expect(yield* text("/", { raw: true })).toContain("<script>x()</script>")
      expect((yield* get("/")).details).toMatchObject({ status: 200, contentType: "text/html", cut: false })
    }))

  const answers: ReadonlyArray<readonly [what: string, type: string, body: Buffer, told: RegExp]> = [
    ["JSON as it is", "application/json", Buffer.from('{"a":1}'), /^\{"a":1\}$/],
    ["text without a type", "", Buffer.from("plain"), /^plain$/],
    ["an empty page", "text/html", Buffer.from(""), /^\(the page is empty\)$/],
    ["Latin-1 by the header", "text/plain; charset=iso-8859-1", Buffer.from("caf\xe9", "latin1"), /^café$/],
    ["a charset that there is not as UTF-8", "text/plain; charset=nope", Buffer.from("é"), /^é$/],
    ["an image", "image/png", Buffer.from("89504e470d0a1a0a00", "hex"), /^The image http.*\n<image\/png>$/],
    [
      "a program, which is not shown",
      "application/octet-stream",
      Buffer.from([0, 1, 2]),
      /^! .*answered 200 with application\/octet-stream \(3 bytes\), which is not shown/
    ]
  ]
  it.live.each(answers)("gives %s", ([, type, body, told]) =>
    Effect.gen(function*() {
      const { text } = yield* world((_, response) => {
        if (type !== "") response.setHeader("content-type", type)
        response.end(body)
      })
      expect(yield* text("/")).toMatch(told)
    }))

  it.live("unpacks what is compressed, and is bounded in what it unpacks", () =>
    Effect.gen(function*() {
      const { get, text } = yield* world((request, response) => {
        const [, how] = request.url?.split("/") ?? []
        response.setHeader("content-type", "text/plain")
        if (how === "gzip") response.setHeader("content-encoding", "gzip").end(gzipSync("packed"))
        else if (how === "br") response.setHeader("content-encoding", "br").end(brotliCompressSync("packed"))
        else if (how === "broken") response.setHeader("content-encoding", "gzip").end("no gzip")
        else response.setHeader("content-encoding", "gzip").end(gzipSync(Buffer.alloc(64 * 1024 * 1024, "a")))
      })
      expect(yield* text("/gzip")).toBe("packed")
      expect(yield* text("/br")).toBe("packed")
      expect(yield* text("/broken")).toMatch(/^! Cannot fetch/)
      expect((yield* get("/bomb")).details).toMatchObject({ cut: true, bytes: 5 * 1024 * 1024 })
    }))

  it.live("gives an error of the server as an error with the beginning of what it says", () =>
    Effect.gen(function*() {
      const { text } = yield* world((_, response) => {
        response.writeHead(404, { "content-type": "text/html" }).end("<h1>Not here</h1>" + "x".repeat(9_000))
      })
      const told = yield* text("/")
      expect(told).toMatch(/^! http:\S+ answered 404\.\n# Not here/)
      expect(told.length).toBeLessThan(2_200)
    }))

  it.live("gives up a server that does not end, and one that is not there", () =>
    Effect.gen(function*() {
      const { text } = yield* world((request, response) => {
        response.setHeader("content-type", "text/plain")
        if (request.url === "/begun") response.write("begun")
      })
      expect(yield* text("/", { timeout: 0.2 })).toMatch(/^! .*it took longer than 0\.2 seconds/)
      expect(yield* text("/begun", { timeout: 0.2 })).toMatch(/it took longer than 0\.2 seconds/)
      expect(yield* text("http://127.0.0.1:1/")).toMatch(/it refused the connection/)
    }))

  it.live("sends nothing of this machine along", () =>
    Effect.gen(function*() {
      let headers: http.IncomingHttpHeaders = {}
      const { text } = yield* world((request, response) => {
        headers = request.headers
        response.end("ok")
      })
      yield* text("/")
      expect(Object.keys(headers).sort()).toEqual(["accept", "accept-encoding", "connection", "host", "user-agent"])
    }))

  const refused: ReadonlyArray<readonly [url: string, reason: RegExp]> = [
    ["", /no address/],
    ["example.com", /no address/],
    ["ftp://example.com/", /addresses with ftp: are not fetched/],
    ["file:///etc/passwd", /addresses with file: are not fetched/],
    ["https://user:pw@example.com/", /a name or a password/],
    [`https://example.com/${"x".repeat(2_001)}`, /longer than 2,000/]
  ]
  it.live.each(refused)("refuses %s before anybody is asked", ([url, reason]) =>
    Effect.gen(function*() {
      const { accept } = yield* world(() => {})
      const answer = accept({ url })
      expect("refused" in answer && answer.refused.message).toMatch(reason)
    }))

  it.live("is judged by the host, with its port where that is not the usual one", () =>
    Effect.gen(function*() {
      const { accept } = yield* world(() => {})
      const subject = (url: string) => {
        const answer = accept({ url })
        return "accepted" in answer ? answer.accepted.permission : null
      }
      expect(subject("https://Example.com:443/a")).toEqual({ access: "web", subjects: ["example.com"] })
      expect(subject("https://example.com./a")).toEqual({ access: "web", subjects: ["example.com"] })
      expect(subject("http://example.com:8080/")).toEqual({ access: "web", subjects: ["example.com:8080"] })
    }))
})

describe("a page", () => {
  it.effect("that is nested too deep to convert comes as its bare text", () =>
    Effect.gen(function*() {
      const deep = "<div>".repeat(50_000) + "<p>inside</p>"
      expect(yield* pageMarkdown(deep, new URL("https://example.com"))).toContain("inside")
    }), 30_000)

  it("has the charset that it names itself", () => {
    expect(decodeText(Buffer.from("<meta charset='windows-1252'>\x80", "latin1"), "text/html")).toContain("€")
  })

  it.each([
    ["text/html", "html"],
    ["application/xhtml+xml", "html"],
    ["text/markdown", "text"],
    ["application/ld+json", "text"],
    ["image/svg+xml", "text"],
    ["application/zip", null],
    ["video/mp4", null]
  ])("of type %s is %s", (type, kind) => {
    expect(kindOfText(type)).toBe(kind)
  })
})
