/** Images as a prompt, an answer and a tool may have them, good and bad ones. */
import type { FilePart } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import { crc32, deflateSync } from "node:zlib"
import { assistant, type Script, tool } from "./stub-session.ts"

const chunk = (kind: string, body: Buffer): Buffer => {
  const head = Buffer.concat([Buffer.from(kind, "latin1"), body])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(head))
  return Buffer.concat([length, head, sum])
}

/** A PNG file of noise that does not repeat, so that it is as long as it looks. */
export const png = (width: number, height: number, claimed = { width, height }): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(claimed.width, 0)
  header.writeUInt32BE(claimed.height, 4)
  header.write("0802000000", 8, "hex")
  const pixels = Buffer.alloc(height * (1 + width * 3))
  for (let index = 0, value = 1; index < pixels.length; index++) {
    value = (value * 1_103_515_245 + 12_345) % 2 ** 31
    pixels[index] = index % (1 + width * 3) === 0 ? 0 : value >> 16
  }
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(pixels)),
    chunk("IEND", Buffer.alloc(0))
  ])
}

const file = (data: string, mediaType = "image/png", fileName = "shot.png"): FilePart => ({
  type: "file",
  mediaType,
  fileName,
  data
})

export const images: { readonly [name: string]: FilePart } = {
  png: file(png(64, 48).toString("base64")),
  jpeg: file(Buffer.from("ffd8ffc0001108003000400301220002110103110100", "hex").toString("base64"), "image/jpeg"),
  empty: file(""),
  text: file(Buffer.from("\x1b[2Jno image at all \x1b]52;c;aGk=\x07").toString("base64")),
  escapes: file(`${png(8, 8).toString("base64").slice(0, 40)}\x1b\\\x1b[2J\x1b]52;c;aGk=\x07AAAA`),
  pixels: file(png(8, 8, { width: 100_000, height: 100_000 }).toString("base64")),
  nothing: file(png(8, 8, { width: 0, height: 9 }).toString("base64")),
  large: file(Buffer.concat([png(64, 48), Buffer.alloc(4_000_000)]).toString("base64")),
  name: file(png(64, 48).toString("base64"), "image/png", "\x1b]0;owned\x07a\nb\u202egnp.exe"),
  kind: file(png(64, 48).toString("base64"), "image/png;\x1b[2J", "shot.png"),
  pdf: file(Buffer.from("%PDF-1.7").toString("base64"), "application/pdf", "report.pdf")
}

/** `scene image NAME`: in a prompt. `scene images`: in an answer, in a result, and what comes after. */
export const imageScene = (input: string, script: Script): Effect.Effect<void, unknown> | null => {
  const name = /^scene image (\w+)$/.exec(input)?.[1]
  const part = name === undefined ? undefined : images[name]
  if (part !== undefined) {
    return Effect.gen(function*() {
      yield* script.entry("bezel.user", [{ role: "user", content: [{ type: "text", text: "Look at this" }, part] }])
      yield* script.entry("bezel.assistant", assistant(`Seen ${name}`))
      yield* script.finish
    })
  }
  if (input !== "scene images") return null
  return Effect.gen(function*() {
    const shot = images["png"] ?? file("")
    const lines = (count: number) => Array.from({ length: count }, (_, index) => `Line ${index + 1}`).join("\n\n")
    // So many that the renderer soon lets go of the first ones, while the images are among those that it keeps.
    yield* script.entry("bezel.assistant", assistant(lines(150)))
    yield* script.entry("bezel.assistant", [{ role: "assistant", content: [{ type: "text", text: "Drawn" }, shot] }])
    const params = { path: "shot.png" }
    yield* script.entry("bezel.assistant", assistant("", [{ type: "tool-call", id: "r1", name: "read", params }]))
    yield* script.entry("bezel.tool_result", [{
      role: "tool",
      content: [{
        type: "tool-result",
        id: "r1",
        name: "read",
        isFailure: false,
        result: null,
        modelOutput: [{ type: "text", text: "The image" }, shot]
      }]
    }])
    // A card that changes when its first row has scrolled away, and many rows after it.
    const calls = [{ type: "tool-call" as const, id: "s1", name: "bash", params: { command: "slow" } }]
    yield* script.entry("bezel.assistant", assistant("All at once", calls))
    const output = Array.from({ length: 6 }, (_, index) => `out ${index}`).join("\n")
    const running = [tool({ callId: "s1", name: "bash", args: { command: "slow" }, output })]
    for (let line = 1; line <= 400; line += 20) {
      yield* script.turn([{ type: "text", text: lines(line) }], running)
      yield* Effect.sleep("10 millis")
    }
    yield* script.entry("bezel.assistant", assistant(`${lines(400)}\n\nEnd of the images`))
    yield* script.finish
  })
}
