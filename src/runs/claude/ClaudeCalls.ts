/**
 * ClaudeCalls: the tool calls of a turn, including those of its subagents, and the open questions
 * about them. Pure.
 *
 * Guarantees: each call is emitted before its question and its result, and has at most one of each.
 * A question is answered at most once. When the CLI asks for approval of a plan, the question lacks the plan's text;
 * the text is added before the question is emitted.
 */
import { type Decision, denialOf, type RunEvent } from "../Backend.ts"
import { isSame } from "../CanonicalJson.ts"
import { type ClaudeRecord, inner, list, text } from "./ClaudeRecord.ts"
import { answered, isReadOnly, outputOf, planAfter, PLANS, questionsOf, reasonOf, statusOf } from "./ClaudeTools.ts"

interface Question {
  readonly requestId: string
  readonly input: ClaudeRecord
  /** The CLI's id of the call. */
  readonly toolUse: string
}

/** A call without a result. */
interface Open {
  /** Ids by which agentd knows the call. More than one if the CLI asks again for the same call. */
  readonly ids: Array<string>
  readonly tool: string
  /** The input as it was last emitted. */
  input: unknown
  /** True once the call is known to be running. */
  runs: boolean
  asked: boolean
}

type Plan = { readonly path: string; readonly text: string }

/** State of completed calls. Stored with a checkpoint, for a daemon that resumes the process. */
export interface KnownCalls {
  readonly used: ReadonlyArray<readonly [string, number]>
  readonly plan: Plan | undefined
}

/** Maximum number of call ids that are kept to recognize repeated calls. */
const MAX_NAMES = 10_000

export const answerTo = (requestId: string, response: ClaudeRecord): ClaudeRecord => ({
  type: "control_response",
  response: { subtype: "success", request_id: requestId, response }
})

export const refusalOf = (requestId: string, error: string): ClaudeRecord => ({
  type: "control_response",
  response: { subtype: "error", request_id: requestId, error }
})

export class ClaudeCalls {
  private readonly given: ReadonlyArray<string>
  /** Open calls, by the CLI's id of the call. */
  private readonly open = new Map<string, Open>()
  /** Open questions, by agentd's id of the call. */
  private readonly questions = new Map<string, Question>()
  private readonly refused = new Set<string>()
  /** How often the CLI has used each id. The newest id is last. */
  private readonly used: Map<string, number>

  private plan: Plan | undefined

  /** `given`: names of the MCP servers that agentd provides to the run. */
  constructor(given: ReadonlyArray<string> = [], { plan, used = [] }: Partial<KnownCalls> = {}) {
    this.given = given
    this.used = new Map(used)
    this.plan = plan
  }

  /** State that is stored for a later daemon. Valid only while no call is open. */
  get known(): KnownCalls {
    return { used: [...this.used], plan: this.plan }
  }

  /** True if a call is running or the user was asked: then the CLI need not send output. */
  get busy(): boolean {
    return this.open.size > 0 || this.questions.size > 0
  }

  /** Handles a call. If its CLI id was already used, the call is a repetition and is ignored. */
  called(toolUse: string, tool: string, input: unknown): ReadonlyArray<RunEvent> {
    if (toolUse === "" || this.used.has(toolUse)) return []
    this.plan = planAfter(this.plan, tool, input)
    const told = this.shown(tool, input)
    const open: Open = { ids: [], tool, input: told, runs: false, asked: false }
    this.open.set(toolUse, open)
    return [this.named(open, toolUse, tool, told)]
  }

  private shown(tool: string, input: unknown): unknown {
    const isBare = typeof input === "object" && input !== null && !("plan" in input)
    return tool === PLANS && isBare && this.plan !== undefined ? { ...input, plan: this.plan.text } : input
  }

  private named({ ids }: Open, toolUse: string, tool: string, input: unknown): RunEvent {
    const count = (this.used.get(toolUse) ?? 0) + 1
    this.used.delete(toolUse)
    this.used.set(toolUse, count)
    if (this.used.size > MAX_NAMES) this.used.delete(this.used.keys().next().value!)
    const callId = count === 1 ? toolUse : `${toolUse}#${count}`
    ids.push(callId)
    const voice = this.given.some((server) => tool.startsWith(`mcp__${server}__`)) ? { voice: true } : {}
    return { _tag: "ToolCall", callId, tool, arguments: input, readOnly: isReadOnly(tool), ...voice }
  }

