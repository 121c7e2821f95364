/** The terminal facet of skills: a loaded skill's card, and `/skills` for what there is. */
import { span, text, type ToolCallView, type ToolRenderer, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { SkillList } from "./contract.ts"

const nameOf = ({ args, argsText }: ToolCallView): string => {
  const name: unknown = typeof args === "object" && args !== null ? Reflect.get(args, "name") : undefined
  return typeof name === "string" ? name : argsText
}

/** How a call shows: its name alone, for the text is for the model. */
export const skillRenderer: ToolRenderer = {
  title: (call) => [nameOf(call)],
  body: (call, { expanded }) =>
    expanded || call.isError
      ? [text(span(call.output, { color: call.isError ? "error" : "muted" }), { indent: 2 })]
      : []
}

/** The terminal facet. */
export const tui = Effect.fn("skills/tui")(function*(ctx: TuiContext) {
  const opened = yield* Effect.cached(ctx.use(SkillList))
  yield* ctx.toolRenderers.register("skill", skillRenderer)
  yield* ctx.commands.register("skills.list", {
    slash: "skills",
    description: "Show the skills that can be loaded here",
    run: () =>
      Effect.scoped(Effect.gen(function*() {
        const { problems, skills } = yield* Effect.flatMap(opened, (service) => service.list())
        const body = [
          ...skills.flatMap(({ description, file, name }) => [
            text([span(name, { color: "accent" }), span(`  ${description}`)]),
            text(span(file, { color: "muted" }), { indent: 2 })
          ]),
          ...(skills.length === 0
            ? [text("There are none: a folder with a SKILL.md in skills/ of the config folder.")]
            : []),
          ...problems.map((problem) => text(span(problem, { color: "warning" })))
        ]
        const overlay = yield* ctx.ui.overlay({
          title: "Skills",
          body: () => body,
          closeKeys: ["escape", "enter", "q"]
        })
        yield* overlay.closed
      }))
  })
})
