/**
 * ConversationView: the runes of one agent as a conversation that the user can read: items, each with a level and text.
 * All views of a conversation (attach, logs, history, the board, the page) show these items. Pure, except that it
 * stores data about the current turn.
 *
 * Guarantees: a rune becomes a bounded number of items. A streamed answer is not shown twice. Output of an agent's
 * program is never shown as a decision, nor a decision as output. Fields of runes are not checked again when they are
 * read, because the page does not contain the Schema library.
 */
import { givenWords } from "../approvals/AnswerScope.ts"
import { attempt } from "../config/Attempt.ts"
import type { agentKinds } from "../agents/machines/AgentKinds.ts"
import type { RuneOf } from "../core/event-log/EventKinds.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { ENDINGS } from "../domain/EndReasons.ts"
import * as TruncatedAnswer from "../domain/TruncatedAnswer.ts"
import { words } from "../runs/FileDescription.ts"
import type { Outcome } from "../runs/Outcome.ts"
import type { Question } from "../runs/Question.ts"

type Known = RuneOf<typeof agentKinds>
type Kind = Known["kind"]
type Of<K extends Kind> = Extract<Known, { readonly kind: K }>

/** Severity levels, as in syslog. */
export type Level = "error" | "warning" | "notice" | "info"

export interface About {
  /** Time of the rune, ms since the epoch. */
  readonly at: number
  readonly eventId: number
  /** `output`: the agent's program wrote it; `decision`: agentd or the user made it. */
  readonly what: "output" | "decision"
  readonly level: Level
  readonly text: string
}

type Is<Name extends string, More extends object = object> = About & { readonly is: Name } & Readonly<More>

interface Begin {
  readonly turnId: string
  readonly input: string
  readonly messageIds: ReadonlyArray<string>
  /** True if the turn is the beginning of a run; its id is then the run's id. */
  readonly isRun: boolean
  /** True if the beginning of this turn was already shown, together with its run. */
  readonly isTold: boolean
}
interface Over {
  readonly how: "completed" | "interrupted" | "failed"
  readonly turnId: string
  /** True if the turn's messages are queued again. */
  readonly isAgain: boolean
  /** The answer, the partial answer, or the reason, even if it was already shown. */
  readonly output: string
  /** Duration in ms; undefined if the view did not see the turn begin. */
  readonly took: number | undefined
  /** Tokens and money used by the turn, as text with a leading space; empty if unknown. */
  readonly usage: string
}
/** An answer to a tool call that asked the user. `answers`: the user's answers to the call's questions. */
interface Answered {
  readonly id: string
  readonly by: string
  readonly isAllowed: boolean
  readonly reason: string
  readonly answers?: ReadonlyArray<string> | undefined
}
/** A change of messages that no turn is processing, or that are asked again under another id. */
interface InboxMove {
  readonly did: "withdrawn" | "dropped" | "asked again" | "dismissed"
  readonly messages: ReadonlyArray<{ readonly from: string; readonly to?: string }>
}

export type Item =
  | Is<"begin", Begin>
  /** A piece of an answer or a thought, which the next piece continues. */
  | Is<"piece", { of: "answer" | "thought" }>
  /** A whole answer. `runId`: set for runes of an older agentd, in which runs without turns answered this way. */
  | Is<"answer", { runId?: string }>
  | Is<"printed", { isError: boolean; runId: string }>
  | Is<"over", Over>
  | Is<"call", { id: string; turnId: string; tool: string; input: unknown }>
  | Is<"asks", { id: string; questions: ReadonlyArray<Question> | undefined }>
  | Is<"answered", Answered>
  | Is<"withdrawn", { id: string }>
  | Is<"progress", { id: string }>
  | Is<"result", { id: string; status: string; output: string; isExpired: boolean }>
  | Is<"message", { id: string; by: string; how: "" | "steered" | "urgent"; files: ReadonlyArray<string> }>
  | Is<"inbox", InboxMove>
  | Is<"run", { runId: string; end: string; how: "well" | "badly" | "cut short" | "stopped" }>
  | Is<"usage", { tokens: number; usd: number }>
  /** A remark. `sign` marks an action, warning, failure, end, report or question. `isSerious`: shown as an error. */
  | Is<"note", { sign: "" | "—" | "!" | "✗" | "■" | "★" | "?"; isSerious: boolean; runId?: string }>

