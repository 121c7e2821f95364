/**
 * What the end of the reader of our output means: that of a pipe (`| head`), or a terminal that was closed.
 *
 * Of a closed terminal only the leader of its session, mostly a shell, is sure to be told by a signal; for everybody else
 * it is reads and writes that fail.
 */
import type { WriteStream } from "node:tty"
import { signalCode } from "../exit.ts"

/** The exit code of the signal that says the same; `null` for an error that says something else. */
export const goneCode = (error: NodeJS.ErrnoException, stream: Pick<WriteStream, "isTTY">): number | null =>
  error.code === "EPIPE" ? 141 : error.code === "EIO" && stream.isTTY ? signalCode.SIGHUP : null

/** Keeps the process from failing where nobody can be told anything any more; what runs is ended by `runProcess`. */
export const outliveReaders = (cannotWrite: (error: Error) => void): void => {
  process.stdout.on("error", (error) => {
    if (goneCode(error, process.stdout) === null) cannotWrite(error)
  })
  // Where even that cannot be told, there is nobody left to tell.
  process.stderr.on("error", () => {})
}
