/**
 * AdmittingLog: what every log does before anything is stored, whatever stores it:
 * drafts are prepared, units are held against guard and stops, and what is durable is
 * told to those that watch.
 */
import type { AdmissionState, Stop } from "./AdmissionState.ts"
import type { EventDraft } from "./EventDraft.ts"
import type { RuneRefused } from "./EventLog.ts"
import type { Flight, Log, Prepared, Unit } from "./Log.ts"
import type { RuneDraft } from "./Rune.ts"

/** Hears of durable units, in order, and of refusals. Not told of its own failures: it may not throw. */
export interface Watcher {
  /** Once for all that has landed together. */
  landed(units: ReadonlyArray<Unit>): void
  refused(unit: Unit, refused: RuneRefused): void
}

export abstract class AdmittingLog implements Log {
  abstract readonly flight: Flight | undefined
  abstract readonly durable: number
  readonly admission: AdmissionState
  readonly drafts: EventDraft
  private readonly watchers: Array<Watcher> = []

  constructor(admission: AdmissionState, drafts: EventDraft) {
    this.admission = admission
    this.drafts = drafts
  }

  get head(): number {
    return this.admission.head
  }

  seqOf(stream: string): number {
    return this.admission.seqOf(stream)
  }

  beforeAppend: (() => void) | undefined = undefined

  prepare(draft: RuneDraft): Prepared | RuneRefused {
    return this.drafts.prepare(draft)
  }

  refuses(unit: Unit): RuneRefused | undefined {
    const refused = this.admission.refuses(unit)
    if (refused !== undefined) for (const watcher of this.watchers) watcher.refused(unit, refused)
    return refused
  }

  /** Nothing is appended to the stream from here on. */
  halt(stream: string, stop: Stop): void {
    this.admission.halt(stream, stop)
  }

  watch(watcher: Watcher): void {
    this.watchers.push(watcher)
  }

  abstract append(unit: Unit): boolean
  abstract share(ready: number): number

  protected tell(units: ReadonlyArray<Unit>): void {
    for (const watcher of this.watchers) watcher.landed(units)
  }
}
