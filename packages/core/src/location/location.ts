import * as Context from "effect/Context"

/** What a place is: the workspace directory of sessions and plugins. */
export interface LocationRef {
  /** Real, absolute path of the directory (symlinks resolved), so one place has one name. */
  readonly directory: string
  /** Set where one directory serves several workspaces; `null` for the common case. */
  readonly workspaceID: string | null
}

/**
 * The location that this part of the graph belongs to.
 *
 * Only the layers of the location tier may require it. A global layer is composed without it, so that a global service
 * which calls a location service does not compile.
 */
export class Location extends Context.Service<Location, LocationRef>()("@bezel/core/Location") {}
