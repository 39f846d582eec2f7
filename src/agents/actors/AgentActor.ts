/**
 * AgentActor: the actor for the life of one agent. It covers all incarnations (from each start to the next stop), and
 * counts the usage of the current incarnation.
 *
 * Guarantees: Usage and the changes that it causes (such as the end of the agent) are one append. When a budget is
 * exceeded, the turn ends first, then the agent. A turn's time is counted while the turn runs; a crash loses at most a
 * minute of it. The append that records an agent's end also informs the agent's worker.
 */
import { reader } from "../../core/event-log/EventKinds.ts"
import { readUsage, type Usage } from "../../domain/UsageKinds.ts"
import { lifeKinds } from "../machines/AgentKinds.ts"
import { Clock, Duration, Effect } from "effect"
import {
  actor,
  type Context,
  type Decision,
  type Draft,
  type Refusal,
  type Tell,
  tell
} from "../../core/event-actor/EventSourcedActor.ts"
import { evolve, evolveBy, notJoined } from "../../core/event-actor/StateMachine.ts"
import { joined, move } from "../../core/event-actor/StateMachineActor.ts"
import { Keeper } from "../../runs/keeper/Keeper.ts"
import { causeOf, type Rune, type RuneRef } from "../../core/event-log/Rune.ts"
import * as AgentMachine from "../machines/AgentMachine.ts"
import type { LifeMessage } from "../machines/AgentMessages.ts"
import { AgentEnvironment } from "./AgentEnvironment.ts"
import {
  choiceName,
  enteredBy,
  isActive,
  disconnection,
  type LifeState,
  meterName,
  refOf,
  Siblings
} from "../machines/AgentStates.ts"
import { readChoice } from "./ModelChoice.ts"
import * as Budget from "../machines/Budget.ts"
import { isStalled } from "../machines/ToolsState.ts"
import * as Calendar from "../../domain/Calendar.ts"
import { next } from "./NextTurn.ts"
import { CurrentRun, whenAdopted } from "./CurrentRun.ts"
import type * as TurnMachine from "../machines/TurnMachine.ts"

type Inner =
  /** Starts a search for work, because a change may have given the agent work. */
  | { readonly _tag: "Look" }
  /**
   * Sent at a restart if the agent has ended. A daemon of an older version may have died before it informed the worker.
   */
  | { readonly _tag: "HasEnded" }

type Act =
  | AgentMachine.Action
  | { readonly _tag: "Born"; readonly ref: RuneRef }
  | { readonly _tag: "Announce" }
  | { readonly _tag: "CountUsage"; readonly usage: Usage; readonly ref: RuneRef }

/** How often the elapsed time of a turn is written to the log, ms. */
const TICK = 60_000

const unborn = { state: "[*]", data: AgentMachine.initial(), entered: 0, seq: 0, at: 0 } as const
export const fresh: LifeState = { ...unborn, spent: Budget.nothing, countedTo: 0 }

const readLife = reader(lifeKinds)

const used = (state: LifeState, usage: Usage, at: number): LifeState => {
  const spent = Budget.ofOwn(usage)
  const { wallTime } = spent
  const { waited = 0 } = usage
  const { inTurn = 0 } = state
  return {
    ...state,
    spent: Budget.add(state.spent, spent),
    countedTo: wallTime + waited > 0 ? at : state.countedTo,
    inTurn: usage.turn_id === state.data.turnId ? inTurn + wallTime : inTurn
  }
}

