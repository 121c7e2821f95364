/** What locations offer, and the files in them. */
import * as Effect from "effect/Effect"
import type { FleetLocation } from "../../serve/fleet.ts"
import { findFiles, readInside } from "../files.ts"
import type { LocationHandlers } from "../handler.ts"
import type { ApiParts } from "../parts.ts"

export const locationRoutes = ({ fleet, places }: ApiParts): LocationHandlers => {
  const at = (directory: string | undefined) =>
    Effect.flatMap(places.known(directory), ({ directory, workspaceID }) => fleet.location(directory, workspaceID))
  const listed = <A, E>(
    directory: string | undefined,
    list: (location: FleetLocation) => Effect.Effect<ReadonlyArray<A>, E>
  ) => Effect.map(Effect.flatMap(at(directory), list), (items) => ({ items }))

  return {
    get: ({ query }) =>
      Effect.gen(function*() {
        const location = yield* places.known(query.directory)
        const { cursor, sessions } = yield* fleet.records.list({ location, limit: 1_000 })
        return { location, sessions: cursor === null ? sessions.length : yield* places.count(location) }
      }),
    tools: ({ query: { location } }) =>
      listed(
        location,
        ({ tools }) =>
          Effect.map(tools, (all) => all.map(({ description, name, plugin }) => ({ name, plugin, description })))
      ),
    models: ({ query: { location } }) =>
      listed(location, ({ models }) =>
        Effect.map(models, (all) =>
          all.map(({ availability, info }) => ({
            ref: { provider: info.provider, model: info.model },
            name: info.name,
            contextWindow: info.contextWindow,
            maxOutput: info.maxOutput,
            reasoning: info.reasoning,
            images: info.images,
            ready: availability.ready,
            reason: availability.ready ? null : availability.reason
          })))),
    agents: ({ query: { location } }) => listed(location, ({ agents }) => agents),
    commands: ({ query: { location } }) => listed(location, ({ commands }) => commands),
    skills: ({ query: { location } }) => listed(location, ({ skills }) => skills),
    plugins: ({ query: { location } }) =>
      listed(
        location,
        ({ plugins }) =>
          Effect.map(plugins, (all) => all.map(({ error, id, state, version }) => ({ id, version, state, error })))
      ),
    file: ({ query: { location, path } }) =>
      Effect.flatMap(places.known(location), ({ directory }) => readInside(directory, path)),
    findFiles: ({ query: { limit = 100, location, query } }) =>
      Effect.flatMap(places.known(location), ({ directory }) => findFiles(directory, query, limit))
  }
}
