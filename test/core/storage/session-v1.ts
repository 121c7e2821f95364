/** A session's SQLite file as version 1 of the format has it: the statements that the Bezel of then ran. */
import { DatabaseSync } from "node:sqlite"
import { entry, input, task } from "./batches.ts"

const schema = `
  CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL, next_id INTEGER NOT NULL);
  INSERT INTO state VALUES (1, 0, 1);
  CREATE TABLE commits (sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, events TEXT NOT NULL);
  CREATE TABLE conversations (id TEXT PRIMARY KEY, record TEXT NOT NULL);
  CREATE TABLE entries (
    ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, sequence INTEGER NOT NULL, conversation TEXT NOT NULL,
    kind TEXT NOT NULL, head INTEGER NOT NULL, record TEXT NOT NULL
  );
  CREATE INDEX entries_conversation ON entries (conversation, ordinal);
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
  PRAGMA application_id = ${0x427a6c53};
  PRAGMA user_version = 1;
`

/** Two commits: entries `e1` and (with an id of another form) `first`, a document, then a task and an input. */
export const writeVersion1 = (path: string): void => {
  const database = new DatabaseSync(path)
  database.exec("PRAGMA journal_mode = WAL")
  database.exec(schema)
  const add = database.prepare("INSERT INTO entries VALUES (?, ?, ?, 'c1', '\"user\"', 0, ?)")
  add.run(1, "e1", 1, JSON.stringify(entry(1, { data: "one" })))
  add.run(2, "first", 1, JSON.stringify(entry(2, { id: "first" })))
  database.prepare("INSERT INTO commits VALUES (1, 11, ?)").run(JSON.stringify(["a"]))
  const conversation = JSON.stringify({ id: "c1", parent: null, owner: null, createdAt: 1 })
  database.prepare("INSERT INTO conversations VALUES ('c1', ?)").run(conversation)
  database.prepare("INSERT INTO tasks VALUES ('t3', 3, 1, ?)").run(JSON.stringify(task(3)))
  database.prepare("INSERT INTO inputs VALUES ('i4', 4, 1, '\"r\"', ?)").run(
    JSON.stringify(input(4, { requestID: "r" }))
  )
  database.exec(`
    INSERT INTO documents VALUES ('"d"', 1, 1, 7, 15);
    INSERT INTO document_states VALUES ('"d"', 1, 1, '{"n":1}'), ('"d"', 2, 0, '[["set",["n"],2]]');
    UPDATE state SET sequence = 2, next_id = 5`)
  database.close()
}