/** The goal that a turn works on, read from the ids of its messages; undefined if the turn belongs to no goal. */
const goalOf = (messageIds: ReadonlyArray<string>): string | undefined =>
  messageIds.flatMap((id) => /^plan\/([^/]+)\//.exec(id)?.[1] ?? [])[0]

/** Usage of one model, as fields of the usage rune. Zero values are omitted. */
const modelIn = ({ cacheRead, cacheWrite, input, model, output, usd }: Budget.ModelUsage) => ({
  model,
  input,
  output,
  ...(cacheRead === 0 ? {} : { cache_read: cacheRead }),
  ...(cacheWrite === 0 ? {} : { cache_write: cacheWrite }),
  ...(usd === 0 ? {} : { usd })
})

/** The part of the state that an agent keeps when it starts again. */
const kept = ({ chosen }: LifeState): Pick<LifeState, "chosen"> => (chosen === undefined ? {} : { chosen })

/** A new incarnation starts with zero usage. */
const before = (state: LifeState, event: { readonly _tag: string }): LifeState =>
  event._tag === "spawn_requested" ? { ...fresh, countedTo: state.countedTo, ...kept(state) } : state

/** The time of a turn is counted from the rune that starts the turn. */
const after = (moved: Omit<LifeState, "chosen" | "spent" | "countedTo">, of: LifeState, at: number): LifeState => {
  const isNew = moved.state === "running_turn" && of.state !== "running_turn"
  const { inTurn } = isNew ? {} : of
  return {
    ...moved,
    ...kept(of),
    spent: of.spent,
    countedTo: isNew ? at : of.countedTo,
    ...(inTurn === undefined ? {} : { inTurn })
  }
}

/** `isJoined`: the rune belongs to the agent's turn, and also moves the agent to or from `running_turn`. */
export const apply = (state: LifeState, rune: Rune, isJoined: boolean): LifeState => {
  const choice = readChoice(rune)
  if (choice !== undefined) return { ...state, chosen: { model: choice.payload.model, mode: choice.payload.mode } }
  const usage = readUsage(rune)
  if (usage !== undefined) return used(state, usage.payload, rune.at)
  if (isJoined) {
    const event = AgentMachine.joins(rune)
    if (event === undefined) throw notJoined(AgentMachine.Agent, rune)
    return after(evolveBy(AgentMachine.Agent, state, event, rune), state, rune.at)
  }
  const event = readLife(rune)?.payload.event
  const of = event === undefined ? state : before(state, event)
  return after(evolve(AgentMachine.Agent, of, rune), of, rune.at)
}

export const endOf = ({ ended, turnId }: TurnMachine.Data): AgentMachine.Event | undefined => {
  if (ended === null || turnId === null) return undefined
  if (ended.outcome === "error") return { _tag: "turn_error", turnId, message: ended.reason ?? "" }
  return { _tag: `turn_${ended.outcome}`, turnId }
}

/** Measures the time since a wall-clock timestamp. If the clock is set, the result does not change. */
export const stopwatch = (clock: Clock.Clock, most: number) => {
  let read: { readonly now: number; readonly at: number } | undefined
  /** Monotonic time, ms. Two decisions with the same `now` get the same value. */
  const elapsed = (now: number): number => {
    if (read?.now !== now) read = { now, at: Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n) }
    return read.at
  }
  let mark: { readonly stamp: number; readonly began: number } | undefined
  return {
    /** `stamp`: the current wall-clock time, ms since the epoch. */
    set: (stamp: number) => {
      mark = { stamp, began: elapsed(stamp) }
    },
    /**
     * Elapsed time since `stamp`, ms. If an earlier daemon wrote `stamp`, the result is limited to `most`: the longest
     * time that a run works without a daemon.
     */
    since: (stamp: number, now: number): number =>
      mark?.stamp === stamp ? elapsed(now) - mark.began : Math.min(most, Math.max(0, now - stamp))
  }
}

