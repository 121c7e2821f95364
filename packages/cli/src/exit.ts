/** Exit codes of the command, and which one counts where two fit. */

export const exitCode = {
  answered: 0,
  /** Unanswered or failed; the reason is on stderr in one line. */
  failed: 1,
  /** Wrong arguments or settings. */
  usage: 2,
  /** Something was denied because nobody could be asked. */
  unattended: 3,
  timeout: 124,
  interrupted: 130
} as const

/** Codes of a process that a signal has ended. */
export const signalCode = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]

const precedence: ReadonlyArray<ExitCode> = [130, 124, 2, 3, 1, 0]

export const worst = (codes: ReadonlyArray<ExitCode>): ExitCode =>
  precedence.find((code) => codes.includes(code)) ?? exitCode.answered

/** An end of the command that a person reads: one line, and the code. */
export class Exit extends Error {
  readonly code: ExitCode
  /** Marks the class across the two builds of the program, each of which has its own. */
  readonly isExit = true
  constructor(code: ExitCode, message: string) {
    super(message)
    this.code = code
  }
}

export const isExit = (error: unknown): error is Exit =>
  error instanceof Error && "isExit" in error && error.isExit === true
