/** Asks the agent on the server of this user: `bezel serve` in one terminal, `node ask.ts "read note.txt"` in another. */
import { connect } from "@bezel/sdk/node"

const client = connect()
const session = await client.session.create({ title: "a question from a script" })
const { status, text } = await client.session.ask(session.id, process.argv[2] ?? "What can you do?")
console.log(status === "done" ? text : `no answer: ${status}`)
