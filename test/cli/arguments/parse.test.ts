import { describe, expect, it } from "vitest"
import { command, type Environment, notBuilt } from "../../../packages/cli/src/arguments/command.ts"
import { choice, flag, optionName, positive, text, texts, whole } from "../../../packages/cli/src/arguments/option.ts"
import { commonOptions, parse } from "../../../packages/cli/src/arguments/parse.ts"
import { commands } from "../../../packages/cli/src/commands.ts"

interface Call {
  readonly command: string
  readonly options: object
  readonly words: ReadonlyArray<string>
  readonly environment: Environment
}

/** Parses against a small table and gives what the command was called with, or the message. */
async function call(...argv: ReadonlyArray<string>): Promise<Call | string> {
  const calls: Array<Call> = []
  const recorder = (name: string) => () =>
    Promise.resolve((options: object, words: ReadonlyArray<string>, environment: Environment) => {
      calls.push({ command: name, options, words, environment })
      return Promise.resolve(0)
    })
  const model = text("P/M", "model", { short: "m" })
  const parsed = parse(argv, [
    command({ name: "", summary: "", arguments: ["[PATH]"], options: { model }, examples: [], load: recorder("") }),
    command({
      name: "run",
      summary: "",
      arguments: ["[PROMPT…]"],
      options: {
        model,
        yes: flag("yes"),
        allow: texts("RULE", "rules"),
        maxSteps: whole("N", 1, "steps"),
        maxCost: positive("USD", "cost"),
        isolation: choice(["none", "session"], "none", "isolation")
      },
      examples: [],
      load: recorder("run")
    }),
    command({
      name: "session show",
      summary: "",
      arguments: ["ID"],
      options: {},
      examples: [],
      load: recorder("session show")
    }),
    command({ name: "session list", summary: "", options: {}, examples: [], load: recorder("session list") }),
    notBuilt("serve", "serves")
  ])
  if (parsed.type === "usage") return parsed.message
  if (parsed.type !== "execute") return parsed.type
  await parsed.execute("1.0.0")
  return calls[0] ?? parsed.command.name
}

describe("a command line", () => {
  it("without a command is the terminal, with a folder or none", async () => {
    expect(await call()).toMatchObject({ command: "", words: [] })
    expect(await call("some/folder", "--model", "a/b")).toMatchObject({
      command: "",
      words: ["some/folder"],
      options: { model: "a/b" }
    })
  })

  it("gives every option a value, absent ones too", async () => {
    expect(await call("run", "hi")).toMatchObject({
      options: { model: null, yes: false, allow: [], maxSteps: null, maxCost: null, isolation: "none" }
    })
  })

  it("takes --name value, --name=value and the short form", async () => {
    for (const argv of [["--model", "a/b"], ["--model=a/b"], ["-m", "a/b"]]) {
      expect(await call("run", ...argv)).toMatchObject({ options: { model: "a/b" } })
    }
  })

  it("takes options before the command as well as after it", async () => {
    expect(await call("--model", "a/b", "run", "hi")).toMatchObject({
      command: "run",
      options: { model: "a/b" },
      words: ["hi"]
    })
  })

  it("collects an option that may be repeated and lets the last of the others count", async () => {
    expect(await call("run", "--allow", "a", "--allow=b", "--model", "x/y", "--model", "z/w")).toMatchObject({
      options: { allow: ["a", "b"], model: "z/w" }
    })
  })

  it("ends options at --, so that a prompt may begin with a dash", async () => {
    expect(await call("run", "--yes", "--", "--model", "is", "what?")).toMatchObject({
      options: { yes: true, model: null },
      words: ["--model", "is", "what?"]
    })
  })

  it("keeps a single dash as a word", async () => {
    expect(await call("run", "-")).toMatchObject({ words: ["-"] })
  })

  it("finds commands of two words", async () => {
    expect(await call("session", "show", "abc")).toMatchObject({ command: "session show", words: ["abc"] })
  })

  it("carries --set, --no-color and --verbose to any command", async () => {
    expect(await call("session", "list", "--set", "theme=dark", "--set=a.b=1", "--no-color", "--verbose"))
      .toMatchObject({
        environment: { set: ["theme=dark", "a.b=1"], color: false, verbose: true, version: "1.0.0" }
      })
  })

  it("asks for help or the version wherever it stands", async () => {
    expect(await call("run", "hi", "--help")).toBe("help")
    expect(await call("help", "run")).toBe("help")
    expect(await call("session", "-h")).toBe("help")
    expect(await call("--version")).toBe("version")
  })
})

