/**
 * A session as something to read: prompts, answers and tool calls in order, each call with its result.
 *
 * What was taken back is left out; what was summarized is there, with the summary where it was made. Pure.
 */
import { standingEntries } from "@bezel/core/host/contract"
import type { SessionExport } from "@bezel/core/session"
import { callTitle } from "../run/text.ts"

type Entry = SessionExport["entries"][number]

export interface ShownFile {
  readonly name: string
  readonly mediaType: string
  /** Base64. */
  readonly data: string
}

export interface ShownCall {
  readonly type: "call"
  readonly name: string
  /** Name and what it is about, on one line. */
  readonly title: string
  /** The arguments as JSON text. */
  readonly args: string
  readonly result: string
  readonly isError: boolean
  readonly diff: string | null
}

/** One piece of a transcript, as a person sees it. */
export type Shown =
  | { readonly type: "prompt"; readonly text: string; readonly files: ReadonlyArray<ShownFile>; readonly at: number }
  | { readonly type: "answer"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "files"; readonly files: ReadonlyArray<ShownFile> }
  | { readonly type: "note"; readonly title: string; readonly text: string }
  | ShownCall

/** The main conversation as it stands, oldest first. */
export const standing = ({ conversations, entries }: SessionExport): ReadonlyArray<Entry> =>
  standingEntries(entries.filter(({ conversation }) => conversation === conversations[0]?.id))

const fileOf = (
  part: { readonly fileName?: string; readonly mediaType: string; readonly data: string }
): ShownFile => ({
  name: part.fileName ?? part.mediaType,
  mediaType: part.mediaType,
  data: part.data
})

const field = (data: unknown, name: string): unknown =>
  data !== null && typeof data === "object" ? Reflect.get(data, name) : undefined

const textOf = (value: unknown): string => typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? ""

const isText = (part: { readonly type: string }): part is { readonly type: "text"; readonly text: string } =>
  part.type === "text"

/** What a whole session shows. */
export const shownOf = (session: SessionExport): ReadonlyArray<Shown> => {
  const shown: Array<Shown> = []
  /** Where calls without a result yet stand, by id. */
  const open = new Map<string, number>()
  for (const entry of standing(session)) {
    for (const message of entry.model ?? []) {
      if (message.role === "user") {
        const text = message.content.filter(isText).map((part) => part.text).join("\n")
        if (entry.kind === "bezel.user") {
          const files = message.content.flatMap((part) => part.type === "file" ? [fileOf(part)] : [])
          shown.push({ type: "prompt", text, files, at: entry.createdAt })
        } else shown.push({ type: "note", title: noteTitle(entry.kind), text })
      } else if (message.role === "assistant") {
        for (const part of message.content) {
          if (part.type === "text") shown.push({ type: "answer", text: part.text })
          else if (part.type === "reasoning") shown.push({ type: "reasoning", text: part.text })
          else if (part.type === "file") shown.push({ type: "files", files: [fileOf(part)] })
          else {
            open.set(part.id, shown.length)
            shown.push({
              type: "call",
              name: part.name,
              title: callTitle(part.name, part.params, 120),
              args: textOf(part.params),
              result: "",
              isError: false,
              diff: null
            })
          }
        }
      } else if (message.role === "tool") {
        for (const part of message.content) {
          const place = open.get(part.id)
          const call = place === undefined ? undefined : shown[place]
          if (place === undefined || call?.type !== "call") continue
          open.delete(part.id)
          const diff = field(field(entry.data, "details"), "diff")
          shown[place] = {
            ...call,
            result: textOf(part.result),
            isError: part.isFailure,
            diff: typeof diff === "string" ? diff : null
          }
        }
      }
    }
    const error = field(entry.data, "error")
    const message = field(error, "message")
    if (entry.model === null && typeof message === "string") {
      shown.push({ type: "note", title: "no answer", text: message })
    }
  }
  return shown
}

const noteTitle = (kind: string): string =>
  kind === "bezel.summary" ? "what came before was summarized" : kind === "bezel.notice" ? "notice" : kind
