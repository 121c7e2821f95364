/** Whether a server may be reached as it is told to be: what does not hold is refused before anything starts. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isLoopback } from "./address.ts"

export interface Reach {
  readonly host: string
  readonly port: number
  readonly allowedHosts: ReadonlyArray<string>
  readonly allowedOrigins: ReadonlyArray<string>
  /** The token that somebody has chosen; `null`: nobody has. */
  readonly token: string | null
}

/** The message says what is wrong and what would be right. */
export class WrongReach extends Schema.TaggedError<WrongReach>()("WrongReach", { message: Schema.String }) {}

/** A token that others may try to guess has this many characters. */
const shortestToken = 16

const isOrigin = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && url.origin === text
}

/** What is wrong; `null` where nothing is. */
const fault = ({ allowedHosts, allowedOrigins, host, port, token }: Reach): string | null => {
  if (port > 65_535) return `--port takes a port, which is 65535 at most, not ${port}.`
  const name = allowedHosts.find((one) => !/^([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])$/i.test(one))
  if (name !== undefined) return `--allow-host takes a name without scheme and port, as bezel.example, not ${name}.`
  const origin = allowedOrigins.find((one) => !isOrigin(one))
  if (origin !== undefined) {
    return `--allow-origin takes an origin as browsers write it, as https://bezel.example, not ${origin}.`
  }
  return isLoopback(host) || (token !== null && token.length >= shortestToken)
    ? null
    : `Listening on ${host} lets other machines in: whoever has the token runs commands here as this user, and what is sent ` +
      `is not encrypted. If that is wanted, put a token of at least ${shortestToken} characters into BEZEL_TOKEN.`
}

/** Listening beyond this machine takes a token that somebody has chosen for it. */
export const checkReach = (reach: Reach): Effect.Effect<void, WrongReach> => {
  const message = fault(reach)
  return message === null ? Effect.void : Effect.fail(new WrongReach({ message }))
}
