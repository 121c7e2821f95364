/**
 * The commands that need the runtime, as one module: everything that they share is loaded in one step, since many small files
 * take longer to find than to read.
 */
export { agentList } from "./command/agents.ts"
export { authToken } from "./command/auth-token.ts"
export { authList, authLogin, authRemove, authSet } from "./command/auth.ts"
export { modelList, pluginList, toolList } from "./command/catalogue.ts"
export { doctor } from "./command/doctor.ts"
export { hostSession } from "./command/host-session.ts"
export { pluginDoctor } from "./command/plugin-doctor.ts"
export { pluginAdd, pluginRemove } from "./command/plugin-install.ts"
export { run } from "./command/run.ts"
export { serve } from "./command/serve-lazily.ts"
export { sessionCompact, sessionFork, sessionImport } from "./command/session-copy.ts"
export { sessionRepair } from "./command/session-repair.ts"
export { sessionRevert } from "./command/session-revert.ts"
export { sessionExport, sessionList, sessionRemove, sessionShow } from "./command/session.ts"
export { skillList } from "./command/skills.ts"
export { attach, terminal } from "./command/terminal.ts"
