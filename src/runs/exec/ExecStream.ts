/**
 * ExecStream: turns the records of one external program into run events. Pure: it uses no clock and starts no process.
 *
 * Guarantees: A turn starts when the program reports that it began, and ends exactly once. A turn that the program
 * begins by itself counts as a turn, too. A call between turns also counts as a turn, until its result arrives. A
 * record for another turn or an unknown call changes nothing and is reported as a notice. Each call asks for an
 * approval at most once, and is answered at most once.
 */
import type { Schema } from "effect"
import type { Decision, RunEvent } from "../Backend.ts"
import * as Failing from "../Fault.ts"
import type { Outcome } from "../Outcome.ts"
import * as ExecRecord from "./ExecRecord.ts"

/** Why a turn failed, and how the run ends because of that. */
export interface Fault {
  readonly errorType: string
  readonly message: string
  readonly retry: boolean
  /** The run's outcome; undefined if the run can still take the next turn. */
  readonly outcome: Outcome | undefined
}

/** The record that the program must send next; undefined if agentd is not waiting for the program. */
export type Wait = "ready" | "answer" | undefined

interface Turn {
  readonly turnId: string
  began: boolean
  /**
   * Set if the program began the turn by itself. "named": it sent `began` with its own turn id. "calls": it sent a
   * call, and the turn ends with the last call's result.
   */
  readonly own?: "named" | "calls" | undefined
  interrupted: boolean
  /** The turn's text since its last call to a tool. */
  answer: string
  /** True after a call: text that follows begins a new answer. */
  hasCalled: boolean
}

const NEW: Pick<Turn, "answer" | "hasCalled" | "interrupted"> = { interrupted: false, answer: "", hasCalled: false }

/** Maximum length of the stored answer of an unfinished turn, characters. */
const MAX_ANSWER = 256 * 1024

/** Types of errors that the agent itself does not cause. */
const OUTSIDE: ReadonlySet<string> = new Set([
  "auth",
  "billing",
  "rate_limit",
  "overloaded",
  "server",
  "connection",
  "overflow",
  "held"
])
const REMEDY = "log in again, or renew the key that the program uses"

const isEmpty = (input: Schema.Json): boolean => ["null", "{}", "[]"].includes(JSON.stringify(input))

export const faultOf = ({ error, message, remedy, retry }: ExecRecord.Named<"error">): Fault => {
  if (OUTSIDE.has(error)) {
    const [auth, billing] = [remedy ?? REMEDY, remedy ?? `${REMEDY}; then start the agent`]
    return { ...Failing.faultOf(error as Failing.Kind, message, { auth, billing, model: "" }), message }
  }
  return retry === true
    ? { errorType: error, message, retry: true, outcome: { _tag: "Error", detail: message } }
    : { errorType: error, message, retry: false, outcome: undefined }
}

export class ExecStream {
  private readonly pid: number
  /** Id of the session that the program was asked to resume. */
  private readonly resumes: string | undefined
  private readonly readOnly: ReadonlySet<string>
  private up: boolean
  private turn: Turn | undefined = undefined
  /** Calls without a result. The value is true if the call waits for an answer. */
  private readonly calls = new Map<string, boolean>()
  /** Ids of all calls so far. An id must be unique within the run. */
  private readonly named = new Set<string>()
  private readonly turns = new Set<string>()
  session: string | undefined
  fault: Outcome | undefined = undefined

  /**
   * Creates the stream. `readOnly`: tools that are assumed to have no side effects. `rest`: set if the stream continues
   * from a checkpoint; contains the session id at that checkpoint.
   */
  constructor(pid: number, resumes: string | undefined, readOnly: ReadonlyArray<string>, rest?: { session?: string }) {
    this.pid = pid
    this.resumes = resumes
    this.readOnly = new Set(readOnly)
    this.up = rest !== undefined
    this.session = rest?.session
  }

  get isUp(): boolean {
    return this.up
  }

