/** Skills: instructions for particular tasks, in folders, loaded when they are needed. */
export * from "./contract.ts"
export { findSkills, projectSkillFolders } from "./find.ts"
export { session as skillsSession } from "./session.ts"
