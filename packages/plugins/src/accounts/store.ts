/**
 * The stored keys of this user: one private file, replaced as a whole, changed under a lock between processes.
 *
 * The file is read at each use, so that a key which another process has stored holds from the next request on. A file that
 * others could read is made private before it is used; one that is damaged is an error and is never overwritten. A token is
 * renewed under the lock, by one process alone: a server may take a refresh token once only.
 */
import { privateFolder } from "@bezel/core/location"
import type { ProviderKey } from "@bezel/core/model"
import { readRegularFile, writePrivateFile } from "@bezel/core/settings"
import { fileLock } from "@bezel/core/storage"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { CredentialError, type CredentialInfo, type CredentialsShape, type TokenServer } from "./contract.ts"
import { type Grant, renew } from "./oauth.ts"

const Secret = Schema.RedactedFromValue(Schema.NonEmptyString)

const Stored = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("key"), key: Secret, savedAt: Schema.Finite }),
  Schema.Struct({
    kind: Schema.Literal("token"),
    access: Secret,
    refresh: Schema.NullOr(Secret),
    expiresAt: Schema.NullOr(Schema.Finite),
    /** Where it is renewed, as it was when it was signed in for. */
    tokenURL: Schema.String,
    clientID: Schema.String,
    clientSecret: Schema.optionalKey(Secret),
    clientAuth: Schema.optionalKey(Schema.Literals(["basic", "post"])),
    resource: Schema.optionalKey(Schema.String),
    savedAt: Schema.Finite
  })
])
type Stored = typeof Stored.Type

const File = Schema.fromJsonString(Schema.Struct({
  version: Schema.Literal(1),
  providers: Schema.Record(Schema.String, Stored)
}))
type Providers = { readonly [provider: string]: Stored }

/** A token is renewed so many milliseconds before it expires. */
const renewAhead = 60_000
/** How long another process may hold the lock: one renewal. */
const lockMillis = 45_000

export interface CredentialStore extends Omit<CredentialsShape, "set" | "signIn"> {
  readonly setKey: (provider: string, key: Redacted.Redacted) => Effect.Effect<void, CredentialError>
  readonly setGrant: (
    provider: string,
    grant: Grant,
    server: TokenServer
  ) => Effect.Effect<void, CredentialError>
}

/** The keys in `credentials.json` of a folder, which is made when the first one is stored. */
export const makeCredentialStore = (directory: string): CredentialStore => {
  const file = path.join(directory, "credentials.json")
  const one = Semaphore.makeUnsafe(1)
  const wrong = (what: string) => new CredentialError({ message: what })

  const read: Effect.Effect<Providers, CredentialError> = Effect.gen(function*() {
    yield* Effect.promise(async () => {
      const mode = await fs.stat(file).then((stat) => stat.mode, () => 0)
      // Not ours to mend if it fails: reading it says why.
      if ((mode & 0o077) !== 0) await fs.chmod(file, 0o600).catch(() => {})
    })
    const text = yield* Effect.mapError(
      readRegularFile(file),
      ({ reason }) => wrong(`The stored keys in ${file} cannot be read: ${reason}.`)
    )
    if (text === null) return {}
    const decoded = Option.getOrNull(Schema.decodeUnknownOption(File)(text))
    return decoded !== null
      ? decoded.providers
      : yield* wrong(
        `The stored keys in ${file} are damaged; mend the file, or remove it and store the keys again with bezel auth set.`
      )
  })

  /** Runs alone, in this process and among all. */
  const locked = <A>(effect: Effect.Effect<A, CredentialError>): Effect.Effect<A, CredentialError> =>
    one.withPermits(1)(Effect.scoped(Effect.gen(function*() {
      yield* Effect.try({
        try: () => privateFolder(directory),
        catch: () => wrong(`Cannot create the folder ${directory} for stored keys.`)
      })
      yield* Effect.mapError(
        fileLock(`${file}.lock`, lockMillis),
        (error) => wrong(`Cannot change the stored keys: ${error.message}`)
      )
      return yield* effect
    })))

  const write = (providers: Providers): Effect.Effect<void, CredentialError> =>
    Effect.flatMap(
      Effect.orDie(Schema.encodeEffect(File)({ version: 1, providers })),
      (text) =>
        Effect.mapError(
          writePrivateFile(file, `${text}\n`),
          ({ reason }) => wrong(`Cannot store the key in ${file}: ${reason}.`)
        )
    )

  const put = (provider: string, stored: Stored) =>
    locked(Effect.flatMap(read, (all) => write({ ...all, [provider]: stored })))

  const of = (all: Providers, provider: string): Stored | null =>
    Object.hasOwn(all, provider) ? all[provider] ?? null : null

  /** A token that cannot be renewed is as good as it gets. */
  const isGood = (stored: Stored, now: number, refused: Redacted.Redacted | undefined): boolean => {
    if (stored.kind === "key" || stored.refresh === null) return true
    if (refused !== undefined && Redacted.value(refused) === Redacted.value(stored.access)) return false
    return stored.expiresAt === null || now < stored.expiresAt - renewAhead
  }

  const keyOf = (stored: Stored): ProviderKey =>
    stored.kind === "key" ? { kind: "key", value: stored.key } : { kind: "token", value: stored.access }

  const renewed = (provider: string, name: string, refused: Redacted.Redacted | undefined) =>
    locked(Effect.gen(function*() {
      const all = yield* read
      const stored = of(all, provider)
      // Another process may have been quicker.
      if (stored === null || isGood(stored, yield* Clock.currentTimeMillis, refused)) return stored
      if (stored.kind === "key" || stored.refresh === null) return stored
      const grant = yield* renew(name, stored, stored.refresh)
      const next: Stored = { ...stored, ...grant, savedAt: yield* Clock.currentTimeMillis }
      yield* write({ ...all, [provider]: next })
      return next
    }))

  return {
    list: Effect.map(read, (all) =>
      Object.entries(all).map(([provider, stored]): CredentialInfo => ({
        provider,
        kind: stored.kind,
        savedAt: stored.savedAt,
        expiresAt: stored.kind === "key" ? null : stored.expiresAt
      }))),
    get: (provider, { name = provider, refused } = {}) =>
      Effect.gen(function*() {
        const stored = of(yield* read, provider)
        if (stored === null) return null
        const now = yield* Clock.currentTimeMillis
        const good = isGood(stored, now, refused) ? stored : yield* renewed(provider, name, refused)
        return good === null ? null : keyOf(good)
      }),
    remove: (provider) =>
      locked(Effect.gen(function*() {
        const all = yield* read
        if (of(all, provider) === null) return false
        yield* write(Object.fromEntries(Object.entries(all).filter(([id]) => id !== provider)))
        return true
      })),
    setKey: (provider, key) =>
      Effect.flatMap(Clock.currentTimeMillis, (savedAt) => put(provider, { kind: "key", key, savedAt })),
    setGrant: (provider, grant, { clientAuth, clientID, clientSecret, resource, tokenURL }) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (savedAt) =>
          put(provider, {
            kind: "token",
            ...grant,
            tokenURL,
            clientID,
            ...(clientSecret === undefined ? {} : { clientSecret }),
            ...(clientAuth === undefined ? {} : { clientAuth }),
            ...(resource === undefined ? {} : { resource }),
            savedAt
          })
      )
  }
}