  /** Id of the active turn; undefined if no turn is active. */
  get turnId(): string | undefined {
    return this.turn?.turnId
  }

  get interrupted(): boolean {
    return this.turn?.interrupted === true
  }

  /** True if the program began the turn by itself. A turn from agentd can absorb it. */
  get isOwn(): boolean {
    return this.turn?.own !== undefined
  }

  get waits(): Wait {
    if (!this.up) return "ready"
    return this.turn === undefined || this.calls.size > 0 ? undefined : "answer"
  }

  give(turnId: string): void {
    this.turns.add(turnId)
    this.turn = { turnId, began: false, ...NEW }
  }

  /** Interrupts the turn. Returns false if no turn is active or the turn is already interrupted. */
  interrupt(): boolean {
    if (this.turn === undefined || this.turn.interrupted) return false
    this.turn.interrupted = true
    return true
  }

  /** Records that a call was answered. Returns false if the call is not waiting for an answer. */
  answer(callId: string): boolean {
    if (this.calls.get(callId) !== true) return false
    this.calls.set(callId, false)
    return true
  }

  /** Stops waiting for the result of a call. */
  forget(callId: string): void {
    this.calls.delete(callId)
  }

  /** Ends the turn for a reason that the program did not report. */
  end(message: string): ReadonlyArray<RunEvent> {
    if (this.turn === undefined) return []
    const { answer, interrupted, turnId } = this.turn
    this.over()
    return interrupted
      ? [{ _tag: "TurnInterrupted", turnId, output: answer }]
      : [{ _tag: "TurnError", turnId, errorType: "exit", message, retry: true }]
  }

  take(said: ExecRecord.Said): ReadonlyArray<RunEvent> {
    switch (said.type) {
      case "ready":
        return this.ready(said)
      case "failed":
        this.fault = { _tag: "Fatal", detail: said.message, remedy: said.remedy }
        return []
      case "notice":
        return [{ _tag: "Notice", text: said.text }]
      case "usage": {
        const { input, output, type: _, ...rest } = said
        return [{ _tag: "Usage", inputTokens: input, outputTokens: output, ...rest }]
      }
      default:
        return this.up ? this.inTurn(said) : [this.odd(`"${said.type}" before "ready"`)]
    }
  }

  private ready({ session, version }: ExecRecord.Named<"ready">): ReadonlyArray<RunEvent> {
    if (this.up) return [this.odd(`"ready" a second time`)]
    if (version > ExecRecord.VERSION) {
      const detail = `the program uses version ${version} of the contract, but agentd uses version ${ExecRecord.VERSION}`
      this.fault = { _tag: "Fatal", detail, remedy: "update agentd, or use the program's earlier release" }
      return []
    }
    this.up = true
    this.session = session
    const text = "its last conversation no longer exists: a new one begins, without memory of the old one"
    return [
      { _tag: "Started", pid: this.pid, sessionId: session },
      ...(this.resumes === undefined || this.resumes === session ? [] : [{ _tag: "MemoryLost", text } as const])
    ]
  }

