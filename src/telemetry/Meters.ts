/**
 * Meters: counts and measures the daemon's work in Effect `Metric`s. Names follow Prometheus' convention, with the unit
 * in the name. Each label has a limited number of values.
 *
 * Guarantees: every metric is derived from durable runes, or from the supervision tree when metrics are requested.
 * Counting never fails and calls no other part. Durations are differences between the `at` fields of runes.
 */
import { type Context, Metric } from "effect"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import { reader, type Table } from "../core/event-log/EventKinds.ts"
import type { Rune } from "../core/event-log/Rune.ts"

/** Maximum number of agents with their own label. All further agents are counted as `other`. */
const MAX_AGENTS = 200
/** Maximum number of start times in memory. */
const MAX_OPEN = 10_000

/** Bucket boundaries of the histograms, in seconds: from the duration of a commit to that of a day-long turn. */
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2, 10, 60, 300, 1_800, 7_200, 86_400]

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const histogram = (name: string, description: string) => Metric.histogram(name, { description, boundaries: SECONDS })
const gauge = (name: string, description: string) => Metric.gauge(name, { description })

const runes = counter("agentd_runes_total", "Runes that became durable, by kind")
const runsStarted = counter("agentd_agent_runs_total", "Runs that were started")
const restarts = counter("agentd_agent_restarts_total", "Runs that were started again after a wait")
const errors = counter("agentd_agent_errors_total", "Runs that ended with an error or timed out")
const tokens = counter("agentd_agent_tokens_total", "Tokens that agents used")
const toolCalls = counter("agentd_agent_tool_calls_total", "Tool calls that agents made")
const usd = counter("agentd_agent_cost_usd_total", "Cost of the agents, in US dollars")
const backoff = histogram("agentd_agent_backoff_seconds", "Waits between the end of a run and the next one")
const queued = histogram("agentd_message_queue_seconds", "How long messages waited for the turn that carried them")
const turns = histogram("agentd_turn_seconds", "Duration of turns, by how they ended")
const appended = histogram(
  "agentd_append_seconds",
  "Time from the creation of a rune until it was durable and read; leaves out runes that also waited for the reader"
)
const hooks = histogram("agentd_hook_seconds", "Time from the arrival of a hook's request to the answer")
const mailbox = gauge("agentd_mailbox_messages", "Messages in the mailboxes of all actors")
const deepest = gauge("agentd_mailbox_messages_max", "Messages in the fullest mailbox of an actor")
const childRestarts = gauge(
  "agentd_supervisor_restarts",
  "Restarts of supervised parts since their supervisors started"
)
const children = gauge("agentd_supervised_parts", "Supervised parts that are running")

/** Kinds of runes that are measured. Runes of other kinds are only counted. */
const read = reader({
  "worker.moved": agentKinds["worker.moved"],
  "agent.usage": agentKinds["agent.usage"],
  "inbox.received": agentKinds["inbox.received"],
  "turn.started": agentKinds["turn.started"],
  "turn.completed": agentKinds["turn.completed"],
  "turn.interrupted": agentKinds["turn.interrupted"],
  "turn.error": agentKinds["turn.error"]
} satisfies Table)

/** The measured fields of one part of the supervision tree. */
export interface Seen {
  readonly kind: "supervisor" | "worker" | "actor"
  readonly status: string | null
  readonly mailbox: number | null
  readonly restarts: number | null
}

const agentOf = (actor: string): string => actor.slice(actor.indexOf("/") + 1)

/** Start times of messages, turns and waits, by id. If there are too many, the oldest are dropped. */
class Begun {
  private readonly at = new Map<string, number>()

  begin(id: string, at: number): void {
    if (this.at.size >= MAX_OPEN) this.at.delete(this.at.keys().next().value!)
    this.at.set(id, at)
  }

  /**
   * Seconds since the message, turn or wait with this id began; 0 if the clock was set back. Undefined if its start time
   * is unknown.
   */
  end(id: string, at: number): number | undefined {
    const begun = this.at.get(id)
    if (begun === undefined) return undefined
    this.at.delete(id)
    return Math.max(0, at - begun) / 1_000
  }
}

export class Meters {
  private readonly context: Context.Context<never>
  /**
   * Metrics with labels, by metric name and label value. They are cached, because creating a metric costs more than
   * counting.
   */
  private readonly labelled = new Map<string, Metric.Metric<number, unknown>>()
  private readonly agents = new Set<string>()
  private readonly waiting = new Begun()
  private readonly messages = new Begun()
  private readonly turns = new Begun()

