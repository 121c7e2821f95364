/** Text of others on its way to a terminal. */

/** Without what a terminal would obey: escape sequences, carriage returns, other control characters. */
export const printable = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")

/** What turns the writing around for all that follows on the row: a file name could pass itself off as another. */
const turning = /[\u202a-\u202e\u2066-\u2069]/g

/** On one line, at most so many characters; `…` stands for what is left out. */
export function oneLine(text: string, room: number): string {
  const line = printable(text.slice(0, room * 8).replace(/\s+/g, " ")).replace(turning, "").trim()
  const points = [...line]
  return points.length > room ? points.slice(0, room - 1).join("") + "…" : line
}

const telling = ["command", "path", "pattern", "url", "question", "description"]

/** Of a patch, the files that it names; any other text as it is. */
const aboutOf = (text: string): string => {
  const files = [...text.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map(([, file = ""]) => file)
  return files.length === 0 ? text : files.join(", ")
}

/** What a call is about, on one line: its most telling argument. */
export function callTitle(name: string, args: unknown, room: number): string {
  const members = typeof args === "object" && args !== null ? Object.entries(args) : []
  const texts = members.filter((member): member is [string, string] => typeof member[1] === "string")
  const [, subject = ""] = telling.flatMap((key) => texts.filter(([member]) => member === key))[0] ?? texts[0] ?? []
  return oneLine(`${name} ${aboutOf(subject)}`, room)
}
