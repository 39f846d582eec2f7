/**
 * TurnMachine: one turn of an agent, from its input to its answer.
 *
 * Guarantees: There is at most one turn at a time; a start outside `idle` is postponed. Every started turn gets a final
 * rune. Events of an earlier turn change nothing. A turn has no time limit of its own.
 */
import { Schema } from "effect"
import type { Rune } from "../../core/event-log/Rune.ts"
import { define, evolve, illegal, on, postpone, type Snapshot, stale, to } from "../../core/event-actor/StateMachine.ts"

export type State = "idle" | "streaming" | "tool_executing" | "completed" | "interrupted" | "error"

/** Where the input of a turn comes from. `own`: the run started the turn by itself. */
export const Source = Schema.Literals(["resume", "steer", "queue", "own"])
export type Source = typeof Source.Type

const turnId = Schema.String
/** Set if the turn starts together with its run: the worker's data about the run. */
const run = Schema.optional(
  Schema.Struct({ seq: Schema.Int, pid: Schema.optional(Schema.Int), sessionId: Schema.optional(Schema.String) })
)
/** Set if the turn ends together with its run, and the run ended successfully. */
const exit = Schema.optional(Schema.Struct({ runId: Schema.String, seq: Schema.Int }))
/** Time in which the turn's work may stop by itself after an interrupt, ms. If omitted, the previous value applies. */
const graceMillis = Schema.optional(Schema.Finite)

export const Event = Schema.Union([
  Schema.TaggedStruct("start_turn", {
    turnId,
    agentId: Schema.String,
    input: Schema.String,
    source: Source,
    /** Ids of the messages in the input. If a crash ends the turn, the messages are queued again under the same ids. */
    messageIds: Schema.Array(Schema.String),
    graceMillis,
    run,
    at: Schema.Finite
  }),
  Schema.TaggedStruct("assistant_delta", { turnId, content: Schema.String }),
  Schema.TaggedStruct("tool_calls_received", { turnId, callIds: Schema.Array(Schema.String) }),
  /** The provider has answered, and its answer contains no tool calls. */
  Schema.TaggedStruct("response_done", { turnId, finalOutput: Schema.String, usage: Schema.Unknown, exit }),
  Schema.TaggedStruct("stream_error", {
    turnId,
    errorType: Schema.String,
    message: Schema.String,
    /** True if the turn's messages are queued again. */
    retry: Schema.optional(Schema.Boolean),
    /** The part of the answer that arrived before a limit ended the turn. */
    partialOutput: Schema.optional(Schema.String),
    /** True if the run's process died. The agent is then disconnected until its worker is ready for the next run. */
    died: Schema.optional(Schema.Boolean)
  }),
  /** Every call has its result. `continue`: true if the provider is called again. */
  Schema.TaggedStruct("tools_finished", {
    turnId,
    results: Schema.Array(Schema.Unknown),
    continue: Schema.Boolean,
    finalOutput: Schema.optional(Schema.String),
    usage: Schema.optional(Schema.Unknown)
  }),
  /** A tool failure that ends the turn. Other tool failures are ordinary results. */
  Schema.TaggedStruct("tool_crash", {
    turnId,
    callId: Schema.NullOr(Schema.String),
    message: Schema.String,
    retry: Schema.optional(Schema.Boolean)
  }),
  Schema.TaggedStruct("interrupt", {
    /** Id of the turn to interrupt; if omitted, the active turn. */
    turnId: Schema.optional(turnId),
    by: Schema.String,
    reason: Schema.String,
    /** True if the turn's messages are queued again. If omitted, they are dropped. */
    keep: Schema.optional(Schema.Boolean),
    /** Ids of the messages that are dropped. The other messages are queued again. */
    drops: Schema.optional(Schema.Array(Schema.String)),
    partialOutput: Schema.optional(Schema.String)
  }),
  /**
   * A steering message: new input that does not wait for the turn's end. `turnId`: id of the turn that starts if no
   * turn is active.
   */
  Schema.TaggedStruct("steer", {
    turnId,
    agentId: Schema.String,
    input: Schema.String,
    messageIds: Schema.Array(Schema.String),
    /** Id of the turn that the steering message interrupts; omitted only in older logs. */
    from: Schema.optional(turnId),
    partialOutput: Schema.optional(Schema.String),
    graceMillis,
    at: Schema.Finite
  }),
  /** The turn's work has stopped and its results are stored. `forced`: true if the grace period expired first. */
  Schema.TaggedStruct("turn_finalized", { turnId, forced: Schema.optional(Schema.Boolean) })
])
export type Event = typeof Event.Type