  constructor(context: Context.Context<never>) {
    this.context = context
  }

  private count(metric: Metric.Metric<number, unknown>, label: string, value: string, by: number): void {
    const key = `${metric.id}\0${value}`
    const known = this.labelled.get(key) ?? Metric.withAttributes(metric, { [label]: value })
    this.labelled.set(key, known)
    known.updateUnsafe(by, this.context)
  }

  private ofAgent(metric: Metric.Metric<number, unknown>, actor: string, by: number): void {
    const name = agentOf(actor)
    if (this.agents.size < MAX_AGENTS) this.agents.add(name)
    this.count(metric, "agent", this.agents.has(name) ? name : "other", by)
  }

  /**
   * Counts durable runes that were read together at `now`. `looked`: time of the previous reading; both times are in ms
   * since the epoch. A rune older than `looked` had to wait for this reading, so its age does not measure the log's
   * speed and is not recorded.
   */
  takeAll(runes: ReadonlyArray<Rune>, { looked, now }: { readonly looked: number; readonly now: number }): void {
    for (const rune of runes) {
      if (rune.at >= looked) appended.updateUnsafe(Math.max(0, now - rune.at) / 1_000, this.context)
      this.take(rune)
    }
  }

  private take(rune: Rune): void {
    this.count(runes, "kind", rune.kind, 1)
    const known = read(rune)
    if (known === undefined) return
    const { actor, at } = rune
    switch (known.kind) {
      case "worker.moved":
        return this.moved(rune, known.payload.event)
      case "agent.usage": {
        this.ofAgent(tokens, actor, known.payload.tokens)
        this.ofAgent(toolCalls, actor, known.payload.tool_calls)
        this.ofAgent(usd, actor, known.payload.usd)
        return
      }
      case "inbox.received": {
        const { event } = known.payload
        return event._tag === "Received" ? this.messages.begin(event.message.messageId, at) : undefined
      }
      case "turn.started": {
        this.turns.begin(known.payload.turn_id, at)
        const { event } = known.payload
        if (event._tag !== "start_turn") return
        for (const id of event.messageIds) this.lasted(queued, this.messages.end(id, at))
        // a run that begins together with its turn has no rune of its own, so count it here
        if (event.run !== undefined) this.ofAgent(runsStarted, actor, 1)
        return
      }
      default: {
        const seconds = this.turns.end(known.payload.turn_id, at)
        if (seconds !== undefined) this.count(turns, "end", known.kind.slice("turn.".length), seconds)
        const { event } = known.payload
        // a run that ends together with its turn has no rune of its own, so its end is recorded here
        if (event._tag === "response_done" && event.exit !== undefined)
          this.waiting.begin(`${rune.stream}/worker/${agentOf(actor)}`, at)
      }
    }
  }

  private lasted(metric: Metric.Metric<number, unknown>, seconds: number | undefined): void {
    if (seconds !== undefined) metric.updateUnsafe(seconds, this.context)
  }

  private moved(
    { actor, at, stream, to }: Rune,
    event: { readonly _tag: string; readonly outcome?: { readonly _tag: string } }
  ): void {
    const worker = `${stream}/${actor}`
    if (event._tag === "SessionStarted") this.ofAgent(runsStarted, actor, 1)
    if (event._tag === "SessionExited" && (event.outcome?._tag === "Error" || event.outcome?._tag === "Timeout"))
      this.ofAgent(errors, actor, 1)
    if (event._tag === "BackoffElapsed") {
      this.ofAgent(restarts, actor, 1)
      this.lasted(backoff, this.waiting.end(worker, at))
    }
    if (to === "CoolingDown") this.waiting.begin(worker, at)
  }

  hook(seconds: number): void {
    hooks.updateUnsafe(seconds, this.context)
  }

  /** Measures the current supervision tree. Called when metrics are requested or sent. */
  look(tree: ReadonlyArray<Seen>): void {
    const depths = tree.map((row) => row.mailbox ?? 0)
    mailbox.updateUnsafe(
      depths.reduce((sum, depth) => sum + depth, 0),
      this.context
    )
    deepest.updateUnsafe(Math.max(0, ...depths), this.context)
    childRestarts.updateUnsafe(
      tree.reduce((sum, row) => sum + (row.restarts ?? 0), 0),
      this.context
    )
    children.updateUnsafe(
      tree.filter(({ kind, status }) => kind !== "actor" && status === "running").length,
      this.context
    )
  }
}
