/** A goal's task whose answer is cut off: it is no success, its half is told to the next try and to the person, and the goal is met all the same. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"

describe("a goal's task", () => {
  it.live("that is answered by half is tried again with what there was, and is completed by a whole answer", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const { asked, url } = yield* ModelStand.provider("anthropic", ({ body }) =>
        JSON.stringify(body.messages.at(-1)).includes("The last try ended")
          ? { text: ["The whole answer."] }
          : { text: ["The first half of"], stop: "length" }
      )
      const agent = stage.agent("model", { backend: { baseUrl: url, retries: 0 } })
      const goals = { workers: ["ann"], backoff: { base: "100ms", cap: "200ms" } }
      const project = stage.home({ agents: { ann: agent }, goals })
      yield* stage.up
      yield* project.register
      const plan = join(project.root, "plan.json")
      writeFileSync(plan, JSON.stringify({ tasks: [{ id: "tell", title: "Tell it" }] }))
      const { caller } = project
      yield* stage.rpc((client) => client.GoalSubmit({ request: { goal: "Tell it", plan, autoStart: true }, caller }))
      const page = stage.rpc((client) => client.Goal({ name: "g1", from: 0, caller }))
      const { tasks } = yield* project.until("the goal is met", page, ({ goal }) => goal.state === "goal_met")
      assert.deepInclude(tasks[0], { id: "tell", state: "completed" })
      const [half] = yield* project.of("ann", 1, "turn.error")
      assert.deepInclude(half!.payload, { error_type: "max_tokens", partial_output: "The first half of" })
      const [retried] = yield* project.log("plan.task_retried")
      const error = String((retried!.payload["event"] as { readonly error: string }).error)
      assert.match(error, /it had said: The first half of\n… \(half an answer: it was cut off at a limit\)/)
      assert.include(JSON.stringify(asked.at(-1)!.body.messages), "The first half of")
      const [done] = yield* project.log("plan.task_completed")
      assert.include(JSON.stringify(done!.payload), '"The whole answer."')
      assert.notInclude(JSON.stringify(done!.payload), "half an answer")
    }).pipe(Effect.scoped)
  )
})
