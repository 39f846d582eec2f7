/** UserApprovals: the rules of the user's own config that are in force now. */
import { Context, Effect, Stream } from "effect"
import type { KeptRule } from "../config/RulesInForce.ts"

export const UserApprovals = Context.Reference<{
  /** Path of the user's own config; undefined: no rule can be kept there. */
  readonly path: string | undefined
  /** The same list until another version of the file is in force. */
  readonly rules: () => ReadonlyArray<KeptRule>
  /** Reads the file again. The changes follow. */
  readonly reread: Effect.Effect<void>
  /** Emits each time when a version of the file has come in force. */
  readonly changes: Stream.Stream<void>
}>("agentd/domain/UserApprovals", {
  defaultValue: () => {
    const none: ReadonlyArray<KeptRule> = []
    return { path: undefined, rules: () => none, reread: Effect.void, changes: Stream.empty }
  }
})
