/**
 * LivePlates: Plates over the log: recovers every plate at the start, keeps them
 * right, and answers for them.
 *
 *     hooks ───┐                      ┌ machine → rune
 *     events ──┼─ EventIntake ─► plate ─┤
 *     runs ────┤      ▲               └ facts, transcript, note ◄─┬─ HealthCheck   every 10 s
 *  Discovery ──┘   PlateRegistry: whose?                                 ├─ Watch         when it is written
 *                                                                 └─ ProcessLiveness         does its process live?
 *
 * The layer is there at once; what the log holds is on the board soon after, and
 * what is heard meanwhile is kept. A plate that fails touches no other.
 */
import { Clock, Deferred, Duration, Effect, FileSystem, Layer, Result } from "effect"
import { ActorStopped } from "../event-actor/ActorRef.ts"
import { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type * as DynamicSupervisor from "../supervision/DynamicSupervisor.ts"
import { identify } from "../backends/process/ProcessTable.ts"
import { CommandRefused, type PlateInfo } from "../domain/Messages.ts"
import * as PlateMachine from "./PlateMachine.ts"
import { Redact } from "../event-log/Redact.ts"
import { EventLog, StorageError } from "../event-log/EventLog.ts"
import { Approvals } from "./Approvals.ts"
import { Discovery } from "./Discovery.ts"
import { FADES_AFTER, HealthCheck } from "./HealthCheck.ts"
import * as HookEvent from "./HookEvent.ts"
import { PlateActor } from "./PlateActor.ts"
import { type Decision, EventRefused, type Origin, Plates } from "./Plates.ts"
import * as PostedEvent from "./PostedEvent.ts"
import { ProcessLiveness } from "./ProcessLiveness.ts"
import { type AgentOf, EventIntake } from "./EventIntake.ts"
import { type PlateRecord, recover } from "./Recovery.ts"
import { Refusals } from "./Refusals.ts"
import { PlateRegistry } from "./PlateRegistry.ts"
import { order, row, type Shown } from "./PlateView.ts"
import { Watch } from "./Watch.ts"
import * as Backoff from "../supervision/Backoff.ts"

export interface Options {
  /** Where the plates belong in the supervision tree. */
  readonly nest: DynamicSupervisor.DynamicSupervisor
  /** What a person gets to answer a permission request; default 10 minutes. */
  readonly permissionTimeout?: Duration.Input
  /** Whose run a session is: `project/agent`; default: nobody knows. */
  readonly agentOf?: AgentOf
  /** Look at transcripts as soon as they are written, too; default true. */
  readonly watch?: boolean
  /** Claude Code's folder, where sessions note themselves; default: only those that a hook tells of are known. */
  readonly claudeFolder?: string | undefined
}

/** A plate that was only just made, or that crashed, answers within moments. */
const SETTLES = { schedule: Backoff.waits(Backoff.constant("20 millis")), times: 250 }

class LivePlates {
  readonly roster: PlateRegistry
  readonly reception: EventIntake
  readonly health: HealthCheck
  readonly approvals: Approvals
  readonly refusals: Refusals
  readonly ready: Deferred.Deferred<void, StorageError>

  constructor(parts: {
    readonly roster: PlateRegistry
    readonly reception: EventIntake
    readonly health: HealthCheck
    readonly approvals: Approvals
    readonly refusals: Refusals
    readonly ready: Deferred.Deferred<void, StorageError>
  }) {
    this.roster = parts.roster
    this.reception = parts.reception
    this.health = parts.health
    this.approvals = parts.approvals
    this.refusals = parts.refusals
    this.ready = parts.ready
  }

  private readonly read = <A>(what: string, parsed: Result.Result<A, EventRefused>): Effect.Effect<A, EventRefused> =>
    Result.isSuccess(parsed) ? Effect.succeed(parsed.success) : this.refusals.note(what, parsed.failure)

  private readonly asking = (plate: PlateActor, event: PlateMachine.Event) =>
    Effect.andThen(plate.started, plate.actor.ask(event)).pipe(
      Effect.retry({
        ...SETTLES,
        while: (error) =>
          error instanceof ActorStopped && (error.reason === "unstarted" || error.reason === "restarting")
      })
    )

  /** What it reports is durable, or it fails for the disk's sake; a refusal by the machine is an answer. */
  private readonly asked = (plate: PlateActor, event: PlateMachine.Event) =>
    this.asking(plate, event).pipe(
      Effect.map((committed) => ({ refused: undefined, committed })),
      Effect.catchIf(
        (error) => !(error instanceof StorageError),
        (error) => Effect.succeed({ refused: error, committed: undefined })
      )
    )

  readonly hook = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown, origin: Origin) {
    const heard = yield* this.read("hook", HookEvent.parse(body, yield* Clock.currentTimeMillis))
    yield* this.reception.take(heard, origin)
  })

  readonly event = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown) {
    const posted = yield* this.read("event", PostedEvent.parse(body, yield* Clock.currentTimeMillis))
    yield* this.reception.take(posted, { plate: posted.plate, run: undefined, pid: undefined })
  })

  readonly register = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown) {
    const { cwd, pid, plateId } = yield* this.read("register", PostedEvent.register(body))
    yield* Deferred.await(this.ready)
    const known = plateId === undefined ? undefined : this.roster.named(plateId)
    if (known === undefined && plateId !== undefined && !this.roster.isFree(plateId)) {
      return yield* this.refusals.note("register", taken(plateId))
    }
    const plate = known ?? (yield* this.roster.make(plateId))
    const process = pid === undefined ? undefined : identify(pid)
    const { refused } = yield* this.asked(plate, {
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
    const plate = plateId === undefined ? this.roster.ofSession(sessionId ?? "") : this.roster.named(plateId)
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
    // Refused: it is closed already, or that was another process.
    yield* this.asked(plate, { _tag: "ProcessExited", at, ...(pid === undefined ? {} : { pid }) })
  })

  readonly forget = Effect.fnUntraced({ self: this }, function* (this: LivePlates, name: string, by: string) {
    yield* Deferred.await(this.ready)
    const found = this.findPlate(name)
    const shelved = found instanceof PlateActor ? undefined : this.roster.shelvedAs(name)
    const plate = shelved === undefined ? found : yield* this.roster.enter(shelved)
    if (!(plate instanceof PlateActor)) return yield* plate
    const { committed, refused } = yield* this.asked(plate, {
      _tag: "Forgotten",
      at: yield* Clock.currentTimeMillis,
      by
    })
    if (committed === undefined) {
      return yield* new CommandRefused({ message: refused.message, remedy: "Ask again in a moment." })
    }
    yield* this.roster.drop(plate)
    return { eventId: committed.eventId, message: `${plate.plateId} is forgotten.` }
  })

  readonly permission = Effect.fnUntraced({ self: this }, function* (this: LivePlates, body: unknown, origin: Origin) {
    const heard = yield* this.read("permission", HookEvent.parse(body, yield* Clock.currentTimeMillis))
    const { event } = heard
    if (event?._tag !== "HookPermissionRequest") {
      return yield* this.refusals.note("permission", notARequest(heard.name))
    }
    yield* Effect.ignore(Deferred.await(this.ready))
    const admitted = yield* this.reception.admit(heard, origin)
    const { plate } = admitted
    const { committed } = yield* Effect.orElseSucceed(this.asked(plate, admitted.event ?? event), () => ({
      committed: undefined
    }))
    if (committed === undefined) return undefined
    // Its call asks under its own id, and one matter has one answer.
    if (plate.tellsCalls !== undefined) return undefined
    const at = { eventId: committed.eventId, stand: committed.snapshot }
    return yield* this.approvals.wait(plate, at, event, heard)
  })

  private info(plate: PlateActor, now: number): PlateInfo {
    return row(plate, this.approvals.of(plate), now)
  }

  readonly list = Effect.fnUntraced({ self: this }, function* (this: LivePlates, closed: boolean) {
    const now = yield* Clock.currentTimeMillis
    const live = [...this.roster.plates.values()]
      .filter((plate) => closed || plate.isOpen || lingers(plate, now))
      .map((plate) => this.info(plate, now))
    const faded = closed ? [...this.roster.archive.values()].map((record) => row(still(record), null, now)) : []
    return [...live, ...faded].toSorted(order)
  })

  /** By id, by session, by a beginning that only one id has. */
  findPlate(name: string): PlateActor | CommandRefused {
    const exact = this.roster.named(name) ?? this.roster.ofSession(name)
    if (exact !== undefined) return exact
    const begins = name === "" ? [] : [...this.roster.plates.values()].filter(({ plateId }) => plateId.startsWith(name))
    if (begins.length === 1) return begins[0]!
    return begins.length === 0
      ? unknown(name)
      : new CommandRefused({
          message: `"${name}" begins the names of ${begins.length} plates.`,
          remedy: `Say which: ${begins
            .slice(0, 10)
            .map(({ plateId }) => plateId)
            .join(", ")}`
        })
  }

  readonly find = (name: string): Effect.Effect<PlateInfo, CommandRefused> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const found = this.findPlate(name)
      if (found instanceof PlateActor) return Effect.succeed(this.info(found, now))
      const shelved = this.roster.shelvedAs(name)
      return shelved === undefined ? Effect.fail(found) : Effect.succeed(row(still(shelved), null, now))
    })

  readonly answer: Plates["Service"]["answer"] = (id, decision: Decision, caller) => {
    const found = this.findPlate(id)
    return this.approvals.answer(id, found instanceof CommandRefused ? undefined : found, decision, caller)
  }
}

