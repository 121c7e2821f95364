import { spawnSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import { completions, shells } from "../../../packages/cli/src/arguments/completions.ts"
import { commandHelp, groupHelp } from "../../../packages/cli/src/arguments/help.ts"
import { optionName } from "../../../packages/cli/src/arguments/option.ts"
import { distance, nearest } from "../../../packages/cli/src/arguments/suggest.ts"
import { commands } from "../../../packages/cli/src/commands.ts"
import { worst } from "../../../packages/cli/src/exit.ts"

describe("help", () => {
  it("of a command names all its options and shows examples, in lines that fit", () => {
    for (const command of commands.filter((item) => !item.notBuilt)) {
      const help = commandHelp(command, commands, 80)
      for (const key of Object.keys(command.options)) expect(help).toContain(optionName(key))
      for (const example of command.examples) expect(help).toContain(example)
      const table = help.slice(0, help.indexOf("Examples:"))
      expect(table.split("\n").slice(1).filter((line) => line.length > 80)).toEqual([])
    }
  })

  it("of the program names every command", () => {
    const root = commands.find((item) => item.name === "")
    const help = root === undefined ? "" : commandHelp(root, commands, 80)
    for (const { name } of commands) expect(help).toContain(name)
  })

  it("of a group names its members", () => {
    expect(groupHelp("session", commands, 80)).toMatch(/session list[\s\S]*session show ID/)
  })
})

describe("completions", () => {
  const complete = (...words: ReadonlyArray<string>): ReadonlyArray<string> => {
    const script = `${completions("bash", commands)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${
      words.length - 1
    }; _bezel; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", script], { encoding: "utf8", cwd: "/" })
    expect(stderr).toBe("")
    return stdout.split("\n").filter((line) => line !== "")
  }

  it("offer commands, then a command's options", () => {
    expect(complete("bezel", "se")).toEqual(expect.arrayContaining(["session", "serve"]))
    expect(complete("bezel", "session", "sh")).toContain("show")
    expect(complete("bezel", "run", "--max")).toEqual(["--max-steps", "--max-cost"])
  })

  it("do not take an option's value for a command", () => {
    expect(complete("bezel", "--model", "run", "--att")).toEqual(["--attach"])
  })

  it("exist for each shell", () => {
    for (const shell of shells) expect(completions(shell, commands)).toContain("bezel")
  })
})

describe("a slip of the pen", () => {
  it("is at a distance of its edits", () => {
    expect([distance("run", "run"), distance("rnu", "run"), distance("", "run"), distance("kitten", "sitting")])
      .toEqual([0, 1, 3, 3])
  })

  it("finds the name that was meant, and none when nothing is near", () => {
    expect(nearest("--modle", ["--model", "--json"])).toBe("--model")
    expect(nearest("sess", ["session", "serve"])).toBe("session")
    expect(nearest("xyz", ["session", "serve"])).toBe(null)
  })
})

describe("where two exit codes fit", () => {
  it("interruption, then timeout, usage, denial and failure count", () => {
    expect(worst([1, 3, 2, 124, 130, 0])).toBe(130)
    expect(worst([1, 3, 2, 124])).toBe(124)
    expect(worst([1, 3, 2])).toBe(2)
    expect(worst([0, 1, 3])).toBe(3)
    expect(worst([0, 1])).toBe(1)
    expect(worst([])).toBe(0)
  })
})
