/** The API's description as one page: it can be read without its script, and nothing is loaded from elsewhere. */
import type { openApi } from "@bezel/sdk/api"

type Document = ReturnType<typeof openApi>

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const style = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 14px/1.4 ui-monospace, monospace }
details { border-top: 1px solid #8884; padding: .4rem 0 }
summary { cursor: pointer }
summary b { display: inline-block; width: 4.5rem }
pre { overflow: auto; background: #8881; padding: .6rem; border-radius: 4px }
td, th { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0 }
h2 { margin-top: 2rem }
input, textarea { box-sizing: border-box; width: 100%; font: 14px/1.4 ui-monospace, monospace }
`

/** A schema in few words: its type, or the name of what it refers to. */
const brief = (schema: unknown): string => {
  if (typeof schema !== "object" || schema === null) return "any"
  const { $ref, anyOf, enum: values, items, type } = schema as {
    readonly $ref?: string
    readonly anyOf?: ReadonlyArray<unknown>
    readonly enum?: ReadonlyArray<unknown>
    readonly items?: unknown
    readonly type?: string
  }
  if ($ref !== undefined) return $ref.split("/").at(-1) ?? "any"
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ")
  if (anyOf !== undefined) return anyOf.map(brief).join(" | ")
  if (type === "array") return `${brief(items)}[]`
  return type ?? "any"
}

const schemaBlock = (title: string, schema: unknown): string =>
  `<p>${title}</p><pre>${escape(JSON.stringify(schema, null, 2))}</pre>`

const operationBlock = (method: string, path: string, operation: Document["paths"][string]["get"] & object): string => {
  const { description = "", parameters, requestBody, responses, summary = "" } = operation
  const rows = parameters.map(({ in: place, name, required, schema }) =>
    `<tr><td><code>${escape(name)}</code></td><td>${place}${required ? ", required" : ""}</td><td><code>${
      escape(brief(schema))
    }</code></td></tr>`
  )
  const [status = "200", answer] = Object.entries(responses).find(([code]) => code.startsWith("2")) ?? []
  const bodies = Object.entries(requestBody?.content ?? {}).map(([, { schema }]) => schemaBlock("Body", schema))
  const answers = Object.entries(answer?.content ?? {}).map(([type, { schema }]) =>
    schemaBlock(`Answer ${status}, ${escape(type)}`, schema)
  )
  return `<details id="${escape(operation.operationId)}" data-method="${method.toUpperCase()}" data-path="${
    escape(path)
  }"><summary><b>${method.toUpperCase()}</b><code>${escape(path)}</code> ${escape(summary)}</summary><p>${
    escape(description)
  }</p>${rows.length === 0 ? "" : `<table>${rows.join("")}</table>`}${bodies.join("")}${
    answers.join("") || `<p>Answer ${status}, without a body.</p>`
  }</details>`
}

export const docsPage = (document: Document): string => {
  const groups = new Map<string, Array<string>>()
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (typeof operation !== "object" || !("responses" in operation)) continue
      const [tag] = operation.tags
      groups.set(tag, [...groups.get(tag) ?? [], operationBlock(method, path, operation)])
    }
  }
  const { description = "", title } = document.info
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escape(title)} HTTP API</title>
<meta name="viewport" content="width=device-width"><script type="module" src="/docs.js"></script><style>${style}</style></head><body>
<h1>${escape(title)} HTTP API</h1><p>${escape(description)}</p>
<p id="signed-in">To try routes from this page, open the address that <code>bezel serve --browser</code> prints.</p>
<p>For programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1). Every error is
<code>{"error":{"code","message","data"?}}</code>; lists are <code>{"items","next"?}</code>.</p>
${[...groups].map(([tag, blocks]) => `<h2>${escape(tag)}</h2>${blocks.join("\n")}`).join("\n")}
<h2>Schemas</h2>${
    Object.entries(document.components.schemas).map(([name, schema]) =>
      `<details id="schema-${escape(name)}"><summary><code>${escape(name)}</code></summary>${
        schemaBlock("", schema)
      }</details>`
    ).join("\n")
  }</body></html>`
}
