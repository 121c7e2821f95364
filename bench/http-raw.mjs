/** Node's own HTTP server, which answers with bytes that it is given: the limit of what a server on Node can do. */
import { createServer } from "node:http"

let body = "{}"
const server = createServer((request, response) => {
  if (request.method === "PUT") {
    let text = ""
    request.setEncoding("utf8").on("data", (chunk) => {
      text += chunk
    }).on("end", () => {
      body = text
      response.end()
    })
    return
  }
  request.resume()
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
  response.end(body)
})
server.listen(0, "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`))
