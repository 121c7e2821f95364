/** The file system as path rules see it: links resolved, so that a name inside the location cannot stand for a file outside. */
import * as fs from "node:fs"
import * as path from "node:path"
import type { PathProbe } from "./decide.ts"

const realOf = (file: string): string => {
  // What does not exist yet is where its nearest existing folder really is.
  for (let known = file, rest = "";; rest = path.join(path.basename(known), rest), known = path.dirname(known)) {
    try {
      const real = fs.realpathSync.native(known)
      return rest === "" ? real : path.join(real, rest)
    } catch {
      const target = danglingTarget(known)
      if (target !== null) return path.join(realOf(target), rest)
      if (path.dirname(known) === known) return file
    }
  }
}

/** Where a link that leads to nothing leads: writing to it creates that. */
const danglingTarget = (file: string): string | null => {
  try {
    const target = path.resolve(path.dirname(file), fs.readlinkSync(file))
    // A link in a circle has no target; the path is taken as it is.
    return target === file || isCircle(file) ? null : target
  } catch {
    return null
  }
}

const isCircle = (file: string): boolean => {
  try {
    fs.statSync(file)
    return false
  } catch (cause) {
    return cause instanceof Error && "code" in cause && cause.code === "ELOOP"
  }
}

export const fileProbe: PathProbe = {
  real: realOf,
  exists: (file) => {
    try {
      fs.lstatSync(file)
      return true
    } catch {
      return false
    }
  }
}
