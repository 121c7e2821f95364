/** The git repository of a location: its status as state, what changed about it as events. */
import { RemoteService } from "@bezel/core/service"
import * as Schema from "effect/Schema"

export type GitStatus = typeof GitStatus.Type
export const GitStatus = Schema.Struct({
  /** Root of the work tree. */
  root: Schema.String,
  /** `null`: no branch is checked out. */
  branch: Schema.NullOr(Schema.String),
  /** The commit that is checked out; `null`: there is none yet. */
  head: Schema.NullOr(Schema.String),
  /** The branch that this one follows, and how many commits it is ahead of it and behind. */
  upstream: Schema.NullOr(Schema.String),
  ahead: Schema.Int,
  behind: Schema.Int,
  /** Files: changed in the index, changed in the work tree, not known to git, in conflict. */
  staged: Schema.Int,
  changed: Schema.Int,
  untracked: Schema.Int,
  conflicts: Schema.Int
})

export const GitEvent = Schema.Union([
  Schema.Struct({ type: Schema.Literal("status_changed") }),
  Schema.Struct({
    type: Schema.Literal("head_changed"),
    from: Schema.NullOr(Schema.String),
    to: Schema.NullOr(Schema.String)
  })
])

export class Git extends RemoteService.make("bezel.git")({
  /** `null`: there is no repository, or nobody has looked yet. */
  state: { status: Schema.NullOr(GitStatus) },
  events: { happened: GitEvent },
  /** Looks now, also whether there is a repository, and completes when the state is of then or later. */
  methods: { refresh: {} }
}) {}
