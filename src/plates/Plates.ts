/**
 * Plates: every coding session on this machine that agentd did not start, with its true status.
 *
 *     hooks ───┐                            ┌ table → rune
 *     events ──┼─ EventIntake ─► PlateActor ┤
 *
 * Discovery ──┘      ▲                     └ facts, transcript, note ◄─┬─ HealthCheck      every 10 s
 *
 *                PlateRegistry: whose?                                  ├─ Watch            when it is written
 *                                                                       └─ ProcessLiveness  does its process live?
 *
 * Guarantees: an event is received without waiting for a disk, and each plate appends its runes before it acts on them.
 * An unknown or malformed event is rejected with a reason. A missed hook is corrected within 12 seconds. The layer is
 * ready at once. The plates from the log appear when they have been read; events that arrive before that are queued. A
 * plate that fails affects no other.
 */
import { Clock, Context, Deferred, Duration, Effect, FileSystem, Layer, Result } from "effect"
import { type Plan, PLANS } from "../runs/claude/ClaudeTools.ts"
import { Lookup } from "../runs/process/ProcessTable.ts"
import { type AskedCall, type Caller, CommandRefused, type Done, type PlateInfo, refuse } from "../domain/Messages.ts"
import type { AgentSession } from "../domain/AgentPort.ts"
import { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import type { ActorStopped, MailboxFull } from "../core/event-actor/ActorError.ts"
import { Refused } from "../core/event-actor/Refused.ts"
import { EventLog, RuneRefused, type StorageError } from "../core/event-log/EventLog.ts"
import { Redact } from "../core/event-log/Redact.ts"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import { Approvals, type Decision } from "./Approvals.ts"
import { CopilotSessions } from "./CopilotSessions.ts"
import { Discovery } from "./Discovery.ts"
import { Programs } from "./Programs.ts"
import { EventIntake, type Origin } from "./EventIntake.ts"
import { FADES_AFTER, HealthCheck } from "./HealthCheck.ts"
import * as HookBody from "./HookBody.ts"
import * as HookEvent from "./HookEvent.ts"
import type { SessionSource } from "./SessionSource.ts"
import { EventRefused } from "./JsonReader.ts"
import { PlateActor } from "./PlateActor.ts"
import type * as PlateMachine from "./PlateMachine.ts"
import { PlateRegistry } from "./PlateRegistry.ts"
import { order, row, type Shown } from "./PlateView.ts"
import * as PostedEvent from "./PostedEvent.ts"
import { ProcessLiveness } from "./ProcessLiveness.ts"
import { type PlateRecord, recover } from "./Recovery.ts"
import { RejectedReports } from "./RejectedReports.ts"
import { shownInput } from "./ToolInput.ts"
import { FileWatch } from "./FileWatch.ts"

export interface Health {
  /** True once the plates from the log are on the board. */
  readonly ready: boolean
  readonly open: number
  /** When the health check last completed a round, ms since the epoch; null before the first. */
  readonly checkedAt: number | null
}

const AGAIN = "Try again in a moment."

/** Errors of requests that had no effect and can be retried. */
export type Unwritten = ActorStopped | MailboxFull | StorageError

export class Plates extends Context.Service<
  Plates,
  {
    /** A hook of Claude Code, as Claude Code sends it. */
    readonly hook: (body: unknown, origin: Origin, source?: SessionSource) => Effect.Effect<void, EventRefused>
    /** An event of `POST /events`. */
    readonly event: (body: unknown) => Effect.Effect<void, EventRefused>
    /** Records a hook or event that was stored; durable on return. */
    readonly keep: (kept: Kept) => Effect.Effect<void, EventRefused | MailboxFull | RuneRefused | StorageError>
    /** Registers a plate before its session has started; durable on return. */
    readonly register: (body: unknown) => Effect.Effect<{ readonly plateId: string }, EventRefused | Unwritten>
    /** Reports that the session's process is gone; durable on return. */
    readonly stopped: (body: unknown) => Effect.Effect<void, EventRefused | Unwritten>
    readonly forget: (plateId: string, caller: Caller) => Effect.Effect<Done, CommandRefused | StorageError>
    /**
     * Lists plates, those that need attention first. Closed ones are listed for a day, or always if `closed` is true.
     */
    readonly list: (options: { readonly closed: boolean }) => Effect.Effect<ReadonlyArray<PlateInfo>>
    /** Finds a plate by its id, a unique prefix of the id, or the session id. */
    readonly find: (name: string) => Effect.Effect<PlateInfo, CommandRefused>
    /**
     * Handles a PermissionRequest hook: waits for the user's answer. Undefined if the request was settled elsewhere,
     * timed out, or cannot be answered here.
     */
    readonly permission: (body: unknown, origin: Origin) => Effect.Effect<Decision | undefined, EventRefused>
    /** An open permission request with its whole input, by the request's id or its plate's id. */
    readonly asked: (id: string) => Effect.Effect<AskedCall, CommandRefused>
    readonly answer: (
      id: string,
      decision: Decision,
      caller: Caller
    ) => Effect.Effect<Done, CommandRefused | StorageError>
    readonly health: Effect.Effect<Health>
  }
>()("agentd/plates/Plates") {}

/** A hook or event that was stored on disk while the daemon was down. */
export interface Kept {
  readonly body: unknown
  readonly origin: Origin
  /** Format of the body: a hook of Claude Code, or an event of `/events`. */
  readonly as: "hook" | "event"
}

export interface Options {
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  /** Timeout of a permission request; default 10 minutes. */
  readonly permissionTimeout?: Duration.Input
  /** Sessions of agents' runs, which have no plates; default: none. */
  readonly sessions?: Effect.Effect<ReadonlyArray<AgentSession>>
  /** Whether transcripts are also read as soon as they are written; default true. */
  readonly watch?: boolean
  /** Claude Code's folder, where sessions write notes. If omitted, only sessions that a hook reports are known. */
  readonly claudeFolder?: string | undefined
  /** The user's home folder. Programs with another one are not shown; if undefined, none is. */
  readonly home?: string | undefined
  /** Copilot CLI's configuration folder. If undefined, its sessions are not followed. */
  readonly copilotFolder?: string | undefined
}

const tooLong = (body: unknown) => {
  const { event_type, hook_event_name = event_type, session_id } = body as { readonly [field: string]: unknown }
  return new EventRefused({
    field: "",
    message: `${hook_event_name} of the session ${session_id} was longer than ${HookBody.MAX_BYTES} bytes: it was cut there, and accepted without the rest.`,
    remedy: "Nothing needs to be done."
  })
}

/** Adds the plan's text to a request to approve a plan: Claude Code sends the request without the text. */
const withPlan = (heard: HookEvent.Heard, tool: string, plan: Plan | undefined): HookEvent.Heard =>
  tool === PLANS && heard.input === "{}" && plan !== undefined
    ? { ...heard, input: JSON.stringify({ plan: plan.text }) }
    : heard

class LivePlates {
  readonly registry: PlateRegistry
  readonly intake: EventIntake
  readonly health: HealthCheck
  readonly approvals: Approvals
  readonly refusals: RejectedReports
  readonly redact: Redact["Service"]
  readonly ready: Deferred.Deferred<void, StorageError>

  constructor(
    parts: Pick<LivePlates, "registry" | "intake" | "health" | "approvals" | "refusals" | "redact" | "ready">
  ) {
    this.registry = parts.registry
    this.intake = parts.intake
    this.health = parts.health
    this.approvals = parts.approvals
    this.refusals = parts.refusals
    this.redact = parts.redact
    this.ready = parts.ready
  }

  /** Returns a parsed event, or records why it was rejected. A truncated event is recorded and accepted. */
  private readonly read = <A>(
    what: string,
    parsed: Result.Result<A, EventRefused>,
    body?: unknown
  ): Effect.Effect<A, EventRefused> => {
    const read = Result.isSuccess(parsed) ? Effect.succeed(parsed.success) : this.refusals.note(what, parsed.failure)
    return HookBody.isCut(body) ? Effect.andThen(Effect.ignore(this.refusals.note("cut", tooLong(body))), read) : read
  }

  /**
   * Sends the event to the plate. On return the result is durable. `refused` is set if the plate rejects the event. The
   * effect fails if the disk fails, the mailbox is full, or the actor is ending.
   */
  private readonly put = (plate: PlateActor, event: PlateMachine.Event) =>
    plate.actor.ask(event).pipe(
      Effect.map((committed) => ({ refused: undefined, committed })),
      Effect.catchIf(
        (error) => error instanceof Refused || error instanceof RuneRefused,
        (error) => Effect.succeed({ refused: error, committed: undefined })
      )
    )

  readonly hook = Effect.fnUntraced(
    { self: this },
    function* (this: LivePlates, body: unknown, origin: Origin, source?: SessionSource) {
      const now = yield* Clock.currentTimeMillis
      const parsed = source === undefined ? HookEvent.parse(body, now) : HookEvent.parseOf(source, body, now)
      const heard = yield* this.read("hook", parsed, body)
      if (heard !== undefined) yield* this.intake.take(heard, origin)
    }
  )

  /** Parses an event of `POST /events`. Its tool input is redacted and shortened for display. */
  private readonly posted = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown) {
    const posted = yield* this.read("event", PostedEvent.parse(body, yield* Clock.currentTimeMillis), body)
    const { event, input } = posted
    const heard =
      event?._tag === "ToolStart" && input !== undefined
        ? { ...posted, event: { ...event, input: shownInput(this.redact, input) } }
        : posted
    return { heard, origin: { plate: posted.plate, run: undefined, pid: undefined } }
  })

  readonly event = (body: unknown) =>
    Effect.flatMap(this.posted(body), ({ heard, origin }) => this.intake.take(heard, origin))

  readonly keep = Effect.fnUntraced({ self: this }, function* (this: LivePlates, { as, body, origin }: Kept) {
    yield* Deferred.await(this.ready)
    if (as === "event") {
      const { heard, origin: named } = yield* this.posted(body)
      return yield* this.intake.keep(heard, named)
    }
    const heard = yield* this.read("hook", HookEvent.parse(body, yield* Clock.currentTimeMillis), body)
    yield* this.intake.keep(heard, origin)
  })

  readonly register = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown) {
    const { cwd, pid, plateId } = yield* this.read("register", PostedEvent.register(body))
    yield* Deferred.await(this.ready)
    const known = plateId === undefined ? undefined : this.registry.named(plateId)
    if (known === undefined && plateId !== undefined && !this.registry.isFree(plateId)) {
      return yield* this.refusals.note("register", taken(plateId))
    }
    const plate = yield* this.registry.claim(plateId)
    const process = pid === undefined ? undefined : this.registry.processes.identify(pid)
    const { refused } = yield* this.put(plate, {
      _tag: "Registered",
      at: yield* Clock.currentTimeMillis,
      plateId: plate.plateId,
      cwd,
      ...(process === undefined ? {} : { pid: process.pid }),
      ...(process === undefined || process.start === 0 ? {} : { pidStart: process.start })
    })
    if (refused !== undefined) return yield* this.refusals.note("register", taken(plate.plateId))
    return { plateId: plate.plateId }
  })

  readonly stopped = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown) {
    const { pid, plateId, sessionId } = yield* this.read("stopped", PostedEvent.stopped(body))
    yield* Deferred.await(this.ready)
    const plate = plateId === undefined ? this.registry.ofSession(sessionId ?? "") : this.registry.named(plateId)
    if (plate === undefined) {
      const field = plateId === undefined ? "session_id" : "plate_id"
      return yield* this.refusals.note(
        "stopped",
        new EventRefused({
          field,
          message: `There is no plate for ${plateId ?? sessionId}.`,
          remedy: "See which there are: agentd ps"
        })
      )
    }
    const at = yield* Clock.currentTimeMillis
    // Rejected if the plate is closed already, or if the process is not its own.
    yield* this.put(plate, { _tag: "ProcessExited", at, ...(pid === undefined ? {} : { pid }) })
  })

  readonly forget = Effect.fnUntraced({ self: this }, function* (this: LivePlates, name: string, by: string) {
    yield* Deferred.await(this.ready)
    const found = this.findPlate(name)
    const shelved = found instanceof PlateActor ? undefined : this.registry.shelvedAs(name)
    const plate = shelved === undefined ? found : yield* this.registry.enter(shelved)
    if (!(plate instanceof PlateActor)) return yield* plate
    const { committed, refused } = yield* this.put(plate, {
      _tag: "Forgotten",
      at: yield* Clock.currentTimeMillis,
      by
    }).pipe(Effect.catchTag(["ActorStopped", "MailboxFull"], ({ message }) => refuse("not_now", message, AGAIN)))
    if (committed === undefined) return yield* refuse("not_now", refused.message, AGAIN)
    yield* this.registry.drop(plate)
    return { eventId: committed.eventId, message: `${plate.plateId} is forgotten.` }
  })

  readonly permission = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown, origin: Origin) {
    const heard = yield* this.read("permission", HookEvent.parse(body, yield* Clock.currentTimeMillis))
    const { event } = heard
    if (event?._tag !== "HookPermissionRequest") {
      return yield* this.refusals.note("permission", notARequest(heard.name))
    }
    yield* Effect.ignore(Deferred.await(this.ready))
    const admitted = yield* this.intake.admit(heard, origin)
    const { plate } = admitted
    if (plate === undefined) return undefined
    const { committed } = yield* Effect.orElseSucceed(this.put(plate, admitted.event ?? event), () => ({
      committed: undefined
    }))
    if (committed === undefined) return undefined
    const at = { eventId: committed.eventId, stand: committed.state }
    return yield* this.approvals.wait(plate, at, event, withPlan(heard, event.tool, plate.plan))
  })

  private info(plate: PlateActor, now: number): PlateInfo {
    return row(plate, this.approvals.of(plate), now)
  }

  readonly list = Effect.fnUntraced({ self: this }, function* (this: LivePlates, closed: boolean) {
    const now = yield* Clock.currentTimeMillis
    const live = [...this.registry.plates.values()]
      .filter((plate) => !plate.isSpare && (closed || plate.isOpen || lingers(plate, now)))
      .map((plate) => this.info(plate, now))
    const faded = closed ? [...this.registry.archive.values()].map((record) => row(still(record), null, now)) : []
    return [...live, ...faded].toSorted(order)
  })

  findPlate(name: string): PlateActor | CommandRefused {
    const exact = this.registry.named(name) ?? this.registry.ofSession(name)
    if (exact !== undefined) return exact
    const begins =
      name === "" ? [] : [...this.registry.plates.values()].filter(({ plateId }) => plateId.startsWith(name))
    if (begins.length === 1) return begins[0]!
    return begins.length === 0
      ? unknown(name)
      : refuse(
          "ambiguous",
          `"${name}" is a prefix of ${begins.length} plate ids.`,
          `Name one of them: ${begins
            .slice(0, 10)
            .map(({ plateId }) => plateId)
            .join(", ")}`
        )
  }

  readonly find = (name: string): Effect.Effect<PlateInfo, CommandRefused> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const found = this.findPlate(name)
      if (found instanceof PlateActor) return Effect.succeed(this.info(found, now))
      const shelved = this.registry.shelvedAs(name)
      return shelved === undefined ? Effect.fail(found) : Effect.succeed(row(still(shelved), null, now))
    })

  readonly asked = (id: string): Effect.Effect<AskedCall, CommandRefused> =>
    Effect.suspend(() => {
      const found = this.findPlate(id)
      const asked = this.approvals.asked(id, found instanceof CommandRefused ? undefined : found)
      return asked instanceof CommandRefused ? Effect.fail(asked) : Effect.succeed(asked)
    })

  readonly answer: Plates["Service"]["answer"] = (id, decision: Decision, caller) => {
    const found = this.findPlate(id)
    return this.approvals.answer(id, found instanceof CommandRefused ? undefined : found, decision, caller)
  }
}

