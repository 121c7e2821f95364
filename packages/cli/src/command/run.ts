import { Exit, exitCode } from "../exit.ts"
export const run = async (): Promise<number> => {
  throw new Exit(exitCode.usage, "run is not built yet")
}
