/**
 * Explain: explains the current state of one agent from the log, for `agentd why` and for the mail of an alert.
 *
 * Guarantees: Only public runes are shown. Only a limited number of runes is read, but enough for a long explanation.
 */
import { Effect } from "effect"
import type { AgentInfo } from "../../domain/Messages.ts"
import { EventLog } from "../../core/event-log/EventLog.ts"
import { Agents } from "./Agents.ts"
import { toolName, workerName } from "../../agents/machines/AgentStates.ts"
import * as WhyCalls from "./WhyCalls.ts"
import * as Why from "./Why.ts"

/** Maximum number of runes that are read to explain an agent's state. */
const RUNES = 800
/** Maximum number of runes about calls that are read. */
const CALLS = 200
/** Maximum number of a run's notices that are shown, newest first. */
const NOTICES = 3

export const explain = Effect.fnUntraced(function* (agent: AgentInfo) {
  const agents = yield* Agents
  const log = yield* EventLog
  const { conversation: stream } = agent
  const runes = yield* log.tail({ stream, actors: Why.actorsOf(agent.agent), kinds: Why.kinds }, RUNES)
  // notices are read separately, because a run may write many of them
  const notices = yield* log.tail({ stream, actor: workerName(agent.agent), kinds: ["run.notice"] }, NOTICES)
  const decided = yield* log.tail({ stream, actors: [toolName(agent.agent, "")], kinds: WhyCalls.kinds }, CALLS)
  const open = [...runes, ...notices, ...decided].filter(({ visibility }) => visibility === "public")
  const calls = (yield* agents.calls).filter((one) => one.agent === agent.agent && one.conversation === stream)
  const conversation = (yield* agents.conversations).find((one) => one.conversation === stream)
  return Why.why(open, agent, conversation === undefined ? { calls } : { calls, conversation })
})
