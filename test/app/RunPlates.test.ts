/** Tests of the board's rows of agentd's own runs: a dialog is open on one where its call's machine says so. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agents } from "../../src/projects/service/Agents.ts"
import type { Watched } from "../../src/agents/actors/AgentSetting.ts"
import * as RunPlates from "../../src/app/RunPlates.ts"
import { Plates } from "../../src/plates/Plates.ts"

const call = { _tag: "ToolCall", callId: "c", tool: "Bash", arguments: {}, readOnly: false } as const
const asked = { _tag: "ApprovalRequested", callId: "c", reason: "" } as const

const told = Effect.fnUntraced(function* (...events: ReadonlyArray<Watched>) {
  const heard: Array<string> = []
  const all = [{ _tag: "Begun", cwd: "/p", turns: true } as const, ...events]
  const news = Stream.fromIterable(all.map((event) => ({ runId: "r", agent: "shop/builder", event })))
  const plates = Layer.mock(Plates, { run: ({ event }) => Effect.sync(() => void heard.push(event._tag)) })
  yield* RunPlates.follow.pipe(Effect.provide(Layer.merge(Layer.mock(Agents, { news }), plates)))
  return heard.slice(1)
})

describe("a run's row on the board", () => {
  it.effect("asks where its call's machine asks, and not where its run has asked", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* told(call, asked), ["RunToolCalled"])
      const both = yield* told(call, asked, { _tag: "Asks", callId: "c" }, { _tag: "AsksNoMore", callId: "c" })
      assert.deepStrictEqual(both, ["RunToolCalled", "RunApprovalRequested", "PromptAnswered"])
    })
  )

  it.effect("asks for no call of a turn that has ended", () =>
    Effect.gen(function* () {
      const over = yield* told(call, { _tag: "TurnCompleted", turnId: "t", output: "" }, { _tag: "Asks", callId: "c" })
      assert.deepStrictEqual(over, ["RunToolCalled", "RunTurnEnded"])
    })
  )
})
