import { Exit, exitCode } from "../exit.ts"
export const doctor = async (): Promise<number> => {
  throw new Exit(exitCode.usage, "doctor is not built yet")
}
