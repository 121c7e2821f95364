import {
  compileRules,
  deniesTool,
  flatten,
  formatRule,
  judge,
  mergePermissions,
  onlyDenied,
  parseRule,
  type PermissionRules
} from "@bezel/plugins/permissions"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import {
  escapePattern,
  matches,
  mayMatch,
  textPattern,
  unknown
} from "../../../packages/plugins/src/permissions/pattern.ts"

const place = { location: "/work/project", home: "/home/ada" }

const rules = (
  settings: PermissionRules,
  options: { readonly allow?: ReadonlyArray<string>; readonly deny?: ReadonlyArray<string> } = {}
) => Result.getOrThrow(compileRules(settings, { ...place, ...options }))

const verdict = (
  settings: PermissionRules,
  access: string,
  value: string,
  options?: { readonly allow?: ReadonlyArray<string>; readonly deny?: ReadonlyArray<string> }
) => judge(rules(settings, options), { access, value }).verdict

describe("without rules", () => {
  it("read, search and list inside the location are allowed and everything else asks", () => {
    for (const access of ["read", "search", "list"]) {
      expect(verdict({}, access, "/work/project/src/a.ts")).toBe("allow")
      expect(verdict({}, access, "/work/project")).toBe("allow")
      expect(verdict({}, access, "/work/projects/a")).toBe("ask")
      expect(verdict({}, access, "/etc/passwd")).toBe("ask")
    }
    for (const access of ["write", "edit"]) expect(verdict({}, access, "/work/project/a.ts")).toBe("ask")
    expect(verdict({}, "bash", "ls")).toBe("ask")
    expect(verdict({}, "some_tool_of_a_plugin", "")).toBe("ask")
  })
})

describe("a rule for all accesses whose names begin alike", () => {
  it("holds for them and no others, below the rules of the one by name, and its deny wins", () => {
    const settings: PermissionRules = { "files_*": "allow", files_delete: "deny", web_fetch: "allow", "web_*": "deny" }
    expect(verdict(settings, "files_read", "")).toBe("allow")
    expect(verdict(settings, "files_delete", "")).toBe("deny")
    expect(verdict(settings, "web_fetch", "")).toBe("deny")
    expect(verdict(settings, "other_read", "")).toBe("ask")
    expect(verdict({ "files_*": "allow", files_write: "ask" }, "files_write", "")).toBe("ask")
    expect(verdict({ "files_*": "ask", "*": "allow" }, "files_write", "")).toBe("ask")
    expect(verdict({}, "files_write", "", { allow: ["files_*"] })).toBe("allow")
  })
})

describe("among the patterns that match", () => {
  it("deny wins, however short it is", () => {
    const settings: PermissionRules = {
      bash: { "git push --force origin main": "allow", "git push*": "deny", "*": "allow" }
    }
    expect(verdict(settings, "bash", "git push --force origin main")).toBe("deny")
  })

  it("else the longest wins", () => {
    const settings: PermissionRules = { bash: { "*": "allow", "git *": "ask", "git log*": "allow" } }
    expect(verdict(settings, "bash", "ls")).toBe("allow")
    expect(verdict(settings, "bash", "git push")).toBe("ask")
    expect(verdict(settings, "bash", "git log -1")).toBe("allow")
  })

  it("of two as long ask wins over allow, and the command line over both", () => {
    expect(verdict({ bash: { "git *": "allow", "* log": "ask" } }, "bash", "git log")).toBe("ask")
    expect(verdict({ bash: "ask" }, "bash", "git log", { allow: ["bash"] })).toBe("allow")
    expect(verdict({ bash: { "git *": "ask" } }, "bash", "git log", { allow: ["bash(git *)"] })).toBe("allow")
  })

  it("a rule of the command line never lifts a deny, and its deny beats every allow", () => {
    expect(verdict({ bash: { "rm *": "deny" } }, "bash", "rm x", { allow: ["bash(rm x)"] })).toBe("deny")
    expect(verdict({ bash: "allow" }, "bash", "rm x", { deny: ["bash(rm *)"] })).toBe("deny")
  })

  it("one verdict for an access is the pattern * of it", () => {
    expect(verdict({ bash: "allow" }, "bash", "anything at all")).toBe("allow")
    expect(verdict({ fetch: "deny" }, "fetch", "https://example.org")).toBe("deny")
  })

  it("rules for write hold for edit, its own stand before them, and a deny of either holds", () => {
    expect(verdict({ write: "allow" }, "edit", "/work/project/a")).toBe("allow")
    expect(verdict({ write: "allow", edit: "ask" }, "edit", "/work/project/a")).toBe("ask")
    expect(verdict({ write: "ask", edit: "allow" }, "edit", "/work/project/a")).toBe("allow")
    expect(verdict({ write: { "src/**": "deny" }, edit: "allow" }, "edit", "/work/project/src/a")).toBe("deny")
    expect(verdict({ edit: "allow" }, "write", "/work/project/a")).toBe("ask")
  })

  it("* as an access is for accesses that no other rule speaks of", () => {
    const settings: PermissionRules = { "*": "deny", bash: { "git *": "allow" } }
    expect(verdict(settings, "bash", "git log")).toBe("allow")
    expect(verdict(settings, "bash", "ls")).toBe("deny")
    expect(verdict(settings, "fetch", "")).toBe("deny")
  })
})

