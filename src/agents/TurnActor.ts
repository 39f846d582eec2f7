/**
 * TurnActor: the Turn machine of one agent, animated.
 *
 * It gives the live run its next input, tells inbox, agent and conversation of the
 * turn, and sees a turn to its end. What the run says of the turn comes by the
 * RunRouter. A turn that the live run does not know was lost with an earlier daemon:
 * it ends with an error, and what it was asked is offered again.
 */
import { Clock, Duration, Effect, Schedule } from "effect"
import type { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type { AgentReport } from "../domain/AgentPort.ts"
import * as Ids from "../domain/Ids.ts"
import type * as AgentMachine from "./AgentMachine.ts"
import * as TurnMachine from "./TurnMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import type { AgentActor } from "./AgentActor.ts"
import type { Calls } from "./Calls.ts"
import { countedAs, LOST } from "./ConversationRecovery.ts"
import type { ConversationPort } from "./ConversationPort.ts"
import { isWithdrawn } from "./Inbox.ts"
import type { LiveRun } from "./LiveRun.ts"
import type { UsageMeter } from "./UsageMeter.ts"
import { followUp } from "./Prompt.ts"
import type { RunSupervisor } from "./RunSupervisor.ts"
import type { InboxActor, WorkerActor } from "./WorkerActor.ts"
import type { RuneRef } from "../event-log/Rune.ts"

export type TurnActor = MachineActor.MachineActor<TurnMachine.State, TurnMachine.Event, TurnMachine.Data>
export type Snapshot = TurnActor["snapshot"]
type Act = MachineActor.Context<TurnMachine.State, TurnMachine.Event, TurnMachine.Data>

/** What a turn moves, and what moves it. */
export interface Desk {
  readonly agent: string
  readonly conversation: string
  readonly log: EventLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  readonly config: () => AgentConfig
  readonly home: ConversationPort
  readonly inbox: InboxActor
  readonly slot: RunSupervisor
  readonly live: LiveRun
  readonly calls: Calls
  readonly meter: UsageMeter
  readonly life: () => AgentActor | undefined
  readonly worker: () => WorkerActor | undefined
  readonly report: (report: AgentReport) => Effect.Effect<void>
  /** What became durable at or before this eventId is of an earlier daemon. */
  readonly recoveredTo: number
}

type Failed = { readonly _tag: string; readonly reason?: string }

const isDown = ({ _tag, reason }: Failed): boolean =>
  _tag === "ActorStopped" && reason !== "self" && reason !== "crashed"

/** What is asked was brought down beside it, and is there again in a moment: no reason to crash, too. Ends with whoever asks. */
const patiently = <A, E extends Failed>(asked: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.catchIf(asked, isDown, () =>
    Effect.interruptible(
      Effect.andThen(
        Effect.sleep("20 millis"),
        Effect.retry(asked, { while: isDown, schedule: Schedule.spaced("20 millis"), times: 50 })
      )
    )
  )

/** Brings the inbox in line with the turn's own rune: what a turn carries is delivered. */
const deliver = (desk: Desk, { messageIds, turnId }: TurnMachine.Data, cause: RuneRef) =>
  turnId === null || desk.inbox.snapshot.data.runId === turnId
    ? Effect.void
    : Effect.catchTag(
        patiently(desk.inbox.ask({ _tag: "Delivered", runId: turnId, messageIds }, cause)),
        "Refused",
        () => Effect.void
      )

const at = Clock.currentTimeMillis

/** Inbox, conversation and agent hear of the turn. Answers why it may not go on, if so. */
const begin = Effect.fnUntraced(function* (desk: Desk, act: Act) {
  const { agent, conversation, home, live } = desk
  const { data } = act.snapshot
  const turnId = data.turnId!
  yield* deliver(desk, data, act.cause)
  live.begun = turnId
  const taken = data.messageIds.some((messageId) => isWithdrawn(desk.inbox.snapshot.data, messageId))
  if (!(yield* home.newTurn(agent, turnId, act.cause))) return home.barred() ?? "its conversation takes no turns"
  const assign = Effect.suspend(() => desk.life()?.ask({ _tag: "turn_assigned", turnId }, act.cause) ?? Effect.void)
  const assigned = yield* patiently(assign).pipe(
    Effect.as(true),
    Effect.catchTag("Refused", ({ why }) => Effect.succeed(why === "stale"))
  )
  yield* desk.report({
    _tag: "TurnStarted",
    conversation,
    agent,
    cause: act.cause,
    eventId: act.cause.eventId,
    at: yield* at,
    turnId,
    messageIds: data.messageIds
  })
  if (!assigned) return "the agent has ended"
  // while the turn's first rune was being written: no turn carried it yet
  return taken ? "what it was asked was taken back" : undefined
})

/** What it was asked, as its rune says. */
const inputOf = Effect.fnUntraced(function* (desk: Desk, cause: RuneRef) {
  const event = (yield* desk.log.get(cause.eventId))?.payload["event"] as TurnMachine.Event | undefined
  return event?._tag === "start_turn" || event?._tag === "steer" ? event.input : ""
})

/** A turn that no live run works on: its calls have their results by then, and it is offered again. */
const lost = (desk: Desk, act: Act): Effect.Effect<void> => {
  const turnId = act.snapshot.data.turnId!
  // whoever had heard of it hears of its end, and nobody of its beginning
  desk.live.begun = turnId
  const event: TurnMachine.Event =
    act.snapshot.state === "streaming"
      ? { _tag: "stream_error", turnId, errorType: "lost", message: LOST, retry: true }
      : { _tag: "tool_crash", turnId, callId: null, message: LOST, retry: true }
  return Effect.andThen(desk.calls.orphans(turnId), act.self.tell(event, act.cause))
}

/** Begins the turn with the live run, or finds that it goes on there, or that it is lost. */
const streamResponse = Effect.fnUntraced(function* (desk: Desk, act: Act) {
  const { live } = desk
  const { data, entered } = act.snapshot
  const turnId = data.turnId!
  live.unsettle()
  if (live.given === turnId) return
  const { run } = live
  // a run begins with its first turn, and has the input of that one
  const isFirst = run?.runId === turnId
  const isFree = live.turns && !live.ending && (live.turnId === undefined || live.turnId === turnId)
  if (run === undefined || !(isFirst || isFree)) return yield* lost(desk, act)
  if (entered <= desk.recoveredTo) return yield* lost(desk, act)
  if (!isFirst) live.begin(turnId)
  const barred = yield* begin(desk, act)
  if (isFirst) live.given = turnId
  if (barred !== undefined) {
    if (!isFirst) live.end()
    return yield* act.self.tell({ _tag: "interrupt", turnId, by: "agentd", reason: barred, keep: true }, act.cause)
  }
  yield* desk.meter.start(turnId)
  if (isFirst) return
  const text = yield* inputOf(desk, act.cause)
  live.given = turnId
  // interrupted meanwhile: the run has heard nothing of it, and never will
  if (act.self.snapshot.entered !== entered) return live.end()
  yield* run.send({ turnId, text }).pipe(
    Effect.catch(({ message }) => {
      live.end()
      // one that takes no turns is of no more use
      live.ending = true
      const event: TurnMachine.Event = { _tag: "stream_error", turnId, errorType: "send", message, retry: true }
      return Effect.andThen(act.self.tell(event, act.cause), desk.slot.stop(run.runId))
    })
  )
}, Effect.uninterruptible)

/** Calls that it waits for go on in the live run, or are lost with it. */
const runTools = (desk: Desk, act: Act): Effect.Effect<void> =>
  desk.live.turnId === act.snapshot.data.turnId ? Effect.void : lost(desk, act)

/** How the agent hears of a turn's end. */
export const endOf = ({ ended, turnId }: TurnMachine.Data): AgentMachine.Event | undefined => {
  if (ended === null || turnId === null) return undefined
  if (ended.outcome === "error") return { _tag: "turn_error", turnId, message: ended.reason ?? "" }
  return { _tag: `turn_${ended.outcome}`, turnId }
}

/** Everybody hears of the end. Safe to repeat. */
const settle = Effect.fnUntraced(function* (desk: Desk, act: Act, rune: RuneRef) {
  const { agent, conversation, home, log, meter } = desk
  const { data } = act.snapshot
  const turnId = data.turnId!
  const ended = data.ended!
  yield* deliver(desk, data, rune)
  yield* meter.stop(turnId)
  const last = yield* log.get(rune.eventId)
  yield* home.turnEnded(agent, turnId, last === undefined ? ended.outcome : countedAs(ended.outcome, last), rune)
  yield* desk.life()?.tell(endOf(data)!, rune) ?? Effect.void
  yield* desk.report({
    _tag: "TurnEnded",
    conversation,
    agent,
    cause: rune,
    eventId: rune.eventId,
    at: yield* at,
    turnId,
    messageIds: data.messageIds,
    outcome: ended.outcome,
    reason: ended.reason,
    output: outputOf(last),
    again: data.unfinished.length > 0
  })
})

/** What a turn's last rune says that it answered. */
export const outputOf = (rune: { readonly payload: { readonly [key: string]: unknown } } | undefined): string => {
  const output = rune?.payload["final_output"] ?? rune?.payload["partial_output"]
  return typeof output === "string" ? output : ""
}

const finalizeTurn = Effect.fnUntraced(function* (desk: Desk, act: Act) {
  const { live, recoveredTo } = desk
  const { data, entered, state } = act.snapshot
  const turnId = data.turnId!
  live.unsettle()
  live.ended = act.cause
  if (state === "interrupted") yield* live.turnOver(turnId)
  // over before anybody could be told that it began
  if (live.begun !== turnId && entered > recoveredTo) yield* begin(desk, act)
  yield* settle(desk, act, act.cause)
  yield* act.self.tell({ _tag: "turn_finalized", turnId }, act.cause)
})

/** The next input for the live run; undefined while there is none. */
const nextOf = Effect.fnUntraced(function* (desk: Desk, data: TurnMachine.Data) {
  const graceMillis = Duration.toMillis(desk.config().interruptGrace)
  const base = { _tag: "start_turn" as const, agentId: desk.agent, graceMillis, at: yield* at }
  const { steer } = data
  const waits = ({ messageId }: { readonly messageId: string }) => steer!.messageIds.includes(messageId)
  if (steer !== null && desk.inbox.snapshot.data.waiting.some(waits))
    return { ...base, ...steer, source: "steer" as const }
  const { input, messageIds, resumed } = followUp(desk.inbox.snapshot.data, data)
  if (messageIds.length === 0) return undefined
  const source = resumed ? ("resume" as const) : ("queue" as const)
  return { ...base, turnId: yield* Ids.turnId, input, messageIds, source }
})

/** A run that is being ended, and has not within its grace and this, is killed. */
const PATIENCE = Duration.minutes(1)

const outlasts = Effect.fnUntraced(function* ({ config, slot }: Desk, runId: string) {
  yield* Effect.sleep(Duration.sum(config().interruptGrace, PATIENCE))
  if (slot.current() !== runId) return
  yield* Effect.logWarning(`run ${runId} does not end: it is killed`)
  yield* slot.kill(runId)
  yield* Effect.sleep(PATIENCE)
  yield* slot.end(runId)
})

/** Waits for something to do, as long as the live run takes turns; a run that has long had none is ended in order. */
const takeNext = Effect.fnUntraced(function* (desk: Desk, act: Act) {
  const { home, live, slot } = desk
  const began = yield* at
  live.settle()
  for (;;) {
    const { run } = live
    if (run === undefined || !live.turns) return
    if (live.ending) return yield* outlasts(desk, run.runId)
    const changed = live.attend()
    const { exhausted } = desk.meter
    // by a file that says less than it did
    if (exhausted !== undefined) yield* desk.life()?.tell({ _tag: "budget_exhausted", ...exhausted }) ?? Effect.void
    const isFree = home.barred() === undefined && exhausted === undefined
    const next = isFree ? yield* nextOf(desk, act.snapshot.data) : undefined
    if (next !== undefined) {
      return yield* Effect.catchTag(act.self.ask(next), "Refused", () => Effect.void)
    }
    const { idleTimeout, mode } = desk.config()
    const left = mode === "loop" ? 0 : began + Duration.toMillis(idleTimeout) - (yield* at)
    if (left <= 0) {
      live.ending = true
      yield* slot.stop(run.runId)
      continue
    }
    yield* Effect.raceFirst(changed, Effect.sleep(left))
  }
})

const perform = (desk: Desk, action: TurnMachine.Action, act: Act): Effect.Effect<void, unknown> => {
  const { calls, live, slot } = desk
  const turnId = action.turnId ?? ""
  const drop = (runId: string) => desk.worker()?.tell({ _tag: "UrgentMessage", messageId: null, runId }) ?? Effect.void
  switch (action._tag) {
    case "StopWork":
      if (live.run === undefined || live.turnId !== turnId) return Effect.void
      return live.turns ? Effect.andThen(calls.withdraw(turnId), live.run.interruptTurn) : drop(live.run.runId)
    case "ForceStopWork": {
      const { run } = live
      live.end()
      // it is about to be killed, and takes nothing more with it
      live.ending = run !== undefined
      return calls
        .close(turnId, "cancelled", "its turn was interrupted")
        .pipe(
          Effect.andThen(settle(desk, act, live.ended ?? act.cause)),
          Effect.andThen(run === undefined ? Effect.void : Effect.andThen(drop(run.runId), slot.kill(run.runId)))
        )
    }
  }
}

export const addressOf = (agent: string): string => `turn/${agent}`

export const make = (desk: Desk, snapshot: Snapshot) =>
  Effect.flatMap(
    MachineActor.kind({
      machine: TurnMachine.Turn,
      log: desk.log,
      deadLetters: desk.deadLetters,
      perform: (action: TurnMachine.Action, act: Act) => perform(desk, action, act),
      activities: {
        TakeNext: (act: Act) => takeNext(desk, act),
        StreamResponse: (act: Act) => streamResponse(desk, act),
        RunTools: (act: Act) => runTools(desk, act),
        FinalizeTurn: (act: Act) => finalizeTurn(desk, act)
      }
    }),
    (kind) => {
      const actor = addressOf(desk.agent)
      return kind.make({ address: `${desk.conversation}/${actor}`, actor, stream: desk.conversation, snapshot })
    }
  )
