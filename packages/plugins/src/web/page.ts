/**
 * What a model reads of an answer: HTML as markdown (through turndown, loaded at first use), other text as it is.
 */
import * as Effect from "effect/Effect"

/** More of a page's source than this, without its programs, is not converted; it would take seconds. */
const maxSource = 384 * 1024

const isHtml = /^(text\/html|application\/xhtml\+xml)$/

const isText =
  /^(text\/.*|application\/([\w.+-]*\+)?(json|xml|javascript|ecmascript|yaml|toml|x-sh|sql|x-ndjson|graphql)|image\/svg\+xml)$/

/** `null`: it is no text. */
export const kindOfText = (mediaType: string): "html" | "text" | null =>
  isHtml.test(mediaType) ? "html" : isText.test(mediaType) ? "text" : null

/** Text by the charset of the header, else of the page itself, else UTF-8. */
export const decodeText = (body: Buffer, contentType: string): string => {
  const named = /charset\s*=\s*["']?([\w:.-]+)/i.exec(contentType)?.[1] ??
    /<meta[^>]+charset\s*=\s*["']?([\w:.-]+)/i.exec(body.subarray(0, 2_048).toString("latin1"))?.[1] ?? "utf-8"
  try {
    return new TextDecoder(named).decode(body)
  } catch {
    return new TextDecoder().decode(body)
  }
}

/** Deeper than any page that is one; a converter takes the square of it, and more stack than there is. */
const maxDepth = 200

const words = (list: string): ReadonlySet<string> => new Set(list.split(" "))

const voids = words("area base br col embed hr img input link meta param source track wbr")
/** May stay open until their parent ends. */
const loose = words("li p dt dd tr td th option tbody thead html head body")
/** What of a page is for programs, with all that is in it. */
const hidden = words("script style svg noscript template iframe object head title")

interface SourceTag {
  readonly name: string
  readonly closes: boolean
  readonly start: number
  readonly end: number
}

/** Tags as far as this module needs them, in one pass whatever the text is: pages are not written by friends. */
function* tagsOf(html: string): Generator<SourceTag> {
  const name = /(\/?)([a-z][a-z0-9]*)/iy
  for (let start = html.indexOf("<"); start !== -1;) {
    name.lastIndex = start + 1
    const match = name.exec(html)
    if (match === null) {
      start = html.indexOf("<", start + 1)
      continue
    }
    const close = html.indexOf(">", start)
    if (close === -1) return
    yield {
      name: (match[2] ?? "").toLowerCase(),
      closes: match[1] === "/" || html[close - 1] === "/",
      start,
      end: close + 1
    }
    start = html.indexOf("<", close)
  }
}

/** The page without what is for programs, its title, and whether tags are nested deeper than is reasonable. */
const prepared = (html: string): { readonly source: string; readonly title: string; readonly isTooDeep: boolean } => {
  const parts: Array<string> = []
  let kept = 0
  let title = ""
  let titleAt = -1
  let hiddenIn: string | null = null
  let depth = 0
  let deepest = 0
  for (const tag of tagsOf(html)) {
    if (tag.name === "title") {
      if (!tag.closes) titleAt = titleAt === -1 ? tag.end : titleAt
      else if (titleAt !== -1 && title === "") title = html.slice(titleAt, tag.start)
    }
    if (hiddenIn !== null) {
      if (!tag.closes || tag.name !== hiddenIn) continue
      hiddenIn = null
      kept = tag.end
    } else if (hidden.has(tag.name) && !tag.closes) {
      parts.push(html.slice(kept, tag.start))
      hiddenIn = tag.name
    } else if (!voids.has(tag.name) && !loose.has(tag.name)) {
      depth = tag.closes ? Math.max(0, depth - 1) : depth + 1
      deepest = Math.max(deepest, depth)
    }
  }
  if (hiddenIn === null) parts.push(html.slice(kept))
  return { source: parts.join(""), title: title.replace(/\s+/g, " ").trim(), isTooDeep: deepest > maxDepth }
}

const stripped = (html: string): string => {
  const parts: Array<string> = []
  let kept = 0
  for (const { end, start } of tagsOf(html)) {
    parts.push(html.slice(kept, start))
    kept = end
  }
  parts.push(html.slice(kept))
  return parts.join(" ").replace(/[ \t]+/g, " ").trim()
}

const absolute = (link: string | null, base: URL): string | null => {
  if (link === null || link.trim() === "" || /^(javascript|data|blob):/i.test(link.trim())) return null
  return URL.canParse(link, base) ? new URL(link, base).href : null
}

/** A page as markdown. One that is nested too deep to be converted comes as its bare text. */
export const pageMarkdown = (html: string, url: URL): Effect.Effect<string> =>
  Effect.promise(async () => {
    const { default: Turndown } = await import("turndown")
    const service = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" })
    service.remove(["button", "input", "select", "textarea"])
    service.addRule("links", {
      filter: "a",
      replacement: (content, node) => {
        const href = "getAttribute" in node ? absolute(node.getAttribute("href"), url) : null
        const shown = content.replace(/\s+/g, " ").trim()
        return shown === "" ? "" : href === null ? shown : `[${shown}](${href})`
      }
    })
    service.addRule("pictures", {
      filter: ["img", "video", "audio"],
      replacement: (_, node) => {
        const alt = "getAttribute" in node ? node.getAttribute("alt")?.trim() ?? "" : ""
        return alt === "" ? "" : `[image: ${alt}]`
      }
    })
    const { isTooDeep, source: whole, title } = prepared(html)
    const source = whole.slice(0, maxSource)
    const rest = whole.length > maxSource ? "\n\n[The rest of the page is left out.]" : ""
    const withTitle = (text: string) =>
      (title === "" || text.startsWith(`# ${title}`) ? text : `# ${title}\n\n${text}`) + rest
    if (isTooDeep) return withTitle(stripped(source))
    try {
      return withTitle(service.turndown(source).replace(/\n{3,}/g, "\n\n").trim())
    } catch {
      return withTitle(stripped(source))
    }
  })
