/**
 * WorkerActor: the Worker machine of one agent, animated.
 *
 * It supplies what the table names: the enter activities (PrepareWorktree,
 * BuildPrompt, SpawnRun, WatchRun) and the actions (StorePrompt, CancelSession …).
 * Each activity can be run again after a crash and finds what it began: a run is
 * looked for in the slot, a prompt in the log. None of them decides anything.
 */
import { Clock, Duration, Effect } from "effect"
import type { DeadLetters } from "../actors/DeadLetters.ts"
import * as MachineActor from "../actors/MachineActor.ts"
import type { Backend, RunSpec } from "../backends/Backend.ts"
import type { AgentConfig } from "../domain/Config.ts"
import * as Ids from "../domain/Ids.ts"
import * as Worker from "../machines/Worker.ts"
import type { RuneLog } from "../runes/RuneLog.ts"
import * as Inbox from "./Inbox.ts"
import { assemble } from "./Prompt.ts"
import type { RunSlot } from "./RunSlot.ts"
import type { WorktreeError } from "./Worktree.ts"

export type WorkerActor = MachineActor.MachineActor<Worker.State, Worker.Event, Worker.Data>
export type InboxActor = MachineActor.MachineActor<"Open", Inbox.Event, Inbox.Data>
type Act = MachineActor.Context<Worker.State, Worker.Event, Worker.Data>

/** The agent as the worker sees it. The config is read anew at each use: a reload takes effect with the next run. */
export interface AgentHome {
  readonly agent: string
  readonly conversation: string
  readonly log: RuneLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  readonly config: () => AgentConfig
  readonly backend: Effect.Effect<Backend>
  readonly inbox: InboxActor
  readonly slot: RunSlot
  /** Where the agent works, made where it is not there yet. */
  readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
  /** Runs whose prompt became durable at or before this eventId were begun by an earlier daemon: lost. */
  readonly recoveredTo: number
}

/** An urgent message that the run does not carry, if there is one. */
const missed = (home: AgentHome, carried: ReadonlyArray<string>): Inbox.Message | undefined =>
  home.inbox.snapshot.data.waiting.find((message) => message.urgent && !carried.includes(message.messageId))

const prepareWorktree = (home: AgentHome, act: Act) =>
  home.place.pipe(
    Effect.matchEffect({
      onSuccess: ({ branch, cwd }) =>
        act.self.tell(branch === undefined ? { _tag: "WorktreeReady", cwd } : { _tag: "WorktreeReady", cwd, branch }),
      onFailure: (error) => act.self.tell({ _tag: "FatalError", message: error.message, remedy: error.remedy })
    })
  )

/**
 * Brings the inbox in line with the worker's own rune: what a run that confirmed
 * its start carries is delivered, however short that run was.
 */
const deliver = (home: AgentHome, act: Act) => {
  const { delivered } = act.snapshot.data
  return delivered === null || home.inbox.snapshot.data.runId === delivered.runId
    ? Effect.void
    : Effect.catchTag(home.inbox.ask({ _tag: "Delivered", ...delivered }, act.cause), "Refused", () => Effect.void)
}

/** Answers when there is something to do and the next run may begin; `WorkArrived` starts it again. */
const buildPrompt = Effect.fnUntraced(function* (home: AgentHome, act: Act) {
  const { data } = act.snapshot
  yield* deliver(home, act)
  const config = home.config()
  const due = Worker.dueAt(data, Duration.toMillis(config.minRunInterval))
  const wait = due - (yield* Clock.currentTimeMillis)
  if (wait > 0) yield* Effect.sleep(wait)
  const inbox = home.inbox.snapshot.data
  const unfinished = inbox.carried.filter((message) => data.messageIds.includes(message.messageId))
  if (config.mode === "inbox" && unfinished.length === 0 && inbox.waiting.length === 0) return
  const prompt = assemble({
    agent: home.agent,
    role: config.role,
    instructions: config.instructions,
    task: config.prompt,
    lastRun: data.cutShort ?? undefined,
    unfinished,
    waiting: inbox.waiting
  })
  yield* act.self.tell({
    _tag: "PromptReady",
    prompt: prompt.text,
    messageIds: prompt.messageIds,
    runId: yield* Ids.runId,
    at: yield* Clock.currentTimeMillis
  })
})

/** The run of the state's data is alive afterwards, or its end is told. */
const spawnRun = Effect.fnUntraced(function* (home: AgentHome, act: Act) {
  const { data, entered } = act.snapshot
  const runId = data.runId!
  if (home.slot.current() === runId) return
  if (entered <= home.recoveredTo) return yield* lost(act, runId)
  const rune = yield* home.log.get(entered)
  const event = rune?.payload["event"] as Extract<Worker.Event, { _tag: "PromptReady" }>
  const config = home.config()
  const spec: RunSpec = {
    runId,
    agent: home.agent,
    prompt: event.prompt,
    cwd: data.cwd!,
    env: { AGENTD_AGENT: home.agent }
  }
  yield* home.slot.ensure({ backend: yield* home.backend, spec, timeout: config.runTimeout })
})

const lost = (act: Act, runId: string) =>
  act.self.tell({ _tag: "SessionExited", runId, outcome: { _tag: "Uncounted", reason: "lost" } })

/** Sees to it that its messages count as delivered; finds the run lost where it is not in the slot; passes on what is urgent. */
const watchRun = Effect.fnUntraced(function* (home: AgentHome, act: Act) {
  const { data } = act.snapshot
  const runId = data.runId!
  yield* deliver(home, act)
  if (home.slot.current() !== runId) return yield* lost(act, runId)
  // it may have come between the reading of the inbox and the start
  const message = missed(home, data.messageIds)
  if (message !== undefined) yield* act.self.tell({ _tag: "UrgentMessage", messageId: message.messageId })
})

const perform = (home: AgentHome, action: Worker.Action): Effect.Effect<void> => {
  switch (action._tag) {
    case "CancelSession":
      return action.runId === null ? Effect.void : home.slot.interrupt(action.runId)
    case "ForceStopSession":
      return action.runId === null ? Effect.void : home.slot.kill(action.runId)
    case "LogFatal":
      return Effect.logError(`${home.agent} stopped for good: ${action.message}`)
    case "StorePrompt": // the rune of this move holds it, and SpawnRun reads it there
    case "IncrementSession": // the counter is the machine's own data
      return Effect.void
  }
}

/** The worker of one agent, from where the log says it stands. */
export const make = (home: AgentHome, snapshot: WorkerActor["snapshot"]) =>
  Effect.flatMap(
    MachineActor.kind({
      machine: Worker.Worker,
      log: home.log,
      deadLetters: home.deadLetters,
      perform: (action) => perform(home, action),
      activities: {
        PrepareWorktree: (act) => prepareWorktree(home, act),
        BuildPrompt: (act) => buildPrompt(home, act),
        SpawnRun: (act) => spawnRun(home, act),
        WatchRun: (act) => watchRun(home, act)
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
