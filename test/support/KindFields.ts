/** KindFields: the fields that the schema of a kind of runes has. */
import { SchemaAST } from "effect"
import { kinds } from "../../src/app/EventKinds.ts"

export const fieldsOf = (kind: string): ReadonlyArray<string> => {
  const { ast } = kinds.get(kind)!.payload
  return SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
}
