import type { SessionExport } from "@bezel/core/session"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { toHtml } from "../../../packages/cli/src/export/html.ts"
import { toMarkdown } from "../../../packages/cli/src/export/markdown.ts"

type Entry = SessionExport["entries"][number]

const entry = (number: number, kind: string, model: Entry["model"], more: Partial<Entry> = {}): Entry => ({
  id: `e${number}`,
  ordinal: number,
  conversation: "c1",
  kind,
  data: null,
  model,
  head: null,
  edits: null,
  createdAt: 1_700_000_000_000 + number,
  ...more
})

const user = (text: string): Entry["model"] => [{ role: "user", content: [{ type: "text", text }] }]
const says = (text: string): Entry["model"] => [{ role: "assistant", content: [{ type: "text", text }] }]

const session = (entries: ReadonlyArray<Entry>, title = "A session"): SessionExport => ({
  bezel: "session",
  format: 1,
  record: {
    id: "ses_1",
    title,
    location: { directory: "/work/shop", workspaceID: null },
    parentID: null,
    agent: null,
    model: null,
    status: "idle",
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_000_000,
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    cost: 0,
    version: "0.1.0",
    archived: false
  },
  conversations: [{ id: "c1", parent: null, createdAt: 0 }],
  entries
})

const call = (result: string): ReadonlyArray<Entry> => [
  entry(3, "bezel.assistant", [{
    role: "assistant",
    content: [{ type: "tool-call", id: "k1", name: "bash", params: { command: "npm test" } }]
  }]),
  entry(4, "bezel.tool_result", [{
    role: "tool",
    content: [{ type: "tool-result", id: "k1", name: "bash", isFailure: true, result }]
  }], { data: { details: { diff: "--- a\n+++ a\n@@ -1 +1 @@\n-<old>\n+<new>\n" } } })
]

const hostile = [
  "<script>alert(1)</script>",
  "</pre></details><img src=x onerror=alert(1)>",
  "<svg onload=alert(1)>",
  "[a](javascript:alert(1))",
  "[b](data:text/html,<script>alert(1)</script>)",
  "![c](https://tracker.example/x.png)",
  '<a href="javascript:alert(1)">d</a>',
  "`</code><script>alert(1)</script>`",
  '```html"><script>\n</code></pre><script>alert(1)</script>\n```',
  '| <script>x</script> | b |\n|---|---|\n| " onmouseover="alert(1) | c |',
  '[e](https://example.com/"onmouseover="alert(1))',
  "<style>@import url(https://evil.example)</style>",
  '<meta http-equiv=refresh content="0;url=https://evil.example">',
  "\u202Egnp.exe",
  "\ud800 lone",
  "]]><!--"
]

