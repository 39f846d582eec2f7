/**
 * Alerts: a person hears by mail of everything that stopped for good, at least once and under
 * one Message-ID, of nothing else; what the log calls sent has been taken by the server.
 */
import type { Rune } from "../../../src/event-log/Rune.ts"
import type { Letter } from "../world/Mail.ts"
import type { Check, Verdicts } from "./Check.ts"

interface Trouble {
  readonly eventId: number
  readonly stream: string
  readonly actor: string
}

interface Queued {
  readonly batch: string
  readonly alert: { readonly stream: string; readonly actor: string; readonly cause: number }
}

interface Mailed {
  readonly batch: string
  readonly messageId: string
}

export class Alerts implements Check {
  private readonly verdicts: Verdicts
  private readonly troubles: Array<Trouble> = []
  private readonly queued: Array<Queued> = []
  /** Those that were mailed, or given up. */
  private readonly settled = new Set<Queued>()
  private readonly letters = new Set<string>()
  private readonly ids = new Map<string, string>()

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune({ actor, eventId, kind, payload, stream, to }: Rune): void {
    const isFatal = kind === "worker.moved" && to === "Stopped" && payload["fatal"] != null
    const event = payload["event"] as { readonly _tag?: string; readonly by?: string } | undefined
    const isStopped = kind === "plan.stopped" && !(event?._tag === "user_cancel" && event.by !== "agentd")
    if (isFatal || isStopped || kind === "session.suspended" || kind === "plan.blocked")
      this.troubles.push({ eventId, stream, actor })
    if (kind === "alert.queued") this.queued.push(payload as unknown as Queued)
    if (kind !== "alert.sent" && kind !== "alert.failed") return
    const { batch, messageId } = payload as unknown as Mailed
    const before = this.ids.get(batch) ?? messageId
    if (before !== messageId) this.verdicts.broken("one trouble has one Message-ID", `${before} and ${messageId}`)
    this.ids.set(batch, messageId)
    if (kind === "alert.sent" && !this.letters.has(messageId))
      this.verdicts.broken("what is called sent was taken", `${messageId}, rune ${eventId}`)
    if (kind === "alert.failed" && payload["nextAt"] !== null) return
    for (const queued of this.queued) if (queued.batch === batch) this.settled.add(queued)
  }

  mailed({ messageId, subject }: Letter): void {
    this.letters.add(messageId)
    const batches = new Set(this.queued.map(({ batch }) => batch))
    if (this.letters.size > batches.size)
      this.verdicts.broken("no mail comes without an alert", `${messageId}: ${subject}`)
  }

  /** Troubles that nobody was mailed of. */
  private get untold(): ReadonlyArray<Trouble> {
    return this.troubles.filter(
      ({ actor, eventId, stream }) =>
        !this.queued.some(
          (one) =>
            one.alert.stream === stream &&
            one.alert.actor === actor &&
            one.alert.cause >= eventId &&
            this.settled.has(one)
        )
    )
  }

  isDone(): boolean {
    return this.untold.length === 0
  }

  atRest(): void {
    for (const { actor, eventId } of this.untold)
      this.verdicts.broken("a person is mailed of what stopped for good", `${actor}, rune ${eventId}`)
  }
}