// All parts of this actor's definition are in one function, because they share its services.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.gen(function* () {
  const setting = yield* AgentEnvironment
  const place = yield* CurrentRun
  const { agent, allowance, config, conversation, home, recoveredTo, report } = setting
  const { live, slot } = place
  const { lease } = yield* Keeper
  const watch = stopwatch(yield* Clock.Clock, Duration.toMillis(lease) + 2 * TICK)

  /** Stops the agent's worker when the agent ends, unless the worker has already stopped. */
  const ends = ({ data, state }: LifeState, { toWorker, worker }: Siblings): ReadonlyArray<Tell> => {
    if ((state !== "terminated" && state !== "failed") || worker.now === undefined || worker.now.state === "Stopped") {
      return []
    }
    const reason = data.reason ?? "ended"
    return [
      tell(
        toWorker,
        data.spent === null
          ? { _tag: "OperatorStop", by: "agentd", reason }
          : {
              _tag: "FatalError",
              message: reason,
              remedy: `Raise its budget in agentd.jsonc, or start it again with a fresh one: agentd start ${setting.project()}/${agent}`
            }
      )
    ]
  }

  const stops = (action: AgentMachine.Action, { data }: LifeState, { toTurn }: Siblings): ReadonlyArray<Tell> => {
    const { turnId } = action
    if (turnId === null || action._tag === "StartTurn") return []
    const reason = action._tag === "InterruptTurn" ? `the budget of ${data.spent} is spent` : "the agent was killed"
    return [tell(toTurn, { _tag: "interrupt", turnId, by: "agentd", reason, keep: true, ...live.partial })]
  }

  const step = (state: LifeState, event: AgentMachine.Event, context: Context): Decision<LifeState, Act> | Refusal => {
    const of = before(state, event)
    const moved = move(AgentMachine.Agent, of, event, context)
    if (typeof moved === "string") return moved
    const result = after(moved.after, of, context.now)
    const siblings = new Siblings(agent, context)
    return {
      runes: [moved.draft],
      state: result,
      tells: [
        ...moved.actions.flatMap((action) => stops(action, result, siblings)),
        ...ends(result, siblings),
        ...(result.state === "idle" ? [tell(context.self as never, { _tag: "Look" })] : [])
      ],
      acts: event._tag === "spawn_requested" ? [{ _tag: "Born", ref: refOf(context, conversation) }] : moved.actions
    }
  }

  /** Counts usage, and the turn's time up to now. If a budget is then exceeded, the agent ends. */
  const use = (
    state: LifeState,
    { same, spent, turnId, waited }: Omit<Extract<LifeMessage, { _tag: "Used" }>, "_tag">,
    context: Context,
    least = 0
  ): Decision<LifeState, Act> => {
    const { tools, turn } = new Siblings(agent, context)
    // the time also counts in a turn that this daemon adopted from an earlier daemon
    const isOurs = state.entered > recoveredTo || live.resumed === turnId
    const runs = isOurs && state.state === "running_turn" && state.data.turnId === turnId
    const isLive = runs && (isActive(turn) || turn.data.turnId === turnId)
    const elapsed = isLive ? Math.max(least, watch.since(state.countedTo, context.now)) : 0
    // the time spent waiting for the user is reported when the wait ends
    const isWait = waited ?? (isLive && isStalled(tools, turnId))
    const wallTime = isWait ? 0 : elapsed
    const wait = isWait ? elapsed : 0
    const all = { ...spent, wallTime }
    const { tokens = 0, toolCalls = 0, usd = 0, unlikely } = all
    if (tokens + toolCalls + usd + wallTime + (waited === true ? wait : 0) <= 0 && unlikely === undefined)
      return { runes: [] }
    const goal = turn.data.turnId === turnId ? goalOf(turn.data.messageIds) : undefined
    const payload: Usage = {
      agent_id: agent,
      turn_id: turnId,
      tokens,
      tool_calls: toolCalls,
      wall_time: wallTime,
      usd,
      ...(wait > 0 ? { waited: wait } : {}),
      ...(same === undefined ? {} : { same }),
      ...(unlikely === undefined ? {} : { unlikely }),
      day: Calendar.dayOf(context.now),
      ...(goal === undefined ? {} : { goal }),
      ...(spent.models === undefined ? {} : { models: spent.models.map(modelIn) })
    }
    const usage: Draft = { kind: "agent.usage", actor: meterName(agent), payload }
    const counted = used(state, payload, context.now)
    if (elapsed > 0) watch.set(context.now)
    const acts: ReadonlyArray<Act> = [{ _tag: "CountUsage", usage: payload, ref: refOf(context, conversation) }]
    const exhausted = Budget.exhausted(config().budget, counted.spent)
    const decided = { runes: [usage], state: counted, acts }
    if (exhausted === undefined) return decided
    const event: AgentMachine.Event = { _tag: "budget_exhausted", ...exhausted }
    if (state.state !== "running_turn") return { ...decided, tells: [tell(context.self as never, event)] }
    // the budget rune must be written before the turn's end, which may be the next message
    const moved = move(AgentMachine.Agent, counted, event, context, 1)
    if (typeof moved === "string") return decided
    const spentOut = after(moved.after, counted, context.now)
    const siblings = new Siblings(agent, context)
    return {
      runes: [usage, moved.draft],
      state: spentOut,
      tells: moved.actions.flatMap((action) => stops(action, spentOut, siblings)),
      acts: [...acts, ...moved.actions]
    }
  }

  const join = (state: LifeState, rune: Rune) => {
    const event = AgentMachine.joins(rune)
    if (event === undefined) return undefined
    const moved = joined(AgentMachine.Agent, state, event, rune)
    watch.set(rune.at)
    return typeof moved === "string" ? moved : { state: after(moved.after, state, rune.at), acts: moved.actions }
  }

  const forgo = (
    before: LifeState,
    { by, reason, spawn }: Extract<LifeMessage, { _tag: "Forgo" }>,
    context: Context
  ): Decision<LifeState, Act> | Refusal => {
    const born = move(AgentMachine.Agent, unborn, spawn, context)
    if (typeof born === "string") return born
    const ended = move(AgentMachine.Agent, born.after, { _tag: "kill_forced", by, reason }, context, 1)
    if (typeof ended === "string") return ended
    return {
      runes: [born.draft, ended.draft],
      state: { ...fresh, ...kept(before), ...ended.after },
      reply: { eventId: context.nextId + 1 }
    }
  }

  const perform = (action: Act, state: LifeState): Effect.Effect<void> => {
    switch (action._tag) {
      case "Announce":
        return announce(state)
      case "Born":
        place.over.closeUnsafe()
        return allowance.began(action.ref)
      case "CountUsage": {
        const { ref, usage } = action
        return Effect.andThen(home.used(agent, Budget.ofUsage(usage), ref), allowance.used(usage, ref))
      }
      case "ForceStopTurn":
        return live.run === undefined ? Effect.void : slot.kill(live.run.runId)
      // the turn's actor receives its message in the same macrostep
      case "StartTurn":
      case "InterruptTurn":
        return Effect.void
    }
  }

  const announce = (state: LifeState) =>
    Effect.gen(function* () {
      if (state.state !== "idle" && state.state !== "running_turn") return
      const ref = enteredBy(state, conversation)
      const of = { conversation, agent, eventId: ref.eventId, cause: causeOf(ref), at: yield* Clock.currentTimeMillis }
      const reason = home.barred()
      if (reason !== undefined) return yield* report({ ...of, _tag: "Offline", reason, how: "stopped" })
      // a disconnected agent was reported offline when its turn ended; its worker sends `Announce` when the next run
      // can start
      if (disconnection(place.now()) !== undefined) return
      yield* report({ ...of, _tag: "Online" })
      if (state.state === "idle") yield* report({ ...of, _tag: "Idle" })
    })

  const definition = actor<LifeState, LifeMessage | Inner, Act>({
    initial: fresh,
    parts: (name) => name === meterName(agent) || name === choiceName(agent),
    decide: (state, message, context) => {
      switch (message._tag) {
        case "Choose": {
          const { by, choice } = message
          const payload = { agent_id: agent, ...choice, by }
          return {
            runes: [{ kind: "agent.chosen", actor: choiceName(agent), payload }],
            state: { ...state, chosen: choice },
            reply: { eventId: context.nextId }
          }
        }
        case "Used":
          return use(state, message, context)
        case "Tick":
          // at least 1 ms is counted: the timer has fired, but rounding may make the elapsed time 0
          return use(state, { turnId: message.turnId, spent: {} }, context, 1)
        case "Announce":
          return { runes: [], acts: [message] }
        case "Forgo":
          return forgo(state, message, context)
        case "Look":
          return { runes: [], tells: next(setting, place, context) }
        case "HasEnded":
          return { runes: [], tells: ends(state, new Siblings(agent, context)) }
        default:
          return step(state, message, context)
      }
    },
    join,
    apply,
    comesBack: (old, now) => old.state !== now.state,
    timers: ({ countedTo, data, inTurn, spent, state }) => {
      if (state !== "running_turn" || data.turnId === null) return []
      const limit = config().budget.wallTime
      const whole = limit === undefined ? TICK : Duration.toMillis(limit) - spent.wallTime
      const left = Math.min(whole, (Budget.turnTime(config()) ?? Number.POSITIVE_INFINITY) - (inTurn ?? 0))
      // because of rounding, a timer can fire slightly early; it is then set again
      const after = Math.max(1, Math.min(left, TICK))
      return [
        {
          key: `time/${data.turnId}/${countedTo}`,
          since: countedTo,
          after,
          message: { _tag: "Tick", turnId: data.turnId }
        }
      ]
    },
    activities: ({ entered, state }) => {
      const name = AgentMachine.Agent.states[state].enter
      return name === undefined ? [] : [{ name, key: entered }]
    },
    perform: (action, { state }) => perform(action, state),
    run: ({ name }, { self, state }) => {
      switch (name) {
        case "TakeWork":
          return Effect.andThen(home.agentReady(agent, enteredBy(state, conversation)), announce(state))
        case "ReleaseAgent":
          return state.entered > recoveredTo
            ? release(state)
            : Effect.andThen(release(state), self.tell({ _tag: "HasEnded" }))
        case "WatchTurn": {
          // a daemon of an older version reported a turn's end in a separate append, which may be missing
          const { turn } = place.now()
          const turnId = state.data.turnId ?? ""
          if (isActive(turn)) {
            // a timer that fired before the run was adopted counted no time
            const counts = Effect.andThen(whenAdopted(place, recoveredTo), self.tell({ _tag: "Tick", turnId }))
            return state.entered > recoveredTo ? Effect.void : counts
          }
          const ended = turn.data.turnId === turnId ? endOf(turn.data) : ({ _tag: "turn_interrupted", turnId } as const)
          return ended === undefined ? Effect.void : self.tell(ended)
        }
        default:
          // the worker reports that the working folder is ready, or that it cannot be created
          return Effect.void
      }
    }
  })

  /** Reports that the agent has ended. Safe to repeat. */
  const release = (life: LifeState) => {
    const { at, data, state } = life
    const ref = enteredBy(life, conversation)
    const reason = data.reason ?? "ended"
    const how = state === "failed" || place.now().worker.now?.data.fatal != null ? "crashed" : "stopped"
    return Effect.andThen(
      report({ _tag: "Offline", conversation, agent, eventId: ref.eventId, cause: causeOf(ref), at, reason, how }),
      Effect.andThen(
        home.agentEnded(agent, ref),
        Effect.sync(() => place.over.openUnsafe())
      )
    )
  }

  return { definition, announce }
})
