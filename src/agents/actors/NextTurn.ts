/**
 * NextTurn: decides what an agent does next: a turn in its live run, a new run, or nothing. Pure, except for reads of
 * state outside the log.
 *
 * Order: interrupted work first, then steering messages, then waiting messages.
 */
import { Duration, Equal } from "effect"
import { type AgentConfig, backendAt } from "../../config/AgentConfig.ts"
import { sharesMemory } from "../../config/Fallback.ts"
import { type Context, tell, type Tell } from "../../core/event-actor/EventSourcedActor.ts"
import type { Reach } from "../../domain/SpendingLimits.ts"
import { type AgentEnvironment } from "./AgentEnvironment.ts"
import { Siblings, type WorkerSnapshot } from "../machines/AgentStates.ts"
import * as Budget from "../machines/Budget.ts"
import * as Inbox from "../machines/Inbox.ts"
import * as Prompt from "../prompt/Prompt.ts"
import { MAX_KEPT_BYTES } from "../prompt/Prompt.ts"
import type { CurrentRun } from "./CurrentRun.ts"
import * as WorkerMachine from "../machines/WorkerMachine.ts"

const HOUR = 3_600_000

export const spacingOf = ({ maxRunsPerHour, minRunInterval }: AgentConfig): WorkerMachine.Spacing => ({
  interval: Duration.toMillis(minRunInterval),
  maxRunsPerHour: maxRunsPerHour ?? null
})

export const termsOf = ({ backoff, maxRunsPerHour, ...config }: AgentConfig): WorkerMachine.Terms => ({
  limits: { maxConsecutiveErrors: config.maxConsecutiveErrors, maxTotalErrors: config.maxTotalErrors },
  backoff: {
    base: Duration.toMillis(backoff.base),
    cap: Duration.toMillis(backoff.cap),
    factor: 2,
    jitter: backoff.jitter,
    by: backoff.by
  },
  maxRunsPerHour: maxRunsPerHour ?? null
})

/** The run limits in the current config, if they differ from the limits that the worker uses. */
const newTerms = (data: WorkerMachine.Data, config: AgentConfig): { readonly terms?: WorkerMachine.Terms } => {
  const terms = termsOf(config)
  const { backoff, limits, maxRunsPerHour } = data
  return Equal.equals(terms, { limits, backoff, maxRunsPerHour }) ? {} : { terms }
}

/**
 * Time until the next run may start, ms. If the clock was set back, the result is still at most the configured interval
 * or one hour.
 */
export const untilDue = (data: WorkerMachine.Data, spacing: WorkerMachine.Spacing, now: number): number => {
  const { interval, maxRunsPerHour } = spacing
  return Math.min(
    WorkerMachine.dueAt(data, spacing, now) - now,
    maxRunsPerHour === null ? interval : Math.max(interval, HOUR)
  )
}

/**
 * Whether the next run may start. True if the clock was set back, because then the last start is in the future and
 * proves nothing.
 */
export const isDue = (data: WorkerMachine.Data, spacing: WorkerMachine.Spacing, now: number): boolean =>
  (data.lastRunAt !== null && now < data.lastRunAt) || untilDue(data, spacing, now) <= 0

/**
 * Ends the agent if its config says that it must stop at a reached limit. Otherwise the agent waits until the limit
 * resets.
 */
const spentOut = (reached: Reach | "unread", { toLife }: Siblings): ReadonlyArray<Tell> => {
  if (reached === "unread" || !reached.stops) return []
  const { limit, resource, spent } = reached
  return [tell(toLife, { _tag: "budget_exhausted", resource, spent, limit })]
}

/** Whether the agent's backend has slash commands. */
const takesCommands = ({ backend }: AgentConfig): boolean => backend.type === "claude" || backend.type === "acp"