export type Action =
  /** Stops the provider's answer and the tool calls at the next safe boundary. */
  | { readonly _tag: "StopWork"; readonly turnId: string | null }
  | { readonly _tag: "ForceStopWork"; readonly turnId: string | null }

export type Outcome = "completed" | "interrupted" | "error"

export interface Steer {
  readonly turnId: string
  readonly input: string
  readonly messageIds: ReadonlyArray<string>
}

export interface Data {
  /** Id of the active turn; of the last turn if none is active. */
  readonly turnId: string | null
  readonly agentId: string | null
  readonly messageIds: ReadonlyArray<string>
  /** Ids of messages that have not been answered. If no turn is active, they are queued again. */
  readonly unfinished: ReadonlyArray<string>
  /** The end of the last turn; null while a turn is active and before the first turn. */
  readonly ended: { readonly outcome: Outcome; readonly reason: string | null; readonly died?: true } | null
  /** When the turn started, ms since the epoch; null before the first turn. */
  readonly startedAt: number | null
  readonly pendingCalls: ReadonlyArray<string>
  /** The input of a steering message, for the next turn; null if there is none. */
  readonly steer: Steer | null
  readonly graceMillis: number
}

export const initial = (options: { readonly graceMillis?: number } = {}): Data => ({
  turnId: null,
  agentId: null,
  messageIds: [],
  unfinished: [],
  ended: null,
  startedAt: null,
  pendingCalls: [],
  steer: null,
  graceMillis: options.graceMillis ?? 10_000
})

export const kinds = [
  "turn.started",
  "turn.assistant_delta",
  "turn.tool_calls_received",
  "turn.tools_finished",
  "turn.completed",
  "turn.interrupted",
  "turn.error",
  "turn.finalized"
] as const
export type Kind = (typeof kinds)[number]

/** Rune kinds that are not needed to rebuild the state: their transitions change neither state nor data. */
export const lazy: ReadonlyArray<Kind> = ["turn.assistant_delta"]

/**
 * How often lost turns are searched, ms. `SWEEP_AGE`: how old a turn without a live run must be before it is ended, ms.
 */
export const SWEEP_INTERVAL = 60_000
export const SWEEP_AGE = 300_000

/** Whether the search for lost turns may end this turn. `live`: a live run works on the turn. */
export const sweepable = (state: State, data: Data, now: number, live: boolean): boolean =>
  (state === "streaming" || state === "tool_executing") && !live && now - (data.startedAt ?? now) > SWEEP_AGE

/** Sources of the next turn's input, in order of priority. */
export const SOURCES: ReadonlyArray<Source> = ["resume", "steer", "queue"]

/** The messages of the next turn: all messages of the first source that has any. */
export const nextOf = <A extends { readonly source: Source; readonly messages: ReadonlyArray<unknown> }>(
  waiting: ReadonlyArray<A>
): A | undefined => {
  for (const source of SOURCES) {
    const found = waiting.find((candidate) => candidate.source === source && candidate.messages.length > 0)
    if (found !== undefined) return found
  }
  return undefined
}

const update = on<Event, Data>()

/** Finalizes a turn whose work has already stopped. The rune that ends the turn also finalizes it. */
const finalize = (data: Data): Event => ({ _tag: "turn_finalized", turnId: data.turnId ?? "" })

/** Combines two steering messages that arrive before the next turn into one input. */
const added = (before: Steer | null, { turnId, input, messageIds }: Steer): Steer =>
  before === null
    ? { turnId, input, messageIds }
    : { turnId, input: `${before.input}\n\n${input}`, messageIds: [...before.messageIds, ...messageIds] }

