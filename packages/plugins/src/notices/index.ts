/** Notices outside of the screen when a turn ends or waits. */
export * from "./contract.ts"
