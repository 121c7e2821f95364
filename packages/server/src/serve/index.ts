/** The server process: its fleet, who may call it, and how it is found. */
export { type Caller, mayDo, type Tokens, type TokenScope, tokenScopes } from "./caller.ts"
export { Fleet, type FleetError, type FleetLocation, type FleetShape, type Offered } from "./fleet.ts"
