import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { settingsSchemaFile, settingsSchemaText } from "../../scripts/schema.ts"

it("the shipped schema of bezel.jsonc is what the features declare (node scripts/schema.ts writes it)", () => {
  expect(readFileSync(settingsSchemaFile, "utf8")).toBe(settingsSchemaText())
})
