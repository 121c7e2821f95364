/** Keeps `console` off stdout, which belongs to the command: whatever code of others prints there goes elsewhere. */
import { inspect } from "node:util"

/** To stderr, as `console.error` does. */
export function consoleToStderr(): void {
  const { error } = console
  console.log = error
  console.info = error
  console.debug = error
  console.dir = (value: unknown, options?: object) => error(inspect(value, options))
  console.dirxml = error
}
