/**
 * CallBatch: waiting calls of one kind, which a person can approve together. Pure.
 *
 * Guarantees: calls are of one kind only if they belong to one project and the same rule would allow them, for the same
 * reasons. A call without such a rule is of one kind only with equal calls. The hash of a batch names each of its calls
 * with its whole input, so a call that came later is never approved with the others.
 */
import { createHash } from "node:crypto"
import { telling } from "../domain/CallSummary.ts"
import type { AskedCall } from "../domain/Messages.ts"
import { Limits } from "./Limits.ts"
import type { CallBatch } from "./WaitingMessages.ts"

const kindOf = ({ agent, folder, input, offers = [], parts = [], tool }: AskedCall): string => {
  const widest = offers.at(-1)?.rules
  const why = parts.filter(({ verdict }) => verdict !== "run").map(({ reason, verdict }) => [verdict, reason])
  return JSON.stringify([agent.split("/")[0], tool, ...(widest === undefined ? [folder, input] : [widest, why])])
}

/** Common words of the calls: the widest rule that would allow them, with `…` for its stars. */
const wordsOf = ({ input, offers = [], tool }: AskedCall): string =>
  offers
    .at(-1)
    ?.rules.map((rule) => rule.replace(/( \*)? \*\*$/, " …"))
    .join(" and ") ??
  (telling(input) || tool)

export const hashOf = (calls: ReadonlyArray<Pick<AskedCall, "hash" | "id">>): string =>
  createHash("sha256")
    .update(`agentd.batch.1\n${JSON.stringify(calls.map(({ hash, id }) => [id, hash]))}`)
    .digest("hex")

/** The batches, the oldest first. Calls that ask a question are in none. Calls over the limit are in the next batch. */
export const batchesOf = (asked: ReadonlyArray<AskedCall>): ReadonlyArray<CallBatch> => {
  const calls = asked
    .filter(({ questions }) => questions === undefined)
    .toSorted((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))
  const kinds = [...Map.groupBy(calls, kindOf).values()]
  return kinds.flatMap((kind) =>
    Array.from({ length: Math.ceil(kind.length / Limits.batch) }, (_, n) => {
      const some = kind.slice(n * Limits.batch, (n + 1) * Limits.batch).map(({ hash, id }) => ({ id, hash }))
      return { hash: hashOf(some), words: wordsOf(kind[0]!), calls: some }
    })
  )
}

/** The calls that a hash names: a whole batch, or its oldest calls if others have come since. Undefined: none. */
export const named = (
  batches: ReadonlyArray<CallBatch>,
  isIt: (hash: string) => boolean
): CallBatch["calls"] | undefined => {
  for (const { calls } of batches) {
    const count = calls.findIndex((_, index) => isIt(hashOf(calls.slice(0, index + 1))))
    if (count >= 0) return calls.slice(0, count + 1)
  }
  return undefined
}
