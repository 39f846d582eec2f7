/**
 * WorkerActor: the Worker machine of one agent, animated.
 *
 * It supplies what the table names: the enter activities (PrepareWorktree,
 * BuildPrompt, SpawnRun, WatchRun) and the actions (StorePrompt, CancelSession …).
 * Each activity can be run again after a crash and finds what it began: a run is
 * looked for in the slot, a prompt in the log. None of them decides anything.
 */
import { Clock, Duration, Effect } from "effect"
import type { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type { Backend, RunSpec } from "../backends/Backend.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import * as Ids from "../domain/Ids.ts"
import type * as AgentMachine from "./AgentMachine.ts"
import * as WorkerMachine from "./WorkerMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import type { AgentActor } from "./AgentActor.ts"
import type { Exhausted } from "./Budget.ts"
import type { ConversationPort } from "./ConversationPort.ts"
import type * as Inbox from "./Inbox.ts"
import type { LiveRun } from "./LiveRun.ts"
import { assemble, queued, unfinishedOf } from "./Prompt.ts"
import type { RunSupervisor } from "./RunSupervisor.ts"
import type { TurnActor } from "./TurnActor.ts"
import type { WorktreeError } from "./Worktree.ts"

export type WorkerActor = MachineActor.MachineActor<WorkerMachine.State, WorkerMachine.Event, WorkerMachine.Data>
export type InboxActor = MachineActor.MachineActor<"Open", Inbox.Event, Inbox.Data>
type Act = MachineActor.Context<WorkerMachine.State, WorkerMachine.Event, WorkerMachine.Data>

/** The agent as the worker sees it. The config is read anew at each use: a reload takes effect with the next run. */
export interface AgentHome {
  readonly agent: string
  readonly conversation: string
  readonly log: EventLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  readonly config: () => AgentConfig
  readonly backend: Effect.Effect<Backend>
  readonly inbox: InboxActor
  readonly slot: RunSupervisor
  readonly turn: TurnActor
  readonly live: LiveRun
  readonly life: () => AgentActor | undefined
  /** Which of its budgets is spent, if one is. */
  readonly exhausted: () => Exhausted | undefined
  readonly home: ConversationPort
  /** Servers of agentd's own that a run is given. */
  readonly mcp: (runId: string) => RunSpec["mcp"]
  /** Where the agent works, made where it is not there yet. */
  readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
  /** Runs whose prompt became durable at or before this eventId were begun by an earlier daemon: lost. */
  readonly recoveredTo: number
}

const HOUR = 3_600_000
/** No shorter than what the machine says of a run that was interrupted. */
const INTERRUPTED = "it was interrupted by an urgent message"

/** What the next run is told, as things stand. One that was cut short with nothing to do left nothing to take up. */
const nextPrompt = (home: AgentHome, data: WorkerMachine.Data, cutShort = data.cutShort) => {
  const config = home.config()
  const inbox = home.inbox.snapshot.data
  const turn = home.turn.snapshot.data
  const unfinished = unfinishedOf(inbox, turn)
  const waiting = queued(inbox, turn)
  // it may have been cut short before its turn began
  const wasCarried = waiting.some(({ messageId }) => data.messageIds.includes(messageId))
  const isLeft = config.mode === "loop" || unfinished.length > 0 || wasCarried
  return assemble({
    agent: home.agent,
    role: config.role,
    instructions: config.instructions,
    task: config.prompt,
    lastRun: isLeft ? (cutShort ?? undefined) : undefined,
    unfinished,
    waiting
  })
}

/** An urgent message that the run does not carry and the next one would, if there is one. */
const missed = (home: AgentHome, data: WorkerMachine.Data): string | undefined => {
  // as if it were interrupted for it
  const next = nextPrompt(home, data, INTERRUPTED).messageIds
  const urgent = home.inbox.snapshot.data.waiting.filter((message) => message.urgent)
  const carried = [...data.messageIds, ...home.turn.snapshot.data.messageIds]
  return urgent.map(({ messageId }) => messageId).find((id) => !carried.includes(id) && next.includes(id))
}

const prepareWorktree = (home: AgentHome, act: Act) =>
  home.place.pipe(
    Effect.matchEffect({
      onSuccess: ({ branch, cwd }) =>
        act.self.tell(branch === undefined ? { _tag: "WorktreeReady", cwd } : { _tag: "WorktreeReady", cwd, branch }),
      onFailure: (error) => act.self.tell({ _tag: "FatalError", message: error.message, remedy: error.remedy })
    })
  )

/** How long until the next run may begin. A clock that was set back makes it no longer than the limits are. */
const untilDue = (data: WorkerMachine.Data, interval: number, now: number): number =>
  Math.min(
    WorkerMachine.dueAt(data, interval) - now,
    data.maxRunsPerHour === null ? interval : Math.max(interval, HOUR)
  )

/** Answers when there is something to do and the next run may begin; `WorkArrived` starts it again. */
const buildPrompt = Effect.fnUntraced(function* (home: AgentHome, act: Act) {
  const { data } = act.snapshot
  const life = home.life()
  if (life?.snapshot.state === "[*]" || life?.snapshot.state === "spawning") {
    yield* life.tell({ _tag: "init_complete" }, act.cause)
  }
  // as a daemon that is gone has left it, or a file that is new
  const exhausted = home.exhausted()
  if (exhausted !== undefined && life !== undefined) {
    return yield* life.tell({ _tag: "budget_exhausted", ...exhausted }, act.cause)
  }
  // whoever lifts the bar says so, by WorkArrived
  if (home.home.barred() !== undefined) return
  const config = home.config()
  const wait = untilDue(data, Duration.toMillis(config.minRunInterval), yield* Clock.currentTimeMillis)
  if (wait > 0) yield* Effect.sleep(wait)
  const { messageIds, text } = nextPrompt(home, data)
  if (config.mode === "inbox" && messageIds.length === 0) return
  const event: WorkerMachine.Event = {
    _tag: "PromptReady",
    prompt: text,
    messageIds,
    runId: yield* Ids.runId,
    at: yield* Clock.currentTimeMillis
  }
  yield* act.self.ask(event).pipe(
    Effect.catchTags({
      Refused: () => Effect.void,
      MailboxFull: () => act.self.tell(event),
      RuneRefused: ({ message }) =>
        act.self.tell({
          _tag: "FatalError",
          message: `the prompt cannot be kept: ${message}`,
          remedy: "Shorten the agent's instructions or prompt in agentd.jsonc, then start it again."
        })
    })
  )
})

const resumable = ({ backend }: AgentConfig): boolean => "resume" in backend && backend.resume

/** The run of the state's data is alive afterwards, or its end is told. */
const spawnRun = Effect.fnUntraced(function* (home: AgentHome, act: Act) {
  const { data, entered } = act.snapshot
  const runId = data.runId!
  if (home.slot.current() === runId) return
  if (entered <= home.recoveredTo) return yield* lost(act, runId)
  const rune = yield* home.log.get(entered)
  const event = rune?.payload["event"] as Extract<WorkerMachine.Event, { _tag: "PromptReady" }>
  const config = home.config()
  const spec: RunSpec = {
    runId,
    agent: home.agent,
    // the first turn of a run: found again by it after a crash
    turnId: runId,
    prompt: event.prompt,
    cwd: data.cwd!,
    env: { AGENTD_AGENT: home.agent },
    resume:
      resumable(config) && data.sessionId !== null
        ? { sessionId: data.sessionId, fork: data.uncounted.reason === "held" }
        : undefined,
    mcp: home.mcp(runId)
  }
  const backend = yield* home.backend
  yield* home.slot.ensure({ backend, spec, timeout: backend.turns ? undefined : config.runTimeout })
})

const lost = (act: Act, runId: string) =>
  act.self.tell({ _tag: "SessionExited", runId, outcome: { _tag: "Uncounted", reason: "lost" } })

/** Finds the run lost where it is not in the slot; passes on what is urgent. */
const watchRun = Effect.fnUntraced(function* (home: AgentHome, act: Act) {
  const { data } = act.snapshot
  const runId = data.runId!
  if (home.slot.current() !== runId) return yield* lost(act, runId)
  // it may have come between the reading of the inbox and the start
  const messageId = missed(home, data)
  if (messageId !== undefined) yield* act.self.tell({ _tag: "UrgentMessage", messageId, runId })
})

/** A bug that an activity meets again with each restart ends this agent, not one supervisor after the other. */
const contained = <E>(act: Act, activity: Effect.Effect<void, E>): Effect.Effect<void, E> =>
  Effect.catchDefect(activity, (defect) =>
    act.self.tell({
      _tag: "FatalError",
      message: `agentd failed at ${act.snapshot.state}: ${String(defect)}`,
      remedy: "This is a bug of agentd: report it. Then start the agent again."
    })
  )

/**
 * Its turn is interrupted first, so that what it was asked is offered again; a person
 * who drops it has said so before. Who dropped it while the run came to be could not:
 * the turn had not begun, and all that tells of it is that the run carries nothing.
 */
const cancel = (home: AgentHome, runId: string, { cause, snapshot }: Act): Effect.Effect<void> => {
  const { live } = home
  const dropped = snapshot.state === "Interrupting" && live.turnId === runId && snapshot.data.messageIds.length === 0
  const reason =
    snapshot.state === "Stopped" ? "its agent was stopped" : dropped ? "its first turn was interrupted" : INTERRUPTED
  live.ending = true
  const turn =
    live.turnId === undefined
      ? Effect.void
      : home.turn.tell(
          { _tag: "interrupt", turnId: live.turnId, by: "worker", reason, keep: !dropped, ...live.partial },
          cause
        )
  return Effect.andThen(turn, home.slot.stop(runId))
}

/** The agent ends with its worker. Safe to repeat. */
const release = Effect.fnUntraced(function* (home: AgentHome, act: Act) {
  const { fatal, stoppedBy } = act.snapshot.data
  const life = home.life()
  if (life === undefined || life.snapshot.state === "terminated" || life.snapshot.state === "failed") return
  const [by, reason] = fatal === null ? [stoppedBy ?? "agentd", "stopped"] : ["worker", fatal.message]
  const isBorn = life.snapshot.state !== "[*]" && life.snapshot.state !== "spawning"
  const event: AgentMachine.Event = isBorn
    ? { _tag: "kill", by, reason }
    : fatal === null
      ? { _tag: "kill_forced", by, reason }
      : { _tag: "init_error", error: reason }
  const ended = yield* life.ask(event, act.cause).pipe(
    Effect.as(true),
    Effect.catchTag("Refused", () => Effect.succeed(false))
  )
  if (ended && fatal !== null) yield* home.home.agentFailed(home.agent, fatal.message, act.cause)
})

const perform = (home: AgentHome, action: WorkerMachine.Action, act: Act): Effect.Effect<void> => {
  switch (action._tag) {
    case "CancelSession":
      return action.runId === null ? Effect.void : cancel(home, action.runId, act)
    case "ForceStopSession":
      return action.runId === null ? Effect.void : home.slot.kill(action.runId)
    case "LogFatal":
      return Effect.logError(`${home.agent} stopped for good: ${action.message}`)
    case "StorePrompt": // the rune of this move holds it, and SpawnRun reads it there
    case "IncrementSession": // the counter is the machine's own data
      return Effect.void
  }
}

/** It was stopped in the midst of its standing task. */
const isLooping = ({ mode, runId }: WorkerMachine.Data): boolean => mode === "loop" && runId !== null

const stopped = ({ fatal, stoppedBy }: WorkerMachine.Data): string =>
  fatal?.message ?? `stopped by ${stoppedBy ?? "agentd"}`

/** The limits that a new incarnation takes from the config; they are part of its first rune. */
export const initial = (
  config: AgentConfig,
  before: WorkerMachine.Data | undefined,
  isUnfinished: boolean
): WorkerMachine.Data => ({
  ...WorkerMachine.initial({
    mode: config.mode,
    limits: { maxConsecutiveErrors: config.maxConsecutiveErrors, maxTotalErrors: config.maxTotalErrors },
    backoff: {
      base: Duration.toMillis(config.backoff.base),
      cap: Duration.toMillis(config.backoff.cap),
      factor: 2,
      jitter: config.backoff.jitter
    },
    graceMillis: Duration.toMillis(config.interruptGrace),
    maxRunsPerHour: config.maxRunsPerHour ?? null
  }),
  ...(before === undefined
    ? {}
    : {
        sessionSeq: before.sessionSeq,
        sessionId: before.sessionId,
        messageIds: before.messageIds,
        cutShort: before.cutShort ?? (isUnfinished || isLooping(before) ? stopped(before) : null),
        lastRunAt: before.lastRunAt,
        recentRuns: before.recentRuns
      })
})

/** The worker of one agent, from where the log says it stands. */
export const make = (home: AgentHome, snapshot: WorkerActor["snapshot"]) =>
  Effect.flatMap(
    MachineActor.kind({
      machine: WorkerMachine.Worker,
      log: home.log,
      deadLetters: home.deadLetters,
      perform: (action: WorkerMachine.Action, act: Act) => perform(home, action, act),
      activities: {
        PrepareWorktree: (act) => contained(act, prepareWorktree(home, act)),
        BuildPrompt: (act) => contained(act, buildPrompt(home, act)),
        SpawnRun: (act) => contained(act, spawnRun(home, act)),
        WatchRun: (act) => contained(act, watchRun(home, act)),
        ReleaseAgent: (act) => release(home, act)
      }
    }),
    (kind) =>
      kind.make({
        address: `${home.conversation}/worker/${home.agent}`,
        actor: `worker/${home.agent}`,
        stream: home.conversation,
        snapshot
      })
  )
