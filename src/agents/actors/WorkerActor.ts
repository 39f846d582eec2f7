/**
 * WorkerActor: the actor for the worker of one agent, which starts the agent's runs one after another.
 *
 * Its activities prepare the working folder, wait until the next run is due, and spawn or adopt the run. After a crash,
 * each activity can be repeated and finds what it started before. Activities make no decisions: even the prompt is
 * built in the decision that starts the run.
 *
 * Guarantees: A run's id is durable before the spawn. The append that records a run's start also starts the run's first
 * turn. Every event that ends a run names the run, and ends the run's turn in the same append.
 */
import * as LogEvent from "../../domain/LogEvent.ts"
import { putRight } from "../../domain/ErrorLimit.ts"
import { reader, type RuneOf } from "../../core/event-log/EventKinds.ts"
import { workerKinds } from "../machines/AgentKinds.ts"
import { Clock, Duration, Effect } from "effect"
import {
  actor,
  type Context,
  type Decision,
  type Refusal,
  type Tell,
  tell
} from "../../core/event-actor/EventSourcedActor.ts"
import type { ActorHandle } from "../../core/event-actor/ActorHandle.ts"
import { evolve, evolveBy, notJoined } from "../../core/event-actor/StateMachine.ts"
import { joined, move } from "../../core/event-actor/StateMachineActor.ts"
import type { Backend, RunSpec } from "../../runs/Backend.ts"
import { restricts } from "../../approvals/Rule.ts"
import { type AgentConfig, backendAt } from "../../config/AgentConfig.ts"
import { retired } from "../../config/BackendConfig.ts"
import { causeOf, type Rune, type RuneRef } from "../../core/event-log/Rune.ts"
import type * as AgentMachine from "../machines/AgentMachine.ts"
import type { WorkerMessage } from "../machines/AgentMessages.ts"
import { AgentEnvironment } from "./AgentEnvironment.ts"
import * as Budget from "../machines/Budget.ts"
import * as Approval from "./Approval.ts"
import {
  isActive,
  refOf,
  Siblings,
  type TurnState,
  type WorkerSnapshot,
  type WorkerState
} from "../machines/AgentStates.ts"
import { isDue, next, spacingOf, termsOf, untilDue } from "./NextTurn.ts"
import * as Prompt from "../prompt/Prompt.ts"
import { CurrentRun } from "./CurrentRun.ts"
import { isStalled } from "../machines/ToolsState.ts"
import * as TreePorts from "../workplace/TreePorts.ts"
import * as WorkerMachine from "../machines/WorkerMachine.ts"

type Act =
  | WorkerMachine.Action
  | { readonly _tag: "Disconnected"; readonly reason: string; readonly ref: RuneRef }
  | { readonly _tag: "AgentFailed"; readonly message: string; readonly ref: RuneRef }

type Handle = ActorHandle<WorkerState, WorkerMessage>

export const fresh: WorkerState = { incarnation: 0, began: 0, now: undefined }

/** Reason for an agent's absence if its process died without an error message. */
const DIED = "its process died"

/** Minimum time that an adopted run has to report its end before its timeout fires, ms. */
const MOMENT = 2_000

/** How often it is checked whether the run works on a turn, if its turns have a time limit in total, ms. */
const LOOK = 1_000

const expected = ({ now }: WorkerState): string | undefined =>
  now?.state === "Spawning" ? (now.data.runId ?? undefined) : undefined

const isDeath = (event: WorkerMachine.Event): boolean => event._tag === "SessionExited" && event.died === true

const readWorker = reader(workerKinds)
type Started = Extract<
  RuneOf<typeof workerKinds, Pick<Rune, "at" | "eventId" | "kind" | "payload" | "seq">>,
  { readonly kind: "worker.started" }
>

/** First state of an incarnation. The rune contains the limits, so that the state can be rebuilt without the config. */
const begun = ({ at, eventId, payload, seq }: Omit<Started, "kind">): WorkerState => ({
  incarnation: payload.incarnation,
  began: eventId,
  by: payload.by,
  now: {
    state: WorkerMachine.Worker.initial,
    // in logs of older versions, this rune contains no prompt
    data: { ...WorkerMachine.initial(), ...payload.initial },
    entered: eventId,
    seq,
    at
  }
})

