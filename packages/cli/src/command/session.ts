/** `bezel session …`: what can be done with sessions that nobody has to open for it. */
import { resolveLocation } from "@bezel/core/location"
import {
  exportSession,
  type SessionExport,
  type SessionMessage,
  type SessionRecord,
  SessionStore
} from "@bezel/core/session"
import type { SessionStorage } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import type { Environment, Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { exitCode } from "../exit.ts"
import { standing } from "../export/transcript.ts"
import { currentFolder } from "../host/current-folder.ts"
import { globalLayer } from "../host/global.ts"
import { runProcess } from "../host/process.ts"
import { callTitle, oneLine, printable } from "../run/text.ts"

type Flag = Option<boolean>
type Text = Option<string | null>

/** Text of others: safe on a terminal, as it is in a pipe. */
const shown = (text: string): string => process.stdout.isTTY ? printable(text) : text

const withSessions = (
  environment: Environment,
  effect: Effect.Effect<number, unknown, SessionStore | SessionStorage>
): Promise<number> => {
  const onWarning = (message: string): void => {
    process.stderr.write(`bezel: ${oneLine(message, 1_000)}\n`)
  }
  return runProcess(Effect.scoped(Effect.provide(effect, globalLayer({ environment, trust: false, onWarning }))))
}

export const sessionList: Execute<
  { readonly all: Flag; readonly dir: Text; readonly search: Text; readonly json: Flag }
> = (
  options,
  _,
  environment
) =>
  withSessions(
    environment,
    Effect.gen(function*() {
      const store = yield* SessionStore
      const location = options.all ? {} : { location: yield* resolveLocation(options.dir ?? currentFolder()) }
      let isEmpty = true
      let cursor: string | null = null
      do {
        const page: { readonly sessions: ReadonlyArray<SessionRecord>; readonly cursor: string | null } = yield* store
          .list({
            ...location,
            ...(options.search === null ? {} : { text: options.search }),
            parentID: null,
            limit: 200,
            ...(cursor === null ? {} : { cursor })
          })
        for (const record of page.sessions) {
          isEmpty = false
          process.stdout.write(options.json ? `${JSON.stringify(record)}\n` : listLine(record, options.all))
        }
        cursor = page.cursor
      } while (cursor !== null)
      if (isEmpty) {
        const named = options.search === null ? "" : ` with ${JSON.stringify(options.search)} in its title`
        const more = options.all ? "" : " in this folder; bezel session list --all shows those of every folder"
        process.stderr.write(`bezel: there is no session${named}${more}\n`)
      }
      return exitCode.answered
    })
  )

/** For the person at this machine; `--json` has the same in milliseconds since the epoch. */
const localMinute = (time: number): string =>
  new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16).replace("T", " ")

function listLine(record: SessionRecord, withFolder: boolean): string {
  const title = record.title === "" ? "(no title)" : oneLine(record.title, 80)
  return `${record.id}  ${localMinute(record.updatedAt)}  ${shown(title)}${
    withFolder ? `  ${shown(record.location.directory)}` : ""
  }\n`
}

/** Every message of a session, oldest first, a page at a time. */
const eachMessage = (sessionID: string, visit: (message: SessionMessage) => void) =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const pages: Array<ReadonlyArray<SessionMessage>> = []
    let cursor: string | null = null
    do {
      const page: { readonly messages: ReadonlyArray<SessionMessage>; readonly cursor: string | null } = yield* store
        .messages(sessionID, {
          limit: 1_000,
          ...(cursor === null ? {} : { cursor })
        })
      pages.push(page.messages)
      cursor = page.cursor
    } while (cursor !== null)
    for (const page of pages.toReversed()) for (const message of page) visit(message)
  })

/** What stands, for a person; every entry, what was taken back included, for a program. */
export const sessionShow: Execute<{ readonly json: Flag }> = (options, [id = ""], environment) =>
  withSessions(
    environment,
    Effect.gen(function*() {
      if (options.json) {
        yield* eachMessage(id, (message) => process.stdout.write(`${JSON.stringify(message)}\n`))
        return exitCode.answered
      }
      for (const entry of standing(yield* exportSession(id))) process.stdout.write(shown(transcriptText(entry)))
      return exitCode.answered
    })
  )

/** Why a turn has no answer, in words; `null` for entries of other kinds. */
function withoutAnswer({ data, kind }: Pick<SessionMessage, "data" | "kind">): string | null {
  if (kind !== "bezel.failure") return null
  const { error, reason } = Object(data)
  const message: unknown = Object(error)["message"]
  return reason === "aborted" ? "(interrupted)" : `(no answer: ${typeof message === "string" ? message : reason})`
}

/**
 * A message as a person reads it: `>` before what was asked, `!` before what the model was told by others. Results of tools are
 * left to `--json`.
 */
function transcriptText(message: Pick<SessionMessage, "data" | "kind" | "model">): string {
  const lines: Array<string> = []
  const mark = message.kind === "bezel.user" ? "> " : "! "
  const failure = withoutAnswer(message)
  if (failure !== null) lines.push(failure)
  for (const { content, role } of message.model ?? []) {
    if (typeof content === "string") continue
    for (const part of content) {
      if (part.type === "text") lines.push(role === "user" ? part.text.replace(/^/gm, mark) : part.text)
      if (part.type === "tool-call") lines.push(`* ${callTitle(part.name, part.params, 100)}`)
      if (part.type === "file") lines.push(`[${part.fileName ?? part.mediaType}]`)
    }
  }
  return lines.length === 0 ? "" : `${lines.join("\n")}\n\n`
}

type ExportFormat = "json" | "markdown" | "html"

const written = async (format: ExportFormat, session: SessionExport): Promise<string> => {
  switch (format) {
    case "json":
      return `${JSON.stringify(session, null, 2)}\n`
    case "markdown":
      return (await import("../export/markdown.ts")).toMarkdown(session)
    case "html":
      return (await import("../export/html.ts")).toHtml(session)
  }
}

/** The whole session as one document; what is JSON, `session import` takes back. */
export const sessionExport: Execute<{ readonly format: Option<ExportFormat> }> = (options, [id = ""], environment) =>
  runProcess(
    Effect.gen(function*() {
      const session = yield* exportSession(id)
      process.stdout.write(shown(yield* Effect.promise(() => written(options.format, session))))
      return exitCode.answered
    }).pipe(Effect.scoped, Effect.provide(globalLayer({ environment, trust: false })))
  )

export const sessionRemove: Execute<{}> = (_, ids, environment) =>
  withSessions(
    environment,
    Effect.gen(function*() {
      const store = yield* SessionStore
      for (const id of ids) yield* store.get(id)
      for (const id of ids) yield* store.remove(id)
      return exitCode.answered
    })
  )
