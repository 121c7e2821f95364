/** What the API says of what core knows: times as text, and nothing that is not in the definition. */
import type { SessionMessage, SessionPage, SessionRecord } from "@bezel/core/session"
import type { HistoryItem } from "@bezel/core/storage"
import type * as Api from "@bezel/sdk/api"
import { JsonText } from "./handler.ts"

/** A time as ISO 8601; what is stored as no time is the epoch. */
export const timeOf = (millis: number): string => {
  const time = new Date(millis)
  return Number.isNaN(time.getTime()) ? new Date(0).toISOString() : time.toISOString()
}

/** Records are immutable and the catalogue keeps those that it has read, so most of a list was written before. */
const written = new WeakMap<SessionRecord, string>()

const textOf = (record: SessionRecord): string => {
  const known = written.get(record)
  if (known !== undefined) return known
  const text = JSON.stringify(toSession(record))
  written.set(record, text)
  return text
}

/** A page of sessions, of the texts of each. */
export const sessionPage = ({ cursor, sessions }: SessionPage): JsonText =>
  new JsonText({
    text: `{"items":[${sessions.map(textOf).join(",")}]${cursor === null ? "" : `,"next":${JSON.stringify(cursor)}`}}`
  })

export const toSession = (record: SessionRecord): Api.Session => ({
  id: record.id,
  title: record.title,
  location: record.location,
  parentID: record.parentID,
  agent: record.agent,
  model: record.model,
  status: record.status,
  createdAt: timeOf(record.createdAt),
  updatedAt: timeOf(record.updatedAt),
  usage: record.usage,
  cost: record.cost,
  version: record.version,
  archived: record.archived
})

export const toMessage = (message: SessionMessage): Api.SessionMessage => ({
  ...message,
  createdAt: timeOf(message.createdAt)
})

export const toCommit = ({ at, events, sequence }: HistoryItem): Api.Commit => ({ sequence, at: timeOf(at), events })
