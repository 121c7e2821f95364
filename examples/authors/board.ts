/** A board for all folders of a user: the coordinator keeps it, session hosts post to it, terminals see what concerns them. */
import { type CoordinatorContext, Plugin, requireHost, type SessionContext, viaUpstream } from "@bezel/core/host"
import { RemoteService, ServiceError } from "@bezel/core/service"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

/** Between session hosts and the coordinator. */
export class Board extends RemoteService.make("example.board")({
  state: { posts: Schema.Array(Schema.Struct({ text: Schema.String, directory: Schema.String })) },
  methods: { post: { payload: Schema.Struct({ text: Schema.NonEmptyString }), error: ServiceError } }
}) {}

/** Between a session host and its presentations: narrower on purpose. */
export class BoardView extends RemoteService.make("example.board-view")({
  state: { texts: Schema.Array(Schema.String) },
  methods: { post: { payload: Schema.Struct({ text: Schema.NonEmptyString }), error: ServiceError } }
}) {}

const coordinator = Effect.fn("board/coordinator")(function*(ctx: CoordinatorContext) {
  const posts = yield* ctx.state(Board.contract.state.posts, [])
  yield* ctx.provide(Board, {
    posts,
    post: ({ text }) =>
      Effect.gen(function*() {
        // Who calls is what the transport says, never an argument.
        const { location } = yield* requireHost
        yield* posts.update((draft) => {
          draft.push({ text, directory: location.directory })
        })
        yield* ctx.log.info("Something was posted.", { directory: location.directory })
      })
  })
})

const session = Effect.fn("board/session")(function*(ctx: SessionContext) {
  const texts = yield* ctx.state(Schema.Array(Schema.String), [])
  // Where there is no coordinator, as under `bezel run`, the rest goes on without it.
  const board = Option.getOrNull(yield* Effect.option(ctx.upstream.use(Board)))
  const none = new ServiceError({ code: "unavailable", message: "There is no board here." })
  yield* ctx.provide(BoardView, {
    texts,
    post: (post) => board === null ? Effect.fail(none) : viaUpstream(board.post(post))
  })
  if (board === null) return
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(
    Stream.runForEach(board.posts.changes, (posts) => texts.set(posts.map(({ text }) => text)))
  )))
})

const tui = Effect.fn("board/tui")(function*(ctx: TuiContext) {
  const board = yield* ctx.use(BoardView)
  yield* ctx.commands.register("example.post", {
    description: "Post something for all folders",
    slash: "post",
    argument: "TEXT",
    run: (words) => board.post({ text: words })
  })
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(
    Stream.runForEach(board.texts.changes, (texts) => ctx.ui.notify(`On the board: ${texts.join(", ")}`))
  )))
})

export default Plugin.define({ id: "example.board", version: "1.0.0", coordinator, session, tui })