/** `isJoined`: the rune is a turn's rune that also starts or ends the run. */
export const apply = (state: WorkerState, rune: Rune, isJoined: boolean): WorkerState => {
  const own = readWorker(rune)
  if (own?.kind === "worker.started") return begun(own)
  if (isJoined && state.now !== undefined) {
    const event = WorkerMachine.joins(rune)
    if (event === undefined) throw notJoined(WorkerMachine.Worker, rune)
    return { ...state, now: evolveBy(WorkerMachine.Worker, state.now, event, rune) }
  }
  return state.now === undefined ? state : { ...state, now: evolve(WorkerMachine.Worker, state.now, rune) }
}

/** True if the worker was stopped while it ran its permanent task (mode "loop"). */
const isLooping = ({ mode, runId }: WorkerMachine.Data): boolean => mode === "loop" && runId !== null

const stopped = ({ fatal, stoppedBy }: WorkerMachine.Data): string =>
  fatal === null ? `stopped by ${stoppedBy ?? "agentd"}` : putRight(fatal.message)

/** Data of the worker at a new start, from the config and the worker's previous data. Written with the first rune. */
export const initial = (
  config: AgentConfig,
  before: WorkerMachine.Data | undefined,
  isUnfinished: boolean
): WorkerMachine.Data => ({
  ...WorkerMachine.initial({
    mode: config.mode,
    graceMillis: Duration.toMillis(config.interruptGrace),
    ...termsOf(config)
  }),
  ...(before === undefined
    ? {}
    : {
        sessionSeq: before.sessionSeq,
        sessionId: before.sessionId,
        ...(before.ports === undefined ? {} : { ports: before.ports }),
        ...(before.fallback === undefined ? {} : { fallback: before.fallback }),
        ...(before.sessions === undefined ? {} : { sessions: before.sessions }),
        messageIds: before.messageIds,
        cutShort: before.cutShort ?? (isUnfinished || isLooping(before) ? stopped(before) : null),
        lastRunAt: before.lastRunAt,
        recentRuns: before.recentRuns
      })
})

/**
 * For a run that ended with an earlier daemon: whether it had completed its first turn (whose id is the run's id) or
 * had started a later one.
 */
const hadAnswered = (turn: TurnState, { data: { runId }, entered }: WorkerSnapshot): boolean =>
  turn.data.turnId === runId ? turn.data.ended?.outcome === "completed" : turn.entered > entered

const resumable = (backend: AgentConfig["backend"]): boolean => "resume" in backend && backend.resume

export const spawnRequested = ({ agent, config, parent }: AgentEnvironment["Service"]): AgentMachine.Event => {
  const { backend, role } = config()
  const model = "model" in backend ? (backend.model ?? null) : null
  return { _tag: "spawn_requested", agentId: agent, role: role ?? "", model, parentId: parent }
}

