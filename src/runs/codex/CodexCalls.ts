/**
 * CodexCalls: the tool calls of a turn, including those of its subagents, and the open questions about them. Pure.
 *
 * Guarantees: each call is emitted before its question and its result, and has at most one of each. A question is
 * answered at most once. If Codex asks about something else than was emitted, the question belongs to a new call.
 */
import type { Decision, RunEvent } from "../Backend.ts"
import { isSame } from "../CanonicalJson.ts"
import type { Question as Asked } from "../Question.ts"
import { type Call, callOf, isReadOnly, outputOf, statusOf } from "./CodexItems.ts"
import * as Messages from "./CodexMessages.ts"

/** The result of an answer to a request of Codex. */
type Answer = (decision: Decision) => unknown

interface Question {
  readonly requestId: Messages.RequestId
  readonly item: string
  readonly answer: Answer
  /** True if Codex reports no result for the call: the call ends when its request is resolved. */
  readonly isWhole: boolean
  decided: Decision["behavior"] | undefined
}

/** A call without a result. */
interface Open {
  /** Ids by which agentd knows the call. More than one if Codex asks again for the same item. */
  readonly ids: Array<string>
  call: Call
  /** The call as it was last emitted. */
  told: Call
  /** True once the call is known to be running. */
  runs: boolean
  asked: boolean
}

export interface Request {
  readonly id: Messages.RequestId
  readonly method: string
  readonly params: unknown
}

/** Requests of Codex about the call of an item, with the answer to each. */
const decided: Answer = (decision) => ({
  decision: decision.behavior === "allow" ? "accept" : decision.interrupt === true ? "cancel" : "decline"
})

const elicited: Answer = (decision) =>
  decision.behavior === "allow"
    ? { action: "accept", content: {}, _meta: null }
    : { action: decision.interrupt === true ? "cancel" : "decline", content: null, _meta: null }

/** Maximum length in characters of a question and of an option, and maximum number of questions and of options. */
const MAX_QUESTION = 1_000
const MAX_OPTION = 300
const MAX_QUESTIONS = 8

type UserInput = typeof Messages.UserInput.Type

const questionsOf = ({ questions }: UserInput): ReadonlyArray<Asked> =>
  questions.slice(0, MAX_QUESTIONS).map(({ options, question }) => ({
    question: question.slice(0, MAX_QUESTION),
    options: (options ?? []).slice(0, MAX_QUESTIONS).map(({ description, label }) => ({
      label: label.slice(0, MAX_OPTION),
      description: (description ?? "").slice(0, MAX_OPTION)
    })),
    several: false
  }))

/** Builds the answers by the ids of their questions. A single answer is for all questions. */
const answersOf =
  ({ questions }: UserInput): Answer =>
  (decision) => {
    const said = decision.behavior === "allow" ? (decision.answers ?? []) : []
    const each = questions.flatMap(({ id }, at) => {
      const text = said[at] ?? said.at(-1)
      return text === undefined ? [] : [[id, { answers: [text] }] as const]
    })
    return { answers: Object.fromEntries(each) }
  }

/** Maximum number of item ids that are kept to recognize repeated ids. */
const MAX_NAMES = 10_000

/** State of completed calls. Stored with a checkpoint, for a daemon that resumes the process. */
export type KnownCalls = ReadonlyArray<readonly [item: string, count: number]>

export class CodexCalls {
  private readonly given: ReadonlyArray<string>
  /** Open calls, by the id of their item. */
  private readonly open = new Map<string, Open>()
  /** Open questions, by agentd's id of the call. */
  private readonly questions = new Map<string, Question>()
  private readonly refused = new Set<string>()
  /** How often each id was used. The newest id is last. */
  private readonly used: Map<string, number>

  /** `given`: names of the MCP servers that agentd provides to the run. */
  constructor(given: ReadonlyArray<string> = [], used: KnownCalls = []) {
    this.given = given
    this.used = new Map(used)
  }

  /** State that is stored for a later daemon. Valid only while no call is open. */
  get known(): KnownCalls {
    return [...this.used]
  }

  /** True if a call is running or the user was asked: then Codex need not send output. */
  get busy(): boolean {
    return this.open.size > 0
  }

  /** Open commands, by the id of their item. */
  get commands(): ReadonlyArray<readonly [item: string, command: string]> {
    return [...this.open].flatMap(([item, { call, runs }]) => {
      const { command = "" } = (call.arguments ?? {}) as { readonly command?: string }
      return call.tool === "shell" && runs ? [[item, command] as const] : []
    })
  }

