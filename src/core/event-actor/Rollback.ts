/**
 * Rollback: collects the macrosteps of a scope that are undone because an append to the log failed.
 *
 * Guarantees: the messages of these macrosteps are returned in the order in which they were handled. The message whose
 * runes the store rejected (the culprit) is kept separately.
 */
import { Ask } from "./Mail.ts"
import type { Member } from "./Member.ts"
import type { ScopeCommit } from "./ScopeCommit.ts"

export interface Culprit {
  readonly member: Member
  readonly item: unknown
  readonly error: unknown
}

export class Rollback {
  private readonly units: Array<readonly [id: number, unit: ScopeCommit]> = []
  private unit: ScopeCommit | undefined = undefined
  private error: unknown = undefined

  /** Adds an undone macrostep. `id`: its last eventId or, if it has no runes, the eventId that it waited for. */
  add(unit: ScopeCommit, id: number): void {
    unit.takeBack()
    if (unit.item instanceof Ask) unit.item.isStepped = false
    this.units.push([id, unit])
  }

  blame(unit: ScopeCommit, error: unknown): void {
    this.unit = unit
    this.error = error
  }

  get culprit(): Culprit | undefined {
    return this.unit && { member: this.unit.member, item: this.unit.item, error: this.error }
  }

  /** The messages except the culprit, as members and messages, alternating, oldest first. */
  get mail(): ReadonlyArray<unknown> {
    return this.units
      .toSorted(([a], [b]) => a - b)
      .flatMap(([, unit]) => (unit === this.unit ? [] : [unit.member, unit.item]))
  }
}
