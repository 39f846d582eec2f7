/**
 * Plates: the board says what is so of each session within the time that it promises, whatever
 * its hooks have told; one plate a session; each rune is a legal move of the plate's table, and
 * what is shown is what the runes make; what a person forgets stays forgotten; what was answered
 * holds over every crash; a dialog is answered once, and by the answer that was meant for it.
 */
import { assert } from "@effect/vitest"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { initial } from "../../../src/plates/PlateActor.ts"
import { type Event, kinds, MAX_RECOVERY, Plate, QUIET, SILENT } from "../../../src/plates/PlateMachine.ts"
import { apply, fold, type Folded } from "../../../src/plates/Recovery.ts"
import { taken } from "../../support/Cells.ts"
import type { Session, Truth } from "../world/Session.ts"
import type { Dropped, Onlooker } from "../world/Sessions.ts"
import type { Check, Verdicts } from "./Check.ts"

/** Statuses that the board may show for each truth. */
const says: { readonly [truth in Truth]: ReadonlyArray<string> } = {
  idle: ["Idle", "Error", "Starting"],
  failed: ["Idle", "Error", "Starting"],
  busy: ["Running"],
  permission: ["AwaitingApproval", "AwaitingInput"],
  question: ["AwaitingApproval", "AwaitingInput"],
  gone: ["Closed"]
}
const WAITS: ReadonlyArray<string> = ["AwaitingApproval", "AwaitingInput"]
/** A look takes a moment, and a fault may end between two of a person's looks. */
const SLACK = 4_000
const RECOVERY = MAX_RECOVERY + SLACK
/** A session that no hook has told of is met within this, and looked at then. */
const MEETING = 13_000 + SLACK
/** A process is looked at each second; one that nobody knows is taken to be gone 5 s after its session's word. */
const GONE = 6_000 + SLACK
/** The disk takes so long at most before the log is given up. */
const FORGETTING = 12_000
/** Only silence ends what a hook began that came too late. */
const SILENCE = QUIET + RECOVERY

/** Each event settles into one of the same states: what counts is where it was taken. */
export const plateCell = (state: string, tag: string): string => `${state} × ${tag}`

const PROMISE = "the board says what is so"

interface Stood {
  folded: Folded
  changedAt: number
  closedAt: number
}

/** An answer to a dialog, as it was written down. */
interface Answered {
  readonly stream: string
  readonly tool: string
  readonly behavior: string
  readonly message: string
  isGiven: boolean
}

export class Plates implements Check, Onlooker {
  /** Sessions of the world; none in a world without. */
  sessions: ReadonlyArray<Session> = []
  private readonly standing = new Map<string, { readonly status: string; readonly at: number }>()
  /** The newest time at which clock, disk or daemon were not as they are now; ms since the world's beginning. */
  disturbedAt = 0
  /** Since when nothing goes wrong any more. */
  calmSince = Infinity
  readonly cells: Set<string>
  private readonly verdicts: Verdicts
  private readonly upAt: () => number
  private readonly plates = new Map<string, Stood>()
  private readonly answers = new Map<string, Answered>()
  /** When a person forgot a session, by its id; plates that were forgotten. */
  private readonly forgotten = new Map<string, number>()
  /** When that was by the daemon's clock: its rune may wait for a disk, and be durable after the session has spoken. */
  private readonly forgottenBy = new Map<string, number>()
  /** Plates that began with what their session said after it was forgotten. */
  private readonly saidSince = new Set<string>()
  private readonly dropped = new Set<string>()
  /** When a person was told that it is, by its plate. */
  private readonly toldGone = new Map<string, number>()
  /** Starts that were left in the spool and are not in the log yet. */
  private starts: Array<Dropped & { readonly at: number }> = []
  private isSettled = false

  constructor(verdicts: Verdicts, cells: Set<string>, upAt: () => number) {
    this.verdicts = verdicts
    this.cells = cells
    this.upAt = upAt
  }

  // The log.

