/**
 * What a Schema takes, in words: for faults that say what would have been right. A name that the schema gives itself
 * (`expected` or `title`) stands before what can be read off its shape; its `identifier` is one for programs.
 */
import type * as AST from "effect/SchemaAST"

/** More forms than this are told by their number. */
const shownForms = 12

/** The name that a schema or a check gives itself. */
export const named = (annotations: { readonly [key: string]: unknown } | undefined): string | null => {
  const name = annotations?.["expected"] ?? annotations?.["title"]
  return typeof name === "string" ? name : null
}

/** Where members are told apart by a member with a fixed value, that one; else which they have. */
const objectForm = ({ propertySignatures }: AST.Objects): string => {
  const names = propertySignatures.map(({ name }) => String(name))
  for (const { name, type } of propertySignatures) {
    if (type._tag === "Literal") return `an object with ${String(name)} ${JSON.stringify(type.literal)}`
  }
  if (names.length === 0) return "an object"
  return `an object with ${names.length > 4 ? `${names.slice(0, 4).join(", ")}, …` : names.join(", ")}`
}

const formsOf = (ast: AST.AST, isTop: boolean): ReadonlyArray<string> => {
  const name = isTop ? null : named(ast.annotations)
  if (name !== null) return [name]
  switch (ast._tag) {
    case "Union":
      return ast.types.flatMap((type) => formsOf(type, false))
    case "Objects":
      return [objectForm(ast)]
    default:
      return [typeName(ast)]
  }
}

/** The forms of a value that may have several: `"a", "b" or a number`. */
export const allowedForms = (ast: AST.Union): string => {
  const own = named(ast.annotations)
  if (own !== null) return own
  const forms = [...new Set(formsOf(ast, true))]
  const shown = forms.slice(0, shownForms)
  if (forms.length > shownForms) return `${shown.join(", ")} or one of ${forms.length - shownForms} more`
  const last = shown.pop()
  return last === undefined ? "nothing" : shown.length === 0 ? last : `${shown.join(", ")} or ${last}`
}

/** What kind of value a node takes. */
export const typeName = (ast: AST.AST): string => {
  switch (ast._tag) {
    case "Objects":
    case "ObjectKeyword":
      return "an object"
    case "Arrays":
      return "an array"
    case "String":
      return "a string"
    case "TemplateLiteral":
      return "a string of a fixed form"
    case "Number":
      return "a number"
    case "Boolean":
      return "a boolean"
    case "Null":
      return "null"
    case "Literal":
      return typeof ast.literal === "bigint" ? String(ast.literal) : JSON.stringify(ast.literal)
    default:
      return `a value of type ${ast._tag.toLowerCase()}`
  }
}
