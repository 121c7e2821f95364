/** Servers of the Model Context Protocol: their tools, resources and prompts. */
export * from "./contract.ts"
export { parsePromptCall } from "./prompts.ts"
export { credentialKey, signInServer } from "./sign-in.ts"
