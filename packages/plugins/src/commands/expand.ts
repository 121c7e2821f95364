/**
 * Commands as they are written and called: `/name and what follows`, and a text with places for it.
 *
 * `$ARGUMENTS` stands for all that was typed, `$1`, `$2` and so on for its words, of which quotes make one; a place without a
 * word is empty. What is put in is not looked at again. A text without a place gets the arguments behind it. `\$1` is `$1`.
 */

export interface CalledCommand {
  readonly name: string
  readonly arguments: string
}

/** Reads a prompt that calls a command, or gives `null`: a path like `/etc/hosts` is none. */
export const parseCall = (prompt: string): CalledCommand | null => {
  const match = /^\s*\/([\p{L}\p{N}][\p{L}\p{N}._-]{0,63})(?:\s+([\s\S]*))?$/u.exec(prompt)
  return match?.[1] === undefined ? null : { name: match[1], arguments: (match[2] ?? "").trim() }
}

/** Words of a line, as a shell splits them as far as quotes go. An open quote reaches to the end. */
export const wordsOf = (line: string): ReadonlyArray<string> =>
  [...line.matchAll(/(?:"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|\\.|[^\s"'\\]|\\$)+/g)].map(([word]) =>
    word.replace(
      /"((?:[^"\\]|\\.)*)(?:"|$)|'([^']*)(?:'|$)|\\(.)/g,
      (_, double?: string, single?: string, plain?: string) =>
        double?.replace(/\\(["\\])/g, "$1") ?? single ?? plain ?? ""
    )
  )

const places = /\\\$(?=ARGUMENTS\b|\d)|\$ARGUMENTS\b|\$(\d{1,2})/g

/** Whether a text has a place for arguments. */
export const hasPlaces = (template: string): boolean =>
  template.replaceAll(/\\\$/g, "").search(/\$ARGUMENTS\b|\$\d/) !== -1

export const expandTemplate = (template: string, args: string): string => {
  if (!hasPlaces(template)) {
    const text = template.replaceAll(places, "$$")
    return args === "" ? text : `${text}\n\n${args}`
  }
  const words = wordsOf(args)
  return template.replaceAll(
    places,
    (place, number?: string) =>
      place.startsWith("\\") ? "$" : number === undefined ? args : words[Number(number) - 1] ?? ""
  )
}
