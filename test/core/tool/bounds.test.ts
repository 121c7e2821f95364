import type { OutputBounds, ToolContent } from "@bezel/core/tool"
import {
  boundResult,
  headOf,
  looksBinary,
  makeCollector,
  MAX_DETAILS,
  MAX_FILE_BYTES,
  sizeOf,
  tailOf,
  toolResult
} from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "fast-check"
import { fakeCall } from "./fake-call.ts"

const collect = (
  chunks: ReadonlyArray<string | Uint8Array>,
  bounds: Partial<OutputBounds> = {},
  artifactBytes?: number
) =>
  Effect.gen(function*() {
    const fake = fakeCall(artifactBytes === undefined ? {} : { artifactBytes })
    const collector = makeCollector({
      bounds: { maxBytes: 64 * 1024, maxLines: 2_000, keep: "both", ...bounds },
      artifact: fake.call.artifact("out.txt")
    })
    for (const chunk of chunks) yield* collector.write(chunk)
    return { output: yield* collector.finish, saved: fake.artifacts.get("/artifacts/out.txt") ?? null, fake }
  })

const lines = (count: number, from = 1) =>
  Array.from({ length: count }, (_, index) => `line ${index + from}\n`).join("")

describe("collected output", () => {
  it.effect("is whole and saves nothing while it fits", () =>
    Effect.gen(function*() {
      const { output, saved } = yield* collect(["a\r\n", "ü\u2028\u0085", Buffer.from("\n")])
      expect(output).toMatchObject({ text: "a\r\nü\u2028\u0085\n", truncated: false, artifact: null, lines: 2 })
      expect(saved).toBeNull()
    }))

  it.effect("keeps both ends of too many lines and names the file that has all", () =>
    Effect.gen(function*() {
      const all = lines(10_000)
      const { output, saved } = yield* collect([all])
      const shown = output.text.split("\n")
      expect(shown[0]).toBe("line 1")
      expect(shown.at(-2)).toBe("line 10000")
      expect(shown.length).toBeLessThanOrEqual(2_001)
      expect(output.text).toContain("10,000 lines")
      expect(output.text).toContain("All of it is in /artifacts/out.txt")
      expect(saved?.toString()).toBe(all)
    }))

  it.effect.each([["head", "line 1\n", "line 9999\n"], ["tail", "line 10000\n", "line 2\n"]] as const)(
    "keeps the %s alone when told to",
    ([keep, kept, gone]) =>
      Effect.gen(function*() {
        const { output } = yield* collect([lines(10_000)], { keep })
        expect(output.text).toContain(kept)
        expect(output.text).not.toContain(gone)
      })
  )

  it.effect("cuts one line of 5 MB between characters", () =>
    Effect.gen(function*() {
      const { output, saved } = yield* collect([Buffer.from("é€😀".repeat(600_000))])
      expect(Buffer.byteLength(output.text)).toBeLessThanOrEqual(64 * 1024)
      expect(output.text).not.toContain("\ufffd")
      expect(saved?.length).toBe(5_400_000)
    }))

  it.effect("says how much was saved when the file is bounded too", () =>
    Effect.gen(function*() {
      const chunks = Array.from({ length: 10 }, () => Buffer.alloc(40_000, "x"))
      const { output } = yield* collect(chunks, {}, 200_000)
      expect(output.text).toMatch(/Its first [\d.]+ KiB is in \/artifacts\/out.txt/)
    }))

  it.effect("describes binary, saves it whole, and keeps a tool's own remark", () =>
    Effect.gen(function*() {
      const elf = Buffer.concat([Buffer.from([0x7f, 0x45, 0x4c, 0x46]), Buffer.alloc(100_000)])
      const { output, saved } = yield* collect([elf.subarray(0, 70_000), elf.subarray(70_000), "\n[exit code 0]"])
      expect(output.text).toContain("an ELF program or library")
      expect(output.text).toContain("[exit code 0]")
      expect(output.text).not.toContain("\u0000")
      expect(saved?.equals(elf)).toBe(true)
      const earlier = yield* collect(["a note\n", elf])
      expect(earlier.output.text).not.toContain("a note")
    }))

  it.effect("goes on when the file cannot be opened", () =>
    Effect.gen(function*() {
      const collector = makeCollector({
        bounds: { maxBytes: 4_096, maxLines: 100, keep: "head" },
        artifact: Effect.die("disk full")
      })
      yield* collector.write("x".repeat(10_000))
      yield* collector.write("y".repeat(10_000))
      const output = yield* collector.finish
      expect(output.text).toContain("The rest could not be saved.")
      expect(output.artifact).toBeNull()
    }))

  it.effect("holds in memory no more than its bounds, whatever is written", () =>
    Effect.gen(function*() {
      const chunk = Buffer.alloc(64 * 1024, "y\n")
      const collector = makeCollector({
        bounds: { maxBytes: 64 * 1024, maxLines: 2_000, keep: "both" },
        artifact: Effect.succeed({ path: "/x", write: () => Effect.succeed(false), close: Effect.void })
      })
      yield* collector.write(chunk)
      const before = process.memoryUsage().arrayBuffers
      for (let index = 0; index < 4_096; index++) yield* collector.write(chunk)
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1024 * 1024)
      expect((yield* collector.finish).bytes).toBe(4_097 * 64 * 1024)
    }))

  it.effect("is the same however it is cut into chunks, and never tears a character", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(
          FastCheck.string({ unit: "binary", minLength: 0, maxLength: 600 }).filter((text) => !text.includes("\u0000")),
          FastCheck.array(FastCheck.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 10 }),
          FastCheck.constantFrom("head", "tail", "both" as const),
          async (text, sizes, keep) => {
            const bytes = Buffer.from(text.repeat(5))
            const chunks: Array<Buffer> = []
            for (let from = 0, index = 0; from < bytes.length; index++) {
              const size = sizes[index % sizes.length] ?? 1
              chunks.push(bytes.subarray(from, from + size))
              from += size
            }
            const bounds = { maxBytes: 800, maxLines: 20, keep } as const
            const whole = await Effect.runPromise(collect([bytes], bounds))
            const parts = await Effect.runPromise(collect(chunks, bounds))
            // Where the saving starts may differ, what is shown and saved may not.
            expect(parts.output.text).toBe(whole.output.text)
            expect(parts.saved?.equals(bytes) ?? true).toBe(true)
            if (!bytes.toString().includes("\ufffd")) expect(parts.output.text).not.toContain("\ufffd")
          }
        ),
        { numRuns: 150 }
      )
    ))
})

