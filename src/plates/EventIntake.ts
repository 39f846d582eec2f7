/**
 * EventIntake: what comes in from sessions, on its way to the right plate.
 *
 * Guarantees: to receive waits for nothing; while the log is still being folded
 * what comes is kept in order, up to a limit, and taken in then.
 */
import { Clock, Effect, FiberSet, type Scope } from "effect"
import { type Plan, planAfter } from "../runs/claude/ClaudeTools.ts"
import type { Lookup, ProcessId } from "../runs/process/ProcessTable.ts"
import type * as PlateMachine from "./PlateMachine.ts"
import type { Heard } from "./HookEvent.ts"
import type { PlateActor } from "./PlateActor.ts"
import { EventRefused } from "./JsonReader.ts"
import type { ProcessLiveness } from "./ProcessLiveness.ts"
import { goesOn, type PlateRegistry } from "./PlateRegistry.ts"
import type { AgentSession } from "../domain/AgentPort.ts"

/** Where a hook came from, besides its body. */
export interface Origin {
  /** `AGENTD_PLATE` in the environment of the session, if it was started through us. */
  readonly plate: string | undefined
  /** `AGENTD_RUN`: the session is a run of ours, or a run has started it. */
  readonly run: string | undefined
  /** The session's process, where the handler knows it. */
  readonly pid: number | undefined
  /** When it was said, ms since the epoch, where it was kept until we were up. */
  readonly at?: number
}

/** Characters of a plan that is kept in memory. */
const MAX_PLAN = 100_000
const bounded = (plan: Plan | undefined): Plan | undefined =>
  plan === undefined || plan.text.length > MAX_PLAN ? undefined : plan

/** Events that are kept until the log is folded. */
const MAX_WAITING = 4_096

const nobody: Origin = { plate: undefined, run: undefined, pid: undefined }

export class EventIntake {
  private readonly registry: PlateRegistry
  private readonly pulse: ProcessLiveness
  private readonly looks: FiberSet.FiberSet
  private readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  /** Undefined once the log is folded. */
  private waiting: Array<Effect.Effect<void>> | undefined = []

  private constructor(
    registry: PlateRegistry,
    pulse: ProcessLiveness,
    looks: FiberSet.FiberSet,
    sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  ) {
    this.sessions = sessions
    this.registry = registry
    this.pulse = pulse
    this.looks = looks
  }

  static make(
    registry: PlateRegistry,
    pulse: ProcessLiveness,
    sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  ): Effect.Effect<EventIntake, never, Scope.Scope> {
    return Effect.map(FiberSet.make(), (looks) => new EventIntake(registry, pulse, looks, sessions))
  }

  get isOpen(): boolean {
    return this.waiting === undefined
  }

  /** The log is folded: what came meanwhile, in order. */
  readonly open: Effect.Effect<void> = Effect.suspend(() => {
    const next = this.waiting?.shift()
    if (next !== undefined) return Effect.andThen(next, this.open)
    this.waiting = undefined
    return Effect.void
  })

  /** Takes it in, now or once the log is folded. */
  take(heard: Heard, origin: Origin = nobody): Effect.Effect<void, EventRefused> {
    return Effect.suspend(() => {
      if (this.waiting === undefined) return this.deliver(heard, origin)
      if (this.waiting.length >= MAX_WAITING) {
        return Effect.fail(
          new EventRefused({
            field: "",
            message: `${MAX_WAITING} events wait for the log to be read.`,
            remedy: "Send it again in a moment."
          })
        )
      }
      this.waiting.push(
        Effect.catch(this.deliver(heard, origin), (error) => Effect.logWarning(`${heard.name}: ${error.message}`))
      )
      return Effect.void
    })
  }

  private readonly deliver = Effect.fnUntraced(
    { self: this },
    function* (this: EventIntake, heard: Heard, origin: Origin) {
      const { event, plate } = yield* this.admit(heard, origin)
      if (plate === undefined || event === undefined) return
      if (event._tag === "HookSessionEnd") yield* plate.lastLook
      if (event._tag === "HookSessionStart" && event.noted === true) {
        // what else it notes of itself is on the board with it
        yield* Effect.ignore(plate.ask(event))
        yield* plate.look("look")
      } else plate.tell(event)
      yield* this.follows(plate, event, origin)
    }
  )

  /** The same of what was kept on a disk until now: durable when it answers. What the plate refuses is of the past. */
  readonly keep = Effect.fnUntraced(
    { self: this },
    function* (this: EventIntake, heard: Heard, origin: Origin = nobody) {
      const { at, pid } = origin
      if (at !== undefined && this.registry.forgottenSince(heard.sessionId, { at, pid })) return
      const { event, plate } = yield* this.admit(heard, origin)
      if (plate === undefined || event === undefined) return
      const next = this.follows(plate, event, origin)
      yield* Effect.catchTags(plate.ask(event), { Refused: () => Effect.void, ActorStopped: () => Effect.void })
      yield* next
    }
  )

