/** Context: what the model is told before the conversation begins. */
export * from "./contract.ts"
export { session as contextSession } from "./session.ts"
