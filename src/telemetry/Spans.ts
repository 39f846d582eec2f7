/**
 * Spans: records the effects of a command as spans in the command's trace: the time that its message waited, the turn
 * that carried the message, with the turn's process, and the turn's tool calls.
 *
 * Guarantees: every span is computed from durable runes and their times. No span contains text from a user or an agent.
 * The number of unfinished spans is bounded: the oldest span is dropped and not sent. Work that no traced command
 * caused has no spans.
 */
import { Context, Exit, Option, Tracer } from "effect"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import { reader, type Table } from "../core/event-log/EventKinds.ts"
import type { Rune } from "../core/event-log/Rune.ts"

const MAX_OPEN = 10_000

/** A map that drops its oldest entry when it is full. */
class Kept<A> {
  private readonly all = new Map<string | number, A>()

  put(key: string | number, value: A): void {
    if (this.all.size >= MAX_OPEN) this.all.delete(this.all.keys().next().value!)
    this.all.set(key, value)
  }

  get(key: string | number): A | undefined {
    return this.all.get(key)
  }

  take(key: string | number): A | undefined {
    const value = this.all.get(key)
    this.all.delete(key)
    return value
  }
}

const read = reader({
  "worker.moved": agentKinds["worker.moved"],
  "inbox.received": agentKinds["inbox.received"],
  "turn.started": agentKinds["turn.started"],
  "turn.completed": agentKinds["turn.completed"],
  "turn.interrupted": agentKinds["turn.interrupted"],
  "turn.error": agentKinds["turn.error"],
  "tool.call": agentKinds["tool.call"],
  "tool.result": agentKinds["tool.result"]
} satisfies Table)

const nanos = (millis: number): bigint => BigInt(Math.round(millis)) * 1_000_000n

const agentOf = (actor: string): string => actor.slice(actor.indexOf("/") + 1)

export class Spans {
  private readonly tracer: Tracer.Tracer
  /** Spans of commands by the rune in the command's reply, until that rune has been read. */
  private readonly commands = new Kept<Tracer.AnySpan>()
  /** Messages by the rune that records their receipt, until the message's command has been answered. */
  private readonly receipts = new Kept<{ readonly messageId: string; readonly at: number; readonly agent: string }>()
  private readonly messages = new Kept<Tracer.Span>()
  private readonly turns = new Kept<Tracer.Span>()
  private readonly calls = new Kept<Tracer.Span>()
  /** The process id of each worker's current run. */
  private readonly pids = new Kept<number>()

  constructor(tracer: Tracer.Tracer) {
    this.tracer = tracer
  }

  private begin(name: string, parent: Tracer.AnySpan, at: number, attributes: { readonly [key: string]: unknown }) {
    const span = this.tracer.span({
      name,
      parent: Option.some(parent),
      annotations: Context.empty(),
      links: [],
      startTime: nanos(at),
      kind: "internal",
      root: false,
      sampled: parent.sampled
    })
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(key, value)
    return span
  }

  private receive(messageId: string, agent: string, at: number, command: Tracer.AnySpan): void {
    this.messages.put(
      messageId,
      this.begin("message", command, at, { "agentd.agent": agent, "agentd.message": messageId })
    )
  }

  /** Stores the process id of a worker's run. A run without its own process has no process id. */
  private runs(worker: string, pid: number | null | undefined): void {
    if (typeof pid === "number") this.pids.put(worker, pid)
    else this.pids.take(worker)
  }

  /** Called when a command was answered with this rune. The rune can be read before or after this call. */
  answered(eventId: number, command: Tracer.AnySpan): void {
    const receipt = this.receipts.take(eventId)
    if (receipt === undefined) this.commands.put(eventId, command)
    else this.receive(receipt.messageId, receipt.agent, receipt.at, command)
  }

  take(rune: Rune): void {
    const known = read(rune)
    if (known === undefined) return
    const { actor, at, eventId, stream } = rune
    const agent = agentOf(actor)
    const worker = `${stream}/${agent}`
    switch (known.kind) {
      case "worker.moved": {
        const { event } = known.payload
        return event._tag === "SessionStarted" ? this.runs(worker, event.pid) : undefined
      }
      case "inbox.received": {
        const { event } = known.payload
        if (event._tag !== "Received") return
        const command = this.commands.take(eventId)
        const { messageId } = event.message
        if (command === undefined) this.receipts.put(eventId, { messageId, at, agent })
        else this.receive(messageId, agent, at, command)
        return
      }
      case "turn.started": {
        const { event, turn_id } = known.payload
        if (event._tag !== "start_turn") return
        if (event.run !== undefined) this.runs(worker, event.run.pid)
        const carried = event.messageIds.flatMap((id) => this.messages.take(id) ?? [])
        for (const message of carried) message.end(nanos(at), Exit.void)
        const [first, ...others] = carried
        if (first === undefined) return
        const turn = this.begin("turn", first, at, {
          "agentd.agent": agent,
          "agentd.turn": turn_id,
          "process.pid": this.pids.get(worker)
        })
        turn.addLinks(others.map((span) => ({ span, attributes: {} })))
        this.turns.put(turn_id, turn)
        return
      }
      case "tool.call": {
        const { call_id, event, tool_name } = known.payload
        const turn = event._tag === "call_requested" ? this.turns.get(event.turnId) : undefined
        if (turn !== undefined) this.calls.put(call_id, this.begin("tool", turn, at, { "agentd.tool": tool_name }))
        return
      }
      case "tool.result": {
        const call = this.calls.take(known.payload.call_id)
        call?.attribute("agentd.status", known.payload.status)
        call?.end(nanos(at), Exit.void)
        return
      }
      default: {
        const turn = this.turns.take(known.payload.turn_id)
        const how = known.kind.slice("turn.".length)
        turn?.attribute("agentd.end", how)
        turn?.end(nanos(at), how === "error" ? Exit.fail("the turn ended with an error") : Exit.void)
      }
    }
  }
}
