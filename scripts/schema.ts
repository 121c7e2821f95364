/** Writes `docs/bezel.schema.json`: the JSON Schema of `bezel.jsonc`, made of the keys of all built-in features. */
import { settingsJsonSchema } from "@bezel/core/settings"
import { builtinSettingsKeys } from "@bezel/plugins/settings"
import { writeFileSync } from "node:fs"
import { join } from "node:path"

export const settingsSchemaFile = join(import.meta.dirname, "../docs/bezel.schema.json")

export const settingsSchemaText = (): string => `${JSON.stringify(settingsJsonSchema(builtinSettingsKeys), null, 2)}\n`

if (import.meta.main) writeFileSync(settingsSchemaFile, settingsSchemaText())
