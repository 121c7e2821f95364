/**
 * What is wrong in a journal of JSON lines, and writing what is whole of it into a new one.
 *
 * Whole groups are copied byte for byte. Where commits are missing, a group takes their numbers that says so.
 */
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { privateFolder } from "../location/index.ts"
import {
  damageMessage,
  groupText,
  header,
  jsonlVersion,
  newerVersion,
  parseHeader,
  scanSegment,
  ScanState
} from "./jsonl-format.ts"
import type { Group } from "./jsonl-format.ts"
import { JsonlIndex } from "./jsonl-index.ts"
import { checkpointOf, openIndex, prepareWriter, readWhole } from "./jsonl-open.ts"
import { Segments } from "./jsonl-segments.ts"
import { JsonlSession } from "./jsonl-session.ts"
import { replaceFolder, settleFolder, successorOf, versionOf, writeDurably } from "./migrate-jsonl.ts"
import { freeName } from "./migrate.ts"
import type { Findings, Loss } from "./repair.ts"
import type { Batch } from "./storage.ts"

/** Reads every line; changes nothing. */
export const inspectJsonl = (folder: string): Findings => {
  const segments = new Segments(folder)
  const version = versionOf(segments) ?? jsonlVersion
  segments.close()
  if (version > jsonlVersion) throw newerVersion(folder, version, jsonlVersion)
  const remembered = openIndex(folder, true)
  const known = remembered === null ? null : checkpointOf(remembered)
  remembered?.close()
  const session = new JsonlSession(folder, new JsonlIndex(":memory:"), jsonlVersion)
  try {
    const damage = readWhole(session, known)
    session.checkpoint()
    const losses = damage.map((item): Loss => ({
      file: session.segments.path(item.segment),
      line: item.line,
      lastLine: item.lastLine,
      first: item.first,
      last: item.last
    }))
    return {
      faults: damage.map((item) => damageMessage(session.segments.path(item.segment), item)),
      unreadable: false,
      losses,
      setAside: 0,
      sequence: session.position.sequence,
      nextID: Math.max(session.position.nextID, known?.nextID ?? 1),
      entries: session.index.countEntries(),
      conversations: session.conversations(),
      tasks: session.liveTasks(),
      inputs: session.liveInputs(),
      documents: session.documents().map((document) => ({ document, ...session.lastKnown(document) }))
    }
  } finally {
    session.close()
  }
}

/** Writes the journal anew beside the damaged one, ends it with a closing commit, and puts it in its place. */
export const rewriteJsonl = (folder: string, findings: Findings, closing: Batch | null, stamp: string): string => {
  settleFolder(folder)
  const segments = new Segments(folder)
  const version = versionOf(segments) ?? jsonlVersion
  const successor = successorOf(folder)
  privateFolder(successor)
  let written = 0
  let nextID = 1
  let at = 0
  /** Takes the numbers of the commits up to `sequence` that are not there. */
  const gapsBefore = (sequence: number): string => {
    let text = ""
    for (const { file, first, last, lastLine, line } of findings.losses) {
      if (first > last || first !== written + 1 || last >= sequence) continue
      const records = [{ gap: { first, last, file, line, lastLine } }]
      text += groupText({ sequence: last, first, nextID, at, events: [], records })
      written = last
    }
    return text
  }
  const state = new ScanState(0)
  const numbers = segments.list()
  for (const [position, segment] of numbers.entries()) {
    const bytes = fs.readFileSync(segments.path(segment))
    const first = parseHeader(bytes)
    const offset = first === null ? 0 : bytes.indexOf(10) + 1
    if (first !== null) state.expect(first.after, segment, 1)
    const parts: Array<Buffer> = [Buffer.from(header(position + 1, written, version))]
    scanSegment(bytes.subarray(offset), segment, { offset, line: first === null ? 1 : 2 }, state, (group: Group) => {
      parts.push(Buffer.from(gapsBefore(group.first)), bytes.subarray(group.start, group.end))
      written = group.sequence
      nextID = Math.max(nextID, group.nextID)
      at = group.at
    })
    if (position === numbers.length - 1) parts.push(Buffer.from(gapsBefore(Number.MAX_SAFE_INTEGER)))
    writeDurably(nodePath.join(successor, `${String(position + 1).padStart(6, "0")}.jsonl`), Buffer.concat(parts))
  }
  segments.close()
  if (closing !== null) {
    const options = {
      fsync: true,
      segmentBytes: Number.MAX_SAFE_INTEGER,
      maxBytes: Number.MAX_SAFE_INTEGER,
      checkpointEvery: 2_000
    }
    const writer = prepareWriter(successor, options, { version, migrations: [] }, () => {})
    try {
      writer.commit(closing)
    } finally {
      writer.close()
    }
  }
  const kept = freeName(`${folder}.damaged-${stamp}`)
  replaceFolder(folder, kept)
  return kept
}
