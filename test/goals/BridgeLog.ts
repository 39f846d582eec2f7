/** Temporary: Log over the EventLog of before. */
import { Cause, Effect } from "effect"
import { type EventLog, StorageError } from "../../src/event-log/EventLog.ts"
import { Flight, type Log, type Prepared, type Unit } from "../../src/event-log/Log.ts"
import type { Rune, RuneDraft } from "../../src/event-log/LogRune.ts"

export class BridgeLog implements Log {
  head = 0
  durable = 0
  readonly flight = new Flight()
  private readonly seqs = new Map<string, number>()
  private readonly inner: EventLog["Service"]
  fails: () => "lost" | "untold" | undefined = () => undefined
  constructor(inner: EventLog["Service"], head: number) {
    this.inner = inner
    this.head = this.durable = head
  }
  seqOf(stream: string): number {
    return this.seqs.get(stream) ?? 0
  }
  prepare({ payload, visibility = "internal" }: RuneDraft): Prepared {
    const text = JSON.stringify(payload)
    return { payload: JSON.parse(text) as Rune["payload"], text, visibility }
  }
  refuses(): undefined {
    return undefined
  }
  share(): number {
    return 384
  }
  append(unit: Unit): boolean {
    const how = this.fails()
    if (how === "lost") throw new StorageError({ message: "the disk is gone", remedy: "None.", reason: "io" })
    const drafts = unit.runes.map(({ actor, from, kind, payload, stream, to, trigger, visibility }) => ({
      stream,
      kind,
      actor,
      from,
      to,
      trigger,
      visibility,
      payload
    }))
    this.head += drafts.length
    for (const { seq, stream } of unit.runes) this.seqs.set(stream, seq)
    this.flight.push(unit)
    void Effect.runPromiseExit(this.inner.append(drafts)).then((exit) => {
      if (exit._tag === "Failure") {
        this.head = this.durable
        this.flight.fail(Cause.squash(exit.cause))
        return
      }
      const runes = exit.value
      if (runes[0]!.eventId !== unit.runes[0]!.eventId)
        console.log(`ids differ: ${runes[0]!.eventId} is not ${unit.runes[0]!.eventId}`)
      this.durable = runes.at(-1)!.eventId
      if (how === "untold") return
      this.flight.shift()
      unit.owner.durable(unit)
      this.flight.passed(this.durable)
    })
    return false
  }
}
