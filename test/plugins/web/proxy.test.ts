import { describe, expect, it } from "vitest"
import { proxyFor } from "../../../packages/plugins/src/web/proxy.ts"

const cases: ReadonlyArray<readonly [url: string, env: { readonly [name: string]: string }, proxy: string | null]> = [
  ["https://a.com/", {}, null],
  ["https://a.com/", { HTTPS_PROXY: "http://p:1" }, "http://p:1"],
  ["https://a.com/", { https_proxy: "http://q:1", HTTPS_PROXY: "http://p:1" }, "http://q:1"],
  ["http://a.com/", { HTTPS_PROXY: "http://p:1" }, null],
  ["http://a.com/", { HTTP_PROXY: "http://p:1" }, "http://p:1"],
  ["https://a.com/", { HTTPS_PROXY: " " }, null],
  ["https://a.com/", { HTTPS_PROXY: "http://p:1", NO_PROXY: "*" }, null],
  ["https://a.com/", { HTTPS_PROXY: "http://p:1", NO_PROXY: "b.com, a.com" }, null],
  ["https://x.a.com/", { HTTPS_PROXY: "http://p:1", NO_PROXY: ".a.com" }, null],
  ["https://x.a.com/", { HTTPS_PROXY: "http://p:1", NO_PROXY: "*.a.com" }, null],
  ["https://ba.com/", { HTTPS_PROXY: "http://p:1", NO_PROXY: "a.com" }, "http://p:1"],
  ["https://a.com/", { HTTPS_PROXY: "http://p:1", NO_PROXY: "a.com:8080" }, "http://p:1"],
  ["https://a.com:8080/", { HTTPS_PROXY: "http://p:1", NO_PROXY: "a.com:8080" }, null],
  ["https://a.com/", { HTTPS_PROXY: "http://p:1", NO_PROXY: "a.com:443" }, null],
  ["http://[2001:db8::1]/", { HTTP_PROXY: "http://p:1", NO_PROXY: "2001:db8::1" }, null],
  ["http://[2001:db8::1]/", { HTTP_PROXY: "http://p:1", NO_PROXY: "[2001:db8::1]" }, null]
]

describe("the proxy of an address", () => {
  it.each(cases)("%s in %j is %s", (url, env, proxy) => {
    expect(proxyFor(new URL(url), env)).toBe(proxy)
  })
})