// All parts of this actor's definition are in one function, because they share its services.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.gen(function* () {
  const setting = yield* AgentEnvironment
  const place = yield* CurrentRun
  const { agent, backend, config, conversation, home, mcp, recoveredTo } = setting
  const { live, slot } = place

  const begin = (
    state: WorkerState,
    { by }: Extract<WorkerMessage, { _tag: "Start" }>,
    context: Context
  ): Decision<WorkerState, Act> | Refusal => {
    if (state.now !== undefined && state.now.state !== "Stopped") return "stale"
    const { toLife, turn } = new Siblings(agent, context)
    const incarnation = state.incarnation + 1
    const isUnfinished = turn.data.unfinished.length > 0
    const payload = { by, incarnation, initial: initial(config(), state.now?.data, isUnfinished) }
    return {
      runes: [{ kind: "worker.started", to: WorkerMachine.Worker.initial, trigger: "start", payload }],
      state: begun({ eventId: context.nextId, seq: context.nextSeq, at: context.now, payload }),
      tells: [tell(toLife, spawnRequested(setting))],
      reply: { eventId: context.nextId }
    }
  }

  /** The run has started: start its first turn. The rune of that turn also records the run's start. */
  const first = (
    { data: { messageIds, prompt } }: WorkerSnapshot,
    { pid, runId, seq, sessionId }: Extract<WorkerMachine.Event, { _tag: "SessionStarted" }>,
    { toTurn }: Siblings,
    { now }: Context
  ): Tell =>
    tell(toTurn, {
      _tag: "start_turn",
      turnId: runId,
      agentId: agent,
      input: prompt ?? "",
      source: "queue",
      messageIds,
      graceMillis: Duration.toMillis(config().interruptGrace),
      run: { seq, ...(pid === undefined ? {} : { pid }), ...(sessionId === undefined ? {} : { sessionId }) },
      at: now
    })

  /**
   * Cancels a run. Its turn is interrupted first. The turn's messages are queued again unless the user dropped them.
   */
  const cancelled = (
    event: WorkerMachine.Event,
    { state }: WorkerSnapshot,
    { toTurn, turn }: Siblings
  ): ReadonlyArray<Tell> => {
    if (!isActive(turn)) return []
    const isDropped = event._tag === "UrgentMessage" && event.messageId === null
    const reason =
      state === "Stopped"
        ? "its agent was stopped"
        : isDropped
          ? "its first turn was interrupted"
          : "it was interrupted by an urgent message"
    const turnId = turn.data.turnId!
    return [tell(toTurn, { _tag: "interrupt", turnId, by: "worker", reason, keep: !isDropped, ...live.partial })]
  }

  const follow = (
    event: WorkerMachine.Event,
    after: WorkerSnapshot,
    actions: ReadonlyArray<WorkerMachine.Action>,
    siblings: Siblings,
    context: Context
  ): ReadonlyArray<Tell> => {
    const cancels = actions.some(({ _tag }) => _tag === "CancelSession")
    const tells = cancels ? [...cancelled(event, after, siblings)] : []
    // if no wait is needed, the next run starts in the append that ends this run
    if (WorkerMachine.isCool(after)) tells.push(tell(context.self as never, { _tag: "BackoffElapsed" }))
    if (after.state === "BuildingPrompt") {
      tells.push(tell(context.self as never, { _tag: "Look" }))
    }
    if (after.state === "Stopped") tells.push(tell(context.self as never, { _tag: "Release" }))
    return tells
  }

  /** Ends the agent's life after its worker has stopped. Can be repeated. */
  const release = (state: WorkerState, context: Context): Decision<WorkerState, Act> | Refusal => {
    const { life, toLife } = new Siblings(agent, context)
    if (state.now?.state !== "Stopped" || life.state === "terminated" || life.state === "failed") return "stale"
    const { fatal, stoppedBy } = state.now.data
    const [by, reason] = fatal === null ? [stoppedBy ?? "agentd", "stopped"] : ["worker", putRight(fatal.message)]
    const isBorn = life.state !== "[*]" && life.state !== "spawning"
    // if an agent was stopped by its parent, the logged reason is the end of the parent
    const parentId = setting.parent
    const isOrphan = fatal === null && parentId !== null && stoppedBy === `agent:${parentId}`
    const event: AgentMachine.Event = isBorn
      ? isOrphan
        ? { _tag: "parent_closed", parentId }
        : { _tag: "kill", by, reason }
      : fatal === null
        ? { _tag: "kill_forced", by, reason }
        : { _tag: "init_error", error: reason }
    return { runes: [], tells: life.state === "[*]" ? [] : [tell(toLife, event)] }
  }

  const step = (
    state: WorkerState,
    event: WorkerMachine.Event,
    context: Context
  ): Decision<WorkerState, Act> | Refusal => {
    const { now } = state
    if (now === undefined) return "stale"
    // an event that ends a run must name the run
    if (event._tag === "UrgentMessage" && event.runId === undefined) return "illegal"
    const moved = move(WorkerMachine.Worker, now, event, context)
    if (typeof moved === "string") return moved
    const { after, actions, draft } = moved
    const siblings = new Siblings(agent, context)
    // the rune that starts the turn also records the run's start
    if (event._tag === "SessionStarted" && siblings.turn.state === "idle") {
      return { runes: [], tells: [first(now, event, siblings, context)] }
    }
    const fatal = after.state === "Stopped" ? after.data.fatal : null
    const { life } = siblings
    const isFailure = fatal !== null && life.state !== "terminated" && life.state !== "failed"
    return {
      runes: [draft],
      state: { ...state, now: after },
      tells: follow(event, after, actions, siblings, context),
      acts: [
        ...actions,
        ...(isDeath(event) && after.state !== "Stopped"
          ? [{ _tag: "Disconnected" as const, reason: after.data.lastError ?? DIED, ref: refOf(context, conversation) }]
          : []),
        ...(isFailure
          ? [{ _tag: "AgentFailed" as const, message: putRight(fatal.message), ref: refOf(context, conversation) }]
          : [])
      ]
    }
  }

  const join = (state: WorkerState, rune: Rune, context: Context) => {
    const event = WorkerMachine.joins(rune)
    if (event === undefined || state.now === undefined) return undefined
    const moved = joined(WorkerMachine.Worker, state.now, event, rune)
    if (typeof moved === "string") return moved
    const { actions, after } = moved
    const tells = follow(event, after, actions, new Siblings(agent, context), context)
    return { state: { ...state, now: after }, tells, acts: actions }
  }

  const decide = (state: WorkerState, message: WorkerMessage, context: Context) => {
    switch (message._tag) {
      case "Start":
        return begin(state, message, context)
      case "Look": {
        const { life, toLife } = new Siblings(agent, context)
        const isReady = life.state === "spawning" && state.now?.state === "BuildingPrompt"
        return { runes: [], tells: isReady ? [tell(toLife, { _tag: "init_complete" })] : next(setting, place, context) }
      }
      case "Ready": {
        const { toLife } = new Siblings(agent, context)
        return { runes: [], tells: [tell(toLife, { _tag: "Announce" })] }
      }
      case "Release":
        return release(state, context)
      case "Rise": {
        const { life, toLife } = new Siblings(agent, context)
        const isOld = life.state === "[*]" || life.state === "terminated" || life.state === "failed"
        if (!isOld || life.entered >= state.began || state.now === undefined || state.now.state === "Stopped") {
          return "stale"
        }
        return {
          runes: [],
          tells: [tell(toLife, spawnRequested(setting)), tell(context.self as never, { _tag: "Look" })]
        }
      }
      default:
        return step(state, message, context)
    }
  }

  const perform = (action: Act): Effect.Effect<void> => {
    switch (action._tag) {
      case "CancelSession":
        if (action.runId === null) return Effect.void
        live.ending(action.runId)
        return slot.stop(action.runId)
      case "ForceStopSession":
        return action.runId === null ? Effect.void : slot.kill(action.runId)
      case "LogFatal":
        return LogEvent.noted("agent.failed", { agent, conversation })(
          Effect.logError(`${agent} stopped permanently: ${action.message}`)
        )
      case "Disconnected": {
        const { reason, ref } = action
        const of = { conversation, agent, eventId: ref.eventId, cause: causeOf(ref), reason }
        return Effect.flatMap(Clock.currentTimeMillis, (at) =>
          setting.report({ ...of, at, _tag: "Offline", how: "disconnected", isBetween: true })
        )
      }
      case "AgentFailed":
        return home.agentFailed(agent, action.message, action.ref)
      case "StorePrompt": // the activity SpawnRun reads the prompt from the state
      case "IncrementSession": // the counter is part of the machine's data
        return Effect.void
    }
  }

  /** Stops an agent whose backend no longer exists; otherwise continues with `then`. */
  const unlessRetired = (self: Handle, then: Effect.Effect<void>) =>
    Effect.suspend(() => {
      const gone = retired(config().backend)
      return gone === undefined ? then : self.tell({ _tag: "FatalError", ...gone })
    })

  const prepareWorktree = (self: Handle) =>
    setting.place.pipe(
      Effect.flatMap(({ branch, cwd }) =>
        Effect.map(setting.furnish({ cwd, before: self.state.now?.data.ports }), ({ ports }) => ({
          cwd,
          ...(branch === undefined ? {} : { branch }),
          ...(ports === undefined ? {} : { ports })
        }))
      ),
      Effect.matchEffect({
        onSuccess: (ready) => self.tell({ _tag: "WorktreeReady", ...ready }),
        onFailure: (error) => self.tell({ _tag: "FatalError", message: error.message, remedy: error.remedy })
      })
    )

  /**
   * Prepares the worktree for the run. The config may have changed since the worktree was prepared, and a program may
   * listen on the agent's ports. Undefined if the agent had to be stopped.
   */
  const furnished = (self: Handle, { cwd, ports }: WorkerMachine.Data, isLive: boolean) =>
    setting.furnish({ cwd: cwd!, before: ports, isLive }).pipe(
      Effect.tap(({ ports: given }) =>
        given === undefined || (given.first === ports?.first && given.count === ports.count)
          ? Effect.void
          : self.tell({ _tag: "PortsGiven", ports: given })
      ),
      Effect.catch((error) =>
        Effect.as(self.tell({ _tag: "FatalError", message: error.message, remedy: error.remedy }), undefined)
      )
    )

  /** Waits until the next run may start, then looks for work. A message that arrives later triggers another look. */
  const buildPrompt = (self: Handle, { data }: WorkerSnapshot) =>
    Effect.gen(function* () {
      // reports the agent as available again after a disconnect, or after a run that ended before its first turn
      yield* self.tell({ _tag: "Ready" })
      for (;;) {
        const now = yield* Clock.currentTimeMillis
        // a reload may have changed the minimum interval between runs
        const spacing = spacingOf(config())
        if (isDue(data, spacing, now)) break
        yield* Effect.sleep(untilDue(data, spacing, now))
      }
      yield* self.tell({ _tag: "Look" })
    })

  /** Ends all processes of a run that cannot be adopted, then reports the run's end. */
  const lost = (self: Handle, now: WorkerSnapshot, { drop }: Backend) =>
    Effect.gen(function* () {
      const runId = now.data.runId!
      const exited = {
        _tag: "SessionExited",
        runId,
        outcome: { _tag: "Uncounted", reason: "taken" },
        ...(hadAnswered(place.now().turn, now) ? { worked: true } : {})
      } as const
      const told = now.state === "Stopped" ? Effect.void : self.tell(exited)
      yield* slot.bury(runId, Effect.andThen(drop?.(runId) ?? Effect.void, Effect.andThen(told, place.adopted.open)))
    })

  /**
   * Waits for the time limit of a run that is one turn. An adopted run's time counts from its original start, so the
   * limit may already be exceeded.
   */
  const timeout = (whole: number, { lastRunAt }: WorkerMachine.Data, isOld: boolean) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      if (!isOld) return Effect.sleep(whole)
      const left = Math.min(whole, whole - (now - (lastRunAt ?? now)))
      return Effect.andThen(place.adopted.await, Effect.sleep(Math.max(left, MOMENT)))
    })

  /** True if the run works on a turn that does not wait for the user. */
  const isBusy = (): boolean => {
    const { tools, turn } = place.now()
    return isActive(turn) && turn.data.turnId !== null && !isStalled(tools, turn.data.turnId)
  }

  /**
   * Waits until the turns of the run have taken `whole` ms in total. Of an adopted run, the time of its current turn
   * counts, and earlier turns do not.
   */
  const turnsTimeout = (whole: number, isOld: boolean): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { life, turn } = place.now()
      const spent = isOld && isActive(turn) ? (life.inTurn ?? 0) : 0
      const left = spent === 0 ? whole : Math.max(whole - spent, MOMENT)
      const look = Math.min(LOOK, whole / 20)
      const count = (left: number): Effect.Effect<void> =>
        Effect.flatMap(Effect.sleep(look), () => {
          const rest = isBusy() ? left - look : left
          return rest > 0 ? count(rest) : Effect.void
        })
      return Effect.andThen(isOld ? place.adopted.await : Effect.void, count(left))
    })

  /** Ensures that the run is alive or its end is reported. Adopts the run of an earlier daemon if it still exists. */
  const spawnRun = (self: Handle, now: WorkerSnapshot) =>
    Effect.gen(function* () {
      const { data, entered, state } = now
      const runId = data.runId!
      if (slot.current() === runId) return
      const index = data.fallback ?? 0
      const facts = Approval.factsOf(config())
      const made = yield* backend(index)
      const isOld = entered <= recoveredTo
      if (isOld && !(yield* made.holds?.(runId) ?? Effect.succeed(false))) return yield* lost(self, now, made)
      const tree = yield* furnished(self, data, isOld)
      if (tree === undefined) return
      const spec: RunSpec = {
        runId,
        agent,
        // the first turn has the run's id, so that a restarted daemon can find the turn
        turnId: runId,
        prompt: data.prompt ?? "",
        ...setting.files.given(Prompt.filesOf(place.now().inbox.data, data.messageIds)),
        cwd: data.cwd!,
        ...(tree.mounts.length === 0 ? {} : { mounts: tree.mounts }),
        env: { AGENTD_AGENT: agent, ...TreePorts.environmentOf(tree.ports) },
        resume:
          resumable(backendAt(config(), index)) && data.sessionId !== null
            ? { sessionId: data.sessionId, fork: data.uncounted.reason === "held" }
            : undefined,
        approvals: Approval.toldMode(config().approvals.mode, setting.rules()),
        asksAll: restricts(setting.rules()),
        limits: config().limits,
        toolTimeout: Duration.min(config().toolTimeout, config().maxToolTimeout),
        mcp: mcp(runId),
        ...(isOld ? { adopt: { isUp: state !== "Spawning" } } : {})
      }
      if (!isOld) yield* place.adopted.open
      const whole = Budget.runTime(config())
      const limit = (ms: number) => (made.turns ? Effect.succeed(turnsTimeout(ms, isOld)) : timeout(ms, data, isOld))
      yield* slot.ensure({
        backend: made,
        spec,
        timeout: whole === undefined ? undefined : yield* limit(whole),
        ...(isOld ? {} : { facts })
      })
    })

  const isLeft = (now: WorkerSnapshot | undefined): now is WorkerSnapshot =>
    now !== undefined &&
    now.entered <= recoveredTo &&
    now.data.runId !== null &&
    (now.state === "Interrupting" || now.state === "Stopped")

  const run = (name: string, self: Handle, now: WorkerSnapshot): Effect.Effect<void> => {
    switch (name) {
      case "Bury":
        return Effect.flatMap(backend(now.data.fallback ?? 0), (made) => lost(self, now, made))
      case "PrepareWorktree":
        return unlessRetired(self, prepareWorktree(self))
      case "BuildPrompt":
        return unlessRetired(self, buildPrompt(self, now))
      case "SpawnRun":
        return spawnRun(self, now)
      case "WatchRun":
        return spawnRun(self, now)
      case "Rise":
        return self.tell({ _tag: "Rise" })
      default:
        return self.tell({ _tag: "Release" })
    }
  }

  /**
   * Stops only this agent after a defect of agentd. Without this, a defect that recurs after each restart would end one
   * supervisor after another.
   */
  const contained = (activity: Effect.Effect<void>, self: Handle, { state }: WorkerSnapshot) =>
    Effect.catchDefect(activity, (defect) =>
      self.tell({
        _tag: "FatalError",
        message: `agentd failed at ${state}: ${String(defect)}`,
        remedy: "This is a bug of agentd: report it. Then start the agent again."
      })
    )

  return actor<WorkerState, WorkerMessage, Act>({
    initial: fresh,
    decide,
    join,
    apply,
    comesBack: (before, after) => before.now?.state !== after.now?.state,
    stepped: (before, after) => {
      const [old, next] = [expected(before), expected(after)]
      if (old === next) return
      if (old !== undefined) slot.expect(old, false)
      if (next !== undefined) slot.expect(next, true)
    },
    timers: ({ now }) => {
      if (now === undefined) return []
      const name = WorkerMachine.Worker.states[now.state].timeout
      if (name === undefined) return []
      const { after, fires } = WorkerMachine.Worker.timers[name]
      return [
        { key: `${name}/${now.entered}`, since: now.at, after: after(now.data, now.at), message: fires(now.data) }
      ]
    },
    activities: ({ began, now }) => {
      const name = now === undefined ? undefined : WorkerMachine.Worker.states[now.state].enter
      return [
        // do not adopt a run that was already being ended when the daemon stopped
        ...(isLeft(now) ? [{ name: "Bury", key: now.entered }] : []),
        ...(began > 0 && began <= recoveredTo ? [{ name: "Rise", key: began }] : []),
        ...(name === undefined ? [] : [{ name, key: now!.entered }])
      ]
    },
    perform,
    run: ({ name }, { self, state }) =>
      state.now === undefined ? Effect.void : contained(run(name, self, state.now), self, state.now)
  })
})
