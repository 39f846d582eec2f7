/** Reports: what an agent reports is received by the one that it reports to, once, whenever the daemon dies. */
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Check, Verdicts } from "./Check.ts"

interface Report {
  readonly stream: string
  readonly parent: string
  readonly eventId: number
}

export class Reports implements Check {
  private readonly verdicts: Verdicts
  /** By the id of the message that tells of it. */
  private readonly owed = new Map<string, Report>()
  private readonly received = new Set<string>()

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune({ eventId, kind, payload, stream }: Rune): void {
    if (kind === "session.closed") {
      for (const [id, report] of this.owed) if (report.stream === stream) this.owed.delete(id)
    }
    if (kind === "agent.reported") {
      const { agent_id, parent_id } = payload as { readonly agent_id: string; readonly parent_id: string | null }
      if (parent_id !== null) this.owed.set(`child/${agent_id}/${eventId}`, { stream, parent: parent_id, eventId })
    }
    if (kind !== "inbox.received") return
    const { messageId } = (payload["event"] as { readonly message: { readonly messageId: string } }).message
    if (!messageId.startsWith("child/")) return
    const key = `${stream} ${messageId}`
    if (this.received.has(key)) this.verdicts.broken("news of a sub-agent is received once", key)
    this.received.add(key)
    if (this.owed.delete(messageId)) this.verdicts.sometimes("a parent hears a report")
  }

  isDone(): boolean {
    return this.owed.size === 0
  }

  atRest(): void {
    for (const { eventId, parent } of this.owed.values())
      this.verdicts.broken("who is reported to hears it", `${parent}, rune ${eventId}`)
  }
}
