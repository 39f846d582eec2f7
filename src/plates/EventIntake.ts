/**
 * EventIntake: receives events from sessions and passes each to its plate.
 *
 * Guarantees: receiving an event does not wait. While the log is still being folded, events are queued in order, up to
 * a limit, and delivered afterwards.
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

/** The sender of a hook: facts that are known in addition to the hook's body. */
export interface Origin {
  /** `AGENTD_PLATE` in the session's environment, if agentd started the session. */
  readonly plate: string | undefined
  /** `AGENTD_RUN` in the session's environment: the session is a run of agentd, or a program of that run started it. */
  readonly run: string | undefined
  /** The session's process, if the hook handler knows it. */
  readonly pid: number | undefined
  /** When the hook fired, ms since the epoch, if it was stored while the daemon was down. */
  readonly at?: number
}

/** Maximum length of a plan in memory, in characters. */
const MAX_PLAN = 100_000
const bounded = (plan: Plan | undefined): Plan | undefined =>
  plan === undefined || plan.text.length > MAX_PLAN ? undefined : plan

const MAX_WAITING = 4_096

const nobody: Origin = { plate: undefined, run: undefined, pid: undefined }

export class EventIntake {
  private readonly registry: PlateRegistry
  private readonly pulse: ProcessLiveness
  private readonly looks: FiberSet.FiberSet
  private readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  /** Events that are queued until the log has been read; undefined after that. */
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

  /** Called when the log has been read: delivers the queued events in order. */
  readonly open: Effect.Effect<void> = Effect.suspend(() => {
    const next = this.waiting?.shift()
    if (next !== undefined) return Effect.andThen(next, this.open)
    this.waiting = undefined
    return Effect.void
  })

  /** Delivers the event now, or queues it until the log has been read. */
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
        // wait until the start is handled, so that the rest of the session's note appears on the board together with it
        yield* Effect.ignore(plate.ask(event))
        yield* plate.look("look")
      } else plate.tell(event)
      yield* this.follows(plate, event, origin)
    }
  )

  /**
   * Like `take`, for an event that was stored on disk. When this returns, the event is durable. An event that the plate
   * rejects is outdated, and is ignored.
   */
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
   * Finds or creates the plate, and adds to the event what its body lacks, such as the process. The caller sends the
   * event to the plate. The session of an agent's run has no plate: the run reports everything itself.
   */
  readonly admit = Effect.fnUntraced({ self: this }, function* (this: EventIntake, heard: Heard, origin: Origin) {
    const now = yield* Clock.currentTimeMillis
    const { event } = heard
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
    if (process !== undefined && plate.process === undefined && event !== undefined && !isStart(event)) {
      // the session's start was missed, which would have named the process
      const { plateId } = plate
      plate.tell({
        _tag: "Registered",
        at: now,
        plateId,
        cwd: heard.cwd ?? plate.stand.data.cwd ?? "",
        ...pidOf(process)
      })
    }
    plate.heard = now
    this.registry.populated.openUnsafe()
    if (heard.sessionId === plate.sessionId && plate.follow(heard.transcriptPath, heard.cli)) {
      // Reads the existing content now, so that it is not mistaken for new content later.
      yield* FiberSet.run(this.looks, plate.look("look"))
    }
    if (heard.plan !== undefined) plate.plan = bounded(planAfter(plate.plan, heard.plan.tool, heard.plan.input))
    if (heard.prompt !== undefined) plate.facts = { ...plate.facts, prompt: heard.prompt }
    return { plate, event: adorned(heard, plate, origin, process, now) }
  })

  /**
   * Handles the consequences of an event: an ended session can continue under another id, or its process exits. The
   * caller runs the returned effect after the event.
   */
  private follows(plate: PlateActor, event: PlateMachine.Event, origin: Origin): Effect.Effect<void> {
    if (event._tag === "HookSessionEnd") {
      if (event.sessionId !== plate.sessionId) return Effect.void
      plate.ended = { reason: event.reason, at: event.at }
      return goesOn(event.reason) ? Effect.void : this.pulse.ending(plate)
    }
    // Only a start reopens an ended session: any other hook that arrives now was sent before the end.
    if (isStart(event) && event.sessionId === plate.sessionId) plate.ended = undefined
    // The hook fired while the daemon was down, and its process is gone by now.
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
 * True if a hook belongs to the session of an agent's run, false if it belongs to a session that a program of the run
 * started. A run reports its session id only after the first hooks of its session. If the user runs `/clear` in the
 * session, the session gets a new id, which only hooks report.
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

/** The process of the hook's session. Undefined if its pid or start time is unknown, so that it has no identity. */
const processOf = ({ pid }: Origin, { identify }: Lookup): ProcessId | undefined => {
  if (pid === undefined) return undefined
  const process = identify(pid)
  return process.start === 0 ? undefined : process
}

const pidOf = (process: ProcessId | undefined) =>
  process === undefined ? {} : { pid: process.pid, ...(process.start === 0 ? {} : { pidStart: process.start }) }

/** Adds to a hook's event what its body lacks: the process, and the paths if they are new. */
const adorned = (
  { cli, cwd, event, recorded, transcriptPath }: Heard,
  plate: PlateActor,
  origin: Origin,
  process: ProcessId | undefined,
  now: number
): PlateMachine.Event | undefined => {
  if (event === undefined || !event._tag.startsWith("Hook")) return event
  const { data } = plate.stand
  const paths = {
    ...(cli === undefined || cli === data.cli ? {} : { cli }),
    ...(recorded === undefined ? {} : { recorded }),
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
