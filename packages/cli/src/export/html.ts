/**
 * A session as one HTML page that stands alone: no script, and nothing loaded from anywhere.
 *
 * Everything in it is from others (a model, tools, files), so every text is escaped, HTML in answers is shown as text, links
 * lead to the web only, and a content security policy in the page lets nothing run or load even if that failed. Bidirectional
 * controls in a text cannot reach beyond their own block.
 */
import type { SessionExport } from "@bezel/core/session"
import type { Tokens } from "marked"
import { createHash } from "node:crypto"
import { type Shown, type ShownFile, shownOf } from "./transcript.ts"

const style = `
:root { color-scheme: light dark; --bg: #ffffff; --fg: #1c1e21; --muted: #667085; --line: #d9dde3; --card: #f6f7f9; --user: #eef4ff;
  --good: #1a7f37; --bad: #b42318; --added: #dafbe1; --removed: #ffebe9; --link: #0b5cad }
@media (prefers-color-scheme: dark) { :root { --bg: #15171a; --fg: #e4e6ea; --muted: #98a2b3; --line: #32373f; --card: #1d2025;
  --user: #1a2636; --good: #4ac26b; --bad: #ff7b72; --added: #12331c; --removed: #42191b; --link: #6cb2ff } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1rem 4rem; background: var(--bg); color: var(--fg);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; unicode-bidi: isolate }
.about, time { color: var(--muted); font-size: .85rem; unicode-bidi: isolate }
section, details, pre, p, li, td { unicode-bidi: isolate }
section { margin: 1rem 0 }
.prompt { background: var(--user); border-radius: .5rem; padding: .7rem 1rem; white-space: pre-wrap }
details { border: 1px solid var(--line); border-radius: .5rem; background: var(--card); margin: .5rem 0; padding: .4rem .8rem }
summary { cursor: pointer; font-family: ui-monospace, monospace; font-size: .9rem }
.ok > summary::before { content: "✓ "; color: var(--good) }
.failed > summary::before { content: "✗ "; color: var(--bad) }
pre { overflow-x: auto; background: var(--bg); border: 1px solid var(--line); border-radius: .35rem; padding: .6rem .8rem; font-size: .85rem;
  white-space: pre-wrap; tab-size: 4 }
code { font-family: ui-monospace, monospace; font-size: .9em }
.muted { color: var(--muted) }
.added { background: var(--added) } .removed { background: var(--removed) } .hunk { color: var(--muted) }
.added, .removed, .hunk { display: block }
a { color: var(--link) }
blockquote { border-left: 3px solid var(--line); margin-left: 0; padding-left: 1rem; color: var(--muted) }
table { border-collapse: collapse } th, td { border: 1px solid var(--line); padding: .25rem .6rem }
img { max-width: 100% }
`

const signs: { readonly [sign: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

/** Text as a page may hold it anywhere: in an element and in a quoted attribute. */
export const escapeHtml = (text: string): string =>
  text.toWellFormed().replace(/[&<>"']/g, (sign) => signs[sign] ?? sign)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "\ufffd")

const webLink = /^(https?:\/\/|mailto:)[^\s\u0000-\u001f]*$/i

/** Markdown of a model as HTML; HTML in it is text, and so is a link that leads elsewhere than to the web. */
const markdownWriter = async (): Promise<(source: string) => string> => {
  const { Marked } = await import("marked")
  const marked = new Marked({
    async: false,
    gfm: true,
    renderer: {
      html: ({ text }: Tokens.HTML | Tokens.Tag) => escapeHtml(text),
      code: ({ text }: Tokens.Code) => `<pre><code>${escapeHtml(text)}</code></pre>\n`,
      codespan: ({ text }: Tokens.Codespan) => `<code>${escapeHtml(text)}</code>`,
      image: ({ href, text }: Tokens.Image) => `<span class="muted">[${escapeHtml(text || href)}]</span>`,
      link(link: Tokens.Link) {
        const inner = this.parser.parseInline(link.tokens)
        return webLink.test(link.href)
          ? `<a href="${escapeHtml(link.href)}" rel="noopener noreferrer nofollow">${inner}</a>`
          : `${inner} <span class="muted">(${escapeHtml(link.href)})</span>`
      }
    }
  })
  return (source) => {
    // A parser that stumbles over a text of others is no reason to lose the page.
    try {
      return marked.parse(source.toWellFormed(), { async: false })
    } catch {
      return `<pre>${escapeHtml(source)}</pre>`
    }
  }
}

const imageTypes = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

const fileHtml = ({ data, mediaType, name }: ShownFile): string =>
  imageTypes.has(mediaType) && /^[A-Za-z0-9+/]+={0,2}$/.test(data)
    ? `<p><img alt="${escapeHtml(name)}" src="data:${mediaType};base64,${data}"></p>`
    : `<p class="muted">[${escapeHtml(name)}]</p>`

const diffHtml = (diff: string): string =>
  diff.replace(/\n$/, "").split("\n").map((line) => {
    const kind = /^(\+\+\+|---|@@)/.test(line)
      ? "hunk"
      : line.startsWith("+")
      ? "added"
      : line.startsWith("-")
      ? "removed"
      : ""
    return kind === "" ? `${escapeHtml(line)}\n` : `<span class="${kind}">${escapeHtml(line)}\n</span>`
  }).join("")

const pre = (text: string): string => `<pre>${escapeHtml(text)}</pre>`

const folded = (kind: string, title: string, ...parts: ReadonlyArray<string>): string =>
  `<details class="${kind}"><summary>${escapeHtml(title)}</summary>${parts.join("")}</details>`

const blockHtml = (shown: Shown, markdown: (source: string) => string): string => {
  switch (shown.type) {
    case "prompt":
      return `<section><time>${new Date(shown.at).toISOString()}</time><div class="prompt">${
        escapeHtml(shown.text)
      }</div>${shown.files.map(fileHtml).join("")}</section>`
    case "answer":
      return `<section>${markdown(shown.text)}</section>`
    case "reasoning":
      return folded("thinking", "thinking", pre(shown.text))
    case "files":
      return shown.files.map(fileHtml).join("")
    case "note":
      return folded("note", shown.title, pre(shown.text))
    case "call":
      return folded(
        shown.isError ? "failed" : "ok",
        shown.title,
        pre(shown.args),
        shown.diff === null ? "" : `<pre>${diffHtml(shown.diff)}</pre>`,
        shown.result === "" ? "" : pre(shown.result)
      )
  }
}

export const toHtml = async (session: SessionExport): Promise<string> => {
  const { record } = session
  const markdown = await markdownWriter()
  const title = escapeHtml(record.title.trim() === "" ? record.id : record.title)
  const hash = createHash("sha256").update(style).digest("base64")
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<header><h1>${title}</h1><p class="about">session ${escapeHtml(record.id)} · ${
    escapeHtml(record.location.directory)
  } · ${new Date(record.createdAt).toISOString()} · Bezel ${escapeHtml(record.version)}</p></header>
<main>
${shownOf(session).map((shown) => blockHtml(shown, markdown)).join("\n")}
</main>
</body>
</html>
`
}
