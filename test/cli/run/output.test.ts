import type { ConversationView, Envelope, ViewEvent, ViewTool } from "@bezel/core/harness"
import type { JsonValue, Operation } from "@bezel/core/json"
import { describe, expect, it } from "vitest"
import { awaitedIn, leftTexts } from "../../../packages/cli/src/run/background.ts"
import { Follower } from "../../../packages/cli/src/run/follow.ts"
import { JsonLines } from "../../../packages/cli/src/run/json-lines.ts"
import type { RunOutput } from "../../../packages/cli/src/run/output.ts"
import { Plain } from "../../../packages/cli/src/run/plain.ts"
import { callTitle, oneLine } from "../../../packages/cli/src/run/text.ts"

const empty: ConversationView = {
  conversation: { id: "main", sessionID: "s1", parent: null, owner: null },
  entries: [],
  config: { model: null, agent: null, thinking: "off", queue: "all" },
  inbox: [],
  turn: null,
  compaction: null,
  tasks: {},
  plugins: {},
  usage: { input: 7, output: 3, cacheRead: 0, cacheWrite: 0, cost: 0, context: 10 }
}

const started: Operation = ["set", ["turn"], {
  inputs: ["i1"],
  generation: { task: "t1", stage: "streaming", attempt: 1, model: null, retryAt: null, error: null },
  message: null,
  tools: []
}]
const part = (...parts: ReadonlyArray<JsonValue>): Operation => ["set", ["turn", "message"], { parts }]
const text = (value: string) => ({ type: "text", text: value })
const append = (
  index: number,
  value: string
): Operation => ["append", ["turn", "message", "parts", index, "text"], value]
const answered = (id: string, value: string): ReadonlyArray<Operation> => [
  ["splice", ["entries"], 0, 0, [
    {
      id,
      kind: "bezel.assistant",
      data: null,
      model: [{ role: "assistant", content: [text(value)] }],
      head: false,
      createdAt: 0
    }
  ]],
  ["set", ["turn"], null]
]

/** A commit that adds an answer says that it closed it. */
const closing = (operations: ReadonlyArray<Operation>): ReadonlyArray<ViewEvent> =>
  operations.flatMap((operation) => operation[0] === "splice" ? operation[4] : []).flatMap((entry) =>
    entry !== null && typeof entry === "object" && Reflect.get(entry, "kind") === "bezel.assistant"
      ? [{ type: "generation.completed", entry: String(Reflect.get(entry, "id")) }]
      : []
  )

/** A conversation's envelopes, each given as its operations and events. */
function follow(
  output: RunOutput,
  ...commits: ReadonlyArray<readonly [ReadonlyArray<Operation>, ...ReadonlyArray<ViewEvent>]>
) {
  const follower = new Follower(empty)
  const steps = commits.map(([operations, ...events], index) => {
    const step = follower.next(
      { revision: index + 1, operations, events: [...events, ...closing(operations)] } satisfies Envelope
    )
    output.step(step)
    return step
  })
  return steps.map((step) => step.text)
}

const silent: RunOutput = { session: () => {}, step: () => {}, notice: () => {}, warning: () => {}, result: () => {} }

describe("the text of an answer is given exactly once", () => {
  it("from the operations that append to the live message", () => {
    expect(
      follow(silent, [[started]], [[part(text("He"))]], [[append(0, "llo")]], [[append(0, " you")], { type: "x" }])
    ).toEqual(
      ["", "He", "llo", " you"]
    )
  })

  it("with the end that only the closing commit has", () => {
    expect(follow(silent, [[started, part(text("He"))]], [answered("e1", "Hello")])).toEqual(["He", "llo"])
  })

  it("whatever entries come behind it", () => {
    const result: Operation = ["splice", ["entries"], 1, 0, [{
      id: "e2",
      kind: "bezel.tool_result",
      data: null,
      model: null,
      head: false,
      createdAt: 0
    }]]
    expect(follow(silent, [[started]], [answered("e1", "Let me look")], [[result]], [[result]])).toEqual([
      "",
      "Let me look",
      "",
      ""
    ])
  })

  it("also when no frame came before the closing commit", () => {
    expect(follow(silent, [[started]], [answered("e1", "Hello")])).toEqual(["", "Hello"])
  })

  it("without reasoning and the arguments of calls", () => {
    expect(follow(
      silent,
      [[started, part({ type: "reasoning", text: "hm" }, text("A"))]],
      [[append(0, "m"), append(1, "B")]],
      [[["splice", ["turn", "message", "parts"], 2, 0, [{ type: "tool-call", id: "c", name: "read", text: "{" }]]]],
      [[append(2, "}")]]
    )).toEqual(["A", "B", "", ""])
  })

  it("anew for each attempt", () => {
    expect(follow(
      silent,
      [[started, part(text("Hel"))]],
      [[["set", ["turn", "message"], null]], { type: "generation.retrying" }],
      [[part(text("Hello"))]],
      [answered("e1", "Hello!")]
    )).toEqual(["Hel", "", "Hello", "!"])
  })
})

