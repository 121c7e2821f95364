/**
 * One session's life, as a script that can be begun again at any time: it sends what was not sent yet, waits for what runs,
 * and says on the way what it was told. Tests kill the process that runs it and begin it again.
 *
 * It holds: parallel calls (one safe to repeat, one not, one whose effect goes by a key, one that asks a person first, one
 * that asks in a conversation of its own), a failed attempt, a steer, a follow-up, a fork, a compaction, and a job beside
 * all of it. The model decides by what it sees, as a real one does, so every life may meet any state.
 */
import type { Conversation, ConversationView, Harness } from "@bezel/core/harness"
import { HarnessError } from "@bezel/core/harness"
import { apply } from "@bezel/core/json"
import type { Message, ModelRequest } from "@bezel/core/model"
import { openJsonl, type SessionInUse, SessionStorage, type Storage, type StorageError } from "@bezel/core/storage"
import { makeToolRegistry, tool, type ToolDraft } from "@bezel/core/tool"
import { makeFileProcessHost, makeJobKind, openHarness } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { call, fail, say, scriptedModel, type ScriptedStep, wait } from "../../packages/core/src/testing/model.ts"

export const sessionID = "ses_faults"

/** `segments`: JSON lines in segments so small that the script fills many. */
export type Backend = "sqlite" | "jsonl" | "segments"

/** Every input of the script, by its request id. */
export const inputs = { one: "r-one", steer: "r-steer", follow: "r-follow", fork: "r-fork", last: "r-last" } as const

export const callIDs = ["c-safe", "c-unsafe", "c-keyed", "c-guarded", "c-agent"] as const

export interface Life {
  readonly backend: Backend
  /** Everything of the session: its storage, and what its tools and its job do. */
  readonly folder: string
  /** Told of what a person, a model or a caller was told, one line each, in order. */
  readonly say: (line: string) => void
  /** Wraps the storage that the session writes. */
  readonly wrap?: (storage: Storage) => Storage
}

export interface Shown {
  readonly view: ConversationView
  /** The first snapshot with every envelope since applied. */
  readonly followed: ConversationView
  readonly context: ReadonlyArray<Message>
}

export interface LifeEnd {
  readonly main: Shown
  readonly fork: Shown
}

export const openBackend = (
  life: Pick<Life, "backend" | "folder">
): Effect.Effect<Storage, StorageError | SessionInUse, Scope.Scope> => {
  if (life.backend === "segments") return openJsonl(path.join(life.folder, "journal"), { segmentBytes: 4_096 })
  return Effect.flatMap(SessionStorage, (files) => files.write(sessionID)).pipe(
    Effect.provide(SessionStorage.layer({ directory: path.join(life.folder, "data"), format: life.backend }))
  )
}

/** Files that stand for the world outside: what the script's tools and job have done to it. */
export const worldOf = (folder: string) => {
  const lines = (name: string): ReadonlyArray<string> => {
    const file = path.join(folder, name)
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n").filter((line) => line !== "") : []
  }
  const sink = path.join(folder, "sink")
  return {
    add: (name: string, line: string): void => fs.appendFileSync(path.join(folder, name), `${line}\n`),
    lines,
    /** Accepts a key once; later ones are the same effect again. */
    accept: (key: string): void => {
      fs.mkdirSync(sink, { recursive: true })
      fs.writeFileSync(path.join(sink, key), "")
    },
    accepted: (): ReadonlyArray<string> => fs.existsSync(sink) ? fs.readdirSync(sink) : []
  }
}

const pause = Effect.sleep("2 millis")

