/** The records of sessions as coordinator facets see them: the store without what runtimes report and without contents. */
import type { SessionStoreShape } from "../session/index.ts"
import type { FleetRecords } from "./coordinator-context.ts"

export const fleetRecords = (store: SessionStoreShape): FleetRecords => ({
  get: store.get,
  list: store.list,
  create: store.create,
  rename: store.rename,
  archive: store.archive,
  switchAgent: store.switchAgent,
  switchModel: store.switchModel,
  remove: store.remove
})
