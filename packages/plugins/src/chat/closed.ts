/** What a person is told when a dialog that they read closes by itself: who answers elsewhere is not to be guessed at. */
import { type CloseReason, Interaction } from "@bezel/core/service"
import type { TuiContext } from "@bezel/tui"
import type * as Effect from "effect/Effect"

const words: { readonly [reason in CloseReason]: string } = {
  answered: "was answered elsewhere.",
  declined: "was dismissed elsewhere.",
  expired: "was not answered in time.",
  unattended: "was settled, since nobody was there.",
  withdrawn: "is not asked any more."
}

/** Columns of a question that are repeated. */
const shownLength = 80

/** The dialogs of a request; says what became of it where that is decided without this terminal. */
export const sayingWhy = <A, E, R>(
  ui: Pick<TuiContext["ui"], "notify">,
  question: string,
  dialogs: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Interaction.onClosed(dialogs, (reason) => {
    const line = question.replace(/\s+/g, " ")
    return ui.notify(`${line.length > shownLength ? `${line.slice(0, shownLength)}…` : line} ${words[reason]}`)
  })
