/** The story in a mail is the one that `agentd why` tells. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Goals } from "../../../src/goals/Goals.ts"
import { Plates } from "../../../src/plates/Plates.ts"
import { Agents } from "../../../src/projects/service/Agents.ts"
import { explain } from "../../../src/projects/service/Explain.ts"
import { AlertContext } from "../../../src/alerts/AlertContext.ts"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import { loadUser } from "../../../src/config/ConfigFile.ts"
import * as ProjectAlerts from "../../../src/app/ProjectAlerts.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { agentInfo, conversationInfo, moved, T0 } from "../../world/rpc/World.ts"

const agent = agentInfo({ backend: "claude", state: "Stopped", detail: "" })
const paused = conversationInfo({ state: "paused", detail: "paused by ada" })
const agents = Layer.succeed(Agents, {
  all: Effect.succeed([agent]),
  calls: Effect.succeed([]),
  conversations: Effect.succeed([paused])
} as unknown as Agents["Service"])

const fatal = { _tag: "FatalError", message: "no such file", remedy: "Make it." } as const
const turn = {
  stream: agent.conversation,
  kind: "turn.started",
  actor: "turn/builder",
  from: "idle",
  to: "streaming",
  trigger: "start_turn",
  payload: {
    turn_id: "t1",
    agent_id: "builder",
    input: "do it",
    event: {
      _tag: "start_turn",
      turnId: "t1",
      agentId: "builder",
      input: "do it",
      source: "queue",
      messageIds: ["m1"],
      at: T0
    }
  }
}

describe("the story of an agent that stopped", () => {
  it.live("is told alike in the mail and on the terminal: its runs and its turns", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const runes = yield* log.append([
        moved({ _tag: "PromptReady", prompt: "p", runId: "r", messageIds: [], at: T0 }),
        turn,
        moved(fatal, { from: "Running", to: "Stopped" })
      ])
      const { why } = yield* AlertContext
      const mailed = yield* why({
        actor: "worker/builder",
        stream: agent.conversation,
        cause: runes.at(-1)!.eventId
      } as Parameters<typeof why>[0])
      const { advice, lines } = yield* explain(agent)
      assert.deepStrictEqual(mailed, lines)
      const told = lines.map(({ text }) => text)
      assert.include(told, "cannot continue: no such file")
      assert.include(told, "a turn began with 1 message")
      assert.match(advice ?? "", /^Make it\. .*agentd start web\/builder/)
    }).pipe(
      Effect.provide(
        ProjectAlerts.layer(loadUser("/nonexistent/config.jsonc")).pipe(
          Layer.provideMerge(agents),
          Layer.provideMerge(Layer.mock(Goals, { isOpen: () => false })),
          Layer.provideMerge(Layer.mock(Plates, {})),
          Layer.provideMerge(layerMemory),
          Layer.provideMerge(NodeServices.layer)
        )
      )
    )
  )
})
