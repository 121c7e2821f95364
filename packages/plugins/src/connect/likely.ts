/**
 * Which of a provider's models somebody who wants to chat most likely means: lists have models for images, speech and
 * searching in them, in no order. A guess for the first row of a list, and nothing else depends on it.
 */
import type { FoundModel } from "./contract.ts"

/** For something else than answering. */
const special =
  /embed|rerank|whisper|tts|speech|audio|realtime|transcri|image|imagen|dall-e|sora|veo|video|moderation|guard|search|babbage|davinci|instruct-0|ocr/i

/** The main line of who makes them, the strong ones first. */
const families: ReadonlyArray<RegExp> = [
  /claude-opus/i,
  /claude-sonnet/i,
  /(^|\/)gpt-\d+(\.\d+)?$/i,
  /gemini-[\d.]+-pro$/i,
  /claude/i,
  /(^|\/)gpt-\d/i,
  /gemini-[\d.]+-flash$/i,
  /grok-\d/i,
  /mistral-(large|medium)-latest/i,
  /deepseek-(chat|v\d)/i,
  /coder|codestral|devstral/i,
  /gemini|qwen|llama|mistral|deepseek|gpt|glm|kimi/i
]

const rank = (model: string): number => {
  if (special.test(model)) return families.length + 1
  const found = families.findIndex((family) => family.test(model))
  return found < 0 ? families.length : found
}

const newestFirst = new Intl.Collator("en", { numeric: true })

/** Likely ones first, newer versions before older ones; the order of a short list stays, somebody has made it. */
export const byLikelihood = (models: ReadonlyArray<FoundModel>): ReadonlyArray<FoundModel> =>
  models.map((model, index) => ({ model, index, rank: rank(model.model) }))
    .sort((a, b) =>
      a.rank - b.rank ||
      (models.length > 10 ? newestFirst.compare(b.model.model, a.model.model) : 0) ||
      a.index - b.index
    )
    .map(({ model }) => model)
