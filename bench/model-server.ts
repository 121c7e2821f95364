/**
 * The model of the benchmarks: an OpenAI-compatible server on loopback that does what the prompt says, as a process of its
 * own so that its work is not counted. It keeps no state: what to answer follows from the messages alone.
 *
 *   answer           one short answer
 *   tools N          N requests with a call of `read` on `note.txt`, then an answer
 *   deltas N         one answer of N deltas
 *   prose N M P      the same in paragraphs of M words (0: one), P milliseconds after every ten, and an end to look for
 *   drip N           the same, 50 a second, as models stream
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"

interface Message {
  readonly role: string
  readonly content?: unknown
}

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((part) => typeof part?.text === "string" ? part.text : "").join("")
    : ""

function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return `data: ${
    JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "bench", choices })
  }\n\n`
}

const usage = `data: ${
  JSON.stringify({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "bench",
    choices: [],
    usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
  })
}\n\n`

async function answer(messages: ReadonlyArray<Message>, response: ServerResponse): Promise<void> {
  const prompt = messages.findLast((message) =>
    message.role === "user" && /^(answer|tools|deltas|prose|drip)/.test(textOf(message.content))
  )
  const [what = "answer", number = "0", words = "0", pause = "0"] = textOf(prompt?.content).split(/\s+/)
  const done = messages.filter((message) => message.role === "tool").length
  response.writeHead(200, { "content-type": "text/event-stream" })
  const write = async (text: string) => {
    if (!response.write(text)) await new Promise((resolve) => response.once("drain", resolve))
  }
  let finish = "stop"
  await write(chunk({ role: "assistant", content: "" }))
  if (what === "tools" && done < Number(number)) {
    finish = "tool_calls"
    const call = { name: "read", arguments: "" }
    await write(chunk({ tool_calls: [{ index: 0, id: `call_${done}`, type: "function", function: call }] }))
    for (const piece of ['{"path":', '"note.txt"}']) {
      await write(chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }))
    }
  } else if (what === "deltas") {
    for (let index = 0; index < Number(number); index++) await write(chunk({ content: `word${index % 10} ` }))
  } else if (what === "prose") {
    for (let index = 0; index < Number(number); index++) {
      const isLast = Number(words) > 0 && index % Number(words) === Number(words) - 1
      await write(chunk({ content: isLast ? `word${index % 10}\n\n` : `word${index % 10} ` }))
      if (index % 10 === 9 && pause !== "0") await new Promise((resolve) => setTimeout(resolve, Number(pause)))
    }
    await write(chunk({ content: `The end of ${words}, ${pause}.` }))
  } else if (what === "drip") {
    for (let index = 0; index < Number(number); index++) {
      await write(chunk({ content: `word ${index} ` }))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  } else {
    for (const piece of ["It ", "is ", "done."]) await write(chunk({ content: piece }))
  }
  await write(chunk({}, finish))
  response.end(`${usage}data: [DONE]\n\n`)
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Array<Buffer> = []
  for await (const piece of request) chunks.push(piece)
  return Buffer.concat(chunks).toString()
}

const server = createServer((request, response) => {
  bodyOf(request).then((body) => answer(JSON.parse(body).messages, response)).catch(() => response.destroy())
})
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.stdout.write(`${typeof address === "object" && address !== null ? address.port : 0}\n`)
})