  private named(open: Open, item: string, readOnly: boolean): RunEvent {
    const count = (this.used.get(item) ?? 0) + 1
    this.used.delete(item)
    this.used.set(item, count)
    if (this.used.size > MAX_NAMES) this.used.delete(this.used.keys().next().value!)
    const callId = count === 1 ? item : `${item}#${count}`
    open.ids.push(callId)
    open.told = open.call
    const { tool } = open.call
    const voice = this.given.some((server) => tool.startsWith(`mcp__${server}__`)) ? { voice: true } : {}
    return { _tag: "ToolCall", callId, tool, arguments: open.call.arguments, readOnly, ...voice }
  }

  /** Handles an item that has begun. `isHeld`: Codex's own sandbox lets commands only read. */
  began(item: Messages.Item, isHeld: boolean): ReadonlyArray<RunEvent> {
    const call = callOf(item)
    if (call === undefined || this.used.has(item.id)) return []
    const open: Open = { ids: [], call, told: call, runs: false, asked: false }
    this.open.set(item.id, open)
    const isRunning = item.type !== "commandExecution" || (item.processId ?? "") !== ""
    const told = this.named(open, item.id, isReadOnly(item, isHeld))
    return isRunning && item.type === "commandExecution" ? [told, ...this.runs(item.id)] : [told]
  }

  runs(item: string): ReadonlyArray<RunEvent> {
    const open = this.open.get(item)
    if (open === undefined || open.runs) return []
    open.runs = true
    return [{ _tag: "ToolStarted", callId: open.ids.at(-1)! }]
  }

  progress({ delta, itemId }: typeof Messages.Delta.Type): ReadonlyArray<RunEvent> {
    const callId = this.open.get(itemId)?.ids.at(-1)
    if (callId === undefined) return []
    return [...this.runs(itemId), { _tag: "ToolProgress", callId, stream: "stdout", chunk: delta }]
  }

  /** Handles new changes of an open call. They are emitted when Codex asks about them. */
  patched({ changes, itemId }: typeof Messages.Patch.Type): void {
    const open = this.open.get(itemId)
    if (open !== undefined) open.call = { ...open.call, arguments: { changes } }
  }

  /** Handles a request to the user; undefined if agentd does not know it. */
  asked(request: Request): ReadonlyArray<RunEvent> | undefined {
    const { params } = request
    const item = Messages.read(Messages.About, params)?.itemId ?? `request-${request.id}`
    switch (request.method) {
      case "item/commandExecution/requestApproval": {
        const told = Messages.read(Messages.CommandApproval, params)
        if (told === undefined) return undefined
        const { additionalPermissions, command, cwd, networkApprovalContext, reason } = told
        const before = (this.open.get(item)?.call.arguments ?? {}) as object
        const more = { command, cwd, additionalPermissions, networkApprovalContext }
        const set = Object.fromEntries(
          Object.entries(more).filter(([, value]) => value !== null && value !== undefined)
        )
        const call = { tool: "shell", arguments: { ...before, ...set } }
        return this.ask(request.id, item, { call, reason, answer: decided })
      }
      case "item/fileChange/requestApproval": {
        const { grantRoot, reason } = Messages.read(Messages.PatchApproval, params) ?? {}
        const before = (this.open.get(item)?.call.arguments ?? {}) as object
        const call = { tool: "apply_patch", arguments: { ...before, ...(grantRoot ? { grantRoot } : {}) } }
        return this.ask(request.id, item, { call, reason, answer: decided })
      }
      case "item/permissions/requestApproval": {
        const told = Messages.read(Messages.PermissionsApproval, params)
        if (told === undefined) return undefined
        const { permissions, reason } = told
        const answer: Answer = ({ behavior }) => ({
          permissions: behavior === "allow" ? permissions : {},
          scope: "turn"
        })
        const call = { tool: "request_permissions", arguments: { permissions } }
        return this.ask(request.id, item, { call, reason, answer, isWhole: true })
      }
      case "item/tool/requestUserInput": {
        const told = Messages.read(Messages.UserInput, params)
        if (told === undefined || told.questions.length === 0) return undefined
        const questions = questionsOf(told)
        const reason = `it asks: ${questions.map(({ question }) => question).join(" ")}`
        const call = { tool: "request_user_input", arguments: { questions: told.questions } }
        return this.ask(request.id, item, { call, reason, answer: answersOf(told), isWhole: true, questions })
      }
      case "mcpServer/elicitation/request":
        return this.elicits(request)
      default:
        return undefined
    }
  }

