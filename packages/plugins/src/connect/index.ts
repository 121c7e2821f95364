/** Connecting a model: from the one that needs nothing to a real one, in three keystrokes where one is at hand. */
export * from "./contract.ts"
export { answering, type AnsweringServer, localServers, placeOf } from "./local-servers.ts"
export { session as connectSession } from "./session.ts"