/** Whether the new turn was started by the steering message, or carries its messages. */
const takes = (
  { messageIds, turnId }: { readonly turnId: string; readonly messageIds: ReadonlyArray<string> },
  steer: Steer
): boolean =>
  turnId === steer.turnId || (steer.messageIds.length > 0 && steer.messageIds.every((id) => messageIds.includes(id)))

/** The fields that change when a turn ends. */
const over = (data: Data, outcome: Outcome, reason: string | null, again: boolean) => ({
  ended: { outcome, reason },
  unfinished: again ? data.unfinished : []
})

/** Maximum length of the field `input`, characters. The event itself contains the whole input. */
const MAX_SHOWN = 64 * 1024

const excerpt = (input: string | undefined): string | undefined =>
  input === undefined || input.length <= MAX_SHOWN
    ? input
    : `${input.slice(0, MAX_SHOWN)}… (${input.length} characters; all of it: event.input)`

const begin = { set: "begin", rune: "turn.started" } as const
const waits = postpone("start_turn", "steer")
const past = stale(
  "assistant_delta",
  "tool_calls_received",
  "response_done",
  "stream_error",
  "tools_finished",
  "tool_crash",
  "interrupt"
)
const stop = { act: ["StopWork"], rune: "turn.interrupted" } as const
const interrupted = to("interrupted", { set: "interrupt", ...stop })

