/** The parts of the protocol's library that are used, behind one import, which happens when the first server is connected. */
export { Client } from "@modelcontextprotocol/sdk/client/index.js"
export { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
export {
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  McpError as ProtocolError,
  PromptListChangedNotificationSchema,
  ResultSchema,
  ToolListChangedNotificationSchema
} from "@modelcontextprotocol/sdk/types.js"
export { StdioTransport } from "./stdio.ts"
