/** `agentd goal show`: shows the plan of a goal with its status. With --json, it prints all tasks for a script. */
import { Clock, Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { TaskInfo } from "../../domain/GoalMessages.ts"
import * as GoalView from "./GoalView.ts"
import { Invocation, print } from "../parse/Invocation.ts"

export const run = Effect.fnUntraced(function* ({ name }: { readonly name: string }) {
  const { caller, colour, json, paths } = yield* Invocation
  const page = yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const first = yield* client.Goal({ name, from: 0, caller })
      const tasks: Array<TaskInfo> = [...first.tasks]
      for (let next = json ? first.next : null; next !== null;) {
        const more = yield* client.Goal({ name, from: next, caller })
        tasks.push(...more.tasks)
        next = more.next
      }
      return { ...first, tasks }
    })
  )
  const now = yield* Clock.currentTimeMillis
  const { findings, goal, tasks } = page
  yield* print({ goal, tasks, findings }, () => GoalView.show(page, now, colour))
})
