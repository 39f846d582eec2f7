/**
 * The machines as the laws walk them: tiny limits, events aimed at the
 * data, and what holds in each state.
 */
import * as AgentMachine from "../../../src/agents/machines/AgentMachine.ts"
import type { Task } from "../../../src/domain/GoalMessages.ts"
import * as GoalMachine from "../../../src/goals/GoalMachine.ts"
import * as Backoff from "../../../src/core/supervision/Backoff.ts"
import * as ConversationMachine from "../../../src/agents/machines/ConversationMachine.ts"
import type { Moved } from "../../../src/core/event-actor/StateMachine.ts"
import * as PlateMachine from "../../../src/plates/PlateMachine.ts"
import * as ProviderMachine from "../../../src/providers/ProviderMachine.ts"
import * as PlateState from "../../../src/plates/PlateState.ts"
import * as SeatMachine from "../../../src/channels/SeatMachine.ts"
import * as ToolMachine from "../../../src/agents/machines/ToolMachine.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import type { Subject } from "./laws.ts"

/** Most of the time the one that is meant, now and then another. */
const mostly = (meant: string | null, pick: number): string =>
  pick % 8 === 0 || meant === null ? `other${pick % 3}` : meant

/** The fields of the event that are there, replaced. */
const aimed = <E extends object>(event: E, fields: { readonly [field: string]: unknown }): E =>
  ({ ...event, ...Object.fromEntries(Object.entries(fields).filter(([field]) => field in event)) }) as E

/** The first claim that does not hold. */
const claims = (list: { readonly [claim: string]: boolean }): boolean | string =>
  Object.keys(list).find((claim) => !list[claim]) ?? true

/** `a` only where `b`. */
const implies = (a: boolean, b: boolean): boolean => !a || b

const limits = { maxConsecutiveErrors: 2, maxTotalErrors: 4 }

export const worker: Subject<WorkerMachine.State, WorkerMachine.Event, WorkerMachine.Data> = {
  machine: WorkerMachine.Worker,
  events: WorkerMachine.Event.members,
  kinds: WorkerMachine.kinds,
  initial: WorkerMachine.initial({ limits, maxRunsPerHour: 3 }),
  aim: (data, event, pick) =>
    event._tag === "PromptReady"
      ? {
          ...event,
          runId: `run${pick}`,
          at: pick,
          // the file allows another number of runs
          terms: event.terms && { limits, backoff: data.backoff, maxRunsPerHour: 1 + (pick % 3) }
        }
      : aimed(event, { runId: mostly(data.runId, pick) }),
  holds: ({ data, state }, runes) =>
    claims({
      "nothing from an older run moves it": fromNewestRun(runes),
      "Stopped exactly when there is a reason":
        (state === "Stopped") === (data.fatal !== null || data.stoppedBy !== null),
      "exhausted only in Stopped": implies(Backoff.exhausted(data.limits, data), state === "Stopped"),
      "no more errors in a row than in all": data.consecutiveErrors <= data.totalErrors,
      "a run exactly while it spawns or lives": implies(
        state !== "Stopped",
        ["Spawning", "Running", "Interrupting"].includes(state) === (data.runId !== null)
      ),
      "uncounted ends stay below their limit": data.uncounted.count < WorkerMachine.UNCOUNTED_LIMIT,
      "a cooldown has an end": implies(
        state === "CoolingDown",
        Number.isFinite(WorkerMachine.Worker.timers.cooldown.after(data, 0)) &&
          WorkerMachine.Worker.timers.cooldown.after(data, 0) >= data.backoff.base
      ),
      "recent runs are bounded": data.recentRuns.length <= 3
    })
}

/** Whether the newest rune, where it is of a run, is of the run that was prepared last. */
const fromNewestRun = (runes: ReadonlyArray<Moved>): boolean => {
  const events = runes.map((rune) => rune.payload["event"] as WorkerMachine.Event)
  const prepared = events.findLast((event) => event._tag === "PromptReady")
  const last = events.at(-1)!
  return !("runId" in last) || last.runId === prepared?.runId
}

/** The state by a plate's sets, written down once more. */
const standing = (data: PlateState.Data): PlateMachine.State => {
  if (data.closed) return "Closed"
  if (data.prompts.some(({ kind }) => kind === "question")) return "AwaitingInput"
  if (data.prompts.length > 0) return "AwaitingApproval"
  if (data.turn || data.compacting) return "Running"
  return data.failure === null ? "Idle" : "Error"
}

const tools = ["AskUserQuestion", "ExitPlanMode", "Bash"]

