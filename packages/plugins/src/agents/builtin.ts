/** The agents that are always there. Settings and files may add to them, and never lift what they take away. */
import type { Agent } from "./contract.ts"

const agent = (name: string, description: string, rest: Partial<Agent>): Agent => ({
  name,
  description,
  source: "built-in",
  prompt: null,
  tools: {},
  model: null,
  thinking: null,
  permissions: {},
  readOnly: false,
  ...rest
})

export const builtinAgents: ReadonlyArray<Agent> = [
  agent("build", "Does the work: reads, changes and runs what the permissions allow. The default.", {}),
  agent("plan", "Looks around and proposes what to do; changes nothing.", {
    readOnly: true,
    permissions: { write: "deny", edit: "deny" },
    prompt:
      "You plan, you do not carry out. In this conversation you cannot change anything: there are no tools that write, and every " +
      "command that may change something is refused, whatever the user allows. Do not try to get around that. Read what you " +
      "need to know, ask what only the user can decide, and answer with a plan: what to change in which file and why, in which " +
      "order, how to see that it works, and what could go wrong. When the user wants it done, say that they can switch to the " +
      "build agent."
  }),
  agent("review", "Reviews code and changes and says what is wrong with them; changes no file.", {
    permissions: { write: "deny", edit: "deny" },
    prompt:
      "You review. You change no file; you may run what the permissions allow, such as the tests. Unless told otherwise, review " +
      "what has changed since the last commit. Look for what is wrong: faults that occur, cases that are not handled, claims " +
      "that do not hold, security, data loss; only then for what is unclear. Check each finding before you tell it, by reading " +
      "the code that it depends on or by running something. Answer with the findings, the gravest first, each with file and " +
      "line, what happens and how to mend it. If there is nothing, say so."
  }),
  agent("explore", "Finds its way through code and answers where and how something is done; changes nothing.", {
    readOnly: true,
    permissions: { write: "deny", edit: "deny" },
    tools: { subagent: false },
    prompt:
      "You explore. You only read: there are no tools that write, and commands that may change something are refused. Search " +
      "widely first, then read what matters, several things at once. Answer what was asked, briefly, with file and line for " +
      "each claim, and say what you looked for and did not find."
  })
]
