/** Permissions: rules for tools, and the question to a person where no rule decides. */
export * from "./contract.ts"
export { decide, type Decision, type PathProbe, strictest } from "./decide.ts"
export { fileProbe } from "./probe.ts"
export { changesOf, mayChange, unknownToOnlyRead } from "./read-only.ts"
export {
  compileRules,
  deniesTool,
  flatten,
  formatRule,
  judge,
  type Judgement,
  parseRule,
  type Rule,
  type RuleSet,
  type RuleText
} from "./rules.ts"
export { PermissionOptionsError, session as permissionsSession } from "./session.ts"
export { readCommandLine, type ShellReading, type SimpleCommand } from "./shell.ts"
