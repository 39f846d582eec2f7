/**
 * AcpTongue: an agent that speaks the Agent Client Protocol, as several of them do: with calls that
 * are told of before they ask, while they ask, or by asking only; with usage in an answer, in its
 * notes, or nowhere; with a cancelled prompt answered or refused.
 */
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import type { Chance } from "../Chance.ts"
import type { AgentProcess } from "./Processes.ts"
import type { Mouth, Tongue } from "./Tongue.ts"

type Json = { readonly [field: string]: any }

/** How agents tell of their calls. */
const MANNERS = ["eager", "pending", "asks"] as const
/** How they say what a turn has cost. */
const BILLS = ["usage", "quota", "none"] as const

const OPTIONS = [
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "once", name: "Once", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" }
]

const WORDS = {
  quota: "429 too many requests",
  unavailable: "529 overloaded",
  auth: "401 invalid api key",
  overflow: "prompt is too long",
  held: "session is in use",
  lost: "gone",
  taken: "gone"
}

/** Of one that does not know the session that it is to go on with. */
const GONE = { code: -32002, message: "Resource not found" }

export class AcpTongue implements Tongue {
  private rest = ""
  private readonly process: AgentProcess
  private readonly mouth: Mouth
  private readonly manners: Chance | undefined
  private readonly manner: (typeof MANNERS)[number]
  private readonly bill: (typeof BILLS)[number]
  private readonly forgets: () => boolean
  private readonly refusesCancelled: boolean
  private sessionId = ""
  /** The prompt that has no answer yet, and its turn. */
  private prompt: { readonly id: unknown; readonly turnId: string } | undefined = undefined
  private message = 0
  /** The written part of the turn's answer. */
  private said = ""
  private spent = { inputTokens: 0, outputTokens: 0 }
  private requests = 0
  /** Calls that the client has not heard of, by what is known of them. */
  private readonly untold = new Map<string, Json>()
  private readonly known = new Set<string>()
  /** Calls by the request that asks for leave. */
  private readonly asked = new Map<string, string>()

  /** `manners`: the dice of one of several agents. */
  constructor(process: AgentProcess, mouth: Mouth, forgets: () => boolean, manners: Chance | undefined) {
    this.process = process
    this.mouth = mouth
    this.forgets = forgets
    this.manners = manners
    this.manner = manners?.pick(MANNERS) ?? "eager"
    this.bill = manners?.pick(BILLS) ?? "usage"
    this.refusesCancelled = manners?.is(0.2) ?? false
  }