export const plate: Subject<PlateMachine.State, PlateMachine.Event, PlateState.Data> = {
  machine: PlateMachine.Plate,
  events: PlateMachine.Event.members,
  kinds: PlateMachine.kinds,
  initial: PlateState.initial,
  rest: "Closed",
  aim: (data, event, pick) =>
    aimed(event, {
      at: (data.signal?.at ?? 0) + 1,
      asOf: (data.signal?.at ?? 0) - (pick % 9 === 0 ? 1 : 0),
      timestamp: (data.timestamp ?? 0) + (pick % 9) - 1,
      sessionId: `session${pick % 5}`,
      tool: tools[pick % 3],
      callId: `call${pick % 16}`,
      agentId: event._tag === "HookSubagentStop" || pick % 4 === 0 ? `sub${pick % 3}` : undefined,
      pid: pick % 4,
      // Forgetting ends every walk: seldom.
      ...(event._tag === "Forgotten" && pick % 16 > 0 ? { _tag: "ProcessExited" } : {})
    }),
  holds: ({ data, state }) =>
    claims({
      "the status is what the sets say": state === "Starting" ? standing(data) === "Idle" : state === standing(data),
      "the sets are bounded": data.prompts.length <= 64 && data.formerIds.length <= 8 && data.processes.length <= 4
    })
}

export const provider: Subject<ProviderMachine.State, ProviderMachine.Event, ProviderMachine.Data> = {
  machine: ProviderMachine.Provider,
  events: ProviderMachine.Event.members,
  kinds: ProviderMachine.kinds,
  initial: ProviderMachine.initial,
  rest: "Available",
  aim: (data, event, pick) => {
    const at = data.failedAt + 1 + (pick % 5) * 300_000
    return aimed(event, {
      at,
      began: at - (pick % 7 === 0 ? 2_000_000 : 0),
      until: at + (pick % 3) * 60_000,
      retryAt: at + (pick % 4) * 8_000,
      lasts: ProviderMachine.LASTS * (1 + (pick % 2)),
      provider: "anthropic",
      account: "login"
    })
  },
  holds: ({ data, state }) =>
    claims({
      "it is asked again at some time, unless it is available": (data.until === 0) === (state === "Available"),
      "its time comes once": !data.isDue || data.until > 0,
      "what is told has lasted, or is a login that was refused again":
        state === "Available" ||
        data.toldAt === 0 ||
        (data.refusals ?? 0) > 1 ||
        data.toldAt - data.since >= ProviderMachine.LASTS,
      "no wait is longer than a day": data.until <= data.failedAt + 24 * 3_600_000
    })
}

export const turn: Subject<TurnMachine.State, TurnMachine.Event, TurnMachine.Data> = {
  machine: TurnMachine.Turn,
  events: TurnMachine.Event.members,
  kinds: TurnMachine.kinds,
  lazy: TurnMachine.lazy,
  initial: TurnMachine.initial(),
  rest: "idle",
  aim: (data, event, pick) =>
    event._tag === "start_turn" || event._tag === "steer"
      ? { ...event, turnId: pick % 3 === 0 && data.steer !== null ? data.steer.turnId : `turn${pick}` }
      : aimed(event, { turnId: mostly(data.turnId, pick) }),
  holds: ({ data, state }, runes) => {
    const of = (kind: string) => runes.filter((rune) => rune.kind === kind).length
    const ended = of("turn.completed") + of("turn.interrupted") + of("turn.error")
    const active = state === "streaming" || state === "tool_executing"
    return claims({
      "a turn is known outside idle": implies(state !== "idle", data.turnId !== null),
      "it has ended, or is active": active === (data.turnId !== null && data.ended === null),
      "only what was asked is offered again": data.unfinished.every((id) => data.messageIds.includes(id)),
      "at most one turn is active": of("turn.started") === ended + (active ? 1 : 0)
    })
  }
}

export const tool: Subject<ToolMachine.State, ToolMachine.Event, ToolMachine.Data> = {
  machine: ToolMachine.Tool,
  events: ToolMachine.Event.members,
  kinds: ToolMachine.kinds,
  lazy: ToolMachine.lazy,
  initial: ToolMachine.initial({ toolTimeout: 10, maxToolTimeout: 20, approvalTimeout: 30 }),
  aim: (data, event, pick) => aimed(event, { callId: mostly(data.callId ?? "call", pick) }),
  holds: ({ data, state }, runes) => {
    const of = (kind: string) => runes.filter((rune) => rune.kind === kind).length
    const over = ToolMachine.Tool.final.includes(state)
    return claims({
      "one call": of("tool.call") === 1,
      "a result exactly when it is over": of("tool.result") === (over && (state !== "denied" || data.reported) ? 1 : 0),
      "what asks is not run before its approval, or before its agent takes the question back": implies(
        state === "executing",
        of("tool.approval_requested") === of("tool.approved") + of("tool.approval_withdrawn")
      ),
      "no call is longer than the limit": data.timeout <= 20
    })
  }
}

