/** Offers a tool whose code is here to a session that runs in a server, for as long as it is asked about stones. */
import type { BezelClient } from "@bezel/sdk"

export interface Stock {
  readonly count: (stone: unknown, signal: AbortSignal) => Promise<number>
}

export const askAbout = async (client: BezelClient, id: string, question: string, stock: Stock): Promise<string> => {
  const offer = await client.session.tool(id, "stock", {
    description: "Says how many stones of a kind are left.",
    inputSchema: { type: "object", properties: { stone: { type: "string" } }, required: ["stone"] },
    execute: (input, { signal }) => stock.count(input, signal)
  })
  try {
    const { text = "" } = await client.session.ask(id, question)
    return text
  } finally {
    await offer.close()
  }
}
