/**
 * AttachView: the runes of one agent as a person reads a conversation. Pure but
 * for what it remembers of the turn under way.
 *
 * Guarantees: each rune becomes a bounded number of lines of bounded length, none
 * of which can speak to the terminal; an answer that streamed is not shown twice.
 */
import { words } from "../../runs/FileWords.ts"
import { agentKinds } from "../../agents/machines/AgentKinds.ts"
import { reader, type RuneOf } from "../../core/event-log/EventKinds.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { age, type Colour, cut, plain, plainLines } from "../render/Output.ts"
import { ENDINGS } from "../../domain/Endings.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import * as HalfAnswer from "../../domain/HalfAnswer.ts"
import { choices } from "../daemon/Waiting.ts"

export interface Line {
  readonly text: string
  readonly colour?: Colour | undefined
}

export const KINDS: ReadonlyArray<string> = [
  ...["started", "assistant_delta", "completed", "interrupted", "error"].map((name) => `turn.${name}`),
  ...["call", "approval_requested", "approved", "denied", "progress", "result"].map((name) => `tool.${name}`),
  ...["ready", "terminated", "failed", "budget_exhausted", "spawned", "reported", "asked"].map(
    (name) => `agent.${name}`
  ),
  "agent.bound_reached",
  ...["started", "output", "thought", "notice", "memory_lost"].map((name) => `run.${name}`),
  ...["started", "moved"].map((name) => `worker.${name}`),
  "inbox.received"
]

/** Kinds that come in pieces while something goes on, and are of no use afterwards. */
const PASSING = new Set(["turn.assistant_delta", "run.thought", "tool.progress"])
export const KEPT: ReadonlyArray<string> = KINDS.filter((kind) => !PASSING.has(kind))

/** Characters of one line, and lines of one thing. */
const LONG = 2000
const SHORT = 300
const INPUT_LINES = 12
const ANSWER_LINES = 400
const RESULT_LINES = 8
const PROGRESS_LINES = 200
const THOUGHT_LINES = 40

const read = reader(agentKinds)

type Known = RuneOf<typeof agentKinds>
type Kind = Known["kind"]
type PayloadOf<K extends Kind> = Extract<Known, { readonly kind: K }>["payload"]

/** Text of a provider's or a tool's value. */
const text = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)

const line = (shown: string, colour?: Colour): Line => ({ text: cut(shown, LONG), colour })

/** How calls end that were stopped, and did not fail. */
const CALLED_OFF: ReadonlySet<string> = new Set(["cancelled", "denied"])

const RUN_ENDED = line("— the run has ended", "dim")

/** At most so many lines of a text, each with the margin; a cut is said. */
const block = (whole: string, most: number, margin: string, colour?: Colour): ReadonlyArray<Line> => {
  const lines = plainLines(whole.trimEnd())
  const shown = lines.slice(0, most).map((each) => line(`${margin}${each}`, colour))
  return lines.length <= most ? shown : [...shown, line(`${margin}… ${lines.length - most} more lines`, "dim")]
}

const number = (value: unknown, name: string): number | undefined => {
  if (typeof value !== "object" || value === null || !(name in value)) return undefined
  const found = (value as { readonly [key: string]: unknown })[name]
  return typeof found === "number" ? found : undefined
}

