/** GoalDefaults: completes a submitted goal with the settings of its project. Pure. */
import { Duration, Schema } from "effect"
import type { Member } from "../domain/AgentPort.ts"
import { GoalConfig } from "../config/GoalConfig.ts"
import type { GoalOptions, GoalRequest } from "../domain/GoalMessages.ts"
import { type CommandRefused, refuse } from "../domain/Messages.ts"

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

export const checkAgents = (options: GoalOptions, members: ReadonlyArray<Member>): CommandRefused | undefined => {
  const names = members.map(({ agent }) => agent)
  for (const [role, name] of [
    ["planner", options.planner],
    ["critic", options.critic]
  ] as const) {
    if (name !== null && !names.includes(name)) {
      return refuse("not_found", `${role}: there is no agent "${name}".`, `There are: ${names.join(", ") || "none"}`)
    }
  }
  return undefined
}

/** Default options, for a goal whose first rune contains no options. */
export const DEFAULTS: GoalOptions = optionsOf({ goal: "", plan: null }, Schema.decodeSync(GoalConfig)({}))

export const isWorker = ({ critic, planner, workers }: GoalOptions, { agent, parent }: Member): boolean =>
  workers === null ? agent !== planner && agent !== critic && parent === null : workers.includes(agent)

export const workersOf = (options: GoalOptions, members: ReadonlyArray<Member>): ReadonlyArray<string> =>
  members.filter((member) => isWorker(options, member)).map(({ agent }) => agent)
