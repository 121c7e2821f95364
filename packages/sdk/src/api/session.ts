/** Routes of sessions. */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { apiErrors } from "./error.ts"
import { EventStreamText } from "./events.ts"
import { cursor, limit, pageOf } from "./page.ts"
import { RequiredScope } from "./scope.ts"
import {
  AcceptedPrompt,
  AnswerBody,
  Commit,
  ConfigPatch,
  ModelMessage,
  ModelRef,
  OpenInteraction,
  PromptBody,
  RevertBody,
  revertQuery,
  RevertReport,
  Session,
  SessionMessage,
  ToolAnswerBody,
  ToolOfferBody,
  View,
  WaitResult
} from "./session-schemas.ts"

const id = { id: Schema.String }
const conversation = Schema.optionalKey(Schema.NonEmptyString)
const error = apiErrors
const summary = (text: string) => OpenApi.annotations({ summary: text })
const eventStream = EventStreamText.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" }))

const records = [
  HttpApiEndpoint.get("list", "/session", {
    query: {
      /** Only those of this directory. */
      location: Schema.optionalKey(Schema.NonEmptyString),
      /** Only children of this session; `none`: only those that are nobody's child. */
      parent: Schema.optionalKey(Schema.NonEmptyString),
      /** Part of the title, in any case. */
      text: Schema.optionalKey(Schema.String),
      archived: Schema.optionalKey(Schema.Boolean),
      limit,
      cursor
    },
    success: pageOf(Session),
    error
  }).annotateMerge(summary("Sessions, newest activity first")),
  HttpApiEndpoint.post("create", "/session", {
    payload: Schema.Struct({
      /** A directory; default: that of the server. */
      location: Schema.optionalKey(Schema.NonEmptyString),
      title: Schema.optionalKey(Schema.String),
      agent: Schema.optionalKey(Schema.NullOr(Schema.String)),
      model: Schema.optionalKey(Schema.NullOr(ModelRef)),
      parentID: Schema.optionalKey(Schema.NullOr(Schema.String))
    }),
    success: Session.pipe(HttpApiSchema.status(201)),
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("A new session")),
  HttpApiEndpoint.get("active", "/session/active", {
    success: Schema.Struct({ items: Schema.Array(Schema.String) }),
    error
  }).annotateMerge(summary("Ids of the sessions that work")),
  HttpApiEndpoint.post("import", "/session/import", {
    payload: Schema.Struct({
      /** What `export` gave. */
      session: Schema.Json,
      location: Schema.optionalKey(Schema.NonEmptyString)
    }),
    success: Session.pipe(HttpApiSchema.status(201)),
    error
  }).annotate(RequiredScope, "admin").annotateMerge(summary("A new session from an exported one")),
  HttpApiEndpoint.get("get", "/session/:id", { params: id, success: Session, error })
    .annotateMerge(summary("One session")),
  HttpApiEndpoint.patch("update", "/session/:id", {
    params: id,
    payload: Schema.Struct({
      title: Schema.optionalKey(Schema.String),
      agent: Schema.optionalKey(Schema.NullOr(Schema.String)),
      model: Schema.optionalKey(Schema.NullOr(ModelRef)),
      archived: Schema.optionalKey(Schema.Boolean)
    }),
    success: Session,
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Changes a session's record")),
  HttpApiEndpoint.delete("remove", "/session/:id", { params: id, success: HttpApiSchema.NoContent, error })
    .annotate(RequiredScope, "admin").annotateMerge(summary("Deletes a session and its children"))
] as const

const reading = [
  HttpApiEndpoint.get("messages", "/session/:id/message", {
    params: id,
    query: { limit, cursor, conversation },
    success: pageOf(SessionMessage),
    error
  }).annotateMerge(summary("The transcript, from its end: the first page is the newest, oldest first within it")),
  HttpApiEndpoint.get("message", "/session/:id/message/:messageID", {
    params: { ...id, messageID: Schema.String },
    success: SessionMessage,
    error
  }).annotateMerge(summary("One entry of the transcript")),
  HttpApiEndpoint.get("context", "/session/:id/context", {
    params: id,
    query: { conversation },
    success: Schema.Struct({ items: Schema.Array(ModelMessage) }),
    error
  }).annotateMerge(summary("What the model would see now, without system messages")),
  HttpApiEndpoint.get("view", "/session/:id/view", { params: id, query: { conversation }, success: View, error })
    .annotateMerge(summary("The current view of a conversation")),
  HttpApiEndpoint.get("history", "/session/:id/history", {
    params: id,
    query: { after: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))), limit },
    success: Schema.Struct({ items: Schema.Array(Commit), next: Schema.optionalKey(Schema.String) }),
    error
  }).annotateMerge(summary("Durable commits after a sequence, oldest first; `next` is the `after` of the next page")),
  HttpApiEndpoint.get("events", "/session/:id/event", {
    params: id,
    query: {
      /** As the header `Last-Event-ID`, for clients that cannot set it; `0`: from the beginning. */
      after: Schema.optionalKey(Schema.String)
    },
    success: eventStream,
    error
  }).annotateMerge(summary("Events of the session as they happen; `Last-Event-ID` resumes, or a `gap` is said"))
] as const

