/**
 * Places of models that many people have a key of, beside Anthropic and OpenAI: all of them speak OpenAI's chat completions.
 * One is there with the key of its variable, or with one that was stored for it.
 */

export interface Place {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly variable: string
  /** Asked with the key, where the list of models is for everybody. */
  readonly keyCheck?: string
}

export const places: ReadonlyArray<Place> = [
  {
    id: "openrouter",
    name: "OpenRouter",
    url: "https://openrouter.ai/api/v1",
    variable: "OPENROUTER_API_KEY",
    keyCheck: "/key"
  },
  {
    id: "gemini",
    name: "Google Gemini",
    url: "https://generativelanguage.googleapis.com/v1beta/openai",
    variable: "GEMINI_API_KEY"
  },
  { id: "mistral", name: "Mistral", url: "https://api.mistral.ai/v1", variable: "MISTRAL_API_KEY" },
  { id: "deepseek", name: "DeepSeek", url: "https://api.deepseek.com/v1", variable: "DEEPSEEK_API_KEY" },
  { id: "groq", name: "Groq", url: "https://api.groq.com/openai/v1", variable: "GROQ_API_KEY" },
  { id: "xai", name: "xAI", url: "https://api.x.ai/v1", variable: "XAI_API_KEY" }
]
