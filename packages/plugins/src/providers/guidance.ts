/** How one gets from the model that needs nothing to a real one, in words: the same in an answer, on a screen and of `bezel doctor`. */

/** Where there is nothing to use yet. */
export const withoutKey =
  "start `bezel` and press ctrl+p, which finds keys and servers of this machine or takes a key; or set `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or another provider's (for your own server `OPENAI_BASE_URL`), or add a provider to `bezel.jsonc`"

/** Sentences, with what can be used already: ids of providers. */
export const guidance = (ready: ReadonlyArray<string>): string =>
  ready.length === 0
    ? `To connect a real model, ${withoutKey}; then choose one with \`--model PROVIDER/MODEL\` or the setting \`model\`. \`bezel model list\` shows what there is.`
    : `A real model is at hand: start \`bezel\` and press ctrl+p, or choose one with \`--model PROVIDER/MODEL\` or the setting \`model\`, where PROVIDER is ${
      ready.join(" or ")
    }. \`bezel model list\` shows what there is.`
