/**
 * `agentd erase RUNE`: erases the texts of a rune that should not be in the log.
 *
 * Guarantees: the question says what would be erased; without a terminal, nothing is erased unless --yes was passed;
 * neither the question nor the answer repeats a text.
 */
import { Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import { confirm } from "../parse/Confirm.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { count, plain } from "../render/Output.ts"

interface Input {
  readonly rune: number
  readonly also: boolean
  readonly yes: boolean
}

const listed = (runes: ReadonlyArray<{ readonly eventId: number; readonly kind: string }>, more: boolean): string =>
  `${runes.map(({ eventId, kind }) => `${eventId} (${kind})`).join(", ")}${more ? " and more" : ""}`

export const run = Effect.fnUntraced(function* ({ also: isAlso, rune, yes }: Input) {
  const { caller, paths } = yield* Invocation
  const found = yield* call(paths.socket, (client) => client.Erasable({ eventId: rune }))
  const { also = [], eventId, fields, kind, more = false, size, stream } = found
  const what = `${count(size, "character")} of rune ${eventId} (${kind} of ${stream}): ${fields.join(", ")}`
  const repeats =
    also.length === 0
      ? `No other rune of ${stream} repeats it.`
      : isAlso
        ? `With it go the runes that repeat it: ${listed(also, more)}.`
        : `Runes that repeat it keep it, unless --also is given: ${listed(also, more)}.`
  const fact = `Erases for good, from the log and its snapshots: ${what}. ${repeats} Copies of the state folder keep it.`
  yield* confirm(yes, plain(fact), "Erase it?")
  const done = yield* call(paths.socket, (client) =>
    client.Erase({ eventId, caller, ...(isAlso ? { also: true } : {}) })
  )
  const gone = done.also ?? []
  const others = gone.length === 0 ? "" : ` With it: ${listed(gone, false)}.`
  const rest = done.more === true ? ` There are more: agentd erase --also once more for one of them.` : ""
  yield* print(done, () => [
    plain(
      `Erased ${what}.${others}${rest} What the daemon holds in memory of it goes with its next start: agentd restart`
    )
  ])
})
