/**
 * AllHosts: makes the calls of a verb on this machine and on all saved hosts at once.
 *
 * Guarantees: a host that does not answer delays nobody: after 3 s its row says so, and since when.
 */
import { Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { SavedHost } from "../../config/Host.ts"
import { answers } from "../parse/Asking.ts"
import type { Ask } from "../parse/DeclaredVerb.ts"
import type { Call } from "../../api/rpc/Wire.ts"
import type { Paths } from "../parse/Paths.ts"
import { onlyOne } from "../parse/Verb.ts"
import type { Refused } from "./HostLine.ts"
import { late, LIMIT } from "./HostNews.ts"
import { lastSeen, noted } from "./LastSeen.ts"
import { canMerge, type Heard, merged, untold } from "./HostReplies.ts"

/** The result of calls to a host, or the reason why there is none within the time limit. */
export const within = <A, E extends { readonly message: string; readonly remedy?: string }, R>(
  calls: Effect.Effect<A, E, R>
) =>
  calls.pipe(
    Effect.map((value) => ({ value })),
    Effect.timeoutOrElse({ duration: LIMIT, orElse: () => Effect.succeed(late) }),
    Effect.catch(({ message, remedy = late.remedy }) => Effect.succeed<Refused>({ message, remedy }))
  )

/** The replies of one host, within the time limit. `host`: null for this machine. */
const heardFrom = Effect.fnUntraced(function* (
  calls: ReadonlyArray<Call>,
  { address, host, state }: { readonly host: string | null; readonly address: string; readonly state: string }
) {
  const raw: Ask<ReadonlyArray<unknown>> = { calls, repeatable: true, value: (replies) => replies }
  const answer = yield* within(call(address, (client) => answers(client, raw)))
  if ("value" in answer) {
    if (host !== null) yield* noted(state, host)
    const heard: Heard = { host, replies: answer.value }
    return heard
  }
  const heard: Heard = { host, silent: answer, seen: yield* lastSeen(state, host) }
  return heard
})

/** The value of a verb's calls over all hosts, and the hosts that did not answer and have no row in the value. */
export const answersOf = Effect.fnUntraced(function* <V>(
  { calls, value }: Ask<V>,
  hosts: ReadonlyMap<string, SavedHost>,
  { socket, state }: Paths
) {
  const tags = calls.map(({ tag }) => tag)
  if (!canMerge(tags)) return yield* onlyOne
  const all = [{ host: null, address: socket }, ...[...hosts].map(([host, { url }]) => ({ host, address: url }))]
  const heard = yield* Effect.forEach(all, (one) => heardFrom(calls, { ...one, state }), { concurrency: "unbounded" })
  const shown = value(merged(tags, heard))
  return { value: shown, left: untold(shown, heard) }
})