/** Tags of a page with their attributes, as a browser's tokenizer cuts them. */
const tagsOf = (html: string) =>
  [...html.matchAll(/<([a-z!][a-z0-9]*)((?:\s+[^\s=>"']+(?:="[^"]*")?)*)\s*\/?>/gi)].map((
    [, name = "", rest = ""]
  ) => ({
    name: name.toLowerCase(),
    attributes: [...rest.matchAll(/([^\s=>"']+)(?:="([^"]*)")?/g)].map(([, key = "", value = ""]) =>
      [key, value] as const
    )
  }))

const expectHarmless = (html: string) => {
  const tags = tagsOf(html)
  // Whatever is no tag of ours is text: no other `<` is left in the page.
  const style = html.slice(html.indexOf("<style>"), html.indexOf("</style>"))
  expect((html.replace(style, "<style>").match(/</g) ?? []).length).toBe(
    tags.length + (html.match(/<\/[a-z0-9]+>/g) ?? []).length
  )
  const allowed =
    /^(!doctype|html|head|meta|title|style|body|header|h[1-6]|p|main|section|time|div|details|summary|pre|code|span|a|em|strong|del|ul|ol|li|blockquote|table|thead|tbody|tr|th|td|hr|br|img|input)$/
  for (const { attributes, name } of tags) {
    expect(name).toMatch(allowed)
    for (const [key, value] of attributes) {
      expect(key).not.toMatch(/^on/i)
      if (key === "href") expect(value).toMatch(/^(https?:|mailto:)/i)
      if (key === "src") expect(value).toMatch(/^data:image\/(png|jpeg|gif|webp);base64,/)
      if (key === "http-equiv") expect(value).toBe("Content-Security-Policy")
    }
  }
}

describe("a session as a web page", () => {
  it("shows prompts, answers and folded calls with their results and diffs", async () => {
    const html = await toHtml(session([
      entry(1, "bezel.user", user("why?")),
      entry(2, "bezel.assistant", says("**Because** of `it`.")),
      ...call("1 failed")
    ]))
    expect(html).toContain("<strong>Because</strong> of <code>it</code>")
    expect(html).toMatch(/<details class="failed"><summary>bash npm test<\/summary>/)
    expect(html).toContain('<span class="added">+&lt;new&gt;')
    expect(html).toContain("1 failed")
    expect(html).toContain("prefers-color-scheme: dark")
    expectHarmless(html)
  })

  it("lets nothing of a hostile transcript run, load or lead elsewhere than to the web", async () => {
    const text = hostile.join("\n\n")
    const html = await toHtml(session([
      entry(1, "bezel.user", [{
        role: "user",
        content: [
          { type: "text", text },
          { type: "file", mediaType: "image/svg+xml", fileName: '"><script>', data: "PHN2Zz4=" },
          { type: "file", mediaType: "image/png", fileName: 'x" onerror="alert(1)', data: "aGVsbG8=" },
          { type: "file", mediaType: "image/png", data: '"><script>' }
        ]
      }]),
      entry(2, "bezel.assistant", says(text)),
      ...call(text)
    ], "<script>alert(1)</script>"))
    expectHarmless(html)
    expect(html).toMatch(
      /http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-[^']+'; img-src data:/
    )
    expect(html).toContain('src="data:image/png;base64,aGVsbG8="')
    expect(Buffer.from(html, "utf8").toString("utf8")).toBe(html)
  })

  it("is harmless for whatever a model can say", async () => {
    const pieces = fc.constantFrom(
      ...hostile,
      "**",
      "`",
      "```",
      "\n",
      "\n\n",
      "> ",
      "- [x] ",
      "# ",
      "<",
      "&lt;",
      '"',
      "](",
      "|",
      "text"
    )
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 12 }), async (parts) => {
        expectHarmless(await toHtml(session([entry(1, "bezel.assistant", says(parts.join("")))])))
      }),
      { numRuns: 150 }
    )
  })

  it("leaves out what was taken back, and shows what was brought back", async () => {
    const entries = [
      entry(1, "bezel.user", user("first")),
      entry(2, "bezel.assistant", says("one")),
      entry(3, "bezel.user", user("second")),
      entry(4, "bezel.rewind", null, { head: { at: "e2" } }),
      entry(5, "bezel.user", user("third"))
    ]
    const taken = await toHtml(session(entries))
    expect(taken).not.toContain("second")
    expect(taken).toContain("third")
    const back = await toHtml(session([...entries.slice(0, 4), entry(5, "bezel.rewind", null, { head: { at: "e3" } })]))
    expect(back).toContain("second")
    const all = await toHtml(
      session([...entries.slice(0, 3), entry(4, "bezel.rewind", null, { head: { after: null } })])
    )
    expect(all).not.toContain("first")
  })
})

describe("a session as markdown", () => {
  it("quotes prompts, keeps answers as they are and folds calls, in fences that their text cannot close", () => {
    const markdown = toMarkdown(session([
      entry(1, "bezel.user", user("why\n\n# no heading")),
      entry(2, "bezel.assistant", says("## Answer")),
      ...call("before\n````\nafter <b>")
    ], "A\ntitle"))
    expect(markdown).toMatch(/^# A title\n/)
    expect(markdown).toContain("> why\n> \n> # no heading")
    expect(markdown).toContain("\n## Answer\n")
    expect(markdown).toContain("<details><summary>✗ bash npm test</summary>")
    expect(markdown).toContain("`````\nbefore\n````\nafter <b>\n`````")
    expect(markdown).toContain("```diff\n")
  })
})