describe("text patterns", () => {
  const fits = (pattern: string, text: string) => matches(textPattern(pattern), text)

  it("* is any text, spaces, slashes and line ends included", () => {
    expect(fits("git *", "git log a/b\n -x")).toBe(true)
    expect(fits("git status*", "git status")).toBe(true)
    expect(fits("git status", "git status -s")).toBe(false)
    expect(fits("*", "")).toBe(true)
  })

  it("a star after a space at the end also matches no argument, and not the beginning of another name", () => {
    expect(fits("rm *", "rm")).toBe(true)
    expect(fits("rm *", "rmdir x")).toBe(false)
  })

  it("? is one character and everything else stands for itself", () => {
    expect(fits("git lo?", "git log")).toBe(true)
    expect(fits("git lo?", "git lo")).toBe(false)
    expect(fits("a.c (x) [y] ^$+|{}", "a.c (x) [y] ^$+|{}")).toBe(true)
    expect(fits("a.c", "abc")).toBe(false)
  })

  it("runs of spaces count as one, in pattern and text", () => {
    expect(fits("git   log *", "git log  x")).toBe(true)
  })

  it("a text written as a pattern matches itself and nothing else", () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 12, unit: fc.constantFrom("a", "*", "?", "\\", " ", "\n") }),
        fc.string({ maxLength: 12, unit: fc.constantFrom("a", "*", "?", "\\", " ", "\n") }),
        (text, other) => {
          expect(fits(escapePattern(text), text)).toBe(true)
          const same = other.trim().replace(/[ \t]+/g, " ") === text.trim().replace(/[ \t]+/g, " ")
          if (!same && !escapePattern(text).trim().endsWith(" *")) {
            expect(fits(escapePattern(text), other)).toBe(
              false
            )
          }
        }
      )
    )
  })

  it("an unknown part is matched by * only, and may be anything", () => {
    expect(fits("git log*", `git log ${unknown}`)).toBe(true)
    expect(fits("git log ?", `git log ${unknown}`)).toBe(false)
    expect(fits("git push*", `git ${unknown}`)).toBe(false)
    expect(mayMatch(textPattern("git push*"), `git ${unknown}`)).toBe(true)
    expect(mayMatch(textPattern("git push*"), `ls ${unknown}`)).toBe(false)
    expect(mayMatch(textPattern("git push*"), `${unknown}`)).toBe(true)
    expect(mayMatch(textPattern("rm -rf *"), `rm ${unknown} x`)).toBe(true)
  })

  it("what matches for some content of the unknown part may match", () => {
    const unit = fc.constantFrom("a", "b", "*", "?")
    const plain = fc.constantFrom("a", "b")
    fc.assert(
      fc.property(
        fc.string({ unit, maxLength: 6 }),
        fc.string({ unit: plain, maxLength: 3 }),
        fc.string({ unit: plain, maxLength: 3 }),
        fc.string({ unit: plain, maxLength: 4 }),
        (source, before, after, content) => {
          const pattern = textPattern(source)
          if (matches(pattern, before + content + after)) {
            expect(mayMatch(pattern, before + unknown + after)).toBe(
              true
            )
          }
          if (matches(pattern, before + unknown + after)) {
            expect(matches(pattern, before + content + after)).toBe(
              true
            )
          }
        }
      )
    )
  })

  it("a hostile pattern against a long text takes no time", () => {
    const started = performance.now()
    expect(fits("a*".repeat(60) + "b", "a".repeat(5000))).toBe(false)
    expect(mayMatch(textPattern("a*".repeat(60) + "b"), `${"a".repeat(5000)}c${unknown}c`)).toBe(false)
    expect(performance.now() - started).toBeLessThan(2000)
  })
})