/**
 * A closed plate is listed for a day, as the user may look for it. A session that a run started is not listed, nor a
 * program that has reported no session.
 */
const lingers = ({ stand: { at, data } }: PlateActor, now: number): boolean =>
  data.agent === null && (data.sessionId !== null || data.cli === undefined) && now - at <= FADES_AFTER

/** Row data of a plate without an actor, whose files are not read. */
const still = (record: PlateRecord): Shown => ({
  ...record,
  transcript: undefined,
  branch: undefined,
  heard: 0,
  watchable: false
})

const unknown = (name: string) => refuse("not_found", `There is no plate "${name}".`, "See which there are: agentd ps")

const taken = (plateId: string) =>
  new EventRefused({
    field: "plate_id",
    message: `${plateId} is the id of a plate that has ended.`,
    remedy: "Leave it out: agentd creates an id."
  })

const notARequest = (name: string) =>
  new EventRefused({
    field: "hook_event_name",
    message: `${name} is not a permission request.`,
    remedy: "Send only PermissionRequest here, and other hooks to their own endpoint."
  })

const service = (live: LivePlates): Plates["Service"] =>
  Plates.of({
    hook: live.hook,
    event: live.event,
    keep: live.keep,
    register: live.register,
    stopped: live.stopped,
    forget: (name, caller) => live.forget(name, caller.by),
    list: ({ closed }) => live.list(closed),
    find: live.find,
    permission: live.permission,
    asked: live.asked,
    answer: live.answer,
    health: Effect.sync(() => ({
      ready: live.intake.isOpen,
      open: live.registry.open.length,
      checkedAt: live.health.checkedAt
    }))
  })