/** `1200 in, 56 out, $0.02`: as far as it is known. */
const usageOf = (usage: unknown): string => {
  const [input, output, usd] = ["inputTokens", "outputTokens", "usd"].map((name) => number(usage, name))
  const parts = [
    ...((input ?? 0) + (output ?? 0) === 0 ? [] : [`${input ?? 0} tokens in, ${output ?? 0} out`]),
    ...(usd === undefined || usd === 0 ? [] : [`$${usd.toFixed(usd < 0.01 ? 4 : 2)}`])
  ]
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`
}

/**
 * The turn that a rune begins: a run's first begins with the run, and not when the run counts as started. A command has
 * to live for a moment for that, and may have said much by then.
 */
export const turnIn = (
  any: Rune
): { readonly turnId: string; readonly input: string; readonly isRun: boolean } | undefined => {
  const rune = read(any)
  if (rune?.kind === "turn.started")
    return { turnId: rune.payload.turn_id, input: text(rune.payload.input), isRun: false }
  if (rune?.kind !== "worker.moved" || rune.payload.event._tag !== "PromptReady") return undefined
  const { prompt, runId } = rune.payload.event
  return { turnId: runId, input: text(prompt), isRun: true }
}

export const endsTurn = (any: Rune): boolean => {
  const rune = read(any)
  switch (rune?.kind) {
    case "turn.completed":
    case "turn.interrupted":
    case "turn.error":
      return true
    case "worker.moved":
      return rune.payload.event._tag === "SessionExited"
    default:
      return false
  }
}

const approval = ({ approver, event }: PayloadOf<"tool.approved">): string => {
  const answers = "answers" in event ? event.answers : undefined
  const by = plain(text(approver))
  return answers !== undefined ? `  ${by} answered: ${plain(answers.join("; "))}` : `  approved by ${by}`
}

/** Longest text that waits for its line's end. */
const PARTIAL = 4000

export class AttachView {
  /** The agent's words on a line that has not ended. */
  partial = ""
  /** Thoughts on a line that has not ended, and how many lines of them were shown. */
  private thought = ""
  private thoughtLines = 0
  /** The turn whose answer has been seen as it came. */
  private streamed: string | null = null
  private turnId: string | null = null
  private startedAt = 0
  /** The turn that was shown to begin with its run. */
  private begun: string | null = null
  private readonly progress = new Map<string, number>()

  feed(any: Rune): ReadonlyArray<Line> {
    const rune = read(any)
    if (rune === undefined) return []
    if (rune.kind === "turn.assistant_delta") return [...this.thoughtOver(), ...this.delta(rune.payload)]
    if (rune.kind === "run.thought") return [...this.answerOver(), ...this.thinks(rune.payload)]
    const rest = this.flush()
    const begin = turnIn(any)
    return [...rest, ...(begin === undefined ? this.lines(rune) : this.begins(begin, any.at))]
  }

  flush(): ReadonlyArray<Line> {
    return [...this.thoughtOver(), ...this.answerOver()]
  }

  private answerOver(): ReadonlyArray<Line> {
    const { partial } = this
    this.partial = ""
    return partial === "" ? [] : [line(partial)]
  }

  private thoughtOver(): ReadonlyArray<Line> {
    const { thought } = this
    const last = thought === "" ? [] : this.thoughts([thought])
    ;[this.thought, this.thoughtLines] = ["", 0]
    return last
  }

  private thinks({ text }: PayloadOf<"run.thought">): ReadonlyArray<Line> {
    const lines = plainLines(this.thought + text)
    this.thought = lines.at(-1) ?? ""
    const done = this.thoughts(lines.slice(0, -1))
    if (this.thought.length <= PARTIAL) return done
    const rest = this.thoughts([this.thought])
    this.thought = ""
    return [...done, ...rest]
  }

  /** The first lines of a thought; of the rest, that there is one. */
  private thoughts(lines: ReadonlyArray<string>): ReadonlyArray<Line> {
    const left = THOUGHT_LINES - this.thoughtLines
    this.thoughtLines += lines.length
    const shown = lines.slice(0, Math.max(0, left)).map((each) => line(`  ┊ ${each}`, "dim"))
    return left > 0 && lines.length > left ? [...shown, line("  ┊ … the rest is in the log", "dim")] : shown
  }

  private delta({ content, turn_id: turnId }: PayloadOf<"turn.assistant_delta">): ReadonlyArray<Line> {
    this.streamed = turnId
    const lines = plainLines(this.partial + text(content))
    this.partial = lines.at(-1) ?? ""
    const done = lines.slice(0, -1).map((each) => line(each))
    return this.partial.length > PARTIAL ? [...done, ...this.flush()] : done
  }

  private lines(rune: Known): ReadonlyArray<Line> {
    const { actor, at } = rune
    const callId = actor.slice(actor.lastIndexOf("/") + 1)
    switch (rune.kind) {
      case "turn.completed":
        return this.completed(rune.payload, at)
      case "turn.interrupted":
        return [line(`■ the turn was interrupted: ${plain(rune.payload.reason)}`, "yellow")]
      case "turn.error": {
        const { error_type: type, message, partial_output: part, turn_id: turnId } = rune.payload
        const half = text(part)
        return [
          ...(half === "" || this.streamed === turnId ? [] : block(half, ANSWER_LINES, "")),
          ...(half === "" ? [] : [line(HalfAnswer.MARK, "yellow")]),
          line(`✗ the turn failed: ${plain(`${type}: ${text(message)}`)}`, "red")
        ]
      }
      case "tool.call": {
        const args = plain(text(rune.payload.arguments).slice(0, LONG))
        return [line(`⚙ ${plain(text(rune.payload.tool_name))} ${cut(args, SHORT)}`, "cyan")]
      }
      case "tool.approval_requested": {
        const { event, policy_reason: reason } = rune.payload
        const questions = "questions" in event ? event.questions : undefined
        if (questions !== undefined)
          return [
            line("? it asks you to choose", "yellow"),
            ...choices(questions).map((each) => line(`  ${each}`, "cyan")),
            line(`  type ${questions.map(() => "1").join("; ")}   or   /answer ${plain(callId)} a text`, "yellow")
          ]
        return [
          line(`? it asks: ${plain(text(reason))}`, "yellow"),
          line(`  /approve ${plain(callId)}   or   /deny ${plain(callId)} why`, "yellow")
        ]
      }
      case "tool.approved":
        return [line(approval(rune.payload), "dim")]
      case "tool.denied":
        return [line(`  denied: ${plain(text(rune.payload.reason))}`, "yellow")]
      case "tool.approval_withdrawn":
        return [line("  it has taken its question back", "dim")]
      case "tool.progress":
        return this.progressed(callId, rune.payload)
      case "tool.result":
        return this.result(callId, rune.payload)
      case "run.output":
        return this.output(rune.payload)
      case "run.memory_lost":
      case "run.notice":
        return [line(`! ${plain(rune.payload.text)}`, "yellow")]
      case "run.started":
        return [line("— a run has started", "dim")]
      default:
        return told(rune)
    }
  }

  /** A turn that began with its run is not told again. */
  private begins({ input, isRun, turnId }: NonNullable<ReturnType<typeof turnIn>>, at: number): ReadonlyArray<Line> {
    if (turnId === this.begun) return []
    if (isRun) this.begun = turnId
    ;[this.turnId, this.streamed, this.startedAt] = [turnId, null, at]
    return [line(""), line("▶ a turn begins", "bold"), ...block(input, INPUT_LINES, "  ", "dim")]
  }

  private completed(payload: PayloadOf<"turn.completed">, at: number): ReadonlyArray<Line> {
    const seen = this.streamed === payload.turn_id
    const took = this.startedAt === 0 ? "" : ` after ${age(at - this.startedAt)}`
    return [
      ...(seen ? [] : block(text(payload.final_output), ANSWER_LINES, "")),
      line(`✓ the turn is over${took}${usageOf(payload.usage)}`, "green"),
      ...("exit" in payload.event && payload.event.exit !== undefined ? [RUN_ENDED] : [])
    ]
  }

  private progressed(callId: string, { chunk }: PayloadOf<"tool.progress">): ReadonlyArray<Line> {
    const before = this.progress.get(callId) ?? 0
    if (before >= PROGRESS_LINES) return []
    const lines = block(text(chunk), PROGRESS_LINES - before, "  │ ", "dim")
    this.progress.set(callId, before + lines.length)
    return before + lines.length >= PROGRESS_LINES ? [...lines, line("  │ … the rest is in the log", "dim")] : lines
  }

  private result(callId: string, { error, output, reason, status }: PayloadOf<"tool.result">): ReadonlyArray<Line> {
    this.progress.delete(callId)
    const said = text(output ?? error ?? reason)
    const colour = status === "success" ? "dim" : CALLED_OFF.has(status) ? "yellow" : "red"
    return [line(`  → ${plain(status)}`, colour), ...block(said, RESULT_LINES, "    ", "dim")]
  }

  /** A run without turns says all it says this way; what a turn says came as its own. */
  private output({ runId, source, text }: PayloadOf<"run.output">): ReadonlyArray<Line> {
    if (source === "assistant" && this.streamed !== null) return []
    // What a command prints is its answer.
    if (source === "stdout") this.streamed = this.turnId ?? runId
    return block(text, ANSWER_LINES, "", source === "stderr" ? "dim" : undefined)
  }
}

const told = (rune: Known): ReadonlyArray<Line> => {
  switch (rune.kind) {
    case "inbox.received": {
      const { event } = rune.payload
      if (event._tag !== "Received") return []
      const { files = [], from, text, urgent } = event.message
      const how = urgent ? ", urgent" : ""
      return [
        line(`✉ from ${plain(from)}${how}: ${cut(plain(text.slice(0, LONG)), SHORT)}`, "cyan"),
        ...files.map((file) => line(`  with ${cut(plain(words(file)), SHORT)}`, "cyan"))
      ]
    }
    case "agent.reported":
      return [line(`★ it reports ${plain(rune.payload.status)}: ${plain(rune.payload.summary)}`, "green")]
    case "agent.asked":
      return [line(`? it asks a person: ${plain(rune.payload.question)}`, "yellow")]
    case "agent.spawned":
      return [line(`— it has a sub-agent: ${plain(rune.payload.agent_id)}`, "dim")]
    case "agent.ready":
      return [line("— the agent is ready", "dim")]
    case "agent.budget_exhausted":
      return [line(`! its budget of ${plain(text(rune.payload.resource))} is spent`, "red")]
    case "agent.failed":
      return [line(`✗ the agent failed: ${plain(text(rune.payload.error))}`, "red")]
    case "agent.terminated":
      return [line(`■ the agent has ended: ${plain(text(rune.payload.reason))}`, "yellow")]
    case "agent.bound_reached":
      return [line(`! ${plain(rune.payload.text)}`, "yellow")]
    case "worker.started":
      return [line(`— started by ${plain(rune.payload.by ?? "agentd")}`, "dim")]
    case "worker.moved":
      return moved(rune)
    default:
      return []
  }
}

const isEnding = (reason: string): reason is keyof typeof ENDINGS => Object.hasOwn(ENDINGS, reason)

const endingOf = (outcome: Outcome): string => {
  if ("detail" in outcome && outcome.detail !== undefined) return plain(outcome.detail)
  if ("reason" in outcome) return isEnding(outcome.reason) ? ENDINGS[outcome.reason] : plain(outcome.reason)
  return outcome._tag === "Timeout" ? "it took too long" : plain(outcome._tag)
}

/** The run's end, and what becomes of the agent by it. */
const exited = ({ event, totalErrors = 0, consecutiveErrors = 0 }: PayloadOf<"worker.moved">, to: string | null) => {
  if (event._tag !== "SessionExited") return []
  const { outcome } = event
  if (outcome._tag === "Success") return [RUN_ENDED]
  const how = endingOf(outcome)
  const counted = outcome._tag === "Uncounted" ? "" : ` (error ${consecutiveErrors} in a row, ${totalErrors} in all)`
  const next = to === "CoolingDown" ? "; it tries again" : to === "Stopped" ? "; it has stopped for good" : ""
  return [
    line(`— the run has ended: ${how}${totalErrors === 0 ? "" : counted}${next}`, counted === "" ? "yellow" : "red")
  ]
}

/** Of the worker's moves those that a person would not see otherwise. */
const moved = (rune: Extract<Known, { readonly kind: "worker.moved" }>): ReadonlyArray<Line> => {
  const { event } = rune.payload
  switch (event._tag) {
    case "SessionExited":
      return exited(rune.payload, rune.to)
    case "GraceExceeded":
      return [line("— the run did not end in its grace, and is killed", "yellow")]
    case "UrgentMessage":
      return [line(`— the run is interrupted by ${event.messageId === null ? "a person" : "an urgent message"}`, "dim")]
    case "OperatorStop":
      return [line(`■ stopped by ${plain(event.by)}${event.reason === undefined ? "" : `: ${plain(event.reason)}`}`)]
    case "FatalError":
      return [line(`✗ it cannot go on: ${plain(event.message)}`, "red")]
    default:
      return []
  }
}
