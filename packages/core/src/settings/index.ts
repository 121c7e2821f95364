export * from "./error.ts"
export * from "./key.ts"
export * from "./paths.ts"
export * from "./settings.ts"
