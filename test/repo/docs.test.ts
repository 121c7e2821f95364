import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "bench/README.md",
  ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)
]
  .filter((name) => name.endsWith(".md"))

interface Block {
  readonly language: string
  readonly text: string
}

const read = (name: string): string => readFileSync(join(root, name), "utf8")

const blocksOf = (name: string): ReadonlyArray<Block> =>
  [...read(name).matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => ({
    language,
    text
  }))

interface Session {
  readonly command: string
  readonly output: string
}

/** `$ command` lines, each with the output below it. `…` in an expected line stands for anything. */
const sessionsOf = (text: string): ReadonlyArray<Session> =>
  text.split(/^\$ /m).slice(1).map((part) => {
    const end = part.indexOf("\n")
    return { command: part.slice(0, end), output: part.slice(end + 1) }
  })

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")

const pattern = (output: string): RegExp =>
  new RegExp(
    "^" +
      output.split("\n").map((line) => line === "…" ? "[\\s\\S]*?" : line.split("…").map(escaped).join(".*"))
        .join("\n") +
      "$"
  )

const examples = readdirSync(join(root, "examples"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.parentPath.includes("node_modules"))
  .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))

const consoles = documents.flatMap((name) => {
  const sessions = blocksOf(name).filter((block) => block.language === "console").flatMap((block) =>
    sessionsOf(block.text)
  )
  return sessions.length === 0 ? [] : [[name, sessions] as const]
})

describe("what the documentation shows", () => {
  it.each(consoles)("on the command line of %s is what happens", (_, sessions) => {
    const home = mkdtempSync(join(tmpdir(), "bezel-docs-"))
    try {
      writeFileSync(join(home, "note.txt"), "Bezels hold stones.\n")
      const env = { HOME: home, PATH: join(root, "bin") + delimiter + process.env.PATH, LANG: "C.UTF-8", TERM: "dumb" }
      for (const { command, output } of sessions) {
        const ran = spawnSync("sh", ["-c", `{ ${command}\n} 2>&1`], { cwd: home, env, encoding: "utf8", input: "" })
        expect(`$ ${command}\n${ran.stdout}`).toMatch(
          new RegExp(`^\\$ ${escaped(command)}\n${pattern(output).source.slice(1)}`)
        )
      }
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })

  it("as TypeScript is part of an example that is compiled and run", () => {
    const shown = documents.flatMap((name) =>
      blocksOf(name).filter((block) => block.language === "ts").map((block) => [name, block.text] as const)
    )
    expect(shown.length).toBeGreaterThan(0)
    for (const [name, text] of shown) {
      expect([name, examples.some((source) => source.includes(text))], text).toEqual([name, true])
    }
  })

  it("as links leads to files that exist", () => {
    expect(documents).toContain("README.md")
    for (const name of documents) {
      const links = [...read(name).matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)].map((match) => match[1] ?? "")
      for (const link of links) expect([name, link, readable(join(root, name, "..", link))]).toEqual([name, link, true])
    }
  })
})

const readable = (path: string): boolean => {
  try {
    return readFileSync(path) !== null
  } catch {
    return false
  }
}

describe("docs/dependencies.md", () => {
  it("names every dependency of the program and of the repository", () => {
    const text = read("docs/dependencies.md")
    const manifests = [".", ...readdirSync(join(root, "packages")).map((name) => `packages/${name}`)].map((folder) =>
      JSON.parse(read(`${folder}/package.json`))
    )
    const named = new Set(
      manifests.flatMap((
        manifest
      ) => [...Object.keys(manifest.dependencies ?? {}), ...Object.keys(manifest.devDependencies ?? {})])
    )
    const missing = [...named].filter((name) =>
      !name.startsWith("@bezel/") && name !== "bezel" && !text.includes(`\`${name}\``)
    )
    expect(missing).toEqual([])
  })
})
