/** What the model is told of a call that may not run: four outcomes, four texts, each with what to do now. */
import type { BeforeToolDecision } from "@bezel/core/harness"
import type { Decision } from "./decide.ts"

const sentence = (reasons: ReadonlyArray<string>): string => {
  const text = reasons.join("; ")
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

/** As a shell takes it word for word. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const allowing = (grants: ReadonlyArray<string>): string =>
  grants.length === 0
    ? "No rule can allow it; use a plainer command or path."
    : `A user can allow it with ${
      grants.map((grant) => `--allow ${quoted(grant)}`).join(" ")
    } or in the permissions of bezel.jsonc.`

export const deniedByRule = (decision: Decision): BeforeToolDecision => ({
  code: "denied_by_rule",
  block: `A permission rule denies this call, so it was not run. ${
    sentence(decision.reasons)
  } Do not reach for the same in another way.`
})

export const declined = (message: string | undefined): BeforeToolDecision => ({
  code: "declined",
  block: message === undefined || message.trim() === ""
    ? "The user was asked and said no, so this call was not run. Do not try it again in another way; go on without it or ask what to do."
    : `The user was asked and said no, so this call was not run. The user says: ${message.trim()}`
})

export const expired = (decision: Decision): BeforeToolDecision => ({
  code: "expired",
  block: `The user was asked whether this call may run and did not answer in time, so it was not run. ${
    sentence(decision.reasons)
  } Nobody said no; it can be asked again later.`
})

export const unattended = (decision: Decision): BeforeToolDecision => ({
  code: "unattended",
  block: `This call needs a user's approval and nobody is here to give it, so it was not run. ${
    sentence(decision.reasons)
  } ${allowing(decision.grants)} Go on without it.`
})
