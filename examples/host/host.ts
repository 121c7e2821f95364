/**
 * A host of one's own: sessions in a folder, the plugins that it is given, and a connection to show one session over.
 *
 * Everything here is a Layer: another storage, other plugins or another placement are one line each.
 */
import { Conversation, conversationKey, LocationMap, Plugin, SessionPlugins } from "@bezel/core/host"
import { SessionStore } from "@bezel/core/session"
import { AppPaths, Settings, Trust } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { Placement } from "@bezel/server"
import { Effect, Layer } from "effect"

/** The graph of this host: storage, settings and plugins below, locations on top. */
export const hostLayer = (folder: string, plugins: ReadonlyArray<Plugin>) =>
  Placement.inline.pipe(
    Layer.provide(LocationMap.layer),
    Layer.provide(SessionPlugins.layer(Plugin.sources("session", plugins))),
    Layer.provide(SessionStore.layer({ directory: folder, version: "example" })),
    Layer.provide(SessionStorage.layer({ directory: folder })),
    Layer.provide(Settings.layer({ keys: [] })),
    Layer.provide(Trust.layer),
    Layer.provide(AppPaths.layerTest(folder))
  )

/** Asks one question in a directory and gives the answer, as any client of the host would. */
export const ask = Effect.fn("ask")(function*(directory: string, question: string) {
  const host = yield* Effect.flatMap(Placement, (placement) => placement.place(directory))
  const { id } = yield* host.session.create({ title: question })
  const connection = yield* host.connect({ label: "example", sessionID: id })
  const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
  const { inputID } = yield* conversation.send({ text: question })
  const outcome = yield* conversation.wait({ inputID })
  return outcome.status === "done" ? outcome.text : `no answer: ${outcome.reason}`
}, Effect.scoped)
