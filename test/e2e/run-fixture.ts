import { expect, onTestFinished } from "vitest"
import { type ScriptedReply, startModelServer } from "../../packages/core/src/testing/model-server.ts"

export async function serve(...replies: ReadonlyArray<ScriptedReply>) {
  const server = await startModelServer(...replies)
  onTestFinished(() => server.close())
  return server
}

export interface WireMessage {
  readonly role: string
  readonly content?: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: ReadonlyArray<
    { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }
  >
}

export const messagesOf = (body: { readonly [key: string]: unknown } | undefined) =>
  (body?.messages ?? []) as ReadonlyArray<WireMessage>

export const result = { type: "result", sessionID: expect.stringMatching(/^ses_/) }

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Looks again at what other processes do until it is so; the test's own time limit ends it. */
export const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20))
}
