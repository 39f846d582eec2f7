/**
 * PlateRegistry: finds plates by their names, and the plate that a hook belongs to.
 *
 * Guarantees: a session has one plate, whichever source reports it first. Session ids are attributes: after a clear or
 * a fork within the process, the plate continues under the new id. A process that only inherited another session's
 * environment gets a plate of its own. Names are registered when an event is received, not when it is committed. All
 * indexes are bounded.
 */
import { Clock, Effect, type FileSystem, Latch, type Scope, Semaphore } from "effect"
import { dirname } from "node:path"
import type { System } from "../core/event-actor/ActorSystem.ts"
import { CommitScope } from "../core/event-actor/CommitScope.ts"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import type { Lookup, ProcessId } from "../runs/process/ProcessTable.ts"
import type * as PlateMachine from "./PlateMachine.ts"
import type { Data } from "./PlateState.ts"
import * as PlateFacts from "./PlateFacts.ts"
import type { Heard } from "./HookEvent.ts"
import { actorName, initial, PlateActor, plateActor } from "./PlateActor.ts"
import * as PlateId from "./PlateId.ts"
import { EventRefused } from "./JsonReader.ts"
import type { PlateRecord, Records } from "./Recovery.ts"

/** Maximum number of plates that have an actor. */
export const MAX_PLATES = 4_096
/** Maximum number of closed plates whose records are in memory. */
const MAX_ARCHIVED = 2_000
/** Maximum number of former plate ids that are kept in memory, so that they are not used again. */
const MAX_USED = 100_000

/** The sender of a hook, as far as its environment and process identify it. */
export interface Speaker {
  readonly plate: string | undefined
  readonly run: string | undefined
  readonly process: ProcessId | undefined
}

/** When a session was forgotten, ms since the epoch, and the pids of its processes. */
interface Forgotten {
  readonly at: number
  readonly pids: ReadonlySet<number>
}

export interface Options {
  readonly system: System
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  readonly fs: FileSystem.FileSystem
  readonly processes: Lookup
  readonly scope: Scope.Scope
}

/** Whether a session that ended for this reason continues under another id in the same process. */
export const goesOn = (reason: string): boolean => reason === "clear" || reason === "resume"

/** The first event of a session that continues another: its start or, if that is missing, its first prompt. */
const continues = (event: PlateMachine.Event): boolean =>
  event._tag === "HookSessionStart" ? event.source !== "startup" : event._tag === "HookUserPromptSubmit"

/** Whether a hook is about its own session. A notification from Claude Code's list of sessions is about others. */
const tellsOfItself = ({ event, name }: Heard): boolean =>
  name !== "Notification" || (event?._tag === "HookNotification" && event.notificationType !== "agent_needs_input")

/** Maximum time in ms from a session's end to the next start in the same process. A start can be reported late. */
const GOES_ON_WITHIN = 30_000

const sameProcess = (a: ProcessId | undefined, b: ProcessId | undefined): boolean =>
  a !== undefined && b !== undefined && a.pid === b.pid && a.start === b.start

const scopeId = (plateId: string): string => `${plateId}/${actorName(plateId)}`

export class PlateRegistry {
  readonly plates = new Map<string, PlateActor>()
  /** Records of plates that have been closed for a day. They have no actor. */
  readonly archive = new Map<string, PlateRecord>()
  /** The latch is closed while no plate is open, so that nothing is checked. */
  readonly populated = Latch.makeUnsafe(false)
  private readonly used = new Set<string>()
  private readonly bySession = new Map<string, string>()
  private readonly byRun = new Map<string, string>()
  /** Maps the plate name in a session's environment to the id of its plate, if the two differ. */
  private readonly aliases = new Map<string, string>()
  /** Sessions that the user told agentd to forget, by session id. */
  private readonly forgotten = new Map<string, Forgotten>()
  private readonly options: Options
  /** Serializes finding and creating plates. */
  private readonly finding = Semaphore.makeUnsafe(1)

  constructor(options: Options) {
    this.options = options
  }

  get processes(): Lookup {
    return this.options.processes
  }

