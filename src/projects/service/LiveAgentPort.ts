/**
 * LiveAgentPort: implements AgentPort with the agents of this daemon: the operations that channels and plans perform on
 * agents, by address.
 */
import { Clock, Effect, type Stream } from "effect"
import { type Address, AgentPort, type AgentReport, type Member } from "../../domain/AgentPort.ts"
import { type AgentInfo, type CallInfo, type CommandRefused, refuse, refusedBy } from "../../domain/Messages.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { AgentScope } from "../../agents/actors/AgentScope.ts"

export interface Agents {
  readonly find: (address: Address) => AgentScope | undefined
  readonly of: (conversation: string) => ReadonlyArray<AgentScope>
  readonly info: (address: Address, now: number) => AgentInfo | undefined
  readonly reports: Stream.Stream<AgentReport>
  readonly recovered: Effect.Effect<void>
}

/** Why the agent waits for the user, and since when; undefined if it does not wait for the user. */
export const needsOf = (info: AgentInfo | undefined, calls: ReadonlyArray<CallInfo>): Member["needs"] => {
  if (info === undefined) return undefined
  const { agent, busy, detail, project, since, state, word } = info
  const asking = calls.filter((call) => call.state === "awaiting_approval")
  if (word === "needs you" && (asking.length > 0 || busy !== true))
    return {
      text: `${agent} ${detail}`,
      since: Math.min(...asking.map((call) => call.since), ...(asking.length > 0 ? [] : [since]))
    }
  const isStill = state === "Stopped" && word !== "waiting" && word !== "working"
  return isStill ? { text: `${agent} is stopped (${detail}): agentd start ${project}/${agent}`, since } : undefined
}

export const make = ({ find, info, of, recovered, reports }: Agents): AgentPort["Service"] => {
  const on = <A>(to: Address, act: (agentScope: AgentScope) => Effect.Effect<A, CommandRefused | StorageError>) =>
    Effect.andThen(
      recovered,
      Effect.suspend(() => {
        const agentScope = find(to)
        return agentScope === undefined
          ? Effect.fail(
              refuse(
                "not_found",
                `There is no agent "${to.agent}" in ${to.conversation}.`,
                "See which there are: agentd ps"
              )
            )
          : // callers of AgentPort do not handle StorageError
            Effect.mapError(act(agentScope), (error) => refusedBy(error))
      })
    )
  return AgentPort.of({
    post: (to, message) => on(to, (agentScope) => agentScope.post(message)),
    withdraw: (to, messageIds) => on(to, (agentScope) => agentScope.withdraw(messageIds)),
    fate: (to, messageId) => on(to, (agentScope) => agentScope.fate(messageId)),
    interrupt: (to, messageId, reason) => on(to, (agentScope) => agentScope.interruptMessage(messageId, reason)),
    steer: (to, message) => on(to, (agentScope) => agentScope.steer(message)),
    members: (conversation) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        of(conversation).map((agentScope) => {
          const member = agentScope.member(now)
          return { ...member, needs: needsOf(info(member, now), agentScope.calls()) }
        })
      ),
    waits: (to) => {
      const calls = find(to)?.calls() ?? []
      return calls.length > 0 && calls.every(({ state }) => state === "awaiting_approval")
    },
    reports,
    recovered
  })
}