  rune(rune: Rune): void {
    if (rune.kind === "plate.answered") return this.answered(rune)
    if (!(kinds as ReadonlyArray<string>).includes(rune.kind)) return
    const { eventId, from, payload, stream, to } = rune
    const stood = this.plates.get(stream)
    const before = stood?.folded ?? fold.initial
    const stand = before.stand ?? initial(stream)
    const event = payload["event"] as Event
    const forgotten = this.forgottenBy.get(String(payload["sessionId"]))
    if (stood === undefined && event._tag.startsWith("Hook") && forgotten !== undefined && event.at >= forgotten)
      this.saidSince.add(stream)
    const moves = taken(Plate, stand.state, stand.data, event)
    try {
      assert.isNotEmpty(moves, `${stand.state} × ${event._tag} is legal`)
      assert.deepStrictEqual([from, to], [stand.state, moves[0]!.to])
    } catch (error) {
      this.verdicts.broken("a rune is a legal move", `${eventId} ${stream}: ${String(error).slice(0, 200)}`)
    }
    if (this.dropped.has(stream)) this.verdicts.broken("what is forgotten stays so", `${stream}: rune ${eventId}`)
    if (event._tag === "HookSessionStart")
      this.starts = this.starts.filter(
        ({ pid, sessionId, source }) => event.sessionId !== sessionId || event.pid !== pid || event.source !== source
      )
    this.cells.add(plateCell(stand.state, event._tag))
    const { now } = this.verdicts
    const closedAt = to === "Closed" ? now : (stood?.closedAt ?? -Infinity)
    this.plates.set(stream, { folded: apply(before, rune), changedAt: now, closedAt })
    if (rune.kind !== "plate.forgotten") return
    this.dropped.add(stream)
    this.forgotten.set(stream, now)
    const { sessionId } = stand.data
    if (sessionId === null) return
    this.forgotten.set(sessionId, now)
    this.forgottenBy.set(sessionId, event.at)
  }

  /** Checks that a dialog has one answer. */
  private answered({ eventId, payload, stream }: Rune): void {
    const { approval, behavior, message = "", tool } = payload as { readonly [field: string]: string }
    if (this.answers.has(approval!))
      this.verdicts.broken("a dialog is answered once", `${stream} ${approval}: rune ${eventId}`)
    this.answers.set(approval!, { stream, tool: tool!, behavior: behavior!, message, isGiven: false })
  }

  // What sessions and their programs hear.

  sometimes(what: string): void {
    this.verdicts.sometimes(what)
  }

  registering(): void {}

  registered(plateId: string): void {
    if (!this.plates.has(plateId)) this.verdicts.broken("what is acknowledged is durable", `registered: ${plateId}`)
  }

  leaves(start: Dropped): void {
    this.starts.push({ ...start, at: this.verdicts.now })
  }

  /** Checks that a start in the spool is in the log before it is taken from there. */
  private isTaken({ at, isThere, pid, plateId, sessionId, source }: Dropped & { readonly at: number }): boolean {
    if (isThere()) return false
    // what comes while its plate is being forgotten is forgotten with it, by whatever name the plate was known
    const formerIds = this.sessions.find(({ id }) => id === sessionId)?.formerIds ?? []
    const forgottenAt = Math.max(...[sessionId, plateId ?? "", ...formerIds].map((name) => this.forgottenAt(name)))
    if (forgottenAt >= at) return true
    // by a clock that was set since it may be of before
    if (forgottenAt > -Infinity && this.disturbedAt >= forgottenAt) return true
    // one of a process that is gone by now is of the past
    const lives = this.sessions.some((session) => session.id === sessionId && session.pid === pid && !session.isGone)
    if (lives) this.verdicts.broken("what is left in the spool is in the log", `${source} of ${sessionId}, ${pid}`)
    return true
  }

  stopping(plateId: string): (ok: boolean) => void {
    return (ok) => {
      const stood = this.plates.get(plateId)
      if (ok && stood?.closedAt === -Infinity)
        this.verdicts.broken("what is acknowledged is durable", `stopped: ${plateId} was never closed`)
    }
  }