  readonly restore = Effect.fnUntraced(
    { self: this },
    function* (this: PlateRegistry, records: Records, since: number) {
      for (const id of records.used) this.spend(id)
      for (const record of records.runs) yield* this.close(record)
      for (const data of records.forgotten) this.remember(data)
      for (const record of records.plates.values()) {
        if (record.stand.state === "Closed" && record.stand.at < since) this.shelve(record)
        else yield* this.enter(record)
      }
    }
  )

  /** Finds a plate by its id, or by the plate name in its session's environment. */
  named(id: string): PlateActor | undefined {
    return this.plates.get(this.aliases.get(id) ?? id)
  }

  ofSession(sessionId: string): PlateActor | undefined {
    return this.plates.get(this.bySession.get(sessionId) ?? "")
  }

  shelvedAs(name: string): PlateRecord | undefined {
    return this.archive.get(name) ?? this.archive.get(this.bySession.get(name) ?? "")
  }

  ofRun(runId: string): PlateActor | undefined {
    return this.plates.get(this.byRun.get(runId) ?? "")
  }

  get open(): ReadonlyArray<PlateActor> {
    return [...this.plates.values()].filter((plate) => plate.isOpen)
  }

  /** Creates the plate if the hook reports its own session. Two hooks of one session get the same plate. */
  find(heard: Heard, speaker: Speaker): Effect.Effect<PlateActor | undefined, EventRefused> {
    return this.finding.withPermit(this.seek(heard, speaker))
  }

  /** Returns the plate with this name, or creates it. Without a name, creates a plate with a new id. */
  claim(plateId: string | undefined): Effect.Effect<PlateActor, EventRefused> {
    const known = Effect.sync(() => (plateId === undefined ? undefined : this.named(plateId)))
    return this.finding.withPermit(
      Effect.flatMap(known, (plate) => (plate === undefined ? this.make(plateId) : Effect.succeed(plate)))
    )
  }

  private readonly seek = Effect.fnUntraced(
    { self: this },
    function* (this: PlateRegistry, heard: Heard, speaker: Speaker) {
      const start = heard.event?._tag === "HookSessionStart" || heard.event?._tag === "SessionStart"
      const plate = start ? this.ofStart(heard, speaker) : this.ofHook(heard, speaker)
      const known = plate ?? (yield* this.revived(heard.sessionId))
      if (known === undefined && !tellsOfItself(heard)) return undefined
      const found = known ?? (yield* this.fresh(speaker))
      if (plate === undefined || start || found.sessionId === null || !this.bySession.has(heard.sessionId)) {
        found.sessionId = heard.sessionId
      }
      if (start) found.startedBy = speaker.process
      this.bySession.set(heard.sessionId, found.plateId)
      return found
    }
  )

  /**
   * Finds the plate for a session's start: the named plate if it waits for a session, the session's own plate, or the
   * plate of its process.
   */
  private ofStart(heard: Heard, speaker: Speaker): PlateActor | undefined {
    const named = this.namedBy(speaker)
    if (named !== undefined && named.sessionId === null) return named
    const known = this.ofSession(heard.sessionId)
    if (known !== undefined) return known
    if (named !== undefined && !named.isOpen) return named
    return this.ofProcess(speaker) ?? this.going(heard) ?? (named && this.admits(named, speaker) ? named : undefined)
  }

  private ofProcess({ process }: Speaker): PlateActor | undefined {
    return process && this.open.find((plate) => sameProcess(plate.process ?? plate.startedBy, process))
  }

  private ofHook(heard: Heard, speaker: Speaker): PlateActor | undefined {
    const known = this.ofSession(heard.sessionId)
    if (known !== undefined) return known
    const named = this.namedBy(speaker)
    if (named !== undefined && (named.sessionId === null || this.admits(named, speaker))) return named
    const running = this.ofProcess(speaker)
    // the first hook of a program that has reported nothing yet, even if that is not the session's start
    return (heard.startless === true || running?.sessionId === null ? running : undefined) ?? this.going(heard)
  }

