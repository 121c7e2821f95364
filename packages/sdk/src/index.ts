/** `@bezel/sdk`: the definition of the HTTP API and its typed client. */
export * from "./api/index.ts"
