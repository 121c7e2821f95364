/** Writes the screens that `docs/terminal.md` shows, taken of a real run; build the command first. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { takeCaptures, withCaptures } from "../test/e2e/captures.ts"

const page = join(import.meta.dirname, "../docs/terminal.md")

writeFileSync(page, withCaptures(readFileSync(page, "utf8"), await takeCaptures()))
