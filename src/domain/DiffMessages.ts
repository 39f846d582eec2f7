/** DiffMessages: what an agent has changed in its folder, as it crosses the control socket. */
import { Schema } from "effect"

export const DiffInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  folder: Schema.String,
  /** The commit that the files are compared with: where the agent's commits part from the person's, or its own HEAD. */
  base: Schema.String,
  files: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      /** Lines; null for a file that is not text. */
      added: Schema.NullOr(Schema.Int),
      removed: Schema.NullOr(Schema.Int)
    })
  ),
  /** New files that are in neither, since there are too many. */
  more: Schema.Int,
  /** As git writes it, without colour; at most 524,288 characters. */
  patch: Schema.String,
  /** The patch is longer than that. */
  isCut: Schema.Boolean
})
export type DiffInfo = typeof DiffInfo.Type
