/**
 * Who may call the server of this user: the token that it makes for itself, and those that `bezel auth token` makes.
 *
 * The server's own stands as it is in a file that only this user can read, so that programs of this user find it. Of the
 * others only digests are kept, so nobody can read one that was given away. A token that is revoked is refused from the next
 * call on, also by a server that runs.
 */
import { type FileProblem, readRegularFile, writePrivateFile } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Caller, type Tokens, type TokenScope, tokenScopes } from "./caller.ts"

const Kept = Schema.Struct({
  name: Schema.String,
  scope: Schema.Literals(tokenScopes),
  /** Of the token: SHA-256, hexadecimal. */
  digest: Schema.String,
  /** Milliseconds since 1970. */
  createdAt: Schema.Finite,
  /** The process of the server that made it by itself and with which it ends. */
  server: Schema.optionalKey(Schema.Int)
})
export type KeptToken = typeof Kept.Type

const Book = Schema.Array(Kept)
const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Book))

/** A file of tokens cannot be read or written, or a name is not right; the message says what to do. */
export class TokenError extends Schema.TaggedError<TokenError>()("TokenError", { message: Schema.String }) {}

const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest()
const newToken = (): string => `bzl_${randomBytes(32).toString("base64url")}`

const ownFile = (folder: string): string => path.join(folder, "token")
const bookFile = (folder: string): string => path.join(folder, "tokens.json")

const problem = (file: string) => ({ reason }: FileProblem) => new TokenError({ message: `${file}: ${reason}` })

/** The server's own token, from the file; `null` where no server has made one yet. */
export const readOwnToken = (folder: string): Effect.Effect<Redacted.Redacted | null, TokenError> =>
  Effect.gen(function*() {
    const file = ownFile(folder)
    const found = yield* Effect.mapError(readRegularFile(file), problem(file))
    const token = found?.trim() ?? ""
    return token === "" ? null : Redacted.make(token)
  })

/** The same; one is made if there is none. */
export const ownToken = (folder: string): Effect.Effect<Redacted.Redacted, TokenError> =>
  Effect.gen(function*() {
    const file = ownFile(folder)
    const found = yield* readOwnToken(folder)
    if (found !== null) {
      // Whoever wrote it by hand may have left it open to others.
      yield* Effect.sync(() => fs.chmodSync(file, 0o600))
      return found
    }
    const token = newToken()
    yield* Effect.mapError(writePrivateFile(file, `${token}\n`), problem(file))
    return Redacted.make(token)
  })

const readBook = (file: string): ReadonlyArray<KeptToken> => {
  const exit = decode(fs.readFileSync(file, "utf8"))
  if (Exit.isFailure(exit)) throw new TokenError({ message: `${file} is damaged; move it away, and make tokens anew.` })
  return exit.value
}

/** All tokens that have been given away and not revoked, oldest first. */
export const listTokens = (folder: string): Effect.Effect<ReadonlyArray<KeptToken>, TokenError> =>
  Effect.try({
    try: () => fs.existsSync(bookFile(folder)) ? readBook(bookFile(folder)) : [],
    catch: (error) => error instanceof TokenError ? error : new TokenError({ message: String(error) })
  })

const writeBook = (folder: string, tokens: ReadonlyArray<KeptToken>) =>
  Effect.mapError(
    writePrivateFile(bookFile(folder), `${JSON.stringify(tokens, null, 2)}\n`),
    problem(bookFile(folder))
  )

/** Makes a token. This is the only time that it can be read. */
export const createToken = (
  folder: string,
  token: { readonly name: string; readonly scope: TokenScope; readonly now: number }
): Effect.Effect<Redacted.Redacted, TokenError> =>
  Effect.gen(function*() {
    const { name, now, scope } = token
    if (!/^[\w.@-]{1,64}$/.test(name)) {
      return yield* new TokenError({
        message: "A token's name has letters, digits, dots, dashes and @, at most 64 of them."
      })
    }
    const known = yield* listTokens(folder)
    if (name === "owner" || known.some((other) => other.name === name)) {
      return yield* new TokenError({
        message: `There is a token ${name} already; revoke it first, or choose another name.`
      })
    }
    const made = newToken()
    yield* writeBook(folder, [...known, { name, scope, digest: digestOf(made).toString("hex"), createdAt: now }])
    return Redacted.make(made)
  })

/** Makes a token that ends with this process, under the first name of its kind that is free. */
export const createPassingToken = (
  folder: string,
  token: { readonly name: string; readonly scope: TokenScope; readonly now: number }
): Effect.Effect<Redacted.Redacted, TokenError> =>
  Effect.gen(function*() {
    const known = yield* listTokens(folder)
    const isFree = (name: string) => !known.some((other) => other.name === name)
    let name = token.name
    for (let count = 2; !isFree(name); count++) name = `${token.name}-${count}`
    const made = newToken()
    const { now: createdAt, scope } = token
    yield* writeBook(folder, [
      ...known,
      { name, scope, digest: digestOf(made).toString("hex"), createdAt, server: process.pid }
    ])
    return Redacted.make(made)
  })

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** Removes the tokens that end with this process, and those whose process is gone. */
export const dropPassingTokens = (folder: string): Effect.Effect<void, TokenError> =>
  Effect.gen(function*() {
    const known = yield* listTokens(folder)
    const left = known.filter(({ server }) => server === undefined || (server !== process.pid && isAlive(server)))
    if (left.length < known.length) yield* writeBook(folder, left)
  })

/** Whether there was one of that name. */
export const revokeToken = (folder: string, name: string): Effect.Effect<boolean, TokenError> =>
  Effect.gen(function*() {
    const known = yield* listTokens(folder)
    const left = known.filter((token) => token.name !== name)
    if (left.length === known.length) return false
    yield* writeBook(folder, left)
    return true
  })

/** The tokens that a server accepts. The file of those that were given away is looked at with each call. */
export const makeTokens = (folder: string, own: Redacted.Redacted): Tokens => {
  const owner: Caller = { name: "owner", scope: "admin" }
  const ownDigest = digestOf(Redacted.value(own))
  let read: { readonly stamp: string; readonly tokens: ReadonlyArray<{ caller: Caller; digest: Buffer }> } = {
    stamp: "",
    tokens: []
  }
  const given = () => {
    const stat = fs.statSync(bookFile(folder), { throwIfNoEntry: false })
    const stamp = stat === undefined ? "" : `${stat.ino} ${stat.mtimeMs} ${stat.size}`
    if (stamp === read.stamp) return read.tokens
    const book = stamp === "" ? [] : readBook(bookFile(folder))
    const tokens = book.filter(({ server }) => server === undefined || server === process.pid).map((kept) => ({
      caller: { name: kept.name, scope: kept.scope },
      digest: Buffer.from(kept.digest, "hex")
    }))
    read = { stamp, tokens }
    return tokens
  }
  return {
    find: (token) => {
      const digest = digestOf(token)
      let found: Caller | null = timingSafeEqual(digest, ownDigest) ? owner : null
      let book: typeof read.tokens
      try {
        book = given()
      } catch {
        // A file that cannot be read admits nobody.
        book = []
      }
      for (const one of book) {
        if (one.digest.length === digest.length && timingSafeEqual(digest, one.digest)) found ??= one.caller
      }
      return found
    }
  }
}
