/** `agentd ps`: the coding sessions and the agents, one a row; with -w as they change. */
import { Clock, Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { render } from "./Board.ts"
import { glance } from "./Glance.ts"
import { Invocation, print, worldOf } from "./Invocation.ts"

const once = Effect.gen(function* () {
  const { colour, columns, paths } = yield* Invocation
  const board = yield* call(paths.socket, glance)
  const now = yield* Clock.currentTimeMillis
  yield* print(board, () => render(board, now, { colour, columns, world: worldOf(paths) }))
})

export const run = Effect.fnUntraced(function* (input: { readonly watch: boolean }) {
  if (!input.watch) return yield* once
  const watch = yield* Effect.promise(() => import("./Watch.ts"))
  return yield* watch.run({ bell: false, notify: false })
})
