import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Manifests, parseImports, readManifests, readSources, violations } from "./import-graph.ts"

const root = join(import.meta.dirname, "../..")
const manifests = readManifests(root)

/** The faults of a tree of files that are given as text. */
const faultsOf = (files: { readonly [file: string]: string }, packages: Manifests = manifests) =>
  violations(new Map(Object.entries(files).map(([file, text]) => [file, parseImports(file, text)])), packages)

describe("the packages of this repository", () => {
  it("keep the import rules of docs/architecture.md", () => {
    expect(violations(readSources(root), manifests)).toEqual([])
  })
})

describe("the import rules refuse", () => {
  const refused: ReadonlyArray<readonly [what: string, files: { readonly [file: string]: string }, fault: RegExp]> = [
    [
      "core importing a feature",
      { "packages/core/src/tool/a.ts": `import "@bezel/plugins/read/session"` },
      /core may not import packages\/plugins/
    ],
    [
      "the server importing the terminal",
      { "packages/server/src/a.ts": `import "@bezel/tui"` },
      /server may not import packages\/tui/
    ],
    [
      "the client importing core",
      { "packages/sdk/src/a.ts": `import type { A } from "@bezel/core/json"` },
      /sdk may not import packages\/core/
    ],
    [
      "a session facet importing the terminal",
      { "packages/plugins/src/read/session.ts": `import "@bezel/tui"` },
      /only the tui\.ts/
    ],
    ["a contract that loads a session's code", {
      "packages/plugins/src/chat/contract.ts": `import { a } from "@bezel/core/session"`
    }, /a contract imports/],
    ["a contract that imports its own facet", {
      "packages/plugins/src/chat/contract.ts": `import { a } from "./session.ts"`
    }, /a contract imports/],
    ["a lower folder of core importing a higher one", {
      "packages/core/src/json/a.ts": `import type { T } from "../tool/index.ts"`
    }, /json comes before core\/src\/tool/],
    ["a folder of core reached past its index", {
      "packages/core/src/tool/a.ts": `import type { T } from "../json/json.ts"`
    }, /through its index\.ts/],
    ["a kernel that knows services", {
      "packages/core/src/kernel/a.ts": `import type { T } from "../contribution/index.ts"`
    }, /kernel stands alone/],
    [
      "a relative import into another package",
      { "packages/tui/src/a.ts": `import "../../core/src/json/index.ts"` },
      /go by the package's name/
    ],
    ["a package importing itself by name", {
      "packages/core/src/tool/a.ts": `import type { T } from "@bezel/core/json"`
    }, /imports are relative/],
    ["the barrel of Effect", { "packages/tui/src/a.ts": `import { Effect } from "effect"` }, /slow to load/],
    [
      "names picked from a module of Effect",
      { "packages/tui/src/a.ts": `import { gen } from "effect/Effect"` },
      /as namespaces/
    ],
    ["a package that is not declared", { "packages/tui/src/a.ts": `import "left-pad"` }, /not among the dependencies/],
    ["a terminal facet that reaches the harness", {
      "packages/plugins/src/chat/tui.ts": `import { a } from "./shared.ts"`,
      "packages/plugins/src/chat/shared.ts": `export * from "@bezel/core/harness"`,
      "packages/core/src/harness/index.ts": ""
    }, /chat\/tui\.ts reaches a module of the session host/],
    ["a circle", {
      "packages/tui/src/a.ts": `import "./b.ts"`,
      "packages/tui/src/b.ts": `export { a } from "./a.ts"`
    }, /a circle of imports/]
  ]
  it.each(refused)("%s", (_, files, fault) => {
    expect(faultsOf(files)).toContainEqual(expect.stringMatching(fault))
  })

  it("nothing that keeps them: types upward, lazy facets, namespaces", () => {
    expect(faultsOf({
      "packages/plugins/src/chat/contract.ts":
        `import * as Schema from "effect/Schema"\nimport { RemoteService } from "@bezel/core/service"`,
      "packages/plugins/src/chat/tui.ts":
        `import { T } from "@bezel/tui"\nimport type { V } from "@bezel/core/harness"`,
      "packages/plugins/src/index.ts": `export const load = () => import("./chat/session.ts")`,
      "packages/core/src/tool/a.ts": `import type { T } from "../json/index.ts"`
    })).toEqual([])
  })
})