/** A session that a person had may be looked for; a run of an agent's that has ended is the agent's own affair. */
const lingers = ({ stand }: PlateActor, now: number): boolean =>
  stand.data.agent === null && now - stand.at <= FADES_AFTER

/** One that has no actor any more, and whose files nobody looks at. */
const still = (record: PlateRecord): Shown => ({
  ...record,
  transcript: undefined,
  branch: undefined,
  heard: 0,
  watchable: false
})

const unknown = (name: string) =>
  new CommandRefused({ message: `There is no plate "${name}".`, remedy: "See which there are: agentd ps" })

const taken = (plateId: string) =>
  new EventRefused({
    field: "plate_id",
    message: `${plateId} names a plate that has ended.`,
    remedy: "Leave it out: agentd makes one."
  })

const notARequest = (name: string) =>
  new EventRefused({
    field: "hook_event_name",
    message: `${name} asks for no permission.`,
    remedy: "Send only PermissionRequest here, all else to the hooks' endpoint."
  })

const service = (live: LivePlates): Plates["Service"] =>
  Plates.of({
    hook: live.hook,
    event: live.event,
    register: live.register,
    stopped: live.stopped,
    forget: (name, caller) => live.forget(name, caller.by),
    list: ({ closed }) => live.list(closed),
    find: live.find,
    permission: live.permission,
    answer: live.answer,
    run: (report) =>
      Effect.catch(live.reception.report(report), (error) =>
        Effect.logWarning(`run ${report.runId}: ${error.message}`)
      ),
    health: Effect.sync(() => ({
      ready: live.reception.isOpen,
      open: live.roster.open.length,
      checkedAt: live.health.checkedAt
    }))
  })

