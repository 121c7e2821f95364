/** What the model should know of the place it works in. Changes at most once a day, so that providers can cache the prompt. */
import { projectFolders } from "@bezel/core/settings"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as fs from "node:fs/promises"
import * as path from "node:path"

const names: Partial<Record<NodeJS.Platform, string>> = { darwin: "macOS", linux: "Linux", win32: "Windows" }

const localDate = (milliseconds: number): string => {
  const date = new Date(milliseconds)
  const two = (value: number) => String(value).padStart(2, "0")
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** The root of the git work tree that holds the location, or `null`. */
const gitRoot = Effect.fnUntraced(function*(location: string) {
  const root = (yield* projectFolders(location))[0] ?? location
  const isRoot = yield* Effect.promise(() => fs.lstat(path.join(root, ".git")).then(() => true, () => false))
  return isRoot ? root : null
})

export const environment = Effect.fnUntraced(function*(location: string) {
  const root = yield* gitRoot(location)
  const today = localDate(yield* Clock.currentTimeMillis)
  return [
    "Environment",
    `- Working directory: ${location}`,
    `- Git repository: ${root === null ? "no" : root === location ? "yes" : `yes, its root is ${root}`}`,
    `- Platform: ${names[process.platform] ?? process.platform} (${process.arch})`,
    `- Today: ${today}`
  ].join("\n")
})