describe("path patterns", () => {
  const denies = (pattern: string, file: string) => verdict({ read: { [pattern]: "deny" } }, "read", file) === "deny"
  const allows = (pattern: string, file: string) =>
    verdict({ write: { [pattern]: "allow" } }, "write", file) === "allow"

  it("are relative to the location, below the home folder, or absolute, and cover what is below", () => {
    expect(denies("secrets", "/work/project/secrets/key")).toBe(true)
    expect(denies("./conf/key", "/work/project/conf/key")).toBe(true)
    expect(denies("../other", "/work/other/x")).toBe(true)
    expect(denies("~/.ssh", "/home/ada/.ssh/id_rsa")).toBe(true)
    expect(denies("~/.ssh", "/home/ada/.sshx")).toBe(false)
    expect(denies("/etc", "/etc/passwd")).toBe(true)
    expect(denies("/etc/", "/etc/passwd")).toBe(true)
    expect(denies("/", "/etc/passwd")).toBe(true)
  })

  it("* and ? stay within one name and ** spans folders", () => {
    expect(allows("src/*.ts", "/work/project/src/a.ts")).toBe(true)
    expect(allows("src/*.ts", "/work/project/src/deep/a.ts")).toBe(false)
    expect(allows("src/**/*.ts", "/work/project/src/deep/er/a.ts")).toBe(true)
    expect(allows("src/**/*.ts", "/work/project/src/a.ts")).toBe(true)
    expect(allows("src/**", "/work/project/src/a/b")).toBe(true)
    expect(allows("src/**", "/work/project/srcs/a")).toBe(false)
    expect(allows("src/?.ts", "/work/project/src/ab.ts")).toBe(false)
  })

  it("a mere name is for any folder: to deny anywhere, to allow inside the location only", () => {
    expect(denies(".env", "/work/project/deep/.env")).toBe(true)
    expect(denies(".env", "/elsewhere/.env")).toBe(true)
    expect(denies("*.pem", "/work/project/a/key.pem")).toBe(true)
    expect(denies("*.pem", "/work/project/a/key.pem.txt")).toBe(false)
    expect(allows("*.md", "/work/project/docs/a.md")).toBe(true)
    expect(allows("*.md", "/elsewhere/a.md")).toBe(false)
  })

  it("the folders above the location are not names that a rule speaks of", () => {
    expect(denies("work", "/work/project/a")).toBe(false)
    expect(denies("project", "/work/project/a")).toBe(false)
  })

  it("a hostile pattern against a deep path takes no time", () => {
    const started = performance.now()
    expect(denies(`${"**/a*a*a*/".repeat(40)}b`, `/work/project/${"aaaaaaaaaaaaaaaaaaa/".repeat(200)}c`)).toBe(false)
    expect(performance.now() - started).toBeLessThan(2000)
  })

  it("everything is everywhere: a bare verdict, * and **", () => {
    for (const pattern of ["*", "**"]) expect(allows(pattern, "/etc/passwd")).toBe(true)
    expect(verdict({ write: "allow" }, "write", "/etc/passwd")).toBe("allow")
  })

  it("a location with signs that patterns know is taken as it is", () => {
    const set = Result.getOrThrow(
      compileRules({ write: { "src/**": "allow" } }, { location: "/work/[a]*(b)+", home: "/home/ada" })
    )
    expect(judge(set, { access: "write", value: "/work/[a]*(b)+/src/x" }).verdict).toBe("allow")
    expect(judge(set, { access: "write", value: "/work/aaa(b)+/src/x" }).verdict).toBe("ask")
  })
})

