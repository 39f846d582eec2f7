/**
 * `agentd waiting`: all that waits for a person: calls and sessions that ask, and channels
 * that only a person sets going again.
 */
import { Clock, Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { hint, Invocation, print } from "./Invocation.ts"
import { paint } from "./Output.ts"
import { adviceOf, render, waitingOf } from "./Waiting.ts"

export const run = Effect.fnUntraced(function* () {
  const { colour, paths } = yield* Invocation
  const waiting = yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const [calls, plates] = [yield* client.Calls(), yield* client.Plates({ all: false })]
      return waitingOf(calls, plates, yield* client.Channels())
    })
  )
  const now = yield* Clock.currentTimeMillis
  const lines = yield* Effect.forEach(render(waiting, now, colour), hint)
  const advice = yield* hint(adviceOf(waiting))
  yield* print(waiting, () => (advice === "" ? lines : [...lines, "", paint(colour, "dim", advice)]))
})
