/**
 * Schedules: each time of a schedule is settled at most once, by a run or by passing, and in order, whatever dies and
 * however the clock is set.
 */
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Check, Verdicts } from "./Check.ts"

const ID = /^schedule\/([^@]+)@(.+Z)$/

export class Schedules implements Check {
  private readonly verdicts: Verdicts
  /** The newest time that is settled, by stream and name. */
  private readonly settled = new Map<string, number>()

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune({ eventId, kind, payload, stream, trigger }: Rune): void {
    // times that a clock far ahead has settled count anew
    if (kind === "schedule.set" && trigger === "clock")
      this.settled.set(`${stream} ${payload["name"] as string}`, payload["from"] as number)
    if (kind === "schedule.skipped") {
      const { due, name, reason } = payload as { readonly due: number; readonly name: string; readonly reason: string }
      this.verdicts.sometimes(`a time passes: ${reason.slice(0, 20)}`)
      this.settle(`${stream} ${name}`, due, eventId)
    }
    if (kind !== "inbox.received") return
    const { messageId } = (payload["event"] as { readonly message: { readonly messageId: string } }).message
    const [, name, due] = ID.exec(messageId) ?? []
    if (name === undefined || due === undefined) return
    this.verdicts.sometimes("a schedule runs")
    this.settle(`${stream} ${name}`, Date.parse(due), eventId)
  }

  private settle(schedule: string, due: number, eventId: number): void {
    const before = this.settled.get(schedule) ?? 0
    if (due <= before)
      this.verdicts.broken(
        "a time of a schedule is settled once, in order",
        `${schedule}: ${new Date(due).toISOString()} after ${new Date(before).toISOString()}, rune ${eventId}`
      )
    this.settled.set(schedule, Math.max(before, due))
  }
}