describe("rules as text", () => {
  it("are an access, alone or with a pattern in parentheses", () => {
    expect(parseRule("write")).toEqual(Result.succeed({ access: "write", pattern: "*" }))
    expect(parseRule(" bash(git status*) ")).toEqual(Result.succeed({ access: "bash", pattern: "git status*" }))
    expect(parseRule("bash(echo (a) b)")).toEqual(Result.succeed({ access: "bash", pattern: "echo (a) b" }))
    expect(parseRule("*")).toEqual(Result.succeed({ access: "*", pattern: "*" }))
  })

  it("read back as they were written", () => {
    for (const text of ["write", "write(src/**)", "bash(a (b) c)", "bash(echo\nx)"]) {
      expect(formatRule(Result.getOrThrow(parseRule(text)))).toBe(text)
    }
  })

  it("anything else is refused with how to write one", () => {
    for (const text of ["", "bash(", "bash()", "git status", "bash(x) y"]) {
      const result = compileRules({}, { ...place, allow: [text] })
      expect(Result.isFailure(result) && result.failure).toContain("bash(git status*)")
    }
  })
})

describe("several files", () => {
  it("a later file changes what an earlier one says, and never lifts its deny", () => {
    expect(
      mergePermissions({ bash: { "rm *": "deny", "git *": "ask" } }, {
        bash: { "rm *": "allow", "git *": "allow", ls: "allow" }
      })
    ).toEqual({
      bash: { "rm *": "deny", "git *": "allow", ls: "allow" }
    })
    expect(mergePermissions({ web: "deny" }, { web: "allow" })).toEqual({ web: { "*": "deny" } })
    expect(mergePermissions({ web: "deny" }, { web: { "https://a*": "allow" } })).toEqual({
      web: { "*": "deny", "https://a*": "allow" }
    })
    expect(mergePermissions({ bash: { "rm *": "deny" } }, { bash: "allow" })).toEqual({
      bash: { "rm *": "deny", "*": "allow" }
    })
    expect(mergePermissions({ bash: "allow" }, { bash: { "rm *": "deny" } })).toEqual({
      bash: { "*": "allow", "rm *": "deny" }
    })
  })

  it("of an untrusted file only the denials are left", () => {
    expect(onlyDenied({ bash: { "rm *": "deny", "*": "allow" }, write: "allow", web: "deny", read: "ask" })).toEqual({
      bash: { "rm *": "deny" },
      web: "deny"
    })
    expect(onlyDenied({ bash: "allow" })).toBeUndefined()
  })

  const tools = [
    "apply_patch",
    "bash",
    "edit",
    "job_output",
    "read",
    "subagent",
    "subagent_stop",
    "web_fetch",
    "write"
  ].map((name) => ({ name, plugin: "bezel.tools", namesAccess: name !== "subagent" }))
  const outside = [
    { name: "lookup", plugin: "somebody", namesAccess: false },
    { name: "ticket", plugin: "somebody", namesAccess: true }
  ]

  it.each<readonly [rules: PermissionRules, hidden: ReadonlyArray<string>]>([
    [{}, []],
    [{ web: "deny", bash: { "rm *": "deny" }, read: { "*": "deny", x: "allow" } }, ["read", "web_fetch"]],
    [{ write: "deny" }, ["apply_patch", "edit", "write"]],
    [{ edit: "deny" }, ["apply_patch", "edit"]],
    [{ "jo*": "deny", subagent: "deny" }, ["job_output", "subagent", "subagent_stop"]],
    [{ look: "deny", "look*": "deny" }, ["lookup"]],
    // For everything: what no other rule speaks of. Of a tool that names its accesses itself nobody knows.
    [{ "*": "deny" }, [...tools, ...outside].map(({ name }) => name).filter((name) => name !== "ticket")],
    [{ "*": "deny", bash: { "git *": "allow" }, edit: "ask", web: "deny", subagent: "allow" }, [
      "job_output",
      "read",
      "web_fetch",
      "write",
      "lookup"
    ]],
    [{ "*": { "**": "deny" }, write: { "src/**": "allow" } }, [
      "bash",
      "job_output",
      "read",
      "subagent",
      "subagent_stop",
      "web_fetch",
      "lookup"
    ]],
    [{ "*": { x: "deny" } }, []]
  ])(
    "a tool that is denied whatever it is called with is not offered, and one denied in part is: %j",
    (rules, hidden) => {
      expect([...tools, ...outside].filter((tool) => deniesTool(flatten(rules), tool)).map(({ name }) => name)).toEqual(
        hidden
      )
    }
  )
})
