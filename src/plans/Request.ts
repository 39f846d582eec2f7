/**
 * Request: a goal as it is submitted, completed by what its project says. Pure.
 */
import { Duration } from "effect"
import type { Member } from "../domain/Crew.ts"
import type { GoalConfig } from "../domain/GoalConfig.ts"
import type { GoalOptions, GoalRequest } from "../domain/GoalMessages.ts"
import { CommandRefused } from "../domain/Messages.ts"

/** The project's word, unless the request says otherwise. */
export const optionsOf = (request: GoalRequest, config: GoalConfig): GoalOptions => ({
  planner: request.planner ?? config.planner ?? null,
  critic: request.critic ?? config.critic ?? null,
  workers: config.workers ?? null,
  checks: request.checks ?? config.checks,
  checkTimeout: Duration.toMillis(config.checkTimeout),
  autoStart: request.autoStart ?? config.autoStart,
  rounds: request.rounds ?? config.rounds,
  target: request.target ?? config.target ?? null,
  planTries: config.planTries,
  maxTaskErrors: config.maxTaskErrors,
  maxErrors: config.maxErrors,
  backoff: {
    base: Duration.toMillis(config.backoff.base),
    cap: Duration.toMillis(config.backoff.cap),
    jitter: config.backoff.jitter
  },
  taskTimeout: Duration.toMillis(config.taskTimeout),
  blockedTimeout: Duration.toMillis(config.blockedTimeout)
})

/** A planner or a critic that there is not. */
export const checkAgents = (options: GoalOptions, members: ReadonlyArray<Member>): CommandRefused | undefined => {
  const names = members.map(({ agent }) => agent)
  for (const [role, name] of [
    ["planner", options.planner],
    ["critic", options.critic]
  ] as const) {
    if (name !== null && !names.includes(name)) {
      return new CommandRefused({
        message: `${role}: there is no agent "${name}".`,
        remedy: `There are: ${names.join(", ") || "none"}`
      })
    }
  }
  return undefined
}

/** Those that may be given its tasks. */
export const workersOf = (options: GoalOptions, members: ReadonlyArray<Member>): ReadonlyArray<string> =>
  members
    .filter(({ agent, parent }) =>
      options.workers === null
        ? agent !== options.planner && agent !== options.critic && parent === null
        : options.workers.includes(agent)
    )
    .map(({ agent }) => agent)