  /**
   * Finds the plate, where there is one, and completes the event with all that is known besides its body. The caller
   * tells the plate. The session of a run has none: the run tells all of it.
   */
  readonly admit = Effect.fnUntraced({ self: this }, function* (this: EventIntake, heard: Heard, origin: Origin) {
    const now = yield* Clock.currentTimeMillis
    const process = processOf(origin, this.registry.processes)
    const known = this.registry.ofSession(heard.sessionId)
    const sessions = yield* this.sessions
    if (isRuns(heard, origin, sessions, known !== undefined)) return { plate: undefined, event: undefined }
    const plate = yield* this.registry.find(heard, { plate: origin.plate, run: origin.run, process })
    if (plate === undefined) return { plate, event: undefined }
    if (origin.run !== undefined && plate.stand.data.runId === null && known === undefined) {
      const agent = sessions.find(({ runId }) => runId === origin.run)?.agent
      const { plateId } = plate
      plate.tell({ _tag: "Registered", at: now, plateId, cwd: heard.cwd ?? "", runId: origin.run, agent })
    }
    plate.heard = now
    this.registry.populated.openUnsafe()
    if (heard.sessionId === plate.sessionId && plate.follow(heard.transcriptPath)) {
      // What is in it by now is no news later.
      yield* FiberSet.run(this.looks, plate.look("look"))
    }
    if (heard.plan !== undefined) plate.plan = bounded(planAfter(plate.plan, heard.plan.tool, heard.plan.input))
    if (heard.prompt !== undefined) plate.facts = { ...plate.facts, prompt: heard.prompt }
    return { plate, event: adorned(heard, plate, origin, process, now) }
  })

  /** A session that ends may go on under another id, or take its process with it. The answer goes after the event. */
  private follows(plate: PlateActor, event: PlateMachine.Event, origin: Origin): Effect.Effect<void> {
    if (event._tag === "HookSessionEnd") {
      if (event.sessionId !== plate.sessionId) return Effect.void
      plate.ended = { reason: event.reason, at: event.at }
      return goesOn(event.reason) ? Effect.void : this.pulse.ending(plate)
    }
    // A session that has ended is begun by its start alone: another hook that comes now was sent before the end.
    if (isStart(event) && event.sessionId === plate.sessionId) plate.ended = undefined
    // It was said while we were down, by a process that is gone by now.
    if (
      event._tag === "HookSessionStart" &&
      event.late === true &&
      origin.pid !== undefined &&
      event.pidStart === undefined
    ) {
      const { pid } = origin
      return Effect.sync(() => plate.tell({ _tag: "ProcessExited", at: event.at, pid }))
    }
    return Effect.void
  }
}

type Start = Extract<PlateMachine.Event, { readonly _tag: "HookSessionStart" | "SessionStart" }>

/**
 * Whether a hook is of the session of an agent's run, and not of one that a program of the run has started. The run
 * tells its session after its session's first hooks; a clear within it is told by hooks alone.
 */
const isRuns = (
  { event, sessionId }: Heard,
  { run }: Origin,
  sessions: ReadonlyArray<AgentSession>,
  isKnown: boolean
): boolean => {
  const ours = sessions.filter(({ turns }) => turns)
  if (ours.some((of) => of.sessionId === sessionId && (of.isUp || run !== undefined))) return true
  const own = run === undefined ? undefined : ours.find(({ runId }) => runId === run)
  if (own === undefined) return false
  if (!own.isUp) return true
  const isNew = event?._tag === "HookSessionStart" && (event.source === "startup" || event.source === "resume")
  return !isKnown && !isNew
}

const isStart = (event: PlateMachine.Event): event is Start =>
  event._tag === "HookSessionStart" || event._tag === "SessionStart"

/** The process of an origin; its start is 0 where nobody can say that it lives. */
const processOf = ({ pid }: Origin, { identify }: Lookup): ProcessId | undefined => {
  if (pid === undefined) return undefined
  const process = identify(pid)
  return process.start === 0 ? undefined : process
}

const pidOf = (process: ProcessId | undefined) =>
  process === undefined ? {} : { pid: process.pid, ...(process.start === 0 ? {} : { pidStart: process.start }) }

/** The event with what is known besides its body. Paths are added where they are news. */
const adorned = (
  { cwd, event, transcriptPath }: Heard,
  plate: PlateActor,
  origin: Origin,
  process: ProcessId | undefined,
  now: number
): PlateMachine.Event | undefined => {
  if (event === undefined || !event._tag.startsWith("Hook")) return event
  const { data } = plate.stand
  const paths = {
    ...(transcriptPath === undefined || transcriptPath === data.transcriptPath ? {} : { transcriptPath }),
    ...(cwd === undefined || (data.cwd !== null && event._tag !== "HookSessionStart") ? {} : { cwd })
  }
  if (event._tag !== "HookSessionStart") return { ...event, ...paths } as PlateMachine.Event
  return {
    ...event,
    ...paths,
    ...(process === undefined ? (origin.pid === undefined ? {} : { pid: origin.pid }) : pidOf(process)),
    ...(origin.at === undefined ? {} : { at: Math.min(origin.at, now), late: true })
  }
}
