/**
 * OpenCalls: the calls of an agent that have no result yet, oldest first.
 *
 * Guarantees: whatever a call is looked for by, it costs the same however many there are.
 */
import type { Run } from "../backends/Backend.ts"
import type { OpenCall } from "./OpenCall.ts"

/** No run's id holds a blank. */
const nameOf = ({ runId }: Run, id: string): string => `${runId} ${id}`

export class OpenCalls {
  private readonly byId = new Map<string, OpenCall>()
  /** Those of a live run, by its name for them; the first where a run uses one twice. */
  private readonly named = new Map<string, OpenCall>()
  /** How many of them each turn has. */
  private readonly counts = new Map<string, number>()
  /** What an earlier daemon left. */
  readonly left = new Set<OpenCall>()

  get(callId: string): OpenCall | undefined {
    return this.byId.get(callId)
  }

  has(callId: string): boolean {
    return this.byId.has(callId)
  }

  values(): ReadonlyArray<OpenCall> {
    return [...this.byId.values()]
  }

  of(run: Run, id: string): OpenCall | undefined {
    return this.named.get(nameOf(run, id))
  }

  add(call: OpenCall): void {
    const { callId, origin, turnId } = call
    this.byId.set(callId, call)
    if (origin === undefined) return void this.left.add(call)
    this.counts.set(turnId, (this.counts.get(turnId) ?? 0) + 1)
    const name = nameOf(origin.run, origin.id)
    if (!this.named.has(name)) this.named.set(name, call)
  }

  /** True: it was the last one that a live run had open in its turn. */
  remove(call: OpenCall): boolean {
    const { callId, origin, turnId } = call
    this.byId.delete(callId)
    this.left.delete(call)
    if (origin === undefined) return false
    const name = nameOf(origin.run, origin.id)
    if (this.named.get(name) === call) this.named.delete(name)
    const count = this.counts.get(turnId)! - 1
    if (count > 0) this.counts.set(turnId, count)
    else this.counts.delete(turnId)
    return count === 0
  }
}