describe("cutting bytes", () => {
  it("gives a head and a tail that end between characters and count lines", () => {
    const bytes = Buffer.from("a\nb\n€\n")
    expect(Buffer.from(headOf(bytes, 6, 9)).toString()).toBe("a\nb\n")
    expect(Buffer.from(headOf(bytes, 99, 2)).toString()).toBe("a\nb\n")
    expect(Buffer.from(tailOf(bytes, 3, 9)).toString()).toBe("\n")
    expect(Buffer.from(tailOf(bytes, 99, 2)).toString()).toBe("b\n€\n")
    expect(Buffer.from(tailOf(Buffer.from("a\nb"), 99, 1)).toString()).toBe("b")
    expect(headOf(bytes, 0, 9)).toHaveLength(0)
    expect(tailOf(bytes, 0, 9)).toHaveLength(0)
    expect(headOf(bytes, 9, 0)).toHaveLength(0)
  })

  it("tells text from binary", () => {
    expect(looksBinary(Buffer.from("plain\ttext\r\n\u001b[31mred"))).toBe(false)
    expect(looksBinary(Buffer.from("na\xefve caf\xe9 au lait, s'il vous pla\xeet", "latin1"))).toBe(false)
    expect(looksBinary(Buffer.from([1, 2, 3, 0]))).toBe(true)
    expect(looksBinary(Buffer.from(Array.from({ length: 300 }, (_, index) => 128 + index % 128)))).toBe(true)
    expect(looksBinary(Buffer.from("日".repeat(4_000)))).toBe(false)
    expect(looksBinary(Buffer.alloc(0))).toBe(false)
  })

  it("names sizes as people do", () => {
    expect([1, 1_234, 148 * 1024, 2 ** 31].map(sizeOf)).toEqual(["1 byte", "1,234 bytes", "148 KiB", "2 GiB"])
  })
})

describe("the bounds of a result", () => {
  const bound = (content: ReadonlyArray<ToolContent>, details: string | null = null) =>
    Effect.gen(function*() {
      const fake = fakeCall()
      const result = yield* boundResult({ content, isError: false, details, control: {} }, {
        bounds: null,
        textBounded: false,
        call: fake.call
      })
      return { result, fake }
    })

  it.effect("leave a result that fits as it is, byte for byte, a lone surrogate included", () =>
    Effect.gen(function*() {
      const content = [{ type: "text", text: "a\r\n\u2028\ud800" }, { type: "text", text: "b" }] as const
      expect((yield* bound(content)).result.content).toEqual(content)
    }))

  it.effect("count all texts of a result together and leave files beside them", () =>
    Effect.gen(function*() {
      const image = { type: "file", mediaType: "image/png", data: "aGk=" } as const
      const { fake, result } = yield* bound([{ type: "text", text: lines(1_500) }, image, {
        type: "text",
        text: lines(1_500, 1_501)
      }])
      expect(result.content.map((part) => part.type)).toEqual(["text", "file"])
      expect(fake.artifacts.get("/artifacts/call-1-tool.txt")?.toString()).toContain("line 1500\n\nline 1501\n")
    }))

  it.effect("describe text that is binary", () =>
    Effect.gen(function*() {
      const { result } = yield* bound([{ type: "text", text: "\u0000\u0001" }])
      expect(result.content[0]).toMatchObject({ text: expect.stringContaining("binary data") })
    }))

  it.effect("leave out a file or details that would fill a session, and say so", () =>
    Effect.gen(function*() {
      const { result } = yield* bound(
        [{ type: "file", mediaType: "image/png", fileName: "big.png", data: "A".repeat(MAX_FILE_BYTES + 4) }],
        "d".repeat(MAX_DETAILS)
      )
      expect(result.content[0]).toMatchObject({ text: "[big.png (image/png, 6 MiB) is too large to show.]" })
      expect(result.details).toMatchObject({ omitted: expect.stringContaining("details of") })
    }))

  it.effect("name a file that any file system takes, whatever the call is called", () =>
    Effect.gen(function*() {
      const fake = fakeCall({ callID: "../../etc/\u0000x y" })
      yield* boundResult(toolResult("x".repeat(70_000)), { bounds: null, textBounded: false, call: fake.call })
      expect([...fake.artifacts.keys()]).toEqual(["/artifacts/.._.._etc__x_y-tool.txt"])
    }))
})
