/** What the server counts of its requests, and the text that Prometheus reads. */

export interface Gauge {
  readonly name: string
  readonly help: string
  readonly value: number
  readonly labels?: { readonly [name: string]: string }
}

export interface Metrics {
  readonly answered: (route: string, status: number) => void
  readonly took: (route: string, millis: number) => void
  readonly refusedToken: () => void
  readonly streams: { readonly opened: () => void; readonly closed: () => void; readonly dropped: () => void }
  readonly render: (gauges: ReadonlyArray<Gauge>) => string
}

/** Upper bounds in seconds. */
const bounds = [0.005, 0.025, 0.1, 0.5, 2.5, 10]

const label = (text: string): string => text.replaceAll(/[\\"\n]/g, "_")

export const makeMetrics = (): Metrics => {
  const answers = new Map<string, number>()
  const durations = new Map<string, { readonly buckets: Array<number>; sum: number; count: number }>()
  const streams = { open: 0, dropped: 0 }
  let refusedTokens = 0

  return {
    answered: (route, status) => {
      const key = `route="${label(route)}",status="${status}"`
      answers.set(key, (answers.get(key) ?? 0) + 1)
    },
    took: (route, millis) => {
      const known = durations.get(route) ?? { buckets: bounds.map(() => 0), sum: 0, count: 0 }
      durations.set(route, known)
      const seconds = millis / 1_000
      known.sum += seconds
      known.count++
      for (const [index, bound] of bounds.entries()) {
        if (seconds <= bound) known.buckets[index] = (known.buckets[index] ?? 0) + 1
      }
    },
    refusedToken: () => {
      refusedTokens++
    },
    streams: {
      opened: () => {
        streams.open++
      },
      closed: () => {
        streams.open--
      },
      dropped: () => {
        streams.dropped++
      }
    },
    render: (gauges) => {
      const lines = [
        "# HELP bezel_http_requests_total Requests that were answered.",
        "# TYPE bezel_http_requests_total counter",
        ...[...answers].map(([key, count]) => `bezel_http_requests_total{${key}} ${count}`),
        "# HELP bezel_http_request_seconds Time to the end of the answer.",
        "# TYPE bezel_http_request_seconds histogram",
        ...[...durations].flatMap(([route, { buckets, count, sum }]) => [
          ...bounds.map((bound, index) =>
            `bezel_http_request_seconds_bucket{route="${label(route)}",le="${bound}"} ${buckets[index]}`
          ),
          `bezel_http_request_seconds_bucket{route="${label(route)}",le="+Inf"} ${count}`,
          `bezel_http_request_seconds_sum{route="${label(route)}"} ${sum}`,
          `bezel_http_request_seconds_count{route="${label(route)}"} ${count}`
        ]),
        "# HELP bezel_http_refused_tokens_total Requests without a valid token.",
        "# TYPE bezel_http_refused_tokens_total counter",
        `bezel_http_refused_tokens_total ${refusedTokens}`,
        "# HELP bezel_http_dropped_streams_total Event streams whose client did not read.",
        "# TYPE bezel_http_dropped_streams_total counter",
        `bezel_http_dropped_streams_total ${streams.dropped}`
      ]
      const all = [{ name: "bezel_http_streams", help: "Event streams that are open.", value: streams.open }, ...gauges]
      for (const [index, { help, labels = {}, name, value }] of all.entries()) {
        if (all[index - 1]?.name !== name) lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} gauge`)
        const text = Object.entries(labels).map(([key, of]) => `${key}="${label(of)}"`).join(",")
        lines.push(`${name}${text === "" ? "" : `{${text}}`} ${value}`)
      }
      return `${lines.join("\n")}\n`
    }
  }
}
