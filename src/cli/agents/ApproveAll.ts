/**
 * `agentd approve --all`: shows the calls that wait as batches: calls of one kind are one question with a row for each.
 * `agentd approve --all HASH` approves exactly the calls of the batch that was shown.
 *
 * Guarantees: each call is approved by its own hash. A call that came since the batch was shown still waits.
 */
import { Effect } from "effect"
import { Prompt } from "effect/cli"
import { call } from "../../api/rpc/ControlClient.ts"
import * as CallBatch from "./CallBatch.ts"
import * as CallHash from "../../domain/CallHash.ts"
import type { AskedCall } from "../../domain/Messages.ts"
import * as ApprovalView from "./ApprovalView.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print, printLines } from "../parse/Invocation.ts"
import { count, plain } from "../render/Output.ts"

/** The calls that wait. A call that was decided in the meantime is left out. */
const waiting = Effect.gen(function* () {
  const { caller, paths } = yield* Invocation
  const { rows } = yield* call(paths.socket, (client) => client.Waiting())
  const ids = rows.flatMap(({ id, kind }) => (kind === "approval" && id.startsWith("call/") ? [id.slice(5)] : []))
  const asked = yield* Effect.forEach(ids, (name) =>
    call(paths.socket, (client) => client.Asked({ name, caller })).pipe(
      Effect.catchTag("CommandRefused", () => Effect.succeed(undefined))
    )
  )
  return CallBatch.batchesOf(asked.flatMap((one) => one ?? []))
})

const approve = Effect.fnUntraced(function* (calls: ReadonlyArray<AskedCall>) {
  const { caller, paths } = yield* Invocation
  let missed = 0
  for (const { hash, id } of calls) {
    const said = yield* call(paths.socket, (client) =>
      client.Answer({ name: id, decision: "allow", reason: "", hash, caller })
    ).pipe(
      Effect.map(({ message }) => message),
      // a call that somebody else has decided keeps none of the others waiting
      Effect.catchTag("CommandRefused", ({ message, remedy }) => {
        missed++
        return Effect.succeed(`${message} ${remedy}`)
      })
    )
    yield* printLines([`${plain(id)}: ${plain(said)}`])
  }
  if (missed > 0)
    return yield* new VerbFailed({
      message: `${missed} of ${calls.length} calls were not approved.`,
      remedy: "See what still waits: agentd approve",
      exitCode: ExitCode.failed
    })
})

const lines = (
  { calls, hash }: CallBatch.CallBatch,
  columns: number | null,
  colour: boolean
): ReadonlyArray<string> => [
  `${count(calls.length, "call")} of one kind: ${CallHash.short(hash)}`,
  ...calls.flatMap((one) => ApprovalView.lines(one, columns, colour)),
  ""
]

export const run = Effect.fnUntraced(function* ({ call: hash }: { readonly call: string | undefined }) {
  const { colour, columns, interactive, json } = yield* Invocation
  const batches = yield* waiting
  if (hash !== undefined) {
    const calls = CallBatch.named(batches, (one) => CallHash.names(hash, one))
    if (calls === undefined)
      return yield* new VerbFailed({
        message: "No calls with this hash wait: one of them was decided, or the hash is not the one of a batch.",
        remedy: "See the calls that wait now: agentd approve --all",
        exitCode: ExitCode.failed
      })
    return yield* approve(calls)
  }
  yield* print({ batches }, () =>
    batches.length === 0 ? ["Nothing waits for you."] : batches.flatMap((batch) => lines(batch, columns, colour))
  )
  if (batches.length === 0) return
  if (json || !interactive)
    return yield* new VerbFailed({
      message: "Nothing was approved: this is not a terminal.",
      remedy: `To approve all calls of a batch that was shown: agentd approve --all ${CallHash.short(batches[0]!.hash)}`,
      exitCode: ExitCode.undecided
    })
  for (const { calls } of batches) {
    const message = calls.length === 1 ? `Allow ${plain(calls[0]!.id)}?` : `Allow all ${calls.length} of one kind?`
    if (yield* Prompt.run(Prompt.Confirm({ message, initial: false }))) yield* approve(calls)
  }
})
