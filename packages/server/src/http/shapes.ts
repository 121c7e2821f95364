/** What the API says of what core knows: times as text, and nothing that is not in the definition. */
import type { SessionMessage, SessionRecord } from "@bezel/core/session"
import type { HistoryItem } from "@bezel/core/storage"
import type * as Api from "@bezel/sdk/api"

/** A time as ISO 8601; what is stored as no time is the epoch. */
export const timeOf = (millis: number): string => {
  const time = new Date(millis)
  return Number.isNaN(time.getTime()) ? new Date(0).toISOString() : time.toISOString()
}

/** Records are immutable and the catalogue keeps those that it has read, so most of a list was shaped before. */
const shaped = new WeakMap<SessionRecord, Api.Session>()

export const toSession = (record: SessionRecord): Api.Session => {
  const known = shaped.get(record)
  if (known !== undefined) return known
  const session = shape(record)
  shaped.set(record, session)
  return session
}

const shape = (record: SessionRecord): Api.Session => ({
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
