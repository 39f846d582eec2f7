/**
 * Tongue: how an agent's process speaks: what it says becomes bytes of its program's protocol, and
 * the bytes that it is written become what it is told. What it does is its own (AgentProcess).
 */
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import type { Chance } from "../Chance.ts"
import type { AgentProcess } from "./Processes.ts"

export const TONGUES = ["claude", "command"] as const
export type TongueName = (typeof TONGUES)[number] | "acp"

/** A program's side of its pipes. */
export interface Mouth {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** The turn that an input with this text is for. */
  readonly turnOf: (text: string) => string
}

export interface Tongue {
  readonly says: (event: RunEvent) => void
  /** A part of its input, cut anywhere. */
  readonly hears: (text: string) => void
  /** Tells that the program's input has ended. */
  readonly closed: () => void
}

/** Any program: the prompt is its input, its answer what it prints; then it ends. */
export class CommandTongue implements Tongue {
  private prompt = ""
  /** The first turn of a run has the run's name: it may end before it has read anything. */
  private turnId: string
  private isDone = false
  private readonly process: AgentProcess
  private readonly mouth: Mouth

  constructor(process: AgentProcess, mouth: Mouth) {
    this.turnId = process.runId
    this.process = process
    this.mouth = mouth
  }

  hears(text: string): void {
    this.prompt += text
  }

  closed(): void {
    const { mouth, process, prompt } = this
    this.turnId = mouth.turnOf(prompt)
    process.start({ runId: process.runId, turnId: this.turnId, prompt, resume: undefined })
  }

  says(event: RunEvent): void {
    const { mouth, process } = this
    switch (event._tag) {
      case "Delta":
      case "Notice":
        return mouth.out(`${event.text}\n`)
      case "ApprovalRequested": // it asks nobody
        return process.answer(event.callId, true)
      case "TurnCompleted":
        mouth.out(event.output)
        if (event.turnId !== this.turnId) return
        this.isDone = true
        return process.leave()
      case "TurnError":
        return mouth.err(`${event.message}\n`)
      case "Exited":
        // its exit code says it
        if (event.outcome._tag === "Success" && !this.isDone)
          process.world.witness.said(process, { _tag: "TurnCompleted", turnId: this.turnId, output: "" })
        if (event.outcome._tag === "Error") mouth.err(event.outcome.detail)
    }
  }
}

type Json = { readonly [field: string]: any }

/** Claude Code with `--input-format stream-json --output-format stream-json`. */
export class ClaudeTongue implements Tongue {
  private rest = ""
  private messages = 0
  private requests = 0
  /** Of its input, and whose turn that is. */
  private uuid = ""
  private turnId = ""
  private session: string
  private isFirst = true
  /** Calls by the request that asks for leave. */
  private readonly asked = new Map<string, string>()
  private readonly process: AgentProcess
  private readonly mouth: Mouth
  /** True where the program tells when it takes an input, as newer ones do. */
  private readonly tells: boolean
  private readonly chance: Chance

  constructor(process: AgentProcess, mouth: Mouth, session: string, chance: Chance) {
    this.process = process
    this.mouth = mouth
    this.session = session
    this.chance = chance
    this.tells = chance.is(0.5)
  }

  private write(record: Json): void {
    this.mouth.out(`${JSON.stringify({ ...record, session_id: this.session })}\n`)
  }

  hears(text: string): void {
    const lines = (this.rest + text).split("\n")
    this.rest = lines.pop()!
    for (const line of lines) this.heard(JSON.parse(line))
  }

  closed(): void {
    this.process.leave()
  }

  private heard({ message, request, request_id, response, type, uuid }: Json): void {
    const { mouth, process } = this
    if (type === "user") {
      const text = message["content"][0]["text"]
      this.uuid = uuid
      const turnId = mouth.turnOf(text)
      this.turnId = turnId
      if (!this.isFirst) return process.begin(turnId, text)
      this.isFirst = false
      return process.start({ runId: process.runId, turnId, prompt: text, resume: undefined })
    }
    if (type === "control_request" && request["subtype"] === "interrupt") {
      this.write({ type: "control_response", response: { subtype: "success", request_id } })
      return process.interrupt()
    }
    if (type !== "control_response") return
    const callId = this.asked.get(response["request_id"])
    if (callId !== undefined) process.answer(callId, response["response"]?.["behavior"] === "allow")
  }

