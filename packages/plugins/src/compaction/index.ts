/** Compaction: when a conversation is summarized, and the commands that ask for it. */
export { session as compactionSession } from "./session.ts"