const make = Effect.fnUntraced(function* (options: Options) {
  const log = yield* EventLog
  const fs = yield* FileSystem.FileSystem
  const scope = yield* Effect.scope
  const processes = yield* Lookup
  const registry = new PlateRegistry({
    system: yield* ActorSystem,
    supervisor: options.supervisor,
    fs,
    processes,
    scope
  })
  const { sessions = Effect.succeed([]) } = options
  const pulse = yield* ProcessLiveness.make(registry, fs, sessions)
  const intake = yield* EventIntake.make(registry, pulse, sessions)
  const timeout = Duration.fromInputUnsafe(options.permissionTimeout ?? "10 minutes")
  const redact = yield* Redact
  const approvals = new Approvals(log, redact, timeout)
  yield* Effect.addFinalizer(() => approvals.giveUp)
  const ready = yield* Deferred.make<void, StorageError>()
  const live = new LivePlates({
    registry,
    intake,
    health: new HealthCheck(registry),
    approvals,
    refusals: new RejectedReports(log),
    redact,
    ready
  })
  yield* options.supervisor.add({ id: "health", start: Effect.succeed(live.health.loop) })
  yield* options.supervisor.add({ id: "pulse", start: Effect.succeed(pulse.loop) })
  if (options.watch !== false) {
    const watch = yield* FileWatch.make(registry, fs)
    yield* options.supervisor.add({ id: "watch", start: Effect.succeed(watch.loop) })
  }
  const { claudeFolder, home } = options
  if (claudeFolder !== undefined) {
    const discovery = new Discovery({ registry, intake, fs, sessions, config: claudeFolder })
    yield* options.supervisor.add({ id: "discovery", start: Effect.succeed(discovery.loop) })
  }
  if (home !== undefined) {
    const programs = new Programs({ registry, intake, home })
    yield* options.supervisor.add({ id: "programs", start: Effect.succeed(programs.loop) })
  }
  const { copilotFolder } = options
  if (copilotFolder !== undefined) {
    const copilot = new CopilotSessions({ registry, intake, fs, sessions, config: copilotFolder })
    yield* options.supervisor.add({ id: "copilot", start: Effect.succeed(copilot.loop) })
  }
  const now = yield* Clock.currentTimeMillis
  yield* recover.pipe(
    Effect.provideService(EventLog, log),
    Effect.flatMap((records) => registry.restore(records, now - FADES_AFTER)),
    Effect.andThen(intake.open),
    Effect.onExit((exit) => Deferred.done(ready, exit)),
    Effect.tapCause((cause) => Effect.logError("the plates could not be recovered", cause)),
    Effect.forkIn(scope)
  )
  return service(live)
})

/** The supervisor in the options must be started by another supervisor. */
export const layer = (options: Options) => Layer.effect(Plates, make(options))
