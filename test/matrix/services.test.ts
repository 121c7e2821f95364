/** Services and interactions over every transport there is, from one text. */
import { loopback } from "@bezel/core/rpc"
import { describe } from "@effect/vitest"
import { calls } from "./calls.ts"
import type { TransportUnderTest } from "./harness.ts"

const transports: ReadonlyArray<TransportUnderTest> = [{ name: "loopback", connect: loopback }]

for (const transport of transports) {
  describe(`over ${transport.name}`, () => {
    describe("calls", () => calls(transport))
  })
}
