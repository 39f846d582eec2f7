/**
 * `agentd erase RUNE`: erases the texts of a rune that should not be in the log.
 *
 * Guarantees: what would go is said before anybody is asked; without a terminal nothing goes
 * unless --yes was given; neither the question nor the answer repeats a text.
 */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { confirm } from "./Confirm.ts"
import { Invocation, print } from "./Invocation.ts"
import { count, plain } from "./Output.ts"

export const run = Effect.fnUntraced(function* ({ rune, yes }: { readonly rune: number; readonly yes: boolean }) {
  const { caller, paths } = yield* Invocation
  const found = yield* call(paths.socket, (client) => client.Erasable({ eventId: rune }))
  const { eventId, fields, kind, size, stream } = found
  const what = `${count(size, "character")} of rune ${eventId} (${kind} of ${stream}): ${fields.join(", ")}`
  const fact = `Erases for good, from the log, its snapshots and its archive: ${what}. Other runes that repeat the text, and copies of the state folder, keep it.`
  yield* confirm(yes, plain(fact), "Erase it?")
  const done = yield* call(paths.socket, (client) => client.Erase({ eventId, caller }))
  yield* print(done, () => [
    plain(`Erased ${what}. What the daemon holds in memory of it goes with its next start: agentd restart`)
  ])
})
