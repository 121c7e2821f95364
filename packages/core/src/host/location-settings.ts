/**
 * The settings of a location as its host hands them on: one reader for as long as the location is up, behind which the
 * snapshot is exchanged when the files are read anew.
 */
import type { SettingsReader } from "../settings/index.ts"

export interface CurrentSettings {
  /** Reads the snapshot that holds now. */
  readonly reader: SettingsReader
  /** Lets another snapshot hold, and gives the one before. */
  readonly replace: (next: SettingsReader) => SettingsReader
}

export const makeCurrentSettings = (first: SettingsReader): CurrentSettings => {
  let current = first
  return {
    reader: {
      get: (key) => current.get(key),
      get skipped() {
        return current.skipped
      },
      get sources() {
        return current.sources
      },
      get warnings() {
        return current.warnings
      }
    },
    replace: (next) => {
      const previous = current
      current = next
      return previous
    }
  }
}
