/**
 * ClaudeCalls: the tool calls of a turn, those of its subagents among them, and the
 * questions that are open about them. Pure.
 *
 * Guarantees: each call is told before its question and its result, and has one of each
 * at most; an answer goes to a question that waits, once.
 */
import type { Decision, RunEvent } from "../Backend.ts"
import { type ClaudeRecord, inner, list, text } from "./ClaudeRecord.ts"
import { answered, isReadOnly, outputOf, questionsOf, reasonOf, statusOf } from "./ClaudeTools.ts"

interface Question {
  readonly requestId: string
  readonly input: ClaudeRecord
}

export const answerTo = (requestId: string, response: ClaudeRecord): ClaudeRecord => ({
  type: "control_response",
  response: { subtype: "success", request_id: requestId, response }
})

export const refusalOf = (requestId: string, error: string): ClaudeRecord => ({
  type: "control_response",
  response: { subtype: "error", request_id: requestId, error }
})

export class ClaudeCalls {
  /** Without a result; whether it is known to run. */
  private readonly open = new Map<string, boolean>()
  private readonly questions = new Map<string, Question>()
  private readonly refused = new Set<string>()

  /** Nothing is due of the CLI: a call runs, or a person was asked. */
  get busy(): boolean {
    return this.open.size > 0 || this.questions.size > 0
  }

  called(callId: string, tool: string, input: unknown): ReadonlyArray<RunEvent> {
    if (callId === "" || this.open.has(callId)) return []
    this.open.set(callId, false)
    return [{ _tag: "ToolCall", callId, tool, arguments: input, readOnly: isReadOnly(tool) }]
  }

  /** It is known to run. */
  runs(callId: string): ReadonlyArray<RunEvent> {
    if (this.open.get(callId) !== false) return []
    this.open.set(callId, true)
    return [{ _tag: "ToolStarted", callId }]
  }

  /** A `can_use_tool`. */
  asked(requestId: string, request: ClaudeRecord): ReadonlyArray<RunEvent> {
    const callId = text(request, "tool_use_id") || requestId
    const tool = text(request, "tool_name")
    const input = inner(request, "input")
    const call = this.called(callId, tool, request["input"])
    this.questions.set(callId, { requestId, input })
    const questions = questionsOf(tool, input)
    const asks = questions.length === 0 ? {} : { questions }
    return [...call, { _tag: "ApprovalRequested", callId, reason: reasonOf(request), ...asks }]
  }

  /** The record that answers a question; undefined: it waits no more. */
  answer(callId: string, decision: Decision): ClaudeRecord | undefined {
    const question = this.questions.get(callId)
    if (question === undefined) return undefined
    this.questions.delete(callId)
    if (decision.behavior === "allow")
      return answerTo(question.requestId, {
        behavior: "allow",
        updatedInput: answered(question.input, decision.answers)
      })
    this.refuse(callId)
    return answerTo(question.requestId, { ...decision })
  }

  /** By a hook, a rule, or an answer: its result says no more than that it failed. */
  refuse(callId: string): void {
    if (this.open.has(callId)) this.refused.add(callId)
  }

  /** The CLI does not wait for an answer any more. */
  withdrawn(requestId: string): void {
    for (const [callId, question] of this.questions) {
      if (question.requestId === requestId) this.questions.delete(callId)
    }
  }

  /** A `user` record with results. */
  results(record: ClaudeRecord, interrupted: boolean): ReadonlyArray<RunEvent> {
    const metas = list(record, "tool_result_meta")
    return list(inner(record, "message"), "content").flatMap((block): ReadonlyArray<RunEvent> => {
      const callId = text(block, "tool_use_id")
      if (block["type"] !== "tool_result" || !this.open.delete(callId)) return []
      this.questions.delete(callId)
      const meta = metas.find((one) => one["id"] === callId)
      const status = statusOf(block, meta, { refused: this.refused.delete(callId), interrupted })
      return [{ _tag: "ToolResult", callId, status, output: outputOf(block) }]
    })
  }

  /** Nobody waits for this call's result any more. */
  forget(callId: string): void {
    this.open.delete(callId)
    this.questions.delete(callId)
  }

  clear(): void {
    this.open.clear()
    this.questions.clear()
    this.refused.clear()
  }
}
