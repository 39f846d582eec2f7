/**
 * PlateActor: the plate of one session. It has the actor of the plate's state machine, the facts that the board shows,
 * and the transcript with which the status is compared.
 *
 * Guarantees: `tell` does not wait. Only the state machine has the status. All other data here can be lost and derived
 * again.
 */
import { Clock, Deferred, Effect, type FileSystem } from "effect"
import type { ActorHandle } from "../core/event-actor/ActorHandle.ts"
import { start, stateMachineActor } from "../core/event-actor/StateMachineActor.ts"
import type { Snapshot } from "../core/event-actor/StateMachine.ts"
import * as PlateMachine from "./PlateMachine.ts"
import * as PlateState from "./PlateState.ts"
import type { Plan } from "../runs/claude/ClaudeTools.ts"
import type { ProcessId } from "../runs/process/ProcessTable.ts"
import * as Branch from "./Branch.ts"
import * as PlateFacts from "./PlateFacts.ts"
import { sourceOf } from "./SessionSources.ts"
import * as SessionStatusFile from "./SessionStatusFile.ts"
import { Transcript } from "./Transcript.ts"
import { TranscriptView } from "./TranscriptView.ts"
import { judge } from "./TranscriptRules.ts"
import type { Cause } from "../core/event-log/Rune.ts"

export type Stand = Snapshot<PlateMachine.State, PlateState.Data>
export type Handle = ActorHandle<Stand, PlateMachine.Event, never>

/** The actor of a plate. It has only the state machine's table, without actions, timers or activities. */
export const plateActor = stateMachineActor({ machine: PlateMachine.Plate, data: PlateState.initial })

/** Maximum number of subagents whose transcripts are followed while they have an open prompt. */
const MAX_SIDES = 16

/** Number of health check rounds in which a transcript may be missing: it is created shortly after the first prompt. */
const MAX_ABSENCES = 2

/** Timeout for reading the transcript once more before a session's end is recorded. */
const LAST_LOOK = "1 second"

/** Path of a subagent's transcript, which is in a folder next to the session's transcript. */
const sidePath = (transcript: string, agentId: string): string =>
  `${transcript.replace(/\.jsonl$/, "")}/subagents/agent-${agentId}.jsonl`