const make = Effect.fnUntraced(function* (options: Options) {
  const log = yield* EventLog
  const fs = yield* FileSystem.FileSystem
  const scope = yield* Effect.scope
  const kind = yield* MachineActor.kind({
    machine: PlateMachine.Plate,
    log,
    deadLetters: yield* DeadLetters,
    perform: () => Effect.void,
    activities: {}
  })
  const roster = new PlateRegistry({ kind, nest: options.nest, fs, scope })
  const agentOf: AgentOf = options.agentOf ?? (() => Effect.succeed(undefined))
  const pulse = yield* ProcessLiveness.make(roster, fs, agentOf)
  const reception = yield* EventIntake.make(roster, pulse, agentOf)
  const timeout = Duration.fromInputUnsafe(options.permissionTimeout ?? "10 minutes")
  const approvals = new Approvals(log, yield* Redact, timeout)
  yield* Effect.addFinalizer(() => approvals.giveUp)
  const ready = yield* Deferred.make<void, StorageError>()
  const live = new LivePlates({
    roster,
    reception,
    health: new HealthCheck(roster),
    approvals,
    refusals: new Refusals(log),
    ready
  })
  yield* options.nest.add({ id: "health", start: Effect.succeed(live.health.loop) })
  yield* options.nest.add({ id: "pulse", start: Effect.succeed(pulse.loop) })
  if (options.watch !== false) {
    const watch = yield* Watch.make(roster, fs)
    yield* options.nest.add({ id: "watch", start: Effect.succeed(watch.loop) })
  }
  const { claudeFolder } = options
  if (claudeFolder !== undefined) {
    const discovery = new Discovery({ roster, reception, fs, config: claudeFolder })
    yield* options.nest.add({ id: "discovery", start: Effect.succeed(discovery.loop) })
  }
  const now = yield* Clock.currentTimeMillis
  yield* recover.pipe(
    Effect.provideService(EventLog, log),
    Effect.flatMap((records) => roster.restore(records, now - FADES_AFTER)),
    Effect.andThen(reception.open),
    Effect.onExit((exit) => Deferred.done(ready, exit)),
    Effect.tapCause((cause) => Effect.logError("the plates could not be recovered", cause)),
    Effect.forkIn(scope)
  )
  return service(live)
})

/** Plates, kept right. The nest belongs under a supervisor. */
export const layer = (options: Options) => Layer.effect(Plates, make(options))
