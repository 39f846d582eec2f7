/**
 * `agentd approve|deny|answer [CALL]`: answers a tool call of an agent, or what a
 * session asks leave for; without a CALL: what waits for an answer.
 */
import { Clock, Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { hint, Invocation, print } from "./Invocation.ts"
import { paint, plain } from "./Output.ts"
import { adviceOf, render, waitingOf } from "./Waiting.ts"

const list = Effect.gen(function* () {
  const { colour, paths } = yield* Invocation
  const waiting = yield* call(paths.socket, (client) =>
    Effect.zipWith(client.Calls(), client.Plates({ all: false }), waitingOf)
  )
  const now = yield* Clock.currentTimeMillis
  const lines = render(waiting, now, colour)
  const advice = yield* hint(adviceOf(waiting))
  yield* print(waiting, () => (advice === "" ? lines : [...lines, "", paint(colour, "dim", advice)]))
})

export const run = Effect.fnUntraced(function* (input: {
  readonly call: string | undefined
  readonly decision: "allow" | "deny"
  readonly reason: string | undefined
  /** To the call's questions. */
  readonly answers?: ReadonlyArray<string>
}) {
  const { caller, paths } = yield* Invocation
  const name = input.call
  if (name === undefined) return yield* list
  const done = yield* call(paths.socket, (client) =>
    client.Answer({
      name,
      decision: input.decision,
      reason: input.reason ?? "",
      ...(input.answers === undefined ? {} : { answers: input.answers }),
      caller
    })
  )
  yield* print(done, () => [plain(done.message)])
})
