/** Finding the server of this user, for its clients: without the server itself. */
export { findServer, type ServerFolders, type ServerNote } from "../serve/discovery.ts"
export { createToken, type KeptToken, listTokens, readOwnToken, revokeToken, TokenError } from "../serve/tokens.ts"
