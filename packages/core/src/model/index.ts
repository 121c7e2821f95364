export * from "./message.ts"
export * from "./model.ts"
