/** What the settings of a terminal name that nobody has registered: the theme, keys and commands of keys. One sentence each. */
import { isKeyName } from "./keys.ts"

export const unknownNames = (given: {
  readonly theme: string
  readonly themes: ReadonlyArray<string>
  readonly keybindings: { readonly [key: string]: string }
  readonly isCommand: (id: string) => boolean
}): ReadonlyArray<string> => {
  const { isCommand, theme, themes } = given
  const bound = Object.entries(given.keybindings)
  return [
    ...(themes.includes(theme) ? [] : [`There is no theme "${theme}"; there are ${themes.join(", ")}.`]),
    ...bound.filter(([key]) => !isKeyName(key)).map(([key]) =>
      `There is no key "${key}" for a binding; keys are written like ctrl+t, alt+enter or f2.`
    ),
    ...bound.filter(([, command]) => !isCommand(command)).map(([key, command]) =>
      `${key} is bound to ${command}, which does not exist.`
    )
  ]
}
