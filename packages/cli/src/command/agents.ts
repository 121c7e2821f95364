/** `bezel agent list`: the agents of a location, and where each is from. */
import { formatModelRef } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import { oneLine } from "../run/text.ts"
import { listing } from "./catalogue.ts"

export const agentList = listing(({ agents }) =>
  Effect.map(agents.list, (all) =>
    all.map(({ description, model, name, permissions, readOnly, source, tools }) => ({
      json: {
        name,
        description,
        source,
        model: model === null ? null : formatModelRef(model),
        tools,
        permissions,
        readOnly
      },
      cells: [name, oneLine(source, 100), oneLine(description, 100)]
    })))
)
