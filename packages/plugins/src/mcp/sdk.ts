/** The parts of the protocol's library that are used, behind one import, which happens when the first server is connected. */
export {
  discoverAuthorizationServerMetadata,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  registerClient,
  selectClientAuthMethod
} from "@modelcontextprotocol/sdk/client/auth.js"
export { Client } from "@modelcontextprotocol/sdk/client/index.js"
export { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
export { checkResourceAllowed, resourceUrlFromServerUrl } from "@modelcontextprotocol/sdk/shared/auth-utils.js"
export {
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  McpError as ProtocolError,
  PromptListChangedNotificationSchema,
  ResultSchema,
  ToolListChangedNotificationSchema
} from "@modelcontextprotocol/sdk/types.js"
export { StdioTransport } from "./stdio.ts"