  /** Codex asks about a call of an MCP server's tool without the id of the call's item. */
  private elicits({ id, params }: Request): ReadonlyArray<RunEvent> | undefined {
    const told = Messages.read(Messages.Elicitation, params)
    const { codex_approval_kind: kind, tool_name: tool, tool_params: input } = told?._meta ?? {}
    if (told === undefined || kind !== "mcp_tool_call") return undefined
    const call = { tool: `mcp__${told.serverName}__${tool ?? ""}`, arguments: input ?? {} }
    const found = [...this.open].find(([, open]) => !open.asked && isSame(open.call, call))
    const item = found?.[0] ?? `request-${id}`
    return this.ask(id, item, { call, reason: told.message, answer: elicited, isWhole: found === undefined })
  }

  private ask(
    requestId: Messages.RequestId,
    item: string,
    {
      answer,
      call,
      isWhole = false,
      questions,
      reason
    }: {
      readonly call: Call
      readonly reason: string | null | undefined
      readonly answer: Answer
      readonly isWhole?: boolean
      readonly questions?: ReadonlyArray<Asked>
    }
  ): ReadonlyArray<RunEvent> {
    const known = this.open.get(item)
    const open: Open = known ?? { ids: [], call, told: call, runs: false, asked: false }
    this.open.set(item, open)
    const isNew = known === undefined || known.asked || known.runs || !isSame(known.told, call)
    open.call = call
    open.asked = true
    const told = isNew ? [this.named(open, item, false)] : []
    if (isNew) open.runs = false
    const callId = open.ids.at(-1)!
    this.questions.set(callId, { requestId, item, answer, isWhole, decided: undefined })
    const asks = questions === undefined ? {} : { questions }
    return [...told, { _tag: "ApprovalRequested", callId, reason: reason ?? "", ...asks }]
  }

  /** The answer to the question about a call; undefined if the question is no longer open. */
  answer(
    callId: string,
    decision: Decision
  ): { readonly id: Messages.RequestId; readonly result: unknown } | undefined {
    const question = this.questions.get(callId)
    if (question === undefined || question.decided !== undefined) return undefined
    question.decided = decision.behavior
    if (decision.behavior === "deny") this.refused.add(question.item)
    return { id: question.requestId, result: question.answer(decision) }
  }

  /** Called when Codex no longer waits for an answer to a request. */
  resolved(requestId: Messages.RequestId): ReadonlyArray<RunEvent> {
    const found = [...this.questions].find(([, question]) => question.requestId === requestId)
    if (found === undefined) return []
    const [callId, { decided, isWhole, item }] = found
    this.questions.delete(callId)
    if (decided === undefined && !isWhole) return [{ _tag: "ApprovalWithdrawn", callId }]
    if (!isWhole) return decided === "allow" ? this.runs(item) : []
    this.open.delete(item)
    this.refused.delete(item)
    const status = decided === undefined ? "cancelled" : decided === "allow" ? "success" : "denied"
    return [{ _tag: "ToolResult", callId, status, output: "" }]
  }

  completed(item: Messages.Item, interrupted: boolean): ReadonlyArray<RunEvent> {
    const open = this.open.get(item.id)
    if (open === undefined) return []
    this.open.delete(item.id)
    const status = statusOf(item, { refused: this.refused.delete(item.id), interrupted })
    const output = outputOf(item)
    for (const callId of open.ids) this.questions.delete(callId)
    return open.ids.map((callId) => ({ _tag: "ToolResult", callId, status, output }))
  }

  /** Emits the results of commands that run on although their turn has ended. */
  leave(): ReadonlyArray<RunEvent> {
    const output = "The command was still running when the turn ended. It continues in the background."
    return this.commands.flatMap(([item]) =>
      this.open.get(item)!.ids.map((callId): RunEvent => ({ _tag: "ToolResult", callId, status: "success", output }))
    )
  }

  /** Stops waiting for the result of a call. */
  forget(callId: string): void {
    this.questions.delete(callId)
    for (const [item, { ids }] of this.open) {
      const at = ids.indexOf(callId)
      if (at >= 0) ids.splice(at, 1)
      if (ids.length === 0) this.open.delete(item)
    }
  }

  clear(): void {
    this.open.clear()
    this.questions.clear()
    this.refused.clear()
  }
}
