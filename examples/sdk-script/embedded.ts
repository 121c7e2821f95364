/** Bezel inside a program, with a tool of the program's own. No server runs; sessions are in the folder that is given. */
import { Bezel } from "bezel"
import * as Schema from "effect/Schema"

export const stock = new Map([["ruby", 3], ["opal", 0]])

export const openWithStock = async (folder: string, directory: string) => {
  const bezel = await Bezel.open({ folder, directory, set: ["model=bezel/offline"] })
  await bezel.tools.register("stock", {
    description: "Says how many stones of a kind are left.",
    input: Schema.Struct({ stone: Schema.String }),
    execute: ({ stone }) => ({ left: stock.get(stone) ?? 0 })
  })
  return bezel
}
