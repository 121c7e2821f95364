import { Exit, exitCode } from "../exit.ts"
const notYet = async (): Promise<number> => {
  throw new Exit(exitCode.usage, "not built yet")
}
export { notYet as modelList, notYet as pluginList, notYet as toolList }
