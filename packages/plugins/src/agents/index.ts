/** Agents: a prompt, a choice of tools, a model and permissions under one name. */
export { builtinAgents } from "./builtin.ts"
export * from "./contract.ts"
export { agentFiles, readAgent } from "./file.ts"
export { collectAgents, hiddenTools } from "./registry.ts"
export { session as agentsSession } from "./session.ts"
