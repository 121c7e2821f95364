/** The records of sessions as coordinator facets see them: the store without what runtimes report and without contents. */
import type { FleetRecords } from "@bezel/core/host"
import type { SessionStoreShape } from "@bezel/core/session"

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