describe("--json", () => {
  it("writes the session first, then events and text in order, the result last, each on its line", () => {
    const lines: Array<string> = []
    const output = new JsonLines((chunk) => lines.push(chunk))
    output.session("s1")
    follow(output, [[started], { type: "turn.started", inputs: ["i1"] }], [[part(text("line\n\u2028two"))]], [
      answered("e1", "line\n\u2028two"),
      { type: "turn.ended" }
    ])
    output.result({ status: "done", reason: null, message: null, text: "line\n\u2028two", sessionID: "s1" }, empty)
    expect(lines.every((line) => line.endsWith("\n") && !line.slice(0, -1).includes("\n"))).toBe(true)
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { type: "session", sessionID: "s1" },
      { type: "turn.started", inputs: ["i1"] },
      { type: "text.delta", text: "line\n\u2028two" },
      { type: "turn.ended" },
      { type: "generation.completed", entry: "e1" },
      { type: "result", status: "done", text: "line\n\u2028two", usage: empty.usage, sessionID: "s1" }
    ])
  })

  it("says why there is no answer", () => {
    const lines: Array<string> = []
    new JsonLines((chunk) => lines.push(chunk)).result(
      { status: "unanswered", reason: "timeout", message: "not done after 5 s", text: "", sessionID: "s1" },
      null
    )
    expect(JSON.parse(lines.join(""))).toEqual({
      type: "result",
      status: "unanswered",
      reason: "timeout",
      message: "not done after 5 s",
      text: "",
      usage: null,
      sessionID: "s1"
    })
  })
})

function plain(
  options: { readonly stdoutIsTerminal?: boolean; readonly stderrIsTerminal?: boolean; readonly color?: boolean } = {}
) {
  const written = { stdout: "", stderr: "" }
  const output = new Plain({
    stdout: (chunk) => written.stdout += chunk,
    stderr: (chunk) => written.stderr += chunk,
    stdoutIsTerminal: false,
    stderrIsTerminal: false,
    color: false,
    columns: 80,
    ...options
  })
  return { output, written }
}

const done = (
  answer: string
) => ({ status: "done", reason: null, message: null, text: answer, sessionID: "s1" } as const)
const tool = (change: Partial<ViewTool>): JsonValue => ({
  task: "t2",
  callId: "c",
  name: "bash",
  args: { command: "npm test" },
  status: "completed",
  waitingOn: null,
  output: "",
  progress: null,
  details: null,
  continuedBy: null,
  entry: "e9",
  ...change
})

describe("without a terminal", () => {
  it("stdout has the final answer alone, once, with a line end", () => {
    const { output, written } = plain()
    follow(output, [[started, part(text("wrong"))]], [[["set", ["turn", "message"], null]], {
      type: "generation.retrying"
    }], [
      [part(text("right"))]
    ], [answered("e1", "right")])
    output.result(done("right"))
    expect(written.stdout).toBe("right\n")
  })

  it("stdout keeps an answer's own control characters and line ends", () => {
    const { output, written } = plain()
    output.result(done("\u001b[31mred\r\n"))
    expect(written.stdout).toBe("\u001b[31mred\r\n")
  })

  it("stderr has a line for each call that ended, without colours or a spinner", () => {
    const { output, written } = plain({ color: true })
    output.session()
    follow(output, [[started]], [[["set", ["turn", "tools"], [
      tool({}),
      tool({ task: "t3", entry: null, status: "running" })
    ]]]], [[
      ["set", ["turn", "tools"], [
        tool({}),
        tool({ task: "t3", status: "failed", args: { path: "a\nb\u001b[2J" }, name: "read" })
      ]]
    ]])
    output.tick()
    expect(written).toEqual({ stdout: "", stderr: "✓ bash npm test\n✗ read a b[2J (failed)\n" })
  })

  it("the line of a call that did not run says why", () => {
    const { output, written } = plain()
    const finished = ["denied_by_rule", "unattended", "blocked", "interrupted", "internal"].map((code, index) => ({
      call: tool({ task: `t${index}`, callId: `c${index}`, status: "failed" }),
      event: { type: "tool.finished", callId: `c${index}`, isError: true, code }
    }))
    follow(output, [[started]], [
      [["set", ["turn", "tools"], finished.map(({ call }) => call)]],
      ...finished.map(({ event }) => event)
    ])
    expect(written.stderr).toBe(
      ["denied", "nobody could be asked", "blocked", "interrupted", "failed"].map((why) => `✗ bash npm test (${why})\n`)
        .join("")
    )
  })

  it("an unanswered run leaves stdout empty and says why in one line", () => {
    const { output, written } = plain()
    follow(output, [[started, part(text("half an ans"))]])
    output.result({
      status: "unanswered",
      reason: "failed",
      message: "the model\nis gone",
      text: "half an ans",
      sessionID: "s1"
    })
    expect(written).toEqual({ stdout: "", stderr: "bezel: the model is gone\n" })
  })
})

