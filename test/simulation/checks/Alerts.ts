/**
 * Alerts: a person hears by mail of everything that stopped for good, at least once and under
 * one Message-ID, of nothing else; what the log calls sent has been taken by the server.
 */
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Letter } from "../world/Mail.ts"
import type { Check, Verdicts } from "./Check.ts"

interface Queued {
  readonly batch: string
  readonly trouble: string
  /** So many equal ones. */
  readonly count: number
}

interface Announced {
  readonly batch: string
  readonly alert: { readonly kind: string; readonly stream: string; readonly actor: string; readonly count: number }
}

interface Mailed {
  readonly batch: string
  readonly messageId: string
}

/** The kinds of alerts that are counted. */
const TOLD = ["agent.asked", "agent.stopped", "session.suspended", "plan.blocked", "plan.stopped"]

export class Alerts implements Check {
  private readonly verdicts: Verdicts
  /** How often each trouble came up. */
  private readonly troubles = new Map<string, number>()
  private readonly queued: Array<Queued> = []
  private readonly batches = new Set<string>()
  /** Alerts that were mailed, or given up. */
  private readonly settled = new Set<Queued>()
  private readonly letters = new Set<string>()
  private readonly ids = new Map<string, string>()

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune({ actor, eventId, from, kind, payload, stream, to }: Rune): void {
    const isFatal = kind === "worker.moved" && to === "Stopped" && from !== "Stopped" && payload["fatal"] != null
    const event = payload["event"] as { readonly _tag?: string; readonly by?: string } | undefined
    const isEnded = kind === "plan.stopped" && !(event?._tag === "user_cancel" && event.by !== "agentd")
    const isTrouble = kind === "session.suspended" || kind === "agent.asked" || kind === "plan.blocked"
    if (isFatal || isEnded || isTrouble) this.happened(nameOf(stream, actor, kind))
    if (kind === "alert.queued") this.queue(payload as unknown as Announced)
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

  private happened(trouble: string): void {
    this.troubles.set(trouble, (this.troubles.get(trouble) ?? 0) + 1)
  }

  private queue({ alert: { actor, count, kind, stream }, batch }: Announced): void {
    this.batches.add(batch)
    if (!TOLD.includes(kind)) return
    const trouble = nameOf(stream, actor, kind === "agent.stopped" ? "worker.moved" : kind)
    this.queued.push({ batch, trouble, count })
    const [queued, happened] = [sumOf(this.queued, trouble), this.troubles.get(trouble) ?? 0]
    if (queued > happened)
      this.verdicts.broken("a trouble is queued once", `${trouble}: ${queued} alerts of ${happened} troubles`)
  }

  mailed({ messageId, subject }: Letter): void {
    // a test mail, which somebody asked for
    if (messageId === "") return
    this.letters.add(messageId)
    if (this.letters.size > this.batches.size)
      this.verdicts.broken("no mail comes without an alert", `${messageId}: ${subject}`)
  }

  /** Troubles that nobody was mailed of, each as often as it came up. */
  private get untold(): ReadonlyArray<string> {
    const settled = this.queued.filter((one) => this.settled.has(one))
    return [...this.troubles].flatMap(([trouble, times]) =>
      sumOf(settled, trouble) < times ? [`${trouble}: ${sumOf(settled, trouble)} of ${times}`] : []
    )
  }

  isDone(): boolean {
    return this.untold.length === 0
  }

  atRest(): void {
    for (const trouble of this.untold) this.verdicts.broken("a person is mailed of what stopped for good", trouble)
  }
}

const nameOf = (stream: string, actor: string, kind: string): string => `${stream} ${actor} ${kind}`

const sumOf = (queued: ReadonlyArray<Queued>, trouble: string): number =>
  queued.reduce((sum, one) => (one.trouble === trouble ? sum + one.count : sum), 0)