describe("a wrong command line is refused in one line that says what would be right", () => {
  const refused: ReadonlyArray<readonly [argv: ReadonlyArray<string>, message: string]> = [
    [["run", "--modle", "x"], "bezel run has no option --modle; did you mean --model?"],
    [["run", "--quite-else"], "bezel run has no option --quite-else; bezel run --help lists them"],
    [["--yes"], "bezel has no option --yes; bezel --help lists them"],
    [
      ["session", "list", "--model", "x"],
      "bezel session list has no option --model; bezel session list --help lists them"
    ],
    [["run", "--model"], "--model needs a value: P/M"],
    [["run", "--model", "--yes"], "--model needs a value: P/M (write --model=--yes if that is the value)"],
    [["run", "--model="], '--model takes P/M, not ""'],
    [["run", "--yes=no"], "--yes takes no value"],
    [["run", "--max-steps", "0"], '--max-steps takes a whole number, 1 or more, not "0"'],
    [["run", "--max-steps", "1.5"], '--max-steps takes a whole number, 1 or more, not "1.5"'],
    [["run", "--max-cost", "-1"], '--max-cost takes a number over 0, not "-1"'],
    [["run", "--isolation", "full"], '--isolation takes one of none, session, not "full"'],
    [["session"], "bezel session needs one of: show, list"],
    [["session", "lst"], "there is no command bezel session lst; did you mean bezel session list?"],
    [["session", "show"], "bezel session show needs ID (bezel session show --help shows how)"],
    [["session", "list", "x"], 'bezel session list does not take "x" (bezel session list --help shows what it takes)'],
    [["sesion", "list"], "there is no command bezel sesion; did you mean bezel session?"]
  ]
  it.each(refused)("%j", async (argv, message) => {
    expect(await call(...argv)).toBe(message)
  })
})

describe("the commands of bezel", () => {
  it("agree on which options take a value, since an option may stand before its command", () => {
    const takesValue = new Map<string, boolean>()
    for (const { options } of [{ options: commonOptions }, ...commands]) {
      for (const [key, option] of Object.entries(options)) {
        const takes = option.placeholder !== null
        expect([key, takesValue.get(key) ?? takes]).toEqual([key, takes])
        takesValue.set(key, takes)
      }
    }
    expect(takesValue.size).toBeGreaterThan(20)
  })

  it("have examples that parse, unless they are not built yet", () => {
    const built = commands.filter((item) => !item.notBuilt)
    for (const { name, examples } of built) expect([name, examples.length > 0]).toEqual([name, true])
    const lines = built.flatMap((item) => item.examples).map((example) =>
      example.split("|").find((part) => /\bbezel\b/.test(part)) ?? ""
    )
    for (const line of lines) {
      const argv = [...line.replace(/>.*$/, "").trim().matchAll(/"([^"]*)"|(\S+)/g)].map((match) =>
        match[1] ?? match[2] ?? ""
      )
      expect([line, parse(argv.slice(1), commands).type]).toEqual([line, "execute"])
    }
  })

  it("take every option of the run contract", () => {
    const run = commands.find((item) => item.name === "run")
    expect(Object.keys(run?.options ?? {}).map(optionName)).toEqual(expect.arrayContaining([
      "--model",
      "--agent",
      "--session",
      "--continue",
      "--fork",
      "--dir",
      "--title",
      "--file",
      "--system",
      "--json",
      "--allow",
      "--deny",
      "--yes",
      "--max-steps",
      "--max-cost",
      "--timeout",
      "--trust"
    ]))
  })
})
