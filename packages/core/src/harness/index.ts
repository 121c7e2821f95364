export * from "./api.ts"
export * from "./view.ts"