  private namedBy({ plate, run }: Speaker): PlateActor | undefined {
    return (run === undefined ? undefined : this.ofRun(run)) ?? (plate === undefined ? undefined : this.named(plate))
  }

  /** Whether the named plate's session can have continued as this one. If not, this session only inherited the name. */
  private admits(named: PlateActor, { process }: Speaker): boolean {
    if (named.ended !== undefined) return true
    const own = named.process
    return own !== undefined && (sameProcess(own, process) || !this.processes.isAlive(own))
  }

  /**
   * The plate whose transcript is in this folder and whose session continues under another id. Undefined if several
   * fit.
   */
  private going({ event, transcriptPath }: Heard): PlateActor | undefined {
    if (transcriptPath === undefined || event === undefined || !continues(event)) return undefined
    const folder = dirname(transcriptPath)
    const waiting = this.open.filter(
      ({ ended, transcript }) =>
        ended !== undefined &&
        goesOn(ended.reason) &&
        event.at - ended.at < GOES_ON_WITHIN &&
        transcript !== undefined &&
        dirname(transcript.path) === folder
    )
    return waiting.length === 1 ? waiting[0] : undefined
  }

  /** Reactivates an archived plate when its session is reported again: it was resumed, or the report is late. */
  private readonly revived = Effect.fnUntraced({ self: this }, function* (this: PlateRegistry, sessionId: string) {
    const record = this.archive.get(this.bySession.get(sessionId) ?? "")
    return record === undefined ? undefined : yield* this.enter(record)
  })

  /** Creates a plate. Its id is the name in the session's environment, unless that is invalid or in use. */
  private readonly fresh = Effect.fnUntraced({ self: this }, function* (this: PlateRegistry, { plate, run }: Speaker) {
    const wanted = plate !== undefined && PlateId.isValid(plate) && this.isFree(plate) ? plate : undefined
    const made = yield* this.make(wanted)
    if (plate !== undefined && wanted === undefined && this.named(plate) === undefined) {
      this.aliases.set(plate, made.plateId)
    }
    if (run !== undefined && !this.byRun.has(run)) this.byRun.set(run, made.plateId)
    return made
  })

  isFree(id: string): boolean {
    return !this.plates.has(id) && !this.archive.has(id) && !this.used.has(id)
  }

  /** Creates an empty plate. If the limit is reached, the oldest closed one is archived first. */
  readonly make = Effect.fnUntraced({ self: this }, function* (this: PlateRegistry, wanted: string | undefined) {
    if (this.plates.size >= MAX_PLATES && !(yield* this.makeRoom)) {
      return yield* new EventRefused({
        field: "session_id",
        message: `${MAX_PLATES} sessions are open already.`,
        remedy: "Forget those that have ended: agentd ps lists them."
      })
    }
    let plateId = wanted ?? (yield* PlateId.fresh)
    while (!this.isFree(plateId)) plateId = yield* PlateId.fresh
    return yield* this.enter({ plateId, stand: initial(plateId), facts: PlateFacts.none })
  })

  /** Closes a plate that an older daemon made for a run. It does not appear on the board. */
  private readonly close = Effect.fnUntraced({ self: this }, function* (this: PlateRegistry, record: PlateRecord) {
    const { actor, plateId } = yield* this.bear(record)
    const at = yield* Clock.currentTimeMillis
    yield* Effect.catch(Effect.asVoid(actor.ask({ _tag: "ProcessExited", at })), ({ message }) =>
      Effect.logWarning(`the row ${plateId} of an earlier run: ${message}`)
    )
    yield* this.options.supervisor.remove(scopeId(plateId))
  })

  /** Events wait in the mailbox until the actor has started. */
  readonly enter = Effect.fnUntraced({ self: this }, function* (this: PlateRegistry, record: PlateRecord) {
    const { plateId, stand } = record
    const plate = yield* this.bear(record)
    this.archive.delete(plateId)
    this.plates.set(plateId, plate)
    const { formerIds, runId, sessionId } = stand.data
    for (const id of [...formerIds, ...(sessionId === null ? [] : [sessionId])]) this.bySession.set(id, plateId)
    if (runId !== null) this.byRun.set(runId, plateId)
    this.populated.openUnsafe()
    return plate
  })

