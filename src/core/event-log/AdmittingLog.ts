/**
 * AdmittingLog: base class of all logs, with the steps that precede storage. It prepares drafts, checks units against
 * the guard and the halted streams, and reports durable units to its watchers.
 */
import type { AdmissionState, Stop } from "./AdmissionState.ts"
import type { EventDraft } from "./EventDraft.ts"
import type { RuneRefused } from "./EventLog.ts"
import type { Flight, Log, Prepared, Unit } from "./Log.ts"
import type { RuneDraft } from "./Rune.ts"

/** Receives durable units, in order, and refusals. A watcher must not throw: nothing handles its errors. */
export interface Watcher {
  /** Called once for all units that became durable at the same time. */
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
