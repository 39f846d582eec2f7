/**
 * Undone: collects what a failed append took back from a scope, until all of it is known.
 *
 * Guarantees: the messages come back in the order in which they were handled. The message whose
 * runes the store did not take (the culprit) is kept apart.
 */
import { Ask } from "./Mail.ts"
import type { Member } from "./Member.ts"
import type { ScopeUnit } from "./ScopeUnit.ts"

export interface Culprit {
  readonly member: Member
  readonly item: unknown
  readonly error: unknown
}

export class Undone {
  private readonly units: Array<readonly [id: number, unit: ScopeUnit]> = []
  private unit: ScopeUnit | undefined = undefined
  private error: unknown = undefined

  /** `id`: the unit's last eventId or, if it has no runes, the one that it waited for. */
  add(unit: ScopeUnit, id: number): void {
    unit.takeBack()
    if (unit.item instanceof Ask) unit.item.isStepped = false
    this.units.push([id, unit])
  }

  blame(unit: ScopeUnit, error: unknown): void {
    this.unit = unit
    this.error = error
  }

  get culprit(): Culprit | undefined {
    return this.unit && { member: this.unit.member, item: this.unit.item, error: this.error }
  }

  /** Member and message in pairs, oldest first, without the culprit's. */
  get mail(): ReadonlyArray<unknown> {
    return this.units
      .toSorted(([a], [b]) => a - b)
      .flatMap(([, unit]) => (unit === this.unit ? [] : [unit.member, unit.item]))
  }
}
