/** `agentd plates`: the sessions, with all that is known of each. */
import { Clock, Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { Invocation, print } from "./Invocation.ts"
import * as SessionTable from "./SessionTable.ts"

export const run = Effect.fnUntraced(function* ({ all }: { readonly all: boolean }) {
  const { colour, columns, paths } = yield* Invocation
  const plates = yield* call(paths.socket, (client) => client.Plates({ all }))
  const now = yield* Clock.currentTimeMillis
  yield* print(plates, () =>
    plates.length === 0
      ? ["No sessions are known. Let Claude Code tell of them: agentd hooks install"]
      : SessionTable.full(plates, now, { colour, columns })
  )
})