const tools = (folder: string) => (draft: ToolDraft): void => {
  const world = worldOf(folder)
  const none = Schema.Struct({})
  draft.set(
    "safe",
    tool({
      description: "Reads.",
      input: none,
      replay: "safe",
      execute: (_, call) => Effect.as(Effect.andThen(call.stream("reading"), pause), "read")
    })
  )
  const unsafe = (log: string) =>
    tool({
      description: "Does something once.",
      input: none,
      execute: () => Effect.as(Effect.andThen(Effect.sync(() => world.add(log, "done")), pause), "done")
    })
  draft.set("unsafe", unsafe("unsafe.log"))
  draft.set("guarded", unsafe("guarded.log"))
  draft.set(
    "keyed",
    tool({
      description: "Does something by a key.",
      input: none,
      replay: "safe",
      execute: (_, call) =>
        Effect.flatMap(
          call.memo("key", randomUUID()),
          (key) => Effect.as(Effect.andThen(Effect.sync(() => world.accept(key)), pause), "accepted")
        )
    })
  )
  draft.set(
    "agent",
    tool({
      description: "Asks somebody else.",
      input: none,
      replay: "safe",
      execute: (_, call) =>
        Effect.gen(function*() {
          const other = yield* call.conversation("other", { agent: "other", context: "what you must know" })
          return (yield* other.ask("input child", "question")).text
        })
    })
  )
}

/** Texts of the user messages, and whether there are results, since the model's last answer. */
const unanswered = (messages: ReadonlyArray<Message>): { readonly text: string; readonly results: boolean } => {
  const answer = messages.findLastIndex((message) =>
    message.role === "assistant" && message.content.every((part) => part.type !== "tool-call")
  )
  const since = messages.slice(answer + 1)
  return {
    text: since.map((message) => message.role === "user" ? JSON.stringify(message.content) : "").join(""),
    results: since.some((message) => message.role === "tool")
  }
}

const modelOf = () => {
  let failures = 0
  const turn = (request: ModelRequest): ReadonlyArray<ScriptedStep> => {
    const [first] = request.messages
    if (first?.role === "system" && first.content.startsWith("You write the summary")) {
      return [wait("2 millis"), say("what happened so far")]
    }
    const { results, text } = unanswered(request.messages)
    const asked = (["child", "last", "fork", "follow", "steer", "one"] as const).find((name) =>
      text.includes(`input ${name}`)
    )
    if (asked === "one" && !results) {
      return [
        say("let me "),
        wait("3 millis"),
        say("look"),
        call("safe", {}, "c-safe"),
        call("unsafe", {}, "c-unsafe"),
        call("keyed", {}, "c-keyed"),
        call("guarded", {}, "c-guarded"),
        call("agent", {}, "c-agent")
      ]
    }
    if (results && failures++ === 0) {
      return [say("half an ans"), wait("2 millis"), fail("transport", { retryAfterMs: 1 })]
    }
    return [say("answer to "), wait("2 millis"), say(asked ?? "nothing")]
  }
  return scriptedModel(Array.from({ length: 100 }, () => turn))
}

/** Follows a conversation by its envelopes alone, and says which entries it was told of. */
const follow = (
  conversation: Conversation,
  life: Life
): Effect.Effect<Effect.Effect<Shown, HarnessError>, HarnessError, Scope.Scope> =>
  Effect.gen(function*() {
    const watch = yield* conversation.watch
    let followed: ConversationView = watch.view
    let revision = watch.revision
    for (const entry of followed.entries) life.say(`entry ${entry.id} ${entry.kind}`)
    yield* Effect.forkScoped(Stream.runForEach(watch.envelopes, (envelope) =>
      Effect.sync(() => {
        if (envelope.revision !== revision + 1) throw new Error(`revision ${envelope.revision} came after ${revision}`)
        revision = envelope.revision
        followed = apply(followed, envelope.operations)
        for (const event of envelope.events) {
          if (event.type === "entry.added") life.say(`entry ${String(event.id)} ${String(event.kind)}`)
        }
      })))
    return Effect.gen(function*() {
      const { revision: newest, view } = yield* conversation.snapshot
      while (revision < newest) yield* Effect.yieldNow
      return { view, followed, context: yield* conversation.context }
    })
  })

