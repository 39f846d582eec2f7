/** KindFields: the field names in the payload schema of a kind of rune. */
import { SchemaAST } from "effect"
import { kinds } from "../../src/app/EventKinds.ts"

export const fieldsOf = (kind: string): ReadonlyArray<string> => {
  const { ast } = kinds.get(kind)!.payload
  return SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
}
