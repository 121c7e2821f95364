export { type Facet, type FacetScope, type Registered, SetupOf } from "./facet.ts"
export type {
  BindChange,
  BindFault,
  Binding,
  Kernel as KernelShape,
  KernelOptions,
  LoadedPlugin,
  PluginSource,
  ReloadOptions
} from "./kernel.ts"
export * as Kernel from "./kernel.ts"
export { makeLine } from "./line.ts"
export { decodeManifest, ManifestEntry, ManifestError, PluginManifest } from "./manifest.ts"
export {
  causeMessage,
  FacetClosed,
  HostFailed,
  type PluginFailure,
  PluginPhase,
  PluginStatus,
  ReloadFailed
} from "./status.ts"
