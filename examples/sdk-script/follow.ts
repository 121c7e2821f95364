/**
 * Shows an answer while it is written, and is the person whom the agent asks: what is asked is answered by a function.
 *
 * `events` goes on across lost connections; whatever was missed is told as a `gap`, after which the transcript is the truth.
 */
import type { BezelClient } from "@bezel/sdk"

export interface Person {
  /** Sees text as it comes. */
  readonly reads: (text: string) => void
  /** May this call run? */
  readonly allows: (request: unknown) => boolean
}

export const follow = async (client: BezelClient, id: string, prompt: string, person: Person): Promise<void> => {
  for await (const event of client.session.events(id)) {
    if (event.type === "ready") await client.session.prompt(id, prompt)
    if (event.type === "delta" && event.kind === "text") person.reads(String(event.text))
    if (event.type === "interaction.opened") await answerAll(client, id, person)
    if (event.type === "turn.ended") break
  }
}

const answerAll = async (client: BezelClient, id: string, person: Person): Promise<void> => {
  for (const { id: interactionID, interaction, request } of await client.session.interactions(id)) {
    if (interaction !== "bezel.approval") continue
    const decision = person.allows(request) ? "once" : "deny"
    await client.session.answer(id, interactionID, { response: { decision } })
  }
}