  private inTurn(
    said: Exclude<ExecRecord.Said, { type: "ready" | "failed" | "notice" | "usage" }>
  ): ReadonlyArray<RunEvent> {
    const { turn } = this
    if (turn === undefined && said.type === "began" && !this.turns.has(said.turn))
      return this.opened(said.turn, "named")
    if (turn === undefined && said.type === "call" && !this.named.has(said.call))
      return [...this.opened(`own-${said.call}`, "calls"), ...this.inTurn(said)]
    if (turn === undefined || ("turn" in said && said.turn !== turn.turnId))
      return [this.odd(`"${said.type}" of a turn that is not active`, said)]
    // a turn can be rejected or interrupted before it begins
    const isEarly = said.type === "began" || said.type === "interrupted" || said.type === "error"
    if (!isEarly && !turn.began) return [this.odd(`"${said.type}" before "began"`)]
    switch (said.type) {
      case "began":
        if (turn.began) return [this.odd(`"began" a second time`)]
        turn.began = true
        return [{ _tag: "TurnStarted", turnId: turn.turnId }]
      case "text":
        turn.answer = ((turn.hasCalled ? "" : turn.answer) + said.text).slice(0, MAX_ANSWER)
        turn.hasCalled = false
        return [{ _tag: "Delta", stream: "assistant", text: said.text }]
      case "thinking":
        return [{ _tag: "Delta", stream: "thinking", text: said.text }]
      case "call":
        turn.hasCalled = true
        return this.called(said)
      case "progress":
        return this.calls.has(said.call)
          ? [
              // A call that reports progress no longer waits for an answer.
              ...(this.answer(said.call) ? [{ _tag: "ApprovalWithdrawn", callId: said.call } as const] : []),
              { _tag: "ToolProgress", callId: said.call, stream: "stdout", chunk: said.text }
            ]
          : [this.odd(`"progress" of the call ${said.call}, which is not active`)]
      case "result": {
        if (!this.calls.delete(said.call)) return [this.odd(`"result" of the call ${said.call}, which is not active`)]
        const result: RunEvent = { _tag: "ToolResult", callId: said.call, status: said.status, output: said.output }
        if (turn.own !== "calls" || this.calls.size > 0) return [result]
        this.over()
        return [result, { _tag: "TurnCompleted", turnId: turn.turnId, output: turn.answer }]
      }
      case "done":
        this.over()
        return [{ _tag: "TurnCompleted", turnId: turn.turnId, output: said.output || turn.answer }]
      case "interrupted":
        this.over()
        return [{ _tag: "TurnInterrupted", turnId: turn.turnId, output: said.output ?? turn.answer }]
      case "error": {
        this.over()
        const { outcome, ...fault } = faultOf(said)
        this.fault = outcome
        return [
          { _tag: "TurnError", turnId: turn.turnId, ...fault, ...(outcome === undefined ? { goesOn: true } : {}) }
        ]
      }
    }
  }

  private opened(turnId: string, own: Turn["own"]): ReadonlyArray<RunEvent> {
    this.turns.add(turnId)
    this.turn = { turnId, began: true, own, ...NEW }
    return [{ _tag: "TurnOpened", turnId, why: "it goes on by itself" }]
  }

  private called(said: ExecRecord.Named<"call">): ReadonlyArray<RunEvent> {
    const { ask, call: callId, questions, tool } = said
    if (this.named.has(callId)) return [this.odd(`a second call ${callId}`)]
    this.named.add(callId)
    const asks = ask !== undefined || questions !== undefined
    this.calls.set(callId, asks)
    const events: ReadonlyArray<RunEvent> = [
      { _tag: "ToolCall", callId, tool, arguments: said.arguments, readOnly: this.readOnly.has(tool) }
    ]
    // according to the contract, a call that needs an answer says so in its own record
    if (!asks) return [...events, { _tag: "ToolStarted", callId }]
    const asked = questions?.map((one) => ({ ...one, question: `${tool}: ${one.question}` }))
    // The user must see what is being decided. An approval shows the call's arguments, but a choice does not. A call
    // with arguments therefore requests an approval.
    if (asked !== undefined && isEmpty(said.arguments))
      return [...events, { _tag: "ApprovalRequested", callId, reason: ask ?? "", questions: asked }]
    const reason = ask ?? asked!.map(({ question }) => question).join("\n")
    return [...events, { _tag: "ApprovalRequested", callId, reason }]
  }

  private over(): void {
    this.turn = undefined
    this.calls.clear()
  }

  private odd(what: string, said?: ExecRecord.Said): RunEvent {
    const words = said?.type === "text" && said.text.trim() !== "" ? `: ${said.text}` : ": it is ignored"
    return { _tag: "Notice", text: `the program said ${what}${words}` }
  }
}

/** Handles a decision on a call. Returns whether the decision also ends the turn. */
export const interrupts = (decision: Decision): boolean => decision.behavior === "deny" && decision.interrupt === true