type Told = Item extends infer I ? (I extends Item ? Omit<I, "at" | "eventId"> : never) : never
type Note = Extract<Told, { readonly is: "note" }>

const names = (topic: string, ...all: ReadonlyArray<string>) => all.map((name) => `${topic}.${name}`)

export const SHOWN: ReadonlyArray<string> = [
  ...names("turn", "started", "assistant_delta", "completed", "interrupted", "error"),
  ...names("tool", "call", "approval_requested", "approval_withdrawn", "approved", "denied", "progress", "result"),
  ...names("agent", "ready", "terminated", "failed", "budget_exhausted", "spawned", "reported", "asked"),
  "agent.bound_reached",
  ...names("run", "started", "output", "thought", "notice", "memory_lost"),
  ...names("worker", "started", "moved"),
  "inbox.received"
]
/** Kinds of runes that are written piece by piece during a turn or call, and are not needed afterwards. */
const PASSING: ReadonlyArray<string> = ["turn.assistant_delta", "run.thought", "tool.progress"]
export const KEPT: ReadonlyArray<string> = SHOWN.filter((kind) => !PASSING.includes(kind))
/** All kinds of runes that are read. Some of them only change items that are already shown. */
export const KINDS: ReadonlyArray<string> = [
  ...SHOWN,
  ...names("inbox", "withdrawn", "dropped", "asked_again", "dismissed"),
  "agent.usage"
]

const known = new Set(KINDS)

/** The rune with its type. Undefined for an unknown kind, and for a payload that was erased or archived. */
const read = (rune: Rune): Known | undefined => {
  const [first] = Object.entries(rune.payload)
  const isGone = first === undefined || (first[0] === "archived" && first[1] === true)
  return known.has(rune.kind) && !isGone ? (rune as unknown as Known) : undefined
}

/** A value from a provider or a tool, as text. */
export const textOf = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)
const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0)

/** The agent whose state machine wrote the rune. Each tool call has a state machine of its own. */
export const agentOf = ({ actor }: Pick<Rune, "actor">): string => {
  const from = actor.indexOf("/") + 1
  return actor.startsWith("tool/") ? actor.slice(from, actor.lastIndexOf("/")) : actor.slice(from)
}

/** Statuses of calls that were stopped but have not failed. */
const CALLED_OFF: ReadonlySet<string> = new Set(["cancelled", "denied"])

