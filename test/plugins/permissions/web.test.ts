import { compileRules, decide } from "@bezel/plugins/permissions"
import * as Result from "effect/Result"
import { expect, it } from "vitest"

const judge = (host: string, web: { readonly [pattern: string]: "allow" | "ask" | "deny" }) => {
  const set = compileRules({ web }, { location: "/w", home: "/home/me" })
  return Result.isSuccess(set)
    ? decide(set.success, { access: "web", subjects: [host] }, {
      yes: false,
      probe: { real: (file) => file, exists: () => false }
    }).verdict
    : set.failure
}

it.each(
  [
    ["example.com", { "example.com": "allow" }, "allow"],
    ["docs.example.com", { "example.com": "allow" }, "ask"],
    ["docs.example.com", { "*.example.com": "allow" }, "allow"],
    ["notexample.com", { "*.example.com": "allow" }, "ask"],
    ["example.com:8080", { "example.com": "allow" }, "ask"],
    ["example.com:8080", { "example.com:8080": "allow" }, "allow"],
    ["example.com:8080", { "*": "allow", "example.com": "deny" }, "deny"],
    ["example.com:8080", { "*": "allow", "example.com": "ask" }, "ask"],
    ["[2001:db8::1]:80", { "*": "allow", "[2001:db8::1]": "deny" }, "deny"],
    ["example.com", { "*": "allow", "*.com": "deny" }, "deny"],
    ["example.org", { "*": "allow", "*.com": "deny" }, "allow"],
    ["example.com", {}, "ask"]
  ] as const
)("a host %s under the rules %j: %s", (host, web, verdict) => {
  expect(judge(host, web)).toBe(verdict)
})
