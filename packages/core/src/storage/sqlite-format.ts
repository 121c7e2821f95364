/**
 * The tables of a session's SQLite file, and how those of earlier versions become these.
 *
 * A commit of one entry writes three pages: the entry, its place in the index of kinds, and the commit with its events. An
 * entry whose id says its ordinal, as nearly all do, needs no index of ids; a scan of all kinds puts one scan of each in
 * order; and the newest commit says where the session is, unless it had no events, when `state` says it.
 */
import type { Format, Migration } from "./database.ts"

/**
 * Version 1 had no ids in `commits`: the row of `state` was written by every commit, and told the newest one. Nor had it an
 * index of those ids alone that do not say where their entry is.
 */
const fromVersion1: Migration = {
  from: 1,
  schema: `
    CREATE TABLE commits_2 (sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, events TEXT NOT NULL, next_id INTEGER NOT NULL DEFAULT 1);
    INSERT INTO commits_2 (sequence, at, events) SELECT sequence, at, events FROM commits;
    DROP TABLE commits;
    ALTER TABLE commits_2 RENAME TO commits;
    DROP INDEX IF EXISTS entries_conversation;
    CREATE UNIQUE INDEX IF NOT EXISTS entries_id ON entries (id) WHERE id <> 'e' || ordinal;
    -- Whatever the row of state says: no id is given twice.
    UPDATE state SET sequence = max(sequence, coalesce((SELECT max(sequence) FROM commits), 0)), next_id = max(
      next_id,
      coalesce((SELECT max(ordinal) FROM entries), 0) + 1,
      coalesce((SELECT max(ordinal) FROM tasks), 0) + 1,
      coalesce((SELECT max(ordinal) FROM inputs), 0) + 1
    );
  `
}

/** "BzlS" */
export const sqliteFormat: Format = {
  applicationID: 0x427a6c53,
  version: 2,
  migrations: [fromVersion1],
  schema: `
    CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL, next_id INTEGER NOT NULL);
    INSERT INTO state VALUES (1, 0, 1);
    CREATE TABLE commits (sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, events TEXT NOT NULL, next_id INTEGER NOT NULL DEFAULT 1);
    CREATE TABLE conversations (id TEXT PRIMARY KEY, record TEXT NOT NULL);
    CREATE TABLE entries (
      ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL, sequence INTEGER NOT NULL, conversation TEXT NOT NULL,
      kind TEXT NOT NULL, head INTEGER NOT NULL, record TEXT NOT NULL
    );
    CREATE UNIQUE INDEX entries_id ON entries (id) WHERE id <> 'e' || ordinal;
    CREATE INDEX entries_kind ON entries (conversation, kind, ordinal);
    CREATE INDEX entries_head ON entries (conversation, ordinal) WHERE head = 1;
    CREATE TABLE tasks (id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, live INTEGER NOT NULL, record TEXT NOT NULL);
    CREATE INDEX tasks_live ON tasks (ordinal) WHERE live = 1;
    CREATE TABLE inputs (id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, live INTEGER NOT NULL, request TEXT UNIQUE, record TEXT NOT NULL);
    CREATE INDEX inputs_live ON inputs (ordinal) WHERE live = 1;
    CREATE TABLE documents (
      document TEXT PRIMARY KEY, first INTEGER NOT NULL, retained INTEGER NOT NULL, base_size INTEGER NOT NULL, replay_size INTEGER NOT NULL
    );
    CREATE TABLE document_states (
      document TEXT NOT NULL, sequence INTEGER NOT NULL, base INTEGER NOT NULL, value TEXT NOT NULL, UNIQUE (document, sequence)
    );
    CREATE INDEX document_bases ON document_states (document, sequence) WHERE base = 1;
  `
}