/** Usage as text: `1200 tokens in, 56 out, $0.02`. Unknown parts are omitted. */
const usageOf = (usage: unknown): string => {
  const of = (typeof usage === "object" && usage !== null ? usage : {}) as { readonly [name: string]: unknown }
  const [input = 0, output = 0, usd = 0] = ["inputTokens", "outputTokens", "usd"].map((name) => numberOf(of[name]))
  const parts = [
    ...(input + output === 0 ? [] : [`${input} tokens in, ${output} out`]),
    ...(usd === 0 ? [] : [`$${usd.toFixed(usd < 0.01 ? 4 : 2)}`])
  ]
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`
}

/**
 * The turn that begins with a rune. The first turn of a run begins with the run itself. The run counts as started only
 * after its command has stayed alive for a moment, and by then the command can have printed a lot.
 */
const beginOf = (rune: Known): Begin | undefined => {
  if (rune.kind === "turn.started") {
    const { event, input, turn_id: turnId } = rune.payload
    const messageIds = "messageIds" in event ? event.messageIds : []
    return { turnId, input: textOf(input), messageIds, isRun: false, isTold: false }
  }
  if (rune.kind !== "worker.moved" || rune.payload.event._tag !== "PromptReady") return undefined
  const { prompt, runId } = rune.payload.event
  return { turnId: runId, input: textOf(prompt), messageIds: [], isRun: true, isTold: false }
}

/** The id of the turn that begins with a rune; undefined if no turn does. */
export const beginsTurn = (any: Rune): string | undefined => {
  const rune = read(any)
  return rune === undefined ? undefined : attempt(() => beginOf(rune))?.turnId
}

export const endsTurn = (any: Rune): boolean => {
  const rune = read(any)
  if (rune?.kind === "worker.moved") return attempt(() => rune.payload.event._tag) === "SessionExited"
  return rune?.kind === "turn.completed" || rune?.kind === "turn.interrupted" || rune?.kind === "turn.error"
}

const isEnding = (reason: string): reason is keyof typeof ENDINGS => Object.hasOwn(ENDINGS, reason)

const endingOf = (outcome: Outcome): string => {
  if ("detail" in outcome && outcome.detail !== undefined) return outcome.detail
  if ("reason" in outcome) return isEnding(outcome.reason) ? ENDINGS[outcome.reason] : outcome.reason
  return outcome._tag === "Timeout" ? "it took too long" : outcome._tag
}

const output = { what: "output", level: "info" } as const
const decision = { what: "decision", level: "notice" } as const
const warning = { what: "decision", level: "warning" } as const
const failure = { what: "decision", level: "error" } as const

const note = (sign: Note["sign"], text: string, how: Pick<About, "level" | "what">): Note => ({
  is: "note",
  sign,
  isSerious: how.level === "error" || (how.level === "warning" && how.what === "decision"),
  text,
  ...how
})

export class ConversationView {
  /** Id of the turn whose answer was streamed; null if none was. */
  private streamed: string | null = null
  private turnId: string | null = null
  private startedAt: number | undefined = undefined
  /** Id of the turn whose beginning was shown together with its run; null if there is none. */
  private begun: string | null = null
  private run = ""

  /** The items of a rune. Empty if a newer agentd wrote the rune in another form. */
  feed(any: Rune): ReadonlyArray<Item> {
    const rune = read(any)
    const told = rune === undefined ? undefined : attempt(() => this.of(rune))
    return (told ?? []).map((one) => ({ at: any.at, eventId: any.eventId, ...one }))
  }

  private of(rune: Known): ReadonlyArray<Told> {
    const begin = beginOf(rune)
    return begin === undefined ? this.told(rune) : this.begins(begin, rune.at)
  }

  private begins(begin: Begin, at: number): ReadonlyArray<Told> {
    if (begin.isRun) this.run = begin.turnId
    const isTold = begin.turnId === this.begun
    if (begin.isRun) this.begun = begin.turnId
    if (!isTold) [this.turnId, this.streamed, this.startedAt] = [begin.turnId, null, at]
    return [{ is: "begin", ...begin, isTold, ...decision, text: "a turn begins" }]
  }

  private told(rune: Known): ReadonlyArray<Told> {
    switch (rune.kind) {
      case "turn.assistant_delta":
        this.streamed = rune.payload.turn_id
        return [{ is: "piece", of: "answer", ...output, text: textOf(rune.payload.content) }]
      case "run.thought":
        return [{ is: "piece", of: "thought", ...output, text: rune.payload.text }]
      case "run.output":
        return this.printed(rune.payload)
      case "turn.completed":
      case "turn.interrupted":
      case "turn.error":
        return this.over(rune)
      case "worker.moved":
        return moved(rune, this.run)
      default:
        return toldOf(rune)
    }
  }

  /** An answer that a run without turns has printed. The answer of a turn has already been streamed. */
  private printed({ runId, source, text }: Of<"run.output">["payload"]): ReadonlyArray<Told> {
    if (source === "assistant") return this.streamed === null ? [{ is: "answer", runId, ...output, text }] : []
    // the output of a command is the turn's answer
    if (source === "stdout") this.streamed = this.turnId ?? runId
    const how =
      source === "agentd" ? decision : source === "stderr" ? ({ ...output, level: "warning" } as const) : output
    return [{ is: "printed", isError: source === "stderr", runId, ...how, text }]
  }

  private over(rune: Of<"turn.completed" | "turn.error" | "turn.interrupted">): ReadonlyArray<Told> {
    const { turn_id: turnId } = rune.payload
    const isSeen = this.streamed === turnId
    const took = this.startedAt === undefined ? undefined : rune.at - this.startedAt
    const of = { is: "over", turnId, took, usage: "", isAgain: false } as const
    const answer = (text: string): ReadonlyArray<Told> =>
      text === "" || isSeen ? [] : [{ is: "answer", ...output, text }]
    switch (rune.kind) {
      case "turn.completed": {
        const { event, final_output: final, usage } = rune.payload
        const text = textOf(final)
        const end: Told = {
          ...of,
          how: "completed",
          output: text,
          usage: usageOf(usage),
          ...decision,
          text: "the turn is over"
        }
        const isLast = "exit" in event && event.exit !== undefined
        return [...answer(text), end, ...(isLast ? [ran(this.run)] : [])]
      }
      case "turn.interrupted": {
        const { event, reason } = rune.payload
        const isAgain = "keep" in event && event.keep === true
        const text = `the turn was interrupted: ${reason}`
        return [{ ...of, how: "interrupted", output: reason, isAgain, ...warning, text }]
      }
      case "turn.error": {
        const { error_type: type, event, message, partial_output: part } = rune.payload
        const half = textOf(part)
        const isAgain = "retry" in event && event.retry === true
        return [
          ...answer(half),
          ...(half === "" ? [] : [note("", TruncatedAnswer.MARK, warning)]),
          {
            ...of,
            how: "failed",
            output: textOf(message),
            isAgain,
            ...failure,
            text: `the turn failed: ${type}: ${textOf(message)}`
          }
        ]
      }
    }
  }
}

const ran = (runId: string): Told => ({
  is: "run",
  runId,
  how: "well",
  end: "ended well",
  ...decision,
  text: "the run has ended"
})

const askedFor = ({ call_id: id, event, policy_reason: reason }: Of<"tool.approval_requested">["payload"]): Told => {
  const questions = "questions" in event ? event.questions : undefined
  const text = questions === undefined ? `it asks: ${textOf(reason)}` : "it asks you to choose"
  return { is: "asks", id, questions, ...warning, text }
}

const approved = ({ approver, call_id: id, event }: Of<"tool.approved">["payload"]): Told => {
  const answers = "answers" in event ? event.answers : undefined
  const by = textOf(approver)
  const given = "scope" in event && event.scope !== undefined ? `, ${givenWords(event.scope, event.rules ?? [])}` : ""
  const ruled = event._tag === "approved" ? event.policyReason : undefined
  const how = ruled === undefined ? `approved by ${by}${given}` : `allowed by a rule that was added: ${ruled}`
  const text = answers === undefined ? how : `${by} answered: ${answers.join("; ")}`
  return { is: "answered", id, by, isAllowed: true, reason: "", answers, ...decision, text }
}

const resultOf = ({ call_id: id, error, event, output: given, reason, status }: Of<"tool.result">["payload"]): Told => {
  const level = status === "success" ? "info" : CALLED_OFF.has(status) ? "warning" : "error"
  const isExpired = event._tag === "approval_timeout"
  return {
    is: "result",
    id,
    status,
    output: textOf(given ?? error ?? reason),
    isExpired,
    ...output,
    level,
    text: status
  }
}

const inboxOf = (rune: Extract<Known, { readonly kind: `inbox.${string}` }>): ReadonlyArray<Told> => {
  if (!("event" in rune.payload)) return []
  const { event } = rune.payload
  const of = (did: InboxMove["did"], ids: ReadonlyArray<string>, text: string): ReadonlyArray<Told> => [
    { is: "inbox", did, messages: ids.map((from) => ({ from })), ...decision, text }
  ]
  switch (event._tag) {
    case "Received": {
      const { files = [], from, messageId, steer, text, urgent } = event.message
      const how = steer === true ? "steered" : urgent ? "urgent" : ""
      return [{ is: "message", id: messageId, by: from, how, files: files.map(words), ...decision, text }]
    }
    case "Withdrawn":
      return of("withdrawn", [event.messageId], "withdrawn")
    case "Dropped":
      return of("dropped", event.messageIds, `ended without an answer: ${event.reason}`)
    case "Dismissed":
      return of("dismissed", event.messageIds, `discarded by ${event.by}`)
    case "AskedAgain": {
      const messages = event.messages.map(({ as, messageId }) => ({ from: messageId, to: as }))
      return [{ is: "inbox", did: "asked again", messages, ...decision, text: `queued again by ${event.by}` }]
    }
    default:
      return []
  }
}

const toldOf = (rune: Known): ReadonlyArray<Told> => {
  switch (rune.kind) {
    case "tool.call": {
      const { arguments: input, call_id: id, event, tool_name: tool } = rune.payload
      const turnId = event._tag === "call_requested" ? event.turnId : ""
      return [{ is: "call", id, turnId, tool: textOf(tool), input, ...output, text: textOf(tool) }]
    }
    case "tool.approval_requested":
      return [askedFor(rune.payload)]
    case "tool.approved":
      return [approved(rune.payload)]
    case "tool.denied": {
      const { call_id: id, event, reason } = rune.payload
      const by = "approver" in event ? textOf(event.approver) : ""
      return [
        {
          is: "answered",
          id,
          by,
          isAllowed: false,
          reason: textOf(reason),
          ...warning,
          text: `denied: ${textOf(reason)}`
        }
      ]
    }
    case "tool.approval_withdrawn":
      return [{ is: "withdrawn", id: rune.payload.call_id, ...decision, text: "it has withdrawn its question" }]
    case "tool.progress": {
      const { call_id: id, chunk, event } = rune.payload
      const isError = "stream" in event && event.stream === "stderr"
      return [{ is: "progress", id, ...output, level: isError ? "warning" : "info", text: textOf(chunk) }]
    }
    case "tool.result":
      return [resultOf(rune.payload)]
    case "inbox.received":
    case "inbox.withdrawn":
    case "inbox.dropped":
    case "inbox.asked_again":
    case "inbox.dismissed":
      return inboxOf(rune)
    case "agent.usage":
      return [
        { is: "usage", tokens: numberOf(rune.payload.tokens), usd: numberOf(rune.payload.usd), ...decision, text: "" }
      ]
    default:
      return noteOf(rune)
  }
}

const noteOf = (rune: Known): ReadonlyArray<Told> => {
  switch (rune.kind) {
    case "run.notice":
      return [{ ...note("!", rune.payload.text, warning), isSerious: false, runId: rune.payload.runId }]
    case "run.memory_lost":
    case "agent.bound_reached":
      return [note("!", rune.payload.text, warning)]
    case "run.started":
      return [note("—", "a run has started", decision)]
    case "agent.reported":
      return [note("★", `it reports ${rune.payload.status}: ${rune.payload.summary}`, output)]
    case "agent.asked":
      return [note("?", `it asks the user: ${rune.payload.question}`, { ...output, level: "warning" })]
    case "agent.spawned":
      return [note("—", `it has a sub-agent: ${rune.payload.agent_id}`, decision)]
    case "agent.ready":
      return [note("—", "the agent is ready", decision)]
    case "agent.budget_exhausted":
      return [note("!", `its budget of ${textOf(rune.payload.resource)} is spent`, failure)]
    case "agent.failed":
      return [note("✗", `the agent failed: ${textOf(rune.payload.error)}`, failure)]
    case "agent.terminated":
      return [note("■", `the agent has ended: ${textOf(rune.payload.reason)}`, warning)]
    case "worker.started":
      return [note("—", `started by ${rune.payload.by ?? "agentd"}`, decision)]
    default:
      return []
  }
}

/** The end of a run, and the next step of its agent. */
const exited = ({ payload, to }: Of<"worker.moved">, runId: string): ReadonlyArray<Told> => {
  const { consecutiveErrors = 0, event, totalErrors = 0 } = payload
  if (event._tag !== "SessionExited") return []
  const { outcome } = event
  if (outcome._tag === "Success") return [ran(event.runId ?? runId)]
  const end = endingOf(outcome)
  const isCounted = outcome._tag !== "Uncounted"
  const counted = isCounted && totalErrors > 0 ? ` (error ${consecutiveErrors} in a row, ${totalErrors} in total)` : ""
  const next = to === "CoolingDown" ? "; it tries again" : to === "Stopped" ? "; it has stopped permanently" : ""
  const text = `the run has ended: ${end}${counted}${next}`
  return [{ is: "run", runId: event.runId ?? runId, how: "badly", end, ...(isCounted ? failure : warning), text }]
}

/** Items for state changes of the worker that the user would not see otherwise. */
const moved = (rune: Of<"worker.moved">, runId: string): ReadonlyArray<Told> => {
  const { event } = rune.payload
  switch (event._tag) {
    case "SessionExited":
      return exited(rune, runId)
    case "GraceExceeded": {
      const text = "the run did not end within its grace period, and is killed"
      return [{ is: "run", runId: event.runId, how: "cut short", end: "cut short", ...warning, text }]
    }
    case "UrgentMessage": {
      const by = event.messageId === null ? "the user" : "an urgent message"
      return [note("—", `the run is interrupted by ${by}`, decision)]
    }
    case "OperatorStop": {
      const by = `stopped by ${event.by}`
      const text = event.reason === undefined ? by : `${by}: ${event.reason}`
      return [{ is: "run", runId, how: "stopped", end: by, ...decision, text }]
    }
    case "FatalError":
      return [note("✗", `it cannot continue: ${event.message}`, failure)]
    default:
      return []
  }
}
