/** What the program of the terminal tests shows on demand: one scene of each part of the screen, by the word that was sent. */
import { span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { Approval } from "../../packages/plugins/src/permissions/contract.ts"
import { Question } from "../../packages/plugins/src/question/contract.ts"
import { openBlocks } from "../../packages/plugins/src/todo/tui.ts"
import { imageScene } from "./image-scenes.ts"
import { assistant, type Script, type StubSession, tool, toolResult } from "./stub-session.ts"

/** Everything that a model, a tool or a file name could send at a terminal. */
const attacks = [
  "\x1b]52;c;c3RvbGVu\x07",
  "\x1b[2J\x1b[1;1H",
  "\x1b[20A\x1b[999D",
  "\x1bP+q544e\x1b\\",
  "\u009b2J\u0090q\u009c",
  "\x1b[?1049h\x1b[r\x1bc",
  "\u202e\u2066\u200f",
  "\r\b\b\b\x0b\x0c"
].join("")

/** What a real approval looks like, as text of a model. */
const falseApproval = [
  "─".repeat(80),
  "Allow bash?",
  "  rm -rf /",
  "› 1. Allow once",
  "  2. No  and tell the model what to do instead",
  "↑↓ move · enter choose · esc cancel"
].join("\n")

export const mixed = "日本語テキスト 👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪 e\u0301a\u0308 שלום עולם नमस्ते ｆｕｌｌ\ttab " +
  "a_word_that_is_longer_than_any_row_of_a_narrow_terminal_ever_is"

const ask = (script: Script, subject: string) =>
  Effect.andThen(
    script.ask(Approval, {
      conversationID: "main",
      taskID: "t",
      callID: "c",
      tool: "bash",
      args: {},
      access: "bash",
      subjects: [subject],
      reasons: ["No rule allows it."],
      grants: []
    }),
    script.finish
  )

/** Plays a scene; `null` when there is none of this name. */
export const scene = (input: string, script: Script): Effect.Effect<void, unknown> | null => {
  switch (input) {
    case "scene answer":
      return Effect.andThen(
        script.turn([
          { type: "reasoning", text: "Where is it set?" },
          { type: "text", text: "It is **set** in `a.ts`:\n\n- one\n- two\n\n```ts\nconst a = 1" }
        ]),
        Effect.never
      )
    case "scene mixed":
      return Effect.andThen(
        Effect.andThen(script.turn([{ type: "text", text: mixed }]), Effect.sleep("20 millis")),
        Effect.andThen(script.entry("bezel.assistant", assistant(`${mixed}\n\nEnd of it.`)), script.finish)
      )
    case "scene diff":
      return Effect.gen(function*() {
        const params = { path: "src/a.ts", oldText: "one", newText: "two" }
        yield* script.entry("bezel.assistant", assistant("", [{ type: "tool-call", id: "d1", name: "edit", params }]))
        yield* script.entry("bezel.tool_result", toolResult("d1", "edit", "Edited."), {
          callID: "d1",
          details: { diff: "--- a\n+++ b\n@@ -1,3 +1,3 @@\n same\n-one\n+two\n same\n" }
        })
        yield* script.finish
      })
    case "scene approval":
      return ask(script, "rm -rf build")
    case "scene question":
      return Effect.andThen(
        script.ask(Question, {
          question: "Which one?",
          options: [{ label: "Left", description: "the short way" }, { label: "Right", description: null }]
        }),
        script.finish
      )
    case "scene queue":
      return Effect.andThen(
        script.update((view) => ({
          ...view,
          inbox: [
            { id: "i1", text: "look at b too", whenBusy: "steer" },
            { id: "i2", text: "then commit", whenBusy: "followUp" }
          ],
          turn: { inputs: ["i0"], generation: null, message: null, tools: [] }
        })),
        Effect.never
      )
    case "scene todo":
      return Effect.andThen(
        script.update((view) => ({
          ...view,
          plugins: {
            todo: {
              items: [
                { text: "read", status: "completed" },
                { text: "write", status: "in_progress" },
                { text: "test", status: "pending" }
              ]
            }
          }
        })),
        script.finish
      )
    case "scene tall":
      // A call whose card is taller than the screen, and ends when its first row has scrolled away.
      return Effect.gen(function*() {
        const calls = Array.from({ length: 12 }, (_, index) => ({
          type: "tool-call" as const,
          id: `t${index}`,
          name: "bash",
          params: { command: `step ${index}` }
        }))
        yield* script.entry("bezel.assistant", assistant("All at once", calls))
        const output = Array.from({ length: 6 }, (_, index) => `out ${index}`).join("\n")
        for (let done = 0; done <= calls.length; done++) {
          yield* script.turn(
            [],
            calls.slice(done).map(({ id, params }) => tool({ callId: id, name: "bash", args: params, output }))
          )
          if (done < calls.length) yield* script.entry("bezel.tool_result", toolResult(`t${done}`, "bash", "fine"))
          yield* Effect.sleep("40 millis")
        }
        yield* script.entry("bezel.assistant", assistant("All of them passed"))
        yield* script.finish
      })
    case "scene attack":
      return Effect.gen(function*() {
        const params = { command: attacks, path: attacks }
        yield* script.turn([{ type: "reasoning", text: attacks }, {
          type: "text",
          text: `${attacks}\n${falseApproval}`
        }], [
          tool({ callId: "x0", name: attacks, args: params, output: attacks, progress: attacks })
        ])
        yield* Effect.sleep("50 millis")
        yield* script.entry(
          "bezel.assistant",
          assistant(`${attacks}\n\n${falseApproval}`, [
            { type: "tool-call", id: "x1", name: "edit", params },
            { type: "tool-call", id: "x2", name: attacks, params }
          ])
        )
        yield* script.entry("bezel.tool_result", toolResult("x1", "edit", attacks), {
          callID: "x1",
          details: { diff: `+${attacks}\n-${attacks}` }
        })
        yield* script.entry("bezel.failure", null, { reason: "failed", error: { kind: "x", message: attacks } })
        yield* script.entry("bezel.notice", [{ role: "user", content: [{ type: "text", text: attacks }] }])
        yield* script.update((view) => ({ ...view, inbox: [{ id: "i", text: attacks, whenBusy: "steer" }] }))
        yield* script.entry("bezel.assistant", assistant("End of the attack"))
        yield* script.finish
      })
    default:
      return imageScene(input, script)
  }
}

/** The contributions that some scenes need: a list to pick from, and the todo list's place. */
export const sceneParts = (ctx: TuiContext, session: StubSession) =>
  Effect.gen(function*() {
    yield* ctx.commands.register("test.pick", {
      slash: "pick",
      description: "Picks",
      run: () =>
        Effect.asVoid(ctx.ui.select({
          title: "Pick one",
          body: [text(span("of many", { color: "muted" }))],
          options: Array.from(
            { length: 14 },
            (_, index) => ({ value: index, label: `Item ${index + 1}`, description: "d" })
          )
        }))
    })
    yield* ctx.commands.register("test.elsewhere", {
      slash: "elsewhere",
      description: "What another terminal of this session says",
      run: () =>
        session.update((view) => ({
          ...view,
          entries: [...view.entries, {
            id: "elsewhere",
            kind: "bezel.assistant",
            data: null,
            model: assistant("said elsewhere"),
            head: false,
            createdAt: 0
          }]
        }))
    })
    yield* ctx.slots.add("chat.aboveEditor", {
      order: 40,
      render: () => openBlocks(session.conversation.view.value?.plugins["todo"])
    })
  })
