/**
 * What a command in the sandbox may have made that decides over what runs outside of it later. What is there is read-only
 * for it; a mount cannot hold the place of what is not there without leaving it behind, so this looks afterwards.
 *
 * New hooks, and `.git/commondir`, which has git take settings and hooks from elsewhere (only work trees beside the main one
 * have it), are set aside under another name. Settings of a project count only once a person trusts them, so they are told.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"

const settings = ["bezel.jsonc", ".bezel"]

/** What has git run something, where it is not there from the beginning. */
const ofGit = ["commondir", "hooks"]

const suffix = ".set-aside"

const isThere = (file: string): boolean => fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined

/** From now on: what is new at each look, one sentence each. */
export const makeGuard = (workspace: string): Effect.Effect<ReadonlyArray<string>> => {
  const known = new Set(settings.filter((name) => isThere(path.join(workspace, name))))
  const git = path.join(workspace, ".git")
  // A folder that is there is a mount in the sandbox, so no command can have put a link to another repository in its place.
  const isFolder = fs.lstatSync(git, { throwIfNoEntry: false })?.isDirectory() === true
  const guarded = isFolder ? ofGit.map((name) => path.join(git, name)).filter((file) => !isThere(file)) : []
  return Effect.sync(() => {
    const said: Array<string> = []
    for (const name of settings) {
      if (known.has(name) || !isThere(path.join(workspace, name))) continue
      known.add(name)
      said.push(`${name} is new: settings of this project, which have no effect before a person trusts them`)
    }
    for (const file of guarded.filter(isThere)) {
      fs.rmSync(file + suffix, { recursive: true, force: true })
      fs.renameSync(file, file + suffix)
      const name = path.join(".git", path.basename(file))
      said.push(`${name} is now ${name}${suffix}: it would have git run something outside of the sandbox`)
    }
    return said
  })
}