describe("on a terminal", () => {
  it("the answer streams, without what a terminal would obey, and ends with a line end", () => {
    const { output, written } = plain({ stdoutIsTerminal: true })
    follow(output, [[started, part(text("Hel\u001b[2J"))]], [[append(0, "lo\r")]], [
      answered("e1", "Hel\u001b[2Jlo\r!")
    ])
    output.result(done("Hel\u001b[2Jlo\r!"))
    expect(written.stdout).toBe("Hel[2Jlo!\n")
  })

  it("an answer that did not stream is printed at the end", () => {
    const { output, written } = plain({ stdoutIsTerminal: true })
    output.result(done("Hello"))
    expect(written.stdout).toBe("Hello\n")
  })

  it("a notice in mid-answer neither tears nor repeats it", () => {
    const { output, written } = plain({ stdoutIsTerminal: true, stderrIsTerminal: true })
    follow(output, [[started, part(text("Hel"))]])
    output.notice("look out")
    follow(output)
    output.result(done("Hello"))
    expect(written).toEqual({ stdout: "Hel\nlo\n", stderr: "bezel: look out\n" })
  })

  it("a spinner turns while something runs and is gone before anything else is written", () => {
    const { output, written } = plain({ stderrIsTerminal: true })
    output.session()
    output.tick()
    output.result(done("Hi"))
    expect(written.stderr).toMatch(/^\r\u001b\[2K. starting\r\u001b\[2K$/)
    output.tick()
    expect(written.stderr).toMatch(/\r\u001b\[2K$/)
  })
})

describe("several answers of one run", () => {
  const two = { ...done("One.\n\nTwo."), answers: ["One.", "Two."] }
  const both = (output: RunOutput) =>
    follow(
      output,
      [[started, part(text("One."))]],
      [answered("e1", "One.")],
      [[started], { type: "generation.started" }],
      [[part(text("Two."))]],
      [answered("e2", "Two.")]
    )

  it("stand behind each other in a pipe, with an empty line between them", () => {
    const { output, written } = plain()
    both(output)
    output.result(two)
    expect(written.stdout).toBe("One.\n\nTwo.\n")
  })

  it("are each streamed once on a terminal", () => {
    const { output, written } = plain({ stdoutIsTerminal: true })
    both(output)
    output.result(two)
    expect(written.stdout).toBe("One.\nTwo.\n")
  })

  it("are given as far as they are whole where the last one is missing", () => {
    const { output, written } = plain()
    both(output)
    output.result({
      status: "unanswered",
      reason: "failed",
      message: "gone",
      text: "One.",
      answers: ["One."],
      sessionID: "s1"
    })
    expect(written).toEqual({ stdout: "One.\n", stderr: "bezel: gone\n" })
  })

  it("have a spinner between them that says for whom the run waits", () => {
    const { output, written } = plain({ stderrIsTerminal: true })
    const status = { sessionID: "s2", description: "look\u001b[2J around", agent: "build" }
    follow(output, [[
      ["set", ["tasks"], { t1: { kind: "subagent.background", background: true, status } }],
      ["set", ["turn"], null]
    ]])
    output.tick()
    expect(written.stderr).toMatch(/waiting for a sub-agent in the background: look\[2J around$/)
  })
})

describe("what a run leaves in the background", () => {
  it("is named with what becomes of it: a job by its command, anything else by its kind; sub-agents are waited for", () => {
    const job = (command: string) => ({
      kind: "bezel.job",
      background: true,
      status: { command: ["/bin/sh", "-c", command], stage: "running", output: "" }
    })
    const tasks = {
      t1: job("npm run dev\u001b[2J"),
      t2: { kind: "acme.reminder", background: true, status: null },
      t3: { kind: "acme.index", background: false, status: null },
      t4: { kind: "subagent.background", background: true, status: { sessionID: "s2", description: "a", agent: "b" } }
    }
    expect(leftTexts({ tasks }, "s1")).toEqual([
      "the job t1 (npm run dev[2J) goes on in the background; its end is told to the next bezel run --session s1, which can also stop it",
      "something in the background (acme.reminder) rests until the next bezel run --session s1"
    ])
    expect(awaitedIn({ tasks }).map(({ sessionID }) => sessionID)).toEqual(["s2"])
    expect(awaitedIn({ tasks: { t5: { kind: "subagent.background", background: true, status: "odd" } } })).toEqual([])
  })
})

describe("a call's title", () => {
  it("is its most telling argument on one line", () => {
    expect(callTitle("edit", { newText: "x", path: "src/a.ts" }, 40)).toBe("edit src/a.ts")
    expect(callTitle("odd", null, 40)).toBe("odd")
    expect(callTitle("bash", { command: "a\n  b" }, 40)).toBe("bash a b")
  })

  it("has nothing that turns the writing around", () => {
    expect(callTitle("read", { path: "a\u202etxt.exe\u2066b" }, 40)).toBe("read atxt.exeb")
    expect(oneLine("שלום\u200f!", 40)).toBe("שלום\u200f!")
  })

  it("never cuts a character in two", () => {
    expect(oneLine("🎉🎉🎉🎉", 3)).toBe("🎉🎉…")
  })
})