  private user(content: Json): void {
    this.write({ type: "user", parent_tool_use_id: null, message: { role: "user", content: [content] } })
  }

  private streamed(event: Json): void {
    this.write({ type: "stream_event", parent_tool_use_id: null, event })
  }

  private assistant(content: Json, more: Json = {}): void {
    const message = { id: `msg-${this.messages}`, role: "assistant", content: [content] }
    this.write({ type: "assistant", parent_tool_use_id: null, message, ...more })
  }

  private result(turnId: string, more: Json): void {
    this.write({ type: "result", user_message_uuids: [turnId === this.turnId ? this.uuid : turnId], ...more })
  }

  says(event: RunEvent): void {
    switch (event._tag) {
      case "TurnStarted": {
        if (event.turnId !== this.turnId) return
        const taken = () => this.write({ type: "command_lifecycle", state: "started", command_uuid: this.uuid })
        const isEarly = this.chance.is(0.5)
        if (this.tells && isEarly) taken()
        this.write({ type: "system", subtype: "init", tools: [] })
        if (this.tells && !isEarly) taken()
        return
      }
      case "Delta":
        return this.speaks(event.text)
      case "Usage":
        return this.streamed({ type: "message_delta", usage: { output_tokens: event.outputTokens } })
      case "ToolCall": {
        const { arguments: input, callId, tool } = event
        this.messages += 1
        return this.assistant({ type: "tool_use", id: callId, name: tool, input })
      }
      case "ApprovalRequested": {
        const id = `ask-${++this.requests}`
        this.asked.set(id, event.callId)
        const request = { subtype: "can_use_tool", tool_name: "shell", tool_use_id: event.callId, input: {} }
        return this.write({ type: "control_request", request_id: id, request })
      }
      case "ToolStarted":
      case "ToolProgress":
        return this.write({ type: "tool_progress", tool_use_id: event.callId })
      case "ToolResult": {
        const { callId, output, status } = event
        const is_error = status !== "success"
        return this.user({ type: "tool_result", tool_use_id: callId, content: String(output), is_error })
      }
      case "Notice":
        return this.write({ type: "system", subtype: "informational", content: event.text })
      default:
        return this.ends(event)
    }
  }

  private speaks(text: string): void {
    const message = { id: `msg-${++this.messages}`, usage: { input_tokens: 10 } }
    this.streamed({ type: "message_start", message })
    this.streamed({ type: "content_block_start", content_block: { type: "text", text: "" } })
    this.streamed({ type: "content_block_delta", delta: { type: "text_delta", text } })
    this.assistant({ type: "text", text })
  }

  private ends(event: RunEvent): void {
    switch (event._tag) {
      case "TurnCompleted":
        return this.result(event.turnId, { subtype: "success", is_error: false, result: event.output })
      case "TurnInterrupted":
        return this.result(event.turnId, {
          subtype: "error_during_execution",
          is_error: true,
          terminal_reason: "aborted_streaming"
        })
      case "TurnError": {
        const error = event.retry ? { api_error_status: 529 } : { stop_reason: "refusal" }
        return this.result(event.turnId, {
          subtype: "success",
          is_error: true,
          result: `API Error: ${event.message}`,
          ...error
        })
      }
      case "Exited":
        return this.leaves(event.outcome)
    }
  }

  /** Says the last words; in the midst of a turn they say what goes wrong with it. */
  private leaves(outcome: Outcome): void {
    const { turnId } = this.process
    if (outcome._tag === "Error") return this.mouth.err(`${outcome.detail}\n`)
    if (turnId === undefined) return
    const fails = (result: string, more: Json) =>
      this.result(turnId, { is_error: true, subtype: "success", result, ...more })
    if (outcome._tag === "Fatal") return fails("Credit balance is too low", { api_error_status: 402 })
    if (outcome._tag !== "Uncounted") return
    if (outcome.reason === "overflow") return fails("Prompt is too long", { api_error_status: 400 })
    if (outcome.reason === "held") return this.mouth.err("session is already open in another process\n")
    const { until } = outcome
    if (until !== undefined)
      this.write({
        type: "rate_limit_event",
        rate_limit_info: { status: "rejected", resetsAt: Math.ceil(until / 1_000) }
      })
    fails("You've hit your limit", { api_error_status: 429 })
  }
}
