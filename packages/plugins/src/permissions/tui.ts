/**
 * The approval dialog: asks the person at the terminal whether a call may run; `/permissions` shows what is always allowed.
 *
 * What is asked about is shown in full and as it is, hidden characters included. Dismissing the dialog is a no, and so is
 * anything that is not one of the ways of saying yes.
 */
import { type Block, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { sayingWhy } from "../chat/closed.ts"
import { Approval, type ApprovalRequest, type ApprovalResponse, ProjectPermissions } from "./contract.ts"

const maxSubjects = 20

/** A person may have asked for none of this: it is for what an agent has handed on. */
const askedBy = ({ agent, title }: NonNullable<ApprovalRequest["subagent"]>) =>
  span(`For the sub-agent${agent === null ? "" : ` ${agent}`}${title === "" ? "" : `: ${title}`}`, { color: "accent" })

/** What the dialog shows above the choices. */
export const approvalBlocks = (request: ApprovalRequest): ReadonlyArray<Block> => {
  const subjects = request.subjects.length === 0 ? [JSON.stringify(request.args)] : request.subjects
  return [
    ...(request.subagent === undefined ? [] : [text(askedBy(request.subagent), { indent: 2 })]),
    ...subjects.slice(0, maxSubjects).map((subject) =>
      text(span(subject, { color: "code", bold: true }), { indent: 2 })
    ),
    ...(subjects.length > maxSubjects
      ? [text(span(`and ${subjects.length - maxSubjects} more`, { color: "warning" }), { indent: 2 })]
      : []),
    ...request.reasons.map((reason) => text(span(reason, { color: "muted" }), { indent: 2 }))
  ]
}

/** The terminal facet. */
export const tui = Effect.fn("permissions/tui")(function*(ctx: TuiContext) {
  yield* ctx.interactions.handle(
    Approval,
    (request) =>
      sayingWhy(
        ctx.ui,
        `Allow ${request.tool}?`,
        Effect.gen(function*() {
          const choices: Array<
            { readonly value: ApprovalResponse["decision"]; readonly label: string; readonly description?: string }
          > = [
            { value: "once", label: "Allow once" }
          ]
          if (request.grants.length > 0) {
            const description = request.grants.join(", ")
            choices.push({ value: "session", label: "Allow for this session", description })
            choices.push({ value: "project", label: "Always allow in this project", description })
          }
          choices.push({ value: "deny", label: "No", description: "and tell the model what to do instead" })
          const decision = yield* ctx.ui.select({
            title: `Allow ${request.tool}?`,
            body: approvalBlocks(request),
            options: choices
          })
          if (decision === null) return { decision: "deny" }
          if (decision !== "deny") return { decision }
          const message = yield* ctx.ui.input({
            title: `No ${request.tool}. What should it do instead?`,
            body: approvalBlocks(request),
            placeholder: "enter to just say no"
          })
          return message === null || message.trim() === "" ? { decision } : { decision, message: message.trim() }
        })
      )
  )

  const opened = yield* Effect.cached(ctx.use(ProjectPermissions))
  yield* ctx.commands.register("permissions.show", {
    slash: "permissions",
    description: "Show what is always allowed in this project, and take it back",
    run: () =>
      Effect.gen(function*() {
        const permissions = yield* opened
        const { file, rules } = yield* permissions.list()
        if (rules.length === 0) return yield* ctx.ui.notify("Nothing is always allowed in this project.")
        const rule = yield* ctx.ui.select({
          title: "Always allowed in this project",
          body: [text(span(`Choose one to take it back. Kept in ${file}.`, { color: "muted" }), { indent: 2 })],
          options: rules.map((value) => ({ value, label: value }))
        })
        if (rule === null || !(yield* ctx.ui.confirm({ title: `Ask about ${rule} again?` }))) return
        yield* permissions.remove({ rule })
        yield* ctx.ui.notify(`${rule} is asked about again.`)
      })
  })
})
