export * from "./storage.ts"
