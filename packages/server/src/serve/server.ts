/**
 * The server of one user: it claims the data folder, listens when all behind it is ready, says where it is, and takes up the
 * work that an earlier server has left undone.
 *
 *     claimed ──▶ fleet up ──▶ listening ──▶ announced ──▶ earlier work goes on ──scope ends──▶ not found any more
 *                                                              ──▶ not listening any more ──▶ hosts stopped, turns suspended
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { join } from "node:path"
import { failure } from "../http/failure.ts"
import { type OfferTool, type Redeem, type RunCommand, serveHttp } from "../http/index.ts"
import { isEveryAddress } from "./address.ts"
import { makeBrowserCodes } from "./browser-codes.ts"
import type { TokenScope } from "./caller.ts"
import { announceServer, claimServer, type ServerClaimed, type ServerFolders } from "./discovery.ts"
import { Fleet, type FleetShape } from "./fleet.ts"
import { type AddressUnavailable, urlHost } from "./listen.ts"
import { fleetLayer, type OfferedLists } from "./make-fleet.ts"
import { makeRoll } from "./roll.ts"
import { rpcUpgrades } from "./rpc.ts"
import { takeUp, takeUpAfterDeaths } from "./take-up.ts"
import { createPassingToken, dropPassingTokens, makeTokens, ownToken, type TokenError } from "./tokens.ts"

export interface ServerOptions {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  /** Names beyond the addresses that it listens on by which clients may call it. */
  readonly allowedHosts: ReadonlyArray<string>
  /** Origins whose pages may call it; exactly as browsers write them. */
  readonly allowedOrigins: ReadonlyArray<string>
  readonly version: string
  readonly folders: ServerFolders
  /** The token of this server; `null`: the one in the state folder, which is made if it is not there. */
  readonly token: Redacted.Redacted | null
  readonly lists: OfferedLists
  /** Without it, sessions run no commands for clients. */
  readonly runCommand?: RunCommand
  /** Without it, clients offer no tools. */
  readonly offerTool?: OfferTool
  /** Offers a one-time code of this scope to a browser. */
  readonly browser?: TokenScope | null
}

export interface RunningServer {
  readonly url: string
  readonly token: Redacted.Redacted
  /** An address that signs a browser in, once. */
  readonly browserUrl: Redacted.Redacted | null
  readonly fleet: FleetShape
  /** How many sessions of an earlier server go on. */
  readonly resumed: number
}

/** Runs until the scope ends. `placement` is built once the data folder is this server's. */
export const startServer = <R, E>(
  options: ServerOptions,
  placement: Layer.Layer<Layer.Services<ReturnType<typeof fleetLayer>>, E, R>
): Effect.Effect<RunningServer, E | AddressUnavailable | ServerClaimed | TokenError, R | Scope.Scope> =>
  Effect.gen(function*() {
    yield* claimServer(options.folders)
    const token = options.token ?? (yield* ownToken(options.folders.state))
    const services = yield* Layer.build(placement)
    // With all that the placement stands on, so that what is logged goes where its log does.
    return yield* Effect.provideContext(open(options, token), services)
  })

const open = (options: ServerOptions, token: Redacted.Redacted) =>
  Effect.gen(function*() {
    const { folders, version } = options
    const roll = makeRoll(join(folders.data, "server", "sessions.json"))
    const fleet = Context.get(yield* Layer.build(fleetLayer({ lists: options.lists, roll })), Fleet)
    const unfinished = yield* roll.unfinished(fleet.records)
    yield* roll.retain(unfinished.map(({ id }) => id))
    const onUpgrade = yield* rpcUpgrades(fleet)
    const tokens = makeTokens(folders.state, token)
    const codes = makeBrowserCodes()
    // Those of a server that was killed, now, and those of this one at its end.
    yield* dropPassingTokens(folders.state)
    yield* Effect.addFinalizer(() => Effect.ignore(dropPassingTokens(folders.state)))
    const one = yield* Semaphore.make(1)
    const redeem: Redeem = (code) => {
      const scope = codes.redeem(code)
      return scope === null ? Effect.succeed(null) : Clock.currentTimeMillis.pipe(
        Effect.flatMap((now) => one.withPermits(1)(createPassingToken(folders.state, { name: "browser", scope, now }))),
        Effect.map((token) => ({ token: Redacted.value(token), scope })),
        Effect.tapError((error) => Effect.logError(`A one-time code could not be redeemed: ${error.message}`)),
        Effect.mapError(() => failure("unavailable", "The server cannot keep a token at the moment; its log says why."))
      )
    }
    const { port } = yield* serveHttp({ ...options, fleet, tokens, onUpgrade, redeem })
    const url = `http://${urlHost(isEveryAddress(options.host) ? "127.0.0.1" : options.host)}:${port}`
    yield* announceServer(folders, { url, version })
    yield* Effect.forkScoped(takeUpAfterDeaths(fleet, roll), { startImmediately: true })
    yield* Effect.forkScoped(takeUp(fleet, unfinished))
    const browserUrl = options.browser === undefined || options.browser === null
      ? null
      : Redacted.make(`${url}/docs#code=${Redacted.value(codes.offer(options.browser))}`)
    return { url, token, browserUrl, fleet, resumed: unfinished.length } satisfies RunningServer
  })
