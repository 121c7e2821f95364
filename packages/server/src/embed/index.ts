/**
 * A server inside a program: the same fleet and the same API over it, without a port, a token or a process of its own.
 *
 * It shares its folders with whatever else of Bezel runs for this user; a session is written by one of them at a time.
 */
import { type BezelEffectClient, makeEffectClient } from "@bezel/sdk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { inProcessClient } from "../http/in-process.ts"
import { makeApi } from "../http/make-api.ts"
import type { OfferTool, RunCommand } from "../http/parts.ts"
import { Fleet } from "../serve/fleet.ts"
import { fleetLayer, type OfferedLists } from "../serve/make-fleet.ts"
import type { Roll } from "../serve/roll.ts"

export interface EmbedOptions {
  readonly version: string
  /** The directory of sessions that name none; default: that of this process. */
  readonly directory?: string
  readonly lists: OfferedLists
  readonly runCommand?: RunCommand
  readonly offerTool?: OfferTool
}

/** A program that ends has its work go on when it says so; nobody takes it up by itself. */
const noRoll: Pick<Roll, "enter"> = { enter: () => Effect.void }

/** A client of the API of the locations of this program, for the length of the scope. */
export const embed = ({ directory, lists, offerTool, runCommand, version }: EmbedOptions): Effect.Effect<
  BezelEffectClient,
  never,
  Layer.Services<ReturnType<typeof fleetLayer>> | Scope.Scope
> =>
  Effect.gen(function*() {
    const fleet = Context.get(yield* Layer.build(fleetLayer({ lists, roll: noRoll })), Fleet)
    const { api } = yield* makeApi({
      fleet,
      version,
      ...(directory === undefined ? {} : { defaultLocation: directory }),
      ...(runCommand === undefined ? {} : { runCommand }),
      ...(offerTool === undefined ? {} : { offerTool })
    })
    return makeEffectClient({ url: "http://bezel.invalid", token: "", httpClient: yield* inProcessClient(api) })
  })
