/**
 * CallBatch: waiting calls of one kind, which a person can approve together. Pure.
 *
 * Guarantees: calls are of one kind only if they belong to one project and the same rule would allow them, for the same
 * reasons. A call without such a rule is of one kind only with equal calls. The hash of a batch names each of its calls
 * with its whole input, so a call that came later is never approved with the others.
 */
import { createHash } from "node:crypto"
import type { AskedCall } from "../../domain/Messages.ts"

export interface CallBatch {
  /** Oldest first. */
  readonly calls: ReadonlyArray<AskedCall>
  readonly hash: string
}

const kindOf = ({ agent, folder, input, offers = [], parts = [], tool }: AskedCall): string => {
  const widest = offers.at(-1)?.rules
  const why = parts.filter(({ verdict }) => verdict !== "run").map(({ reason, verdict }) => [verdict, reason])
  return JSON.stringify([agent.split("/")[0], tool, ...(widest === undefined ? [folder, input] : [widest, why])])
}

export const hashOf = (calls: ReadonlyArray<Pick<AskedCall, "hash" | "id">>): string =>
  createHash("sha256")
    .update(`agentd.batch.1\n${JSON.stringify(calls.map(({ hash, id }) => [id, hash]))}`)
    .digest("hex")

/** The batches, the oldest first. Calls that ask a question are in none. */
export const batchesOf = (asked: ReadonlyArray<AskedCall>): ReadonlyArray<CallBatch> => {
  const calls = asked
    .filter(({ questions }) => questions === undefined)
    .toSorted((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))
  return [...Map.groupBy(calls, kindOf).values()].map((batch) => ({ calls: batch, hash: hashOf(batch) }))
}

/** The calls that a hash names: a whole batch, or its oldest calls if others have come since. Undefined: none. */
export const named = (
  batches: ReadonlyArray<CallBatch>,
  isIt: (hash: string) => boolean
): ReadonlyArray<AskedCall> | undefined => {
  for (const { calls } of batches) {
    const count = calls.findIndex((_, index) => isIt(hashOf(calls.slice(0, index + 1))))
    if (count >= 0) return calls.slice(0, count + 1)
  }
  return undefined
}
