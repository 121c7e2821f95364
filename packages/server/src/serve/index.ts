/** The server process: its fleet, who may call it, and how it is found. */
export { isLoopback } from "./address.ts"
export { type Caller, mayDo, type Tokens, type TokenScope, tokenScopes } from "./caller.ts"
export { ServerClaimed } from "./discovery.ts"
export { Fleet, type FleetError, type FleetLocation, type FleetShape, type Offered } from "./fleet.ts"
export { AddressUnavailable } from "./listen.ts"
export { type OfferedList, type OfferedLists } from "./make-fleet.ts"
export { checkReach, type Reach, WrongReach } from "./reach.ts"
export { type RunningServer, type ServerOptions, startServer } from "./server.ts"
