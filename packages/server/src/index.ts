export * from "./placement.ts"
