/** A service: notes that the host keeps, that the terminal shows and adds to, and that the model reads. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { RemoteService } from "@bezel/core/service"
import { text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

/** What a client can reach, and nothing else. Everything crosses as its Schema says. */
export class Notes extends RemoteService.make("example.notes")({
  state: { notes: Schema.Array(Schema.String) },
  methods: { add: { payload: Schema.Struct({ text: Schema.NonEmptyString }) } }
}) {}

const session = Effect.fn("notes/session")(function*(ctx: SessionContext) {
  const notes = yield* ctx.state(Schema.Array(Schema.String), [])
  yield* ctx.provide(Notes, {
    notes,
    add: ({ text }) =>
      notes.update((draft) => {
        draft.push(text)
      })
  })
  yield* ctx.section({
    id: "example.notes",
    order: 500,
    text: () => Effect.map(notes.get, (all) => all.length === 0 ? null : `Notes of the user:\n- ${all.join("\n- ")}`)
  })
})

const tui = Effect.fn("notes/tui")(function*(ctx: TuiContext) {
  const notes = yield* ctx.use(Notes)
  yield* ctx.commands.register("example.note", {
    description: "Note something for the model",
    slash: "note",
    argument: "TEXT",
    run: (words) => notes.add({ text: words })
  })
  // Following the state opens its subscription; each change asks for a frame.
  yield* ctx.onActivate(Effect.asVoid(
    Effect.forkScoped(Stream.runForEach(notes.notes.changes, () => Effect.sync(ctx.ui.redraw)))
  ))
  yield* ctx.slots.add("chat.footer", { order: 1, render: () => [text([`${notes.notes.value?.length ?? 0} notes`])] })
})

export default Plugin.define({ id: "example.notes", version: "1.0.0", session, tui })