  /** A dialog's hook was answered: somebody has given that answer, to that dialog, and no other dialog has got it. */
  decided(
    session: Session,
    decision: "allow" | "deny",
    { input, tool }: { readonly tool: string; readonly input: string }
  ) {
    const { id, formerIds } = session
    const isOwn = ({ behavior, isGiven, stream, ...of }: Answered) => {
      const { sessionId } = this.plates.get(stream)?.folded.stand?.data ?? {}
      const isIts = sessionId === id || formerIds.includes(sessionId ?? "")
      return !isGiven && isIts && of.tool === tool && behavior === decision
    }
    const given = [...this.answers.values()].findLast(isOwn)
    if (given === undefined)
      return this.verdicts.broken(
        "a dialog gets the answer that was given",
        `${id}: ${decision} ${tool}, and nobody said so`
      )
    given.isGiven = true
    this.verdicts.sometimes(`dialog: ${decision} is given`)
    // whom a person denies it is named in the reason
    const meant = /^not (.*)$/.exec(given.message)?.[1]
    if (decision === "deny" && meant !== undefined && !input.startsWith(meant))
      this.verdicts.broken("a dialog gets the answer that was given", `${id}: ${input} got what was meant for ${meant}`)
  }

  forgets(plateId: string): void {
    this.toldGone.set(plateId, this.verdicts.now)
    if (!this.dropped.has(plateId)) this.verdicts.broken("what is acknowledged is durable", `forgotten: ${plateId}`)
  }

  private forgottenAt(name: string): number {
    return this.forgotten.get(name) ?? -Infinity
  }

  // The whole board.

  /** `askedAt`: when the board was asked for them. */
  shown(rows: ReadonlyArray<PlateInfo>, askedAt: number): void {
    for (const row of rows) this.isFold(row, askedAt)
    this.starts = this.starts.filter((start) => !this.isTaken(start))
    const owned = new Map<string, PlateInfo>()
    for (const row of rows) {
      if (row.sessionId === null || row.agent !== null || row.sessionId.startsWith("session-")) continue
      const other = owned.get(row.sessionId)
      if (other !== undefined)
        this.verdicts.broken("a session has one plate", `${row.sessionId}: ${row.plateId}, ${other.plateId}`)
      owned.set(row.sessionId, row)
    }
    for (const id of owned.keys())
      if (!this.sessions.some((session) => session.id === id || session.formerIds.includes(id)))
        this.verdicts.broken("a plate is a session's", id)
    for (const session of this.sessions) this.isSo(session, owned.get(session.id))
    this.settles()
  }

  /** Checks that a shown plate is the fold of the log. */
  private isFold({ plateId, status }: PlateInfo, askedAt: number): void {
    const goneAt = this.toldGone.get(plateId)
    if (goneAt !== undefined && goneAt <= askedAt)
      this.verdicts.broken("what is forgotten stays so", `${plateId} is shown`)
    const stood = this.plates.get(plateId)
    if (stood === undefined) return
    const { changedAt, folded } = stood
    if (folded.stand?.state !== status && this.verdicts.now - Math.max(changedAt, this.disturbedAt) > SLACK)
      this.verdicts.broken("a plate is what its runes make", `${plateId}: ${status}, not ${folded.stand?.state}`)
  }

  /** So long it has been as it is, and the board could be asked for it. */
  private stillFor(...since: ReadonlyArray<number>): number {
    return this.verdicts.now - Math.max(this.disturbedAt, this.upAt(), ...since)
  }

