/**
 * `agentd approve --all`: shows the calls that wait as batches: calls of one kind are one question with a row for each.
 * `agentd approve --all HASH` approves exactly the calls of the batch that was shown.
 *
 * Guarantees: each call is approved by its own hash, and if one has changed, none is. A call that came since the batch
 * was shown still waits.
 */
import { Effect, Option } from "effect"
import { Prompt } from "effect/cli"
import { call, type Client } from "../../api/rpc/ControlClient.ts"
import { hashOf, named } from "../../board/CallBatch.ts"
import type { CallBatch } from "../../board/WaitingMessages.ts"
import { batchTitle } from "../../board/WaitingGroups.ts"
import * as CallHash from "../../domain/CallHash.ts"
import type { AskedCall, Caller } from "../../domain/Messages.ts"
import * as ApprovalView from "./ApprovalView.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print, printLines } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"

/** A batch as it is shown: the calls in full, and their hash. */
export interface ShownBatch {
  readonly title: string
  readonly calls: readonly [AskedCall, ...ReadonlyArray<AskedCall>]
  readonly hash: string
}

/** The calls of a batch in full. A call that was decided in the meantime is left out. Undefined: all were decided. */
const whole = Effect.fnUntraced(function* (client: Client, { calls, words }: CallBatch, caller: Caller) {
  const asked = yield* Effect.forEach(calls, ({ id }) => Effect.option(client.Asked({ name: id, caller })))
  const [first, ...others] = asked.flatMap(Option.toArray)
  if (first === undefined) return undefined
  const all = [first, ...others] as const
  const rows = all.map(({ agent }) => ({ who: agent }))
  return { title: batchTitle(rows, { words }), calls: all, hash: hashOf(all) } satisfies ShownBatch
})

/** All batches that wait. With an id: the batch of several calls with this call, if other calls of its kind wait. */
export const shown = Effect.fnUntraced(function* (client: Client, caller: Caller, id?: string) {
  const { batches = [] } = yield* client.Waiting()
  const isWanted = ({ calls }: CallBatch) => calls.length > 1 && calls.some((one) => one.id === id)
  const wanted = id === undefined ? batches : batches.filter(isWanted)
  const all = yield* Effect.forEach(wanted, (batch) => whole(client, batch, caller))
  return all.flatMap((batch) => batch ?? [])
})

/** Approves exactly these calls, or none of them. */
const approve = Effect.fnUntraced(function* (calls: ReadonlyArray<Pick<AskedCall, "hash" | "id">>) {
  const { caller, paths } = yield* Invocation
  const [first, ...others] = calls
  const also = others.map(({ hash, id }) => ({ name: id, hash }))
  const { hash, id: name } = first!
  const { message } = yield* call(paths.socket, (client) =>
    client.Answer({ name, decision: "allow", reason: "", hash, caller, ...(also.length === 0 ? {} : { also }) })
  )
  yield* printLines([plain(message)])
})

const lines = ({ calls, hash, title }: ShownBatch, columns: number | null, colour: boolean): ReadonlyArray<string> => [
  `${ApprovalView.line(title)}: ${CallHash.short(hash)}`,
  ...calls.flatMap((one) => ApprovalView.lines(one, columns, colour)),
  ""
]

export const run = Effect.fnUntraced(function* ({ call: hash }: { readonly call: string | undefined }) {
  const { caller, colour, columns, interactive, json, paths } = yield* Invocation
  if (hash !== undefined) {
    const { batches = [] } = yield* call(paths.socket, (client) => client.Waiting())
    const calls = named(batches, (one) => CallHash.names(hash, one))
    if (calls !== undefined) return yield* approve(calls)
  }
  const batches = yield* call(paths.socket, (client) => shown(client, caller))
  yield* print({ batches }, () =>
    batches.length === 0 ? ["Nothing waits for you."] : batches.flatMap((batch) => lines(batch, columns, colour))
  )
  if (hash !== undefined)
    return yield* new VerbFailed({
      message: "No calls with this hash wait: one of them was decided, or the hash is not the one of a batch.",
      remedy: "The calls that wait now are shown above, each batch with its hash.",
      exitCode: ExitCode.failed
    })
  if (batches.length === 0) return
  if (json || !interactive)
    return yield* new VerbFailed({
      message: "Nothing was approved: this is not a terminal.",
      remedy: `To approve all calls of a batch that was shown: agentd approve --all ${CallHash.short(batches[0]!.hash)}`,
      exitCode: ExitCode.undecided
    })
  for (const { calls } of batches) {
    const message = calls.length === 1 ? `Allow ${plain(calls[0].id)}?` : `Allow all ${calls.length} of one kind?`
    if (yield* Prompt.run(Prompt.Confirm({ message, initial: false }))) yield* approve(calls)
  }
})
