/** The server itself: whether it answers, what happens in it, and what it measures. */
import * as Effect from "effect/Effect"
import { placeOf } from "../event-frames.ts"
import { type ServerHandlers, TextAnswer } from "../handler.ts"
import type { Gauge } from "../metrics.ts"
import type { ApiParts } from "../parts.ts"

export const serverRoutes = ({ fleet, fleetEvents, hubs, metrics, redeem, version }: ApiParts): ServerHandlers => ({
  health: () => Effect.succeed({ status: "ok" as const, version }),
  login: ({ payload: { code } }, { refuse }) =>
    Effect.flatMap(
      redeem?.(code) ?? Effect.succeed(null),
      (found) =>
        found === null
          // Counted with the tokens that are not valid: a code is one.
          ? Effect.fail(refuse("The code is not valid, or not any more."))
          : Effect.succeed(found)
    ),
  events: ({ query: { after } }, { header }) => Effect.succeed(fleetEvents.stream(placeOf(header, after))),
  metrics: () =>
    Effect.map(fleet.processes.status, (hosts) => {
      const { heapUsed, rss } = process.memoryUsage()
      const { system, user } = process.cpuUsage()
      const states = new Map<string, number>()
      for (const { state } of hosts) states.set(state, (states.get(state) ?? 0) + 1)
      const gauges: ReadonlyArray<Gauge> = [
        { name: "bezel_sessions_held", help: "Sessions that clients of the API use now.", value: hubs.size() },
        { name: "process_resident_memory_bytes", help: "Memory of the server.", value: rss },
        { name: "nodejs_heap_used_bytes", help: "JavaScript heap of the server.", value: heapUsed },
        { name: "process_cpu_seconds", help: "CPU time of the server.", value: (system + user) / 1e6 },
        ...[...states].map(([state, value]) => ({
          name: "bezel_session_hosts",
          help: "Session hosts by state.",
          value,
          labels: { state }
        }))
      ]
      return new TextAnswer({
        contentType: "text/plain; version=0.0.4; charset=utf-8",
        text: metrics.render(gauges)
      })
    })
})
