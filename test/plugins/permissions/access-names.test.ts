/** Which accesses of rules are told as those of no tool. */
import { describe, expect, it } from "vitest"
import { unknownAccesses } from "../../../packages/plugins/src/permissions/access-names.ts"

const tools = [{ name: "ticket_read", plugin: "shop", namesAccess: false }]
const unknown = (access: string, prefixes: ReadonlyArray<string> = []) =>
  unknownAccesses([access], tools, [], prefixes).length > 0

describe("an access that no tool has", () => {
  it("is one, also when it stands for many, unless something begins so", () => {
    expect(unknown("bsh")).toBe(true)
    expect(unknown("files_*")).toBe(true)
    expect(unknown("ticket_*")).toBe(false)
    expect(unknown("ticket_*s")).toBe(true)
  })

  it("is none where tools of a server may come whose names begin so", () => {
    expect(unknown("files_read_file", ["files_"])).toBe(false)
    expect(unknown("files_*", ["files_"])).toBe(false)
    expect(unknown("fi*", ["files_"])).toBe(false)
    expect(unknown("file_read", ["files_"])).toBe(true)
  })
})
