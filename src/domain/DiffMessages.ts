/** DiffMessages: schema of the control socket for the changes that an agent has made in its working folder. */
import { Schema } from "effect"

export const DiffInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  folder: Schema.String,
  /** The commit with which the files are compared: the merge base with the user's branch, or the agent's HEAD. */
  base: Schema.String,
  files: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      /** Number of added lines; null: the file is not a text file. */
      added: Schema.NullOr(Schema.Int),
      removed: Schema.NullOr(Schema.Int)
    })
  ),
  /** Number of new files that are missing from both the list and the patch because there are too many of them. */
  more: Schema.Int,
  /** The patch as git prints it, without colour; at most 524,288 characters. */
  patch: Schema.String,
  isCut: Schema.Boolean
})
export type DiffInfo = typeof DiffInfo.Type