  private isSo(session: Session, row: PlateInfo | undefined): void {
    const { bornAt, changedAt, formerIds, id, isBehind, isNoted, postedAt, truth } = session
    if (bornAt === 0) return
    const forgottenAt = this.forgottenAt(id)
    if (forgottenAt > Math.max(postedAt, bornAt)) {
      // one whose process began while it was being forgotten may be met
      if (
        bornAt < forgottenAt - FORGETTING &&
        row !== undefined &&
        row.status !== "Closed" &&
        !this.saidSince.has(row.plateId) &&
        this.verdicts.now - forgottenAt > SLACK
      )
        this.verdicts.broken("what is forgotten stays so", `${id} is back as ${row.plateId}`)
      return
    }
    if (row === undefined) {
      if (!isNoted || isBehind || truth === "gone" || this.stillFor(bornAt, forgottenAt) < MEETING) return
      // what it has said since it was forgotten may be gone with the daemon that heard it
      if (forgottenAt > bornAt && postedAt < Math.max(this.disturbedAt, this.upAt())) return
      // one whose first word under its new id is still to come is shown under the former one
      if (formerIds.length > 0 && this.stillFor(changedAt) < MEETING) return
      return this.verdicts.broken(PROMISE, `${id} is ${truth}, and not there`)
    }
    const wrong = this.wrong(session, row)
    this.verdicts.sometimes(`board: ${truth}`)
    if (wrong === undefined) return
    const at = ((this.verdicts.now - changedAt) / 1_000).toFixed(1)
    this.verdicts.broken(PROMISE, `${id} is ${truth} for ${at} s, and shown as ${row.status}: ${wrong}`)
  }

  /** Undefined: it is right, or it need not be yet. */
  private wrong(session: Session, row: PlateInfo): string | undefined {
    const { bornAt, changedAt, disorderedAt, isBehind, isNoted, isOdd, saidEndAt, truth } = session
    if (says[truth].includes(row.status)) return undefined
    if (truth === "gone") {
      if (row.pid !== null && this.stillFor(changedAt) > GONE) return "its process is gone"
      return saidEndAt > bornAt && this.stillFor(changedAt, saidEndAt) > GONE ? "it has said that it ends" : undefined
    }
    if (isBehind) return undefined
    // a dialog that is told of when it is over waits for a person, unless a note says otherwise
    if (!isNoted && disorderedAt > changedAt && WAITS.includes(row.status)) return undefined
    // what a late hook begins is ended by what is said after it, or by silence
    if (disorderedAt > changedAt && (isOdd || this.stillFor(disorderedAt) < SILENCE)) return undefined
    const met = Math.max(bornAt, changedAt) + (bornAt > changedAt - MEETING ? MEETING : 0)
    if (isNoted) return this.stillFor(met, this.shownSince(row)) > RECOVERY ? "it is noted" : undefined
    return this.unnoted(session, row)
  }

  /** When the row was first seen with its status, by who looks now and then. */
  private shownSince({ plateId, status }: PlateInfo): number {
    const before = this.standing.get(plateId)
    if (before?.status === status) return before.at
    this.standing.set(plateId, { status, at: this.verdicts.now })
    return this.verdicts.now
  }

  /** Checks a session that notes nothing: its hooks and its transcript alone tell of it. */
  private unnoted({ changedAt, endedAs, toldAt, truth }: Session, { status }: PlateInfo): string | undefined {
    if (toldAt === Infinity) return undefined
    const still = this.stillFor(changedAt, toldAt)
    const isOver = truth === "idle" || truth === "failed" || truth === "busy"
    if (WAITS.includes(status) && isOver && still > RECOVERY) return "its transcript has gone on"
    if (status === "Error" && truth === "busy" && still > RECOVERY) return "somebody has tried again"
    if (status !== "Running" || truth === "busy") return undefined
    if (endedAs === "interrupt" && still > RECOVERY) return "it was interrupted"
    if (endedAs === "end" && still > SILENCE) return "its turn has ended, and it is silent"
    return truth === "idle" && still > SILENT + RECOVERY ? "it is silent" : undefined
  }

  // The end.

  private settles(): void {
    const last = Math.max(
      this.calmSince,
      ...this.sessions.map(({ changedAt, disorderedAt }) => Math.max(changedAt, disorderedAt))
    )
    if (this.stillFor(last) > SILENCE + MEETING) this.isSettled = true
  }

  isDone(): boolean {
    return this.sessions.length === 0 || this.isSettled
  }

  atRest(): void {
    if (!this.isDone()) this.verdicts.broken("the board comes to rest", "it was not seen as it is")
  }
}