export const Turn = define<State, Event, Data, Action, Kind>()({
  name: "turn",
  initial: "idle",
  final: [],
  rune: "turn.finalized",
  fenced: (data, event) => {
    if (event._tag === "start_turn") return false
    // interrupted work continues first; the steering messages wait in the inbox
    if (event._tag === "steer") {
      return event.from === undefined ? data.ended !== null && data.unfinished.length > 0 : event.from !== data.turnId
    }
    return event.turnId !== undefined && event.turnId !== data.turnId
  },
  guards: {
    continuing: (_, event) => event._tag === "tools_finished" && event.continue,
    forced: (_, event) => event._tag === "turn_finalized" && event.forced === true
  },
  updates: {
    begin: update(["start_turn", "steer"], (data, event) => ({
      ...data,
      turnId: event.turnId,
      agentId: event.agentId,
      messageIds: event.messageIds,
      unfinished: event.messageIds,
      ended: null,
      startedAt: event.at,
      graceMillis: event.graceMillis ?? data.graceMillis,
      pendingCalls: [],
      steer: data.steer === null || takes(event, data.steer) ? null : data.steer
    })),
    call: update("tool_calls_received", (data, event) => ({
      ...data,
      pendingCalls: [...data.pendingCalls, ...event.callIds]
    })),
    settleCalls: update("tools_finished", (data, event) => ({
      ...data,
      pendingCalls: [],
      ...(event.continue ? {} : over(data, "completed", null, false))
    })),
    complete: (data) => ({ ...data, ...over(data, "completed", null, false) }),
    fail: update(["stream_error", "tool_crash"], (data, event) => {
      const { ended, unfinished } = over(data, "error", event.message, event.retry === true)
      const died = event._tag === "stream_error" && event.died === true
      return { ...data, unfinished, ended: died ? { ...ended, died } : ended }
    }),
    interrupt: update("interrupt", (data, event) => {
      const { drops } = event
      const { ended, unfinished } = over(data, "interrupted", event.reason, event.keep === true || drops !== undefined)
      return { ...data, ended, unfinished: unfinished.filter((messageId) => drops?.includes(messageId) !== true) }
    }),
    /** The agent has already read the messages of the interrupted turn, so they are not queued again. */
    redirect: update("steer", (data, event) => ({
      ...data,
      ...over(data, "interrupted", "steered", false),
      steer: added(data.steer, event)
    }))
  },
  actions: {
    StopWork: (data) => ({ _tag: "StopWork", turnId: data.turnId }),
    ForceStopWork: (data) => ({ _tag: "ForceStopWork", turnId: data.turnId })
  },
  timers: {
    grace: {
      after: (data) => data.graceMillis,
      fires: (data) => ({ _tag: "turn_finalized", turnId: data.turnId ?? "", forced: true })
    }
  },
  passing: { completed: finalize, error: finalize },
  fields: {
    "turn.started": (data, event) => ({
      turn_id: data.turnId,
      agent_id: data.agentId,
      input: event._tag === "start_turn" || event._tag === "steer" ? excerpt(event.input) : null
    }),
    "turn.assistant_delta": (data, event) => ({
      turn_id: data.turnId,
      content: event._tag === "assistant_delta" ? event.content : null
    }),
    "turn.tool_calls_received": (data) => ({ turn_id: data.turnId, call_ids: data.pendingCalls }),
    "turn.tools_finished": (data, event) => ({
      turn_id: data.turnId,
      results: event._tag === "tools_finished" ? event.results : []
    }),
    "turn.completed": (data, event) => ({
      turn_id: data.turnId,
      final_output: event._tag === "response_done" || event._tag === "tools_finished" ? event.finalOutput : null,
      usage: event._tag === "response_done" || event._tag === "tools_finished" ? event.usage : null
    }),
    "turn.interrupted": (data, event) => ({
      turn_id: data.turnId,
      reason: event._tag === "interrupt" ? event.reason : "steered",
      partial_output: event._tag === "interrupt" || event._tag === "steer" ? event.partialOutput : null
    }),
    "turn.error": (data, event) => ({
      turn_id: data.turnId,
      error_type: event._tag === "stream_error" ? event.errorType : "tool_crash",
      message: event._tag === "stream_error" || event._tag === "tool_crash" ? event.message : null,
      ...(event._tag === "stream_error" && event.partialOutput !== undefined
        ? { partial_output: event.partialOutput }
        : {})
    }),
    "turn.finalized": (data) => ({ turn_id: data.turnId })
  },
  states: {
    /** Selects the next turn's input: first `data.steer`, then the waiting messages that `nextOf` returns. */
    idle: { enter: "TakeNext" },
    streaming: { enter: "StreamResponse" },
    tool_executing: { enter: "RunTools" },
    completed: {},
    interrupted: { enter: "FinalizeTurn", timeout: "grace" },
    error: {}
  },
  table: {
    idle: {
      ...past,
      ...stale("turn_finalized"),
      start_turn: to("streaming", begin),
      steer: to("streaming", begin)
    },
    streaming: {
      ...postpone("start_turn"),
      ...illegal("tools_finished", "tool_crash", "turn_finalized"),
      assistant_delta: to("streaming", { rune: "turn.assistant_delta" }),
      tool_calls_received: to("tool_executing", { set: "call", rune: "turn.tool_calls_received" }),
      response_done: to("completed", { set: "complete", rune: "turn.completed" }),
      stream_error: to("error", { set: "fail", rune: "turn.error" }),
      interrupt: interrupted,
      steer: to("interrupted", { set: "redirect", ...stop })
    },
    tool_executing: {
      ...waits,
      ...stale("assistant_delta"),
      ...illegal("response_done", "stream_error", "turn_finalized"),
      tool_calls_received: to("tool_executing", { set: "call", rune: "turn.tool_calls_received" }),
      tools_finished: {
        set: "settleCalls",
        then: [
          { to: "streaming", when: "continuing", rune: "turn.tools_finished" },
          { to: "completed", rune: "turn.completed" }
        ]
      },
      interrupt: interrupted,
      tool_crash: to("error", { set: "fail", rune: "turn.error" })
    },
    completed: { ...past, ...waits, turn_finalized: to("idle") },
    interrupted: {
      ...past,
      ...waits,
      turn_finalized: {
        then: [{ to: "idle", when: "forced", act: ["ForceStopWork"] }, { to: "idle" }]
      }
    },
    error: { ...past, ...waits, turn_finalized: to("idle") }
  }
})

/** Accepts an extra rune that older versions of agentd wrote for a turn that was already finalized. */
export const evolveTurn = (snapshot: Snapshot<State, Data>, rune: Rune): Snapshot<State, Data> =>
  rune.kind === "turn.finalized" && snapshot.state === "idle" ? snapshot : evolve(Turn, snapshot, rune)
