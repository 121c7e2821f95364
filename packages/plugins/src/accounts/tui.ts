/** The terminal facet of accounts: `/login`, `/logout` and `/accounts`, and the dialog of a sign-in. */
import type { Facade } from "@bezel/core/service"
import { text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { type Account, Accounts, SignIn } from "./contract.ts"

const describe = ({ canSignIn, hasKey, ready, stored }: Account): string =>
  [
    hasKey ? stored ? "its key is stored" : "its key is from the settings or the environment" : "no key",
    ...(ready ? [] : ["cannot be used"]),
    ...(canSignIn ? ["one can sign in"] : [])
  ].join(", ")

/** The terminal facet. */
export const tui = Effect.fn("accounts/tui")(function*(ctx: TuiContext) {
  yield* ctx.interactions.handle(SignIn, ({ provider, url }) =>
    Effect.gen(function*() {
      const code = yield* ctx.ui.input({
        title: `Sign in to ${provider}`,
        body: [text("Open this address. If the browser does not come back by itself, paste the code here."), text(url)],
        placeholder: "code"
      })
      return code === null || code.trim() === "" ? "declined" as const : { code: code.trim() }
    }))

  const opened = yield* Effect.cached(ctx.use(Accounts))
  const told = (effect: (accounts: Facade<Accounts>) => Effect.Effect<void, { readonly message: string }>) =>
    Effect.catch(Effect.flatMap(opened, effect), (error) => ctx.ui.notify(error.message, "error"))

  /** The one that was named, or that a person chooses among those that fit. */
  const choose = (wish: string, title: string, fits: ReadonlyArray<Account>) =>
    wish.trim() !== ""
      ? Effect.succeed(wish.trim())
      : ctx.ui.select({
        title,
        options: fits.map((account) => ({
          value: account.provider,
          label: account.provider,
          description: describe(account)
        }))
      })

  yield* ctx.commands.register("accounts.login", {
    slash: "login",
    argument: "[PROVIDER]",
    description: "Sign in to a provider of models",
    run: (wish) =>
      told((accounts) =>
        Effect.gen(function*() {
          const fits = (yield* accounts.list()).filter((account) => account.canSignIn)
          if (wish.trim() === "" && fits.length === 0) {
            return yield* ctx.ui.notify(
              "No provider of the settings says how to sign in. A key is stored with: bezel auth set PROVIDER",
              "warning"
            )
          }
          const provider = yield* choose(wish, "Sign in to", fits)
          const session = yield* ctx.session.current
          if (provider === null || session === null) return
          const { signedIn } = yield* accounts.signIn({ provider, sessionID: session.sessionID })
          yield* ctx.ui.notify(signedIn ? `Signed in to ${provider}.` : `Not signed in to ${provider}.`, "info")
        })
      )
  })
  yield* ctx.commands.register("accounts.logout", {
    slash: "logout",
    argument: "[PROVIDER]",
    description: "Forget the stored key of a provider",
    run: (wish) =>
      told((accounts) =>
        Effect.gen(function*() {
          // What another program has stored or removed meanwhile counts.
          yield* accounts.refresh()
          const fits = (yield* accounts.list()).filter((account) => account.stored)
          if (wish.trim() === "" && fits.length === 0) return yield* ctx.ui.notify("No key is stored.", "info")
          const provider = yield* choose(wish, "Forget the key of", fits)
          if (provider === null) return
          if (fits.every((account) => account.provider !== provider)) {
            return yield* ctx.ui.notify(`No key is stored for ${JSON.stringify(provider)}.`, "warning")
          }
          yield* accounts.remove({ provider })
          yield* ctx.ui.notify(`No key is stored for ${provider} any more.`, "info")
        })
      )
  })
  yield* ctx.commands.register("accounts.list", {
    slash: "accounts",
    description: "Show which providers have a key; looks at stored keys again",
    run: () =>
      told((accounts) =>
        Effect.gen(function*() {
          yield* accounts.refresh()
          const all = yield* accounts.list()
          yield* ctx.ui.select({
            title: "Accounts",
            options: all.map((account) => ({
              value: account.provider,
              label: account.provider,
              description: describe(account)
            }))
          })
        })
      )
  })
})
