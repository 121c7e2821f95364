import { compileRules, decide, type PathProbe } from "@bezel/plugins/permissions"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"

const there = new Set(["/", "/w", "/w/sub", "/w/sub/deep", "/w/secrets", "/w/a'b", "/etc", "/etc/passwd", "/w/out"])
const probe: PathProbe = {
  real: (file) => file === "/w/out" || file.startsWith("/w/out/") ? file.replace("/w/out", "/etc") : file,
  exists: (file) => there.has(file)
}

const judge = (
  line: string,
  rules: { readonly allow?: ReadonlyArray<string>; readonly deny?: ReadonlyArray<string> },
  yes = false
) => {
  const set = compileRules({}, { location: "/w", home: "/home/me", ...rules })
  return Result.isSuccess(set) ? decide(set.success, { access: "bash", subjects: [line] }, { yes, probe }) : set.failure
}

describe("a command that runs in a directory of the workspace", () => {
  const allowed: ReadonlyArray<readonly [line: string, allow: ReadonlyArray<string>]> = [
    ["cd '/w/sub' && npm test", ["bash(npm test)"]],
    ["cd '/w/a'\\''b' && npm test", ["bash(npm test)"]],
    ["cd '/w/sub' && npm test > log.txt", ["bash(npm test)", "write(sub/**)"]],
    ["cd '/w/sub/deep' && cat ../x > ../y", ["bash(cat *)", "write(sub/y)"]]
  ]
  it.each(allowed)("takes no rule for going there: %s", (line, allow) => {
    expect(judge(line, { allow })).toMatchObject({ verdict: "allow" })
  })

  it("is judged from there: what is above it may still be inside", () => {
    expect(judge("cd '/w/sub' && cat ../x", {}, true)).toMatchObject({ verdict: "allow" })
    expect(judge("cd '/w/sub' && cat ../../x", {}, true)).toMatchObject({ verdict: "ask" })
    expect(judge("cd '/w/sub' && echo x > ../../x", {}, true)).toMatchObject({ verdict: "ask" })
  })

  it("is denied what a rule denies, by the path that it means there", () => {
    const deny = ["read(secrets/**)", "write(sub/locked)", "bash(rm *)"]
    expect(judge("cd '/w/secrets' && cat key", { deny }, true)).toMatchObject({ verdict: "ask" })
    expect(judge("cd '/w/sub' && echo x > locked", { deny }, true)).toMatchObject({ verdict: "deny" })
    expect(judge("cd '/w/sub' && rm x", { deny }, true)).toMatchObject({ verdict: "deny" })
    expect(judge("cd '/w/sub' && true; rm x", { deny }, true)).toMatchObject({ verdict: "deny" })
  })

  const elsewhere: ReadonlyArray<readonly [what: string, line: string]> = [
    ["outside", "cd '/etc' && cat passwd"],
    ["behind a link that leads out", "cd '/w/out' && cat passwd"],
    ["that is not there, so that the shell would stay", "cd '/w/sub/no/no' && true; cat ../../etc/passwd"],
    ["that is relative, to wherever the shell is", "cd 'sub' && cat ../../etc/passwd"],
    ["that only looks quoted", "cd '/w/sub'$X && cat ../../etc/passwd"],
    ["from which it goes on", "cd '/w/sub' && cd / && cat etc/passwd"]
  ]
  it.each(elsewhere)("is no such command where the directory is one %s: it asks, also with --yes", (_, line) => {
    expect(judge(line, { allow: ["bash(cat *)", "bash(true)"] }, true)).toMatchObject({ verdict: "ask" })
  })
})