/** Whether the id can safely be used as a part of a path. */
const isPlain = (agentId: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(agentId)

export const initial = (plateId: string): Stand => start(PlateMachine.Plate, { ...PlateState.initial, plateId })

export const actorName = (plateId: string): string => `plate/${plateId}`

export class PlateActor {
  readonly plateId: string
  readonly actor: Handle
  private readonly fs: FileSystem.FileSystem
  facts: PlateFacts.PlateFacts
  /** When the newest hook or event of any kind arrived, ms since the epoch. */
  heard: number
  /** The newest session id that was received, even if its event has not been committed yet. */
  sessionId: string | null
  /** The end that the session reported. Undefined if it reported none, or has started again since. */
  ended: { readonly reason: string; readonly at: number } | undefined = undefined
  /** The process that reported the session's newest start. The actor may not have handled the start yet. */
  startedBy: ProcessId | undefined = undefined
  transcript: Transcript | undefined = undefined
  /** The newest plan that the session wrote; undefined if it wrote none. */
  plan: Plan | undefined = undefined
  /** Reads the notes of the session's processes; undefined if their folder is unknown. */
  note: SessionStatusFile.SessionStatusFile | undefined = undefined
  /** The git branch of the session's folder; undefined before the first check, or if there is no branch. */
  branch: string | undefined = undefined
  private branchAt = -1
  /** When a timestamp in the future was first found, which means that the clock was set back. Undefined if none is. */
  private setBackAt: number | undefined = undefined
  /** Number of consecutive rounds in which a session that has begun had no transcript. */
  private absences = 0
  private readonly sides = new Map<string, Transcript>()
  /** Completed when the running `look` ends; undefined if none is running. */
  private looking: Deferred.Deferred<void> | undefined = undefined
  /** The `look` that was requested while another one was running; undefined if there was none. */
  private next: "round" | "look" | undefined = undefined

  constructor({
    actor,
    facts,
    fs,
    plateId
  }: Pick<PlateActor, "actor" | "facts" | "plateId"> & { readonly fs: FileSystem.FileSystem }) {
    const { data } = actor.state
    this.actor = actor
    this.plateId = plateId
    this.fs = fs
    this.facts = facts
    this.heard = data.signal?.at ?? 0
    this.sessionId = data.sessionId
    this.follow(data.transcriptPath)
  }

  get stand(): Stand {
    return this.actor.state
  }

  get isOpen(): boolean {
    return this.stand.state !== "Closed"
  }

  /** True if Claude Code keeps the process in reserve: no session has begun in it. */
  get isSpare(): boolean {
    const { state } = this.stand
    return (state === "Idle" || state === "Starting") && this.note?.isSpare === true
  }

  /** The session's processes whose start time is known, newest last. The user can open a session more than once. */
  get processes(): ReadonlyArray<ProcessId> {
    return this.stand.data.processes.flatMap(({ pid, start }) => (start === null ? [] : [{ pid, start }]))
  }

  get process(): ProcessId | undefined {
    return this.processes.at(-1)
  }

  /** Sends the event. When this returns, the event is in the mailbox, or was discarded as a dead letter. */
  tell(event: PlateMachine.Event, cause?: Cause): void {
    this.facts = PlateFacts.after(this.facts, event)
    this.actor.tellNow(event, cause)
  }

  /** Like `tell`, but waits until the event is durable. */
  ask(event: PlateMachine.Event) {
    this.facts = PlateFacts.after(this.facts, event)
    return this.actor.ask(event)
  }

  /** Follows the transcript at this path. Returns true if the path is new: then the transcript must be read once. */
  follow(path: string | null | undefined, cli = this.stand.data.cli): boolean {
    if (path === null || path === undefined || path === this.transcript?.path) return false
    this.transcript = new Transcript(this.fs, path, () => new TranscriptView("main", sourceOf(cli)?.record))
    const notes = SessionStatusFile.folderOf(path)
    this.note = notes === undefined ? undefined : new SessionStatusFile.SessionStatusFile(this.fs, notes)
    this.sides.clear()
    return true
  }

  /** False if missed hooks cannot be corrected: the transcript is unknown, or did not appear after the first prompt. */
  get watchable(): boolean {
    return this.transcript !== undefined && this.absences < MAX_ABSENCES
  }

  /**
   * Reads new lines of the transcripts and the note, and sends the resulting events to the state machine. Reads do not
   * overlap: if one is running, the next one starts after it. A `round` then waits until both have ended; a `look`
   * returns at once.
   */
  look(kind: "round" | "look"): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.looking === undefined) return this.lookOn(kind)
      if (this.next !== "round") this.next = kind
      return kind === "round" ? Deferred.await(this.looking) : Effect.void
    })
  }

  /** Called before a session's end is sent to its plate: finds out from the transcript how a running turn has ended. */
  readonly lastLook: Effect.Effect<void> = Effect.suspend(() => {
    if (this.stand.state !== "Running" || this.transcript === undefined) return Effect.void
    // if another read is running, the new one starts after it: wait for both
    const over = Effect.suspend(() => (this.looking === undefined ? Effect.void : Deferred.await(this.looking)))
    return Effect.asVoid(Effect.timeoutOption(Effect.andThen(this.look("look"), over), LAST_LOOK))
  })

  private lookOn(kind: "round" | "look"): Effect.Effect<void> {
    const done = Deferred.makeUnsafe<void>()
    const looks = Effect.gen({ self: this }, function* () {
      for (let now: typeof this.next = kind; now !== undefined; now = this.next) {
        this.next = undefined
        yield* this.lookOnce(now)
      }
      this.looking = undefined
    })
    const end = Effect.sync(() => {
      if (this.looking === done) this.looking = undefined
      Deferred.doneUnsafe(done, Effect.void)
    })
    return Effect.acquireUseRelease(
      Effect.sync(() => (this.looking = done)),
      () => looks,
      () => end
    )
  }

  private readonly lookOnce = Effect.fnUntraced({ self: this }, function* (this: PlateActor, kind: "round" | "look") {
    const { transcript } = this
    const found = transcript === undefined ? undefined : yield* transcript.look
    const sides = yield* this.lookAside
    const { sessionId } = this.stand.data
    const note =
      sessionId === null
        ? undefined
        : yield* this.note?.look(sessionId, this.processes, kind === "round") ?? Effect.undefined
    if (kind === "round") {
      this.absences = this.stand.data.turnAt > 0 && found?._tag === "Absent" ? this.absences + 1 : 0
      yield* this.lookAtBranch
    }
    const now = yield* Clock.currentTimeMillis
    this.setBackAt = Math.max(this.heard, this.stand.data.signal?.at ?? 0) > now ? (this.setBackAt ?? now) : undefined
    const events = judge({
      snapshot: this.stand,
      found,
      view: transcript?.view,
      sides,
      note,
      heard: this.heard,
      now,
      setBackAt: this.setBackAt ?? now,
      round: kind === "round"
    })
    for (const event of events) yield* this.actor.tell(event)
  })

  /** Finds the git branch at first, and again whenever the transcript was written, because work may have changed it. */
  private readonly lookAtBranch = Effect.gen({ self: this }, function* () {
    const { cwd } = this.stand.data
    const written = this.transcript?.found?._tag === "Read" ? this.transcript.found.mtime : 0
    if (cwd === null || written === this.branchAt) return
    this.branchAt = written
    this.branch = yield* Branch.of(this.fs, cwd)
  })

  /** Reads the transcripts of those subagents that have an open prompt. */
  private readonly lookAside = Effect.gen({ self: this }, function* () {
    const views = new Map<string, TranscriptView>()
    const asking = new Set(this.stand.data.prompts.flatMap(({ agentId }) => (agentId === null ? [] : [agentId])))
    for (const agentId of this.sides.keys()) if (!asking.has(agentId)) this.sides.delete(agentId)
    for (const agentId of [...asking].filter(isPlain).slice(0, MAX_SIDES)) {
      if (this.transcript === undefined) break
      let side = this.sides.get(agentId)
      if (side === undefined) {
        this.sides.set(
          agentId,
          (side = new Transcript(this.fs, sidePath(this.transcript.path, agentId), () => new TranscriptView("side")))
        )
      }
      yield* side.look
      views.set(agentId, side.view)
    }
    return views
  })
}
