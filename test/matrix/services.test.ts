/** Services and interactions over every transport there is, from one text. */
import { describe } from "@effect/vitest"
import { calls } from "./calls.ts"
import { chained } from "./chained.ts"
import { durable } from "./durable.ts"
import { edges } from "./edges.ts"
import { overLoopback, overPort, overUnixSocket, overWebSocket } from "./harness.ts"
import { keyed, sessions } from "./instances.ts"
import { interactions } from "./interactions.ts"
import { leaving } from "./leaving.ts"
import { nested } from "./nested.ts"
import { references } from "./references.ts"
import { events, state } from "./state.ts"

for (const transport of [overLoopback, overUnixSocket, overWebSocket, overPort]) {
  describe(`over ${transport.name}`, () => {
    describe("calls", () => calls(transport))
    describe("replicated state", () => state(transport))
    describe("events", () => events(transport))
    describe("durable events", () => durable(transport))
    describe("sessions", () => sessions(transport))
    describe("keyed instances", () => keyed(transport))
    describe("references", () => references(transport))
    describe("references that return references", () => nested(transport))
    describe("the edges of contracts", () => edges(transport))
    describe("interactions", () => interactions(transport))
    describe("those who leave", () => leaving(transport))
    describe("chained hosts", () => chained(transport))
  })
}
