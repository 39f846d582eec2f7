/** DiffMessages: what an agent has changed in its folder, as it crosses the control socket. */
import { Schema } from "effect"

export const DiffInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  folder: Schema.String,
  /**
   * The commit that the files are compared with: the merge base of the agent's and the person's commits, or the agent's
   * HEAD.
   */
  base: Schema.String,
  files: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      /** Number of lines; null: not a text file. */
      added: Schema.NullOr(Schema.Int),
      removed: Schema.NullOr(Schema.Int)
    })
  ),
  /** Number of new files that are neither listed nor in the patch, because there are too many. */
  more: Schema.Int,
  /** The patch as git prints it, without colour; at most 524,288 characters. */
  patch: Schema.String,
  /** True: the patch was truncated to that length. */
  isCut: Schema.Boolean
})
export type DiffInfo = typeof DiffInfo.Type
