export * from "./keyed.ts"
export * from "./location.ts"
export * from "./private-folder.ts"
export * from "./resolve.ts"