  private write(message: Json): void {
    this.mouth.out(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  }

  private update(sessionUpdate: string, fields: Json): void {
    this.write({
      method: "session/update",
      params: { sessionId: this.sessionId, update: { sessionUpdate, ...fields } }
    })
  }

  hears(text: string): void {
    const lines = (this.rest + text).split("\n")
    this.rest = lines.pop()!
    for (const line of lines) this.heard(JSON.parse(line))
  }

  closed(): void {
    this.process.leave()
  }

  private heard({ id, method, params, result }: Json): void {
    switch (method) {
      case "initialize":
        return this.process.wake(() => this.initialized(id))
      case "session/new":
        return this.opened(id, `session-${this.process.runId}`)
      case "session/load":
      case "session/resume":
        return this.goesOn(id, method, params["sessionId"])
      case "session/fork":
        return this.opened(id, `${params["sessionId"]}-copy-${this.process.pid}`)
      case "session/prompt":
        return this.prompted(id, params)
      case "session/cancel":
        return this.process.interrupt()
      case undefined:
        return this.answered(id, result)
      default:
        return this.write({ id, error: { code: -32601, message: `Method not found: ${method}` } })
    }
  }

  private initialized(id: unknown): void {
    const resumes = { resume: {} }
    const sessionCapabilities = this.manners?.pick([undefined, resumes, { ...resumes, fork: {} }]) ?? resumes
    this.write({
      id,
      result: {
        protocolVersion: 1,
        agentCapabilities: { loadSession: true, sessionCapabilities },
        authMethods: [],
        agentInfo: { name: "agent", version: "1" }
      }
    })
  }

  private goesOn(id: unknown, method: string, sessionId: string): void {
    if (this.forgets()) return this.write({ id, error: GONE })
    this.sessionId = sessionId
    // what was said in it is said again
    if (method === "session/load") {
      this.update("user_message_chunk", { content: { type: "text", text: "what was asked" } })
      this.update("agent_message_chunk", { content: { type: "text", text: "what was answered" } })
    }
    this.opened(id, sessionId)
  }

  private opened(id: unknown, sessionId: string): void {
    this.sessionId = sessionId
    this.write({ id, result: { sessionId } })
    this.update("available_commands_update", { availableCommands: [] })
  }

  private prompted(id: unknown, { prompt, sessionId }: Json): void {
    const text = prompt[0]["text"] as string
    const turnId = this.mouth.turnOf(text)
    if (this.prompt !== undefined || sessionId !== this.sessionId)
      this.process.world.witness.garbled?.(this.process.runId, `a prompt of session ${sessionId} out of turn`)
    this.prompt = { id, turnId }
    this.said = ""
    this.spent = { inputTokens: 0, outputTokens: 0 }
    this.message += 1
    this.known.clear()
    this.process.begin(turnId, text)
  }

  private answered(id: unknown, result: Json | undefined): void {
    const callId = this.asked.get(String(id))
    if (callId === undefined) return
    this.asked.delete(String(id))
    const outcome = result?.["outcome"]
    if (outcome?.["outcome"] === "selected") this.process.answer(callId, outcome["optionId"] !== "no")
  }

  says(event: RunEvent): void {
    switch (event._tag) {
      case "Delta":
        return this.speaks(event.text)
      case "Usage": {
        const { inputTokens, outputTokens } = this.spent
        this.spent = { inputTokens: inputTokens + event.inputTokens, outputTokens: outputTokens + event.outputTokens }
        return
      }
      case "ToolCall":
        return this.calls(event.callId, { title: event.tool, kind: "execute", rawInput: event.arguments })
      case "ApprovalRequested":
        return this.asks(event.callId)
      case "ToolStarted":
        return this.manner === "pending" ? undefined : this.news(event.callId, { status: "in_progress" })
      case "ToolProgress":
        return this.news(event.callId, { status: "in_progress", content: this.text(event.chunk) })
      case "ToolResult": {
        const status = event.status === "success" ? "completed" : "failed"
        // one that tells of a call by asking only tells of no refusal
        if (this.manner === "asks" && event.status === "denied") return
        return this.news(event.callId, { status, rawOutput: { output: event.output } })
      }
      case "Notice":
        return this.update("agent_thought_chunk", { content: { type: "text", text: event.text } })
      case "Started":
      case "TurnStarted":
        return this.update("current_mode_update", { currentModeId: "build" })
      default:
        return this.ends(event)
    }
  }

  private text(text: string): ReadonlyArray<Json> {
    return [{ type: "content", content: { type: "text", text } }]
  }

  private speaks(text: string): void {
    this.said += text
    const messageId = `msg-${this.process.pid}-${this.message}`
    this.update("agent_message_chunk", { messageId, content: { type: "text", text } })
  }

  /** A call ends the message before it, whether the client has heard of it or not. */
  private splits(toolCallId: string): void {
    if (this.known.has(toolCallId)) return
    this.known.add(toolCallId)
    this.message += 1
    this.said = ""
  }

  private calls(toolCallId: string, call: Json): void {
    this.splits(toolCallId)
    if (this.manner === "asks") return void this.untold.set(toolCallId, call)
    this.update("tool_call", { toolCallId, status: "pending", ...call, rawInput: {} })
    this.news(toolCallId, this.manner === "eager" ? { ...call, status: "in_progress" } : call)
  }

  private news(toolCallId: string, news: Json): void {
    this.splits(toolCallId)
    const call = this.untold.get(toolCallId)
    this.untold.delete(toolCallId)
    if (call === undefined) this.update("tool_call_update", { toolCallId, ...news })
    else this.update("tool_call", { toolCallId, ...call, ...news })
  }

  private asks(toolCallId: string): void {
    const id = `r${++this.requests}`
    this.splits(toolCallId)
    this.asked.set(id, toolCallId)
    const call = this.untold.get(toolCallId) ?? { title: "shell" }
    this.untold.delete(toolCallId)
    const params = { sessionId: this.sessionId, toolCall: { toolCallId, ...call }, options: OPTIONS }
    this.write({ id, method: "session/request_permission", params })
  }

  private reply(turnId: string, answer: Json): void {
    const { prompt } = this
    // what is said of another turn answers nothing that was asked
    if (prompt?.turnId !== turnId) return this.write({ id: 9_999, ...answer })
    this.prompt = undefined
    this.asked.clear()
    this.untold.clear()
    this.write({ id: prompt.id, ...answer })
  }

  private ended(stopReason: string): Json {
    const { inputTokens, outputTokens } = this.spent
    const bill = {
      usage: { usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens } },
      quota: { _meta: { quota: { token_count: { input_tokens: inputTokens, output_tokens: outputTokens } } } },
      none: {}
    }[this.bill]
    return { result: { stopReason, ...bill } }
  }

  private ends(event: RunEvent): void {
    switch (event._tag) {
      case "TurnCompleted": {
        if (event.turnId === this.prompt?.turnId) this.concludes(event.output)
        return this.reply(event.turnId, this.ended("end_turn"))
      }
      case "TurnInterrupted":
        return this.reply(
          event.turnId,
          this.refusesCancelled ? { error: { code: -32603, message: "aborted" } } : this.ended("cancelled")
        )
      case "TurnError":
        return this.reply(
          event.turnId,
          event.retry ? { error: { code: -32603, message: `529 ${event.message}` } } : this.ended("refusal")
        )
      case "Exited":
        return this.leaves(event.outcome)
    }
  }

  private leaves(outcome: Outcome): void {
    const { turnId } = this.process
    if (outcome._tag === "Error") return this.mouth.err(`${outcome.detail}\n`)
    if (turnId === undefined) return
    const message =
      outcome._tag === "Fatal" ? "402 payment required" : outcome._tag === "Uncounted" ? WORDS[outcome.reason] : ""
    if (message !== "") this.reply(turnId, { error: { code: -32603, message } })
  }

  /** Says the rest of the answer, as a message of its own where that is another text. */
  private concludes(output: string): void {
    if (output.startsWith(this.said)) return this.speaks(output.slice(this.said.length))
    this.message += 1
    this.speaks(output)
  }
}
