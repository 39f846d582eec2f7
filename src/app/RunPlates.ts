/**
 * RunPlates: the board's rows of agentd's own runs, fed from what the runs tell.
 *
 * Only runs that take turns have one: a command says nothing but that it runs, which
 * its agent's own row says. Whether a person is asked is what the call's machine says, not its run. What is told late or twice, the plate's machine refuses.
 */
import { Clock, Effect, Stream } from "effect"
import type { RunNews } from "../projects/service/Bus.ts"
import { Agents } from "../projects/service/Agents.ts"
import type { RunReport } from "../plates/EventIntake.ts"
import { Plates } from "../plates/Plates.ts"

type Event = RunReport["event"]

/** A run's calls that have not ended, by id. */
type Open = Map<string, string>

const MAX_OPEN = 1_000

const eventOf = ({ event, runId }: RunNews, open: Open, at: number): Event | undefined => {
  const run = { at, runId }
  switch (event._tag) {
    case "Begun": {
      const { cwd, pid, sessionId } = event
      return {
        _tag: "RunBegun",
        cwd,
        ...(pid === undefined ? {} : { pid }),
        ...(sessionId === undefined ? {} : { sessionId })
      }
    }
    case "TurnStarted":
    case "TurnOpened":
      return { _tag: "RunTurnStarted", ...run }
    case "ToolCall":
      if (open.size < MAX_OPEN) open.set(event.callId, event.tool)
      return { _tag: "RunToolCalled", ...run, tool: event.tool, callId: event.callId }
    case "Asks": {
      const tool = open.get(event.callId)
      return tool === undefined ? undefined : { _tag: "RunApprovalRequested", ...run, tool, callId: event.callId }
    }
    case "AsksNoMore": {
      const tool = open.get(event.callId) ?? ""
      return { _tag: "PromptAnswered", ...run, tool, callId: event.callId, behavior: "allow" }
    }
    case "ToolResult": {
      const tool = open.get(event.callId) ?? ""
      open.delete(event.callId)
      return { _tag: "RunToolEnded", ...run, tool, callId: event.callId }
    }
    case "Background":
      return { _tag: "RunBackground", ...run, works: event.works.map(({ id }) => id) }
    case "TurnCompleted":
    case "TurnInterrupted":
      open.clear()
      return { _tag: "RunTurnEnded", ...run }
    case "TurnError":
      open.clear()
      return { _tag: "RunTurnEnded", ...run, error: event.errorType }
    case "Exited":
      return { _tag: "RunEnded" }
    default:
      return undefined
  }
}

/** For as long as it runs. */
export const follow = Effect.gen(function* () {
  const agents = yield* Agents
  const plates = yield* Plates
  const runs = new Map<string, Open>()
  return yield* Stream.runForEach(
    agents.news,
    Effect.fnUntraced(function* (news: RunNews) {
      const { agent, event, runId } = news
      if (event._tag === "Begun" && event.turns) runs.set(runId, new Map())
      const open = runs.get(runId)
      if (open === undefined) return
      const told = eventOf(news, open, yield* Clock.currentTimeMillis)
      if (event._tag === "Exited") runs.delete(runId)
      if (told !== undefined) yield* plates.run({ runId, agent, event: told })
    })
  )
})
