/**
 * `agentd erase RUNE`: erases text in a rune that should not be in the log.
 *
 * Guarantees: before the question, everything that would be erased is listed. Without a terminal, nothing is erased
 * unless --yes was passed. Neither the question nor the result repeats the erased text.
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
      ? `No other rune of ${stream} repeats these texts.`
      : isAlso
        ? `The texts of these runes, which repeat them, are erased, too: ${listed(also, more)}.`
        : `These runes repeat the texts and keep them, unless you pass --also: ${listed(also, more)}.`
  const fact = `This permanently erases from the log and its snapshots: ${what}. ${repeats} Copies of the state directory keep the texts.`
  yield* confirm(yes, plain(fact), "Erase these texts?")
  const done = yield* call(paths.socket, (client) =>
    client.Erase({ eventId, caller, ...(isAlso ? { also: true } : {}) })
  )
  const gone = done.also ?? []
  const others = gone.length === 0 ? "" : ` Also erased: ${listed(gone, false)}.`
  const rest =
    done.more === true ? ` More runes repeat the texts. Erase one of them, too: agentd erase RUNE --also.` : ""
  yield* print(done, () => [
    plain(
      `Erased ${what}.${others}${rest} The daemon can still have the texts in memory until it restarts: agentd restart`
    )
  ])
})
