/** Where this user's own files are, before the settings of `@bezel/core` are loaded; they find it in the same way. */
import { userInfo } from "node:os"
import { isAbsolute } from "node:path"

/** `null` for a user that the system has no home for; whoever needs one says so. A `HOME` that is relative names none. */
export const homeFolder = (): string | null => {
  const home = process.env.HOME ?? ""
  if (isAbsolute(home)) return home
  try {
    return userInfo().homedir
  } catch {
    return null
  }
}
