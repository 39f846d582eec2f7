/**
 * Explain: the story of one agent, read from the log and from what is so now: one for `agentd why`
 * and for the mail of an alert.
 *
 * Guarantees: of runes only public ones are told; as many runes of the agent are read as a
 * long story needs, and no more.
 */
import { Effect } from "effect"
import type { AgentInfo } from "../../domain/Messages.ts"
import { EventLog } from "../../core/event-log/EventLog.ts"
import { Agents } from "./Agents.ts"
import { workerName } from "../../agents/machines/AgentStates.ts"
import * as Why from "./Why.ts"

/** So many runes of an agent are enough to say why it is where it is. */
const RUNES = 800
/** So many words of a run, the newest, are told. */
const NOTICES = 3

export const explain = Effect.fnUntraced(function* (agent: AgentInfo) {
  const agents = yield* Agents
  const log = yield* EventLog
  const { conversation: stream } = agent
  const runes = yield* log.tail({ stream, actors: Why.actorsOf(agent.agent), kinds: Why.kinds }, RUNES)
  // a run may tell much: the newest is enough
  const notices = yield* log.tail({ stream, actor: workerName(agent.agent), kinds: ["run.notice"] }, NOTICES)
  const open = [...runes, ...notices].filter(({ visibility }) => visibility === "public")
  const calls = (yield* agents.calls).filter((one) => one.agent === agent.agent && one.conversation === stream)
  const conversation = (yield* agents.conversations).find((one) => one.conversation === stream)
  return Why.why(open, agent, conversation === undefined ? { calls } : { calls, conversation })
})