const nextRun = (
  { agent, allowance, config, weather }: AgentEnvironment["Service"],
  { look, newId }: CurrentRun["Service"],
  siblings: Siblings,
  { data }: WorkerSnapshot,
  { nextId, now }: Context
): ReadonlyArray<Tell> => {
  const { instructions, mode, prompt: task, role } = config()
  if (!isDue(data, spacingOf(config()), now)) return []
  const { inbox, toWorker, turn } = siblings
  const unfinished = Prompt.unfinishedOf(inbox.data, turn.data)
  const waiting = Prompt.queued(inbox.data, turn.data)
  // the previous run may have ended before its turn started
  const wasCarried = waiting.some(({ messageId }) => data.messageIds.includes(messageId))
  const isLeft = mode === "loop" || unfinished.length > 0 || wasCarried
  const runId = newId(now, nextId)
  const { messageIds, text } = Prompt.assemble({
    agent,
    role,
    instructions,
    task,
    lastRun: isLeft ? (data.cutShort ?? undefined) : undefined,
    unfinished,
    waiting,
    drawn: runId,
    most: Prompt.mostOf(config()),
    commands: takesCommands(config())
  })
  if (mode === "inbox" && messageIds.length === 0) return []
  if (Prompt.sizeOfText(text) > MAX_KEPT_BYTES) {
    return [
      tell(toWorker, {
        _tag: "FatalError",
        message: `the prompt cannot be stored: it takes more than ${MAX_KEPT_BYTES} bytes in the log`,
        remedy: "Shorten the agent's instructions or prompt in agentd.jsonc, then start it again."
      })
    ]
  }
  const reached = allowance.admits(siblings.life.spent, look)
  if (reached !== undefined) return spentOut(reached, siblings)
  const picked = weather.pick(look)
  if (picked === undefined) return []
  const terms = newTerms(data, config())
  const { index, why } = picked
  const [from, to] = [data.fallback ?? 0, index].map((place) => backendAt(config(), place))
  const isMove = index !== (data.fallback ?? 0)
  const keeps = sharesMemory(from!, to!) ? { keeps: true } : {}
  const because = isMove ? { because: why ?? "its own provider is available again", ...keeps } : {}
  const moved = index === 0 && !isMove ? {} : { fallback: { index, ...because } }
  return [tell(toWorker, { _tag: "PromptReady", prompt: text, messageIds, runId, at: now, ...terms, ...moved })]
}

const rolesOf = ({ instructions, role }: AgentConfig) => ({ instructions, role })

const nextTurn = (
  { agent, allowance, config, weather }: AgentEnvironment["Service"],
  { live, look, newId }: CurrentRun["Service"],
  siblings: Siblings,
  { nextId, now }: Context
): ReadonlyArray<Tell> => {
  const { inbox, life, toTurn, toWorker, turn, worker } = siblings
  const turnId = newId(now, nextId)
  const introduced = live.introduced ? [] : Prompt.introduction({ agent, ...rolesOf(config()) })
  const commands = takesCommands(config())
  const { input, messageIds, source } = Prompt.followUp(inbox.data, turn.data, turnId, commands, introduced)
  if (messageIds.length === 0) return []
  const reached = allowance.admits(life.spent, look)
  if (reached !== undefined) return spentOut(reached, siblings)
  const picked = weather.pick(look)
  if (picked === undefined) return []
  // a change of the provider needs a new run, which carries the messages
  const { fallback = 0, runId } = worker.now!.data
  if (picked.index !== fallback)
    return [tell(toWorker, { _tag: "UrgentMessage", messageId: messageIds[0]!, runId: runId! })]
  const graceMillis = Duration.toMillis(config().interruptGrace)
  return [tell(toTurn, { _tag: "start_turn", turnId, agentId: agent, input, messageIds, source, graceMillis, at: now })]
}

export const next = (
  setting: AgentEnvironment["Service"],
  place: CurrentRun["Service"],
  context: Context
): ReadonlyArray<Tell> => {
  const siblings = new Siblings(setting.agent, context)
  const { life, toLife, turn, worker } = siblings
  if (life.state !== "idle" || turn.state !== "idle" || worker.now === undefined) return []
  // an earlier daemon or a changed config can leave an agent whose budget is already exceeded
  const exhausted = Budget.exhausted(setting.config().budget, life.spent)
  if (exhausted !== undefined) return [tell(toLife, { _tag: "budget_exhausted", ...exhausted })]
  if (setting.home.barred() !== undefined || Inbox.heldBy(siblings.inbox.data) !== undefined) return []
  const { data, state } = worker.now
  if (state === "BuildingPrompt") return nextRun(setting, place, siblings, worker.now, context)
  return state === "Running" && place.live.isFree(data.runId) ? nextTurn(setting, place, siblings, context) : []
}