/** Opens the session over its storage, with everything that the script registers; nothing runs yet. */
export const openScripted = (life: Life) =>
  Effect.gen(function*() {
    const storage = yield* openBackend(life)
    const registry = yield* makeToolRegistry()
    yield* registry.transform({ plugin: "faults", version: "1", order: 0 }, tools(life.folder))
    const harness = yield* openHarness(life.wrap?.(storage) ?? storage, {
      sessionID,
      models: modelOf().source,
      tools: registry,
      retry: { attempts: 20, firstWait: 1, longestWait: 5 },
      compaction: Effect.succeed({ auto: false, threshold: 0.8, keepRecent: 0 }),
      job: makeJobKind(makeFileProcessHost(path.join(life.folder, "jobs"))),
      artifact: () => Effect.die(new Error("no artifacts here")),
      onReport: (report) => life.say(`report ${report.message}`)
    })
    const script = yield* harness.namespace("script", { session: { job: "", fork: "" } })
    const approval = yield* harness.namespace("approval", {})
    const world = worldOf(life.folder)
    yield* harness.hooks(approval, "tool", {
      beforeTool: (call, api) =>
        Effect.gen(function*() {
          if (call.name !== "guarded" || (yield* api.memo("decision")) !== undefined) return
          yield* api.waiting
          world.add("asked.log", "may it?")
          yield* pause
          yield* api.memo("decision", "allow")
          life.say("decided")
        })
    }, { gate: true })
    return { harness, script }
  })

export const runLife = (life: Life) =>
  Effect.scoped(Effect.gen(function*() {
    const { harness, script } = yield* openScripted(life)
    const { main } = harness
    const shown = yield* follow(main, life)
    yield* harness.resume

    const send = Effect.fnUntraced(
      function*(conversation: Conversation, name: keyof typeof inputs, whenBusy: "steer" | "followUp" = "followUp") {
        const content = [{ type: "text", text: `input ${name}` } as const]
        const input = yield* conversation.send({ content, whenBusy, requestID: inputs[name] })
        life.say(`input ${input.id} ${inputs[name]}`)
        return Effect.tap(input.wait, (outcome) =>
          Effect.sync(() =>
            life.say(
              `ended ${input.id} ${outcome.status} ${outcome.status === "done" ? outcome.answer : outcome.reason}`
            )
          ))
      }
    )

    const thinking = Effect.map(main.snapshot, ({ view }) => view.config.thinking)
    if ((yield* thinking) === "off") yield* main.configure({ thinking: "low" })
    const one = yield* send(main, "one")
    const job = yield* startJob(harness, script, life.folder)
    life.say(`job ${job}`)
    const steer = yield* send(main, "steer", "steer")
    const followUp = yield* send(main, "follow")
    const first = yield* one
    yield* steer
    yield* followUp

    const fork = yield* forked(harness, script, first.status === "done" ? first.answer : "")
    life.say(`fork ${fork.id}`)
    const shownFork = yield* follow(fork, life)
    if ((yield* thinking) === "low") yield* main.configure({ thinking: "high" })
    yield* Effect.flatten(send(fork, "fork"))

    if ((yield* main.snapshot).view.entries.every((entry) => !entry.head)) {
      const collapse = yield* main.collapse()
      yield* main.waitForTask(collapse)
    }
    yield* main.waitForTask({ id: job, kind: "bezel.job" })
    yield* Effect.flatten(send(main, "last"))
    yield* main.idle
    return { main: yield* shown, fork: yield* shownFork } satisfies LifeEnd
  }))

type Script = Effect.Success<ReturnType<typeof openScripted>>["script"]

/** The task and the note that it exists are one commit, so there is never a second one. */
const startJob = (harness: Harness, script: Script, folder: string) =>
  harness.main.commit((tx) => {
    if (harness.job === null) throw new HarnessError({ code: "not_found", message: "no process host" })
    const state = tx.plugins(script)
    if (typeof state.job === "string" && state.job !== "") return state.job
    const command = ["/bin/sh", "-c", "sleep 0.02; echo ran >> job.log; echo out"] as const
    const spec = {
      command: [...command] as [string, ...Array<string>],
      directory: folder,
      env: {},
      notBefore: null,
      every: null,
      notice: true
    }
    const ref = tx.createTask(harness.job, spec, { background: true })
    state.job = ref.id
    return ref.id
  })

const forked = Effect.fnUntraced(function*(harness: Harness, script: Script, at: string) {
  const { fork } = yield* script.get(harness.main.id)
  const known = typeof fork === "string" && fork !== "" ? yield* harness.conversation(fork) : null
  if (known !== null) return known
  const made = yield* harness.main.fork(at)
  yield* script.update(harness.main.id, (draft) => {
    draft.fork = made.id
  })
  return made
})
