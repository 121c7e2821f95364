import { Exit, exitCode } from "../exit.ts"
const notYet = async (): Promise<number> => {
  throw new Exit(exitCode.usage, "not built yet")
}
export { notYet as sessionExport, notYet as sessionList, notYet as sessionRemove, notYet as sessionShow }
