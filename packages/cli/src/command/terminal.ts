import { Exit, exitCode } from "../exit.ts"
export const terminal = async (): Promise<number> => {
  throw new Exit(exitCode.usage, "terminal is not built yet")
}