const work = [
  HttpApiEndpoint.post("prompt", "/session/:id/prompt", {
    params: id,
    payload: PromptBody,
    success: AcceptedPrompt.pipe(HttpApiSchema.status(202)),
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Accepts a prompt durably; does not wait for the answer")),
  HttpApiEndpoint.post("command", "/session/:id/command", {
    params: id,
    payload: Schema.Struct({ name: Schema.NonEmptyString, arguments: Schema.optionalKey(Schema.String) }),
    success: AcceptedPrompt.pipe(HttpApiSchema.status(202)),
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Runs a command of the session's location")),
  HttpApiEndpoint.post("reset", "/session/:id/reset", {
    params: id,
    payload: Schema.Struct({ handoff: Schema.optionalKey(Schema.String) }),
    success: HttpApiSchema.NoContent,
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Starts over with a fresh context")),
  HttpApiEndpoint.patch("config", "/session/:id/config", {
    params: id,
    payload: ConfigPatch,
    success: HttpApiSchema.NoContent,
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Changes the settings of the main conversation")),
  HttpApiEndpoint.delete("abortInput", "/session/:id/input/:inputID", {
    params: { ...id, inputID: Schema.String },
    success: Schema.Struct({ status: Schema.Literals(["aborted", "already_placed", "ended"]) }),
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Takes back an input that no turn has taken yet")),
  HttpApiEndpoint.post("resume", "/session/:id/resume", { params: id, success: HttpApiSchema.NoContent, error })
    .annotate(RequiredScope, "prompt").annotateMerge(summary("Starts work that is there")),
  HttpApiEndpoint.post("interrupt", "/session/:id/interrupt", {
    params: id,
    payload: Schema.Struct({ reason: Schema.optionalKey(Schema.String) }),
    success: HttpApiSchema.NoContent,
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Durably ends the running turn, if there is one")),
  HttpApiEndpoint.post("wait", "/session/:id/wait", {
    params: id,
    query: {
      /** Seconds; default 30, at most 600. */
      timeout: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 600 }))),
      /** Waits for this input to end and not for the session to be idle. */
      input: Schema.optionalKey(Schema.NonEmptyString)
    },
    success: WaitResult,
    error
  }).annotateMerge(summary("Waits until the session is idle, or the time is up")),
  HttpApiEndpoint.post("compact", "/session/:id/compact", {
    params: id,
    payload: Schema.Struct({ instructions: Schema.optionalKey(Schema.String) }),
    success: Schema.Struct({
      status: Schema.Literals(["completed", "failed", "aborted", "orphaned"]),
      message: Schema.NullOr(Schema.String)
    }),
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Summarizes the older part of the context")),
  HttpApiEndpoint.post("fork", "/session/:id/fork", {
    params: id,
    payload: Schema.Struct({ at: Schema.NonEmptyString }),
    success: Session.pipe(HttpApiSchema.status(201)),
    error
  }).annotate(RequiredScope, "prompt")
    .annotateMerge(summary("A new session whose transcript is this one's up to and including entry `at`")),
  HttpApiEndpoint.post("revert", "/session/:id/revert", {
    params: id,
    payload: RevertBody,
    success: RevertReport,
    error
  })
    .annotate(RequiredScope, "prompt").annotateMerge(
      summary("Takes back a turn and all after it: the conversation, and the files that the session changed")
    ),
  HttpApiEndpoint.delete("clearRevert", "/session/:id/revert", {
    params: id,
    query: revertQuery,
    success: RevertReport,
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Brings back what a revert took back"))
] as const

const people = [
  HttpApiEndpoint.get("interactions", "/session/:id/interaction", {
    params: id,
    success: Schema.Struct({ items: Schema.Array(OpenInteraction) }),
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("What the session asks a person and nobody has answered")),
  HttpApiEndpoint.post("answer", "/session/:id/interaction/:interactionID", {
    params: { ...id, interactionID: Schema.String },
    payload: AnswerBody,
    success: HttpApiSchema.NoContent,
    error
  }).annotate(RequiredScope, "prompt").annotateMerge(summary("Answers an interaction; the first valid answer wins")),
  HttpApiEndpoint.get("export", "/session/:id/export", { params: id, success: Schema.Json, error })
    .annotateMerge(summary("The session as one JSON document"))
] as const

const offers = [
  HttpApiEndpoint.post("offerTool", "/session/:id/tool", {
    params: id,
    payload: ToolOfferBody,
    success: eventStream,
    error
  }).annotate(RequiredScope, "admin")
    .annotateMerge(summary("Offers a tool to the session, whose calls are told in the stream, until that ends")),
  HttpApiEndpoint.post("answerTool", "/session/:id/tool/:callID", {
    params: { ...id, callID: Schema.String },
    payload: ToolAnswerBody,
    success: HttpApiSchema.NoContent,
    error
  }).annotate(RequiredScope, "admin").annotateMerge(summary("Answers a call of a tool that was offered"))
] as const

export class SessionGroup extends HttpApiGroup.make("session")
  .add(...records)
  .add(...reading)
  .add(...work)
  .add(...people)
  .add(...offers)
{}