export const conversation: Subject<ConversationMachine.State, ConversationMachine.Event, ConversationMachine.Data> = {
  machine: ConversationMachine.Conversation,
  events: ConversationMachine.Event.members,
  kinds: ConversationMachine.kinds,
  initial: ConversationMachine.initial({ maxFatalStops: 2, maxTurnErrors: 3 }),
  aim: (data, event, pick) =>
    event._tag === "new_turn"
      ? { ...event, turnId: `turn${pick % 6}` }
      : aimed(event, { turnId: mostly(data.turnIds[pick % Math.max(1, data.turnIds.length)] ?? null, pick) }),
  holds: ({ data, state }) =>
    claims({
      "at a threshold it is not active": implies(state === "active", data.turnErrors < 3 && data.fatalStops < 2),
      "suspended has a reason, active has none": implies(
        state === "suspended" || state === "active",
        (state === "suspended") === (data.suspension !== null)
      ),
      "no turn is counted twice": new Set(data.turnIds).size === data.turnIds.length
    })
}

export const agent: Subject<AgentMachine.State, AgentMachine.Event, AgentMachine.Data> = {
  machine: AgentMachine.Agent,
  events: AgentMachine.Event.members,
  kinds: AgentMachine.kinds,
  initial: AgentMachine.initial(),
  aim: (data, event, pick) =>
    event._tag === "turn_assigned"
      ? { ...event, turnId: `turn${pick}` }
      : aimed(event, { turnId: mostly(data.turnId, pick) }),
  holds: ({ data, state }) =>
    claims({
      "a turn exactly while it runs one": implies(
        state !== "terminated",
        (state === "running_turn") === (data.turnId !== null)
      ),
      "a spent budget is not idle": implies(state === "idle", data.spent === null),
      "an end has its reason": implies(state === "terminated" || state === "failed", data.reason !== null)
    })
}

const task = (id: string): Task => ({
  id,
  title: id,
  description: "",
  dependsOn: [],
  priority: 0,
  owner: null,
  needs: [],
  timeout: null
})

export const autonomy: Subject<GoalMachine.State, GoalMachine.Event, GoalMachine.Data> = {
  machine: GoalMachine.Autonomy,
  events: GoalMachine.Event.members,
  kinds: GoalMachine.kinds,
  initial: GoalMachine.initial({ maxRounds: 2 }),
  aim: (data, event, pick) => {
    const flying = Object.keys(data.inFlight)
    const known = event._tag === "task_assigned" ? `task${pick % 4}` : flying[pick % Math.max(1, flying.length)]
    const ids = ["a", "b"].slice(pick % 3)
    const isPlan = event._tag === "decompose_goal" || event._tag === "critique_found_issues"
    return aimed(event, { taskId: mostly(known ?? null, pick), tasks: isPlan ? ids.map(task) : ids, cancelled: [] })
  },
  holds: ({ data, state }) =>
    claims({
      "review begins when every task is terminal": implies(
        state === "reviewing",
        data.terminal >= data.tasks && Object.keys(data.inFlight).length === 0
      ),
      "rounds are limited": implies(state === "executing" || state === "reviewing", data.rounds < data.maxRounds),
      "blocked and stopped have a reason": implies(state === "blocked" || state === "stopped", data.reason !== null)
    })
}

export const seat: Subject<SeatMachine.State, SeatMachine.Event, SeatMachine.Data> = {
  machine: SeatMachine.Seat,
  events: SeatMachine.Event.members,
  kinds: SeatMachine.kinds,
  initial: SeatMachine.initial("pm", "reviews"),
  rest: "OFFLINE",
  aim: (data, event, pick) =>
    event._tag === "TurnGranted"
      ? { ...event, turnId: `turn${pick}`, at: pick }
      : aimed(event, { turnId: mostly(data.turnId, pick), at: (data.aliveAt ?? 0) + 1 }),
  holds: ({ data, state }) =>
    claims({
      "who has the floor has a turn and waits for nothing": implies(
        state === "ACTIVE",
        data.turnId !== null && data.wait === null && data.aliveAt !== null
      ),
      "who waits knows for what": (state === "WAITING") === (data.wait !== null),
      "who is in the queue is a member": implies(!["OFFLINE", "IDLE"].includes(state), data.member),
      "who is offline has left the channel": implies(state === "OFFLINE", !data.member)
    })
}
