/**
 * Tables: each rune is a legal move of its machines and says what their tables say; and
 * which cells the worlds have come to.
 */
import type { Rune } from "../../../src/event-log/Rune.ts"
import { names, TableWalk } from "../../agents/TableWalk.ts"
import type { Check, Verdicts } from "./Check.ts"

export type Cells = TableWalk["reached"]
export const noCells = (): Cells =>
  Object.fromEntries(names.map((name) => [name, new Set<string>()])) as unknown as Cells

export class Tables implements Check {
  readonly cells = noCells()
  private readonly walk = new TableWalk(this.cells)
  private readonly verdicts: Verdicts

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune(rune: Rune): void {
    try {
      this.walk.take([rune])
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error)
      this.verdicts.broken("a rune is a legal move", `${rune.eventId} ${rune.kind}: ${what.slice(0, 200)}`)
    }
    this.walk.asked.length = 0
  }
}