  private readonly bear = Effect.fnUntraced(
    { self: this },
    function* (this: PlateRegistry, { facts, plateId, stand }: PlateRecord) {
      const { fs, supervisor, scope, system } = this.options
      const commits = new CommitScope(system, { id: scopeId(plateId), stream: plateId })
      const actor = commits.add(actorName(plateId), plateActor, stand)
      yield* Effect.forkIn(supervisor.add(commits), scope)
      return new PlateActor({ actor, plateId, fs, facts })
    }
  )

  /** Ends the plate's actor, and archives its record. */
  readonly retire = Effect.fnUntraced({ self: this }, function* (this: PlateRegistry, plate: PlateActor) {
    const { facts, plateId, stand } = plate
    this.plates.delete(plateId)
    this.shelve({ plateId, stand, facts })
    yield* this.options.supervisor.remove(scopeId(plate.plateId))
  })

  /** Removes the plate. Only its id is stored, so that it is not used again. */
  readonly drop = Effect.fnUntraced({ self: this }, function* (this: PlateRegistry, plate: PlateActor) {
    this.plates.delete(plate.plateId)
    this.spend(plate.plateId)
    this.remember(plate.stand.data)
    yield* this.options.supervisor.remove(scopeId(plate.plateId))
  })

  /** Whether the session is forgotten, and the process was already part of it then. A hook of the session ends this. */
  isForgotten(sessionId: string, { pid, startedAt }: { readonly pid: number; readonly startedAt: number }): boolean {
    const forgotten = this.forgotten.get(sessionId)
    return forgotten !== undefined && (forgotten.pids.has(pid) || startedAt <= forgotten.at)
  }

  /** Whether the session was forgotten after its process had sent the report from time `at`, ms since the epoch. */
  forgottenSince(sessionId: string, { at, pid }: { readonly at: number; readonly pid: number | undefined }): boolean {
    const forgotten = this.forgotten.get(sessionId)
    if (forgotten === undefined || this.ofSession(sessionId) !== undefined) return false
    // a report of a later process is new, whatever its clock shows
    const isOfThen = forgotten.pids.size === 0 || pid === undefined || forgotten.pids.has(pid)
    return isOfThen && at <= forgotten.at
  }

  private remember({ formerPids, sessionId, signal }: Data): void {
    if (sessionId === null) return
    const { at, pids } = this.forgotten.get(sessionId) ?? { at: 0, pids: new Set<number>() }
    this.forgotten.set(sessionId, { at: Math.max(at, signal?.at ?? 0), pids: new Set([...pids, ...formerPids]) })
    if (this.forgotten.size > MAX_USED) this.forgotten.delete(this.forgotten.keys().next().value!)
  }

  private readonly makeRoom = Effect.gen({ self: this }, function* () {
    const oldest = [...this.plates.values()]
      .filter((plate) => !plate.isOpen)
      .reduce<PlateActor | undefined>(
        (old, plate) => (old === undefined || plate.stand.at < old.stand.at ? plate : old),
        undefined
      )
    if (oldest === undefined) return false
    yield* this.retire(oldest)
    return true
  })

  private shelve(record: PlateRecord): void {
    this.archive.set(record.plateId, record)
    const { formerIds, sessionId } = record.stand.data
    for (const id of [...formerIds, ...(sessionId === null ? [] : [sessionId])]) {
      if (!this.bySession.has(id)) this.bySession.set(id, record.plateId)
    }
    if (this.archive.size > MAX_ARCHIVED) this.spend(this.archive.keys().next().value!)
  }

  private spend(plateId: string): void {
    this.archive.delete(plateId)
    this.used.add(plateId)
    if (this.used.size > MAX_USED) this.used.delete(this.used.values().next().value!)
    for (const index of [this.bySession, this.byRun, this.aliases]) {
      for (const [name, id] of index) if (id === plateId) index.delete(name)
    }
  }
}