  runs(toolUse: string): ReadonlyArray<RunEvent> {
    const open = this.open.get(toolUse)
    if (open === undefined || open.runs) return []
    open.runs = true
    return [{ _tag: "ToolStarted", callId: open.ids.at(-1)! }]
  }

  /**
   * Handles a `can_use_tool` request. Each call asks once. A second question, or a question with an input that differs
   * from the emitted one, starts a new call. The input of this request is sent back with the answer.
   */
  asked(requestId: string, request: ClaudeRecord): ReadonlyArray<RunEvent> {
    const toolUse = text(request, "tool_use_id") || requestId
    const tool = text(request, "tool_name")
    const input = inner(request, "input")
    const known = this.open.get(toolUse)
    const open: Open = known ?? { ids: [], tool, input, runs: false, asked: false }
    this.open.set(toolUse, open)
    // the CLI leaves the plan's text out of its question
    const told = tool === PLANS && Object.keys(input).length === 0 ? (known?.input ?? this.shown(tool, input)) : input
    const isNew = known === undefined || known.asked || !isSame(known.input, told)
    const call = isNew ? [this.named(open, toolUse, tool, told)] : []
    if (isNew) open.runs = false
    open.input = told
    open.asked = true
    const callId = open.ids.at(-1)!
    this.questions.set(callId, { requestId, input, toolUse })
    const questions = questionsOf(tool, input)
    const asks = questions.length === 0 ? {} : { questions }
    return [
      ...call,
      {
        _tag: "ApprovalRequested",
        callId,
        reason: reasonOf(request),
        ...asks,
        ...(tool === PLANS ? { always: true } : {})
      }
    ]
  }

  /** The record that answers a question; undefined if the question is no longer open. */
  answer(callId: string, decision: Decision): ClaudeRecord | undefined {
    const question = this.questions.get(callId)
    if (question === undefined) return undefined
    this.questions.delete(callId)
    if (decision.behavior === "allow")
      return answerTo(question.requestId, {
        behavior: "allow",
        updatedInput: answered(question.input, decision.answers)
      })
    this.refuse(question.toolUse)
    const { behavior, interrupt, message } = decision
    return answerTo(question.requestId, {
      behavior,
      message: denialOf(message),
      ...(interrupt === undefined ? {} : { interrupt })
    })
  }

  /** Called when a hook, a rule or an answer has denied the call: the call's result will only say that it failed. */
  refuse(toolUse: string): void {
    if (this.open.has(toolUse)) this.refused.add(toolUse)
  }

  /** Called when the CLI no longer waits for an answer. */
  withdrawn(requestId: string): ReadonlyArray<RunEvent> {
    const gone = [...this.questions].filter(([, question]) => question.requestId === requestId)
    return gone.map(([callId]) => {
      this.questions.delete(callId)
      return { _tag: "ApprovalWithdrawn", callId }
    })
  }

  results(record: ClaudeRecord, interrupted: boolean): ReadonlyArray<RunEvent> {
    const metas = list(record, "tool_result_meta")
    return list(inner(record, "message"), "content").flatMap((block): ReadonlyArray<RunEvent> => {
      const toolUse = text(block, "tool_use_id")
      const open = this.open.get(toolUse)
      if (block["type"] !== "tool_result" || open === undefined) return []
      this.open.delete(toolUse)
      const meta = metas.find((one) => one["id"] === toolUse)
      const status = statusOf(block, meta, { refused: this.refused.delete(toolUse), interrupted })
      const output = outputOf(block)
      for (const callId of open.ids) this.questions.delete(callId)
      return open.ids.map((callId) => ({ _tag: "ToolResult", callId, status, output }))
    })
  }

  /** Returns the open call with this id of the CLI; undefined if there is none. */
  made(toolUse: string): { readonly tool: string; readonly input: ClaudeRecord } | undefined {
    const open = this.open.get(toolUse)
    return open === undefined ? undefined : { tool: open.tool, input: inner({ ...open }, "input") }
  }

  /** Stops waiting for the result of a call. */
  forget(callId: string): void {
    this.questions.delete(callId)
    for (const [toolUse, { ids }] of this.open) {
      const at = ids.indexOf(callId)
      if (at >= 0) ids.splice(at, 1)
      if (ids.length === 0) this.open.delete(toolUse)
    }
  }

  clear(): void {
    this.open.clear()
    this.questions.clear()
    this.refused.clear()
  }
}
