/**
 * ClaudeStream: turns the records of one Claude Code process into run events. Pure: records in, events and answers out;
 * no clock, no process.
 *
 * Guarantees: a turn starts when the CLI reports that it has taken the input, and ends once. An own turn is one that
 * the CLI begins by itself, for example after a background command. It is opened, has calls and questions, and ends
 * like any other turn. The end of an own turn never ends a turn from agentd: if an input from agentd arrives during an
 * own turn, its turn takes the own turn over. While a subagent of a turn is working, an interim answer does not end the
 * turn. A text is emitted once, although it arrives both in pieces and as a whole. Every request of the CLI is
 * answered; an unknown one is rejected. Unknown or malformed records change nothing.
 */
import type { Decision, RunEvent } from "../Backend.ts"
import { ClaudeBackground, type KnownBackground } from "./ClaudeBackground.ts"
import { ClaudeCalls, type KnownCalls, refusalOf } from "./ClaudeCalls.ts"
import type { Fault } from "../Fault.ts"
import { epoch } from "../gateway/LimitHeaders.ts"
import type { End, Wait } from "../line/LineProtocol.ts"
import * as ClaudeFault from "./ClaudeFault.ts"
import { type ClaudeRecord, inner, list, number, oneLine, text, texts } from "./ClaudeRecord.ts"
import * as AgentOptions from "../AgentOptions.ts"
import { ClaudeUsage, type KnownUsage } from "./ClaudeUsage.ts"
import * as ClaudeWindows from "./ClaudeWindows.ts"

export interface Heard {
  readonly events: ReadonlyArray<RunEvent>
  /** Records to write to the CLI now. */
  readonly says: ReadonlyArray<ClaudeRecord>
}

/** A note about a line that was written to the CLI. It contains no text from the line. */
export type Note =
  | { readonly say: "turn"; readonly turnId: string; readonly uuid: string; readonly session: string }
  | { readonly say: "answer"; readonly callId: string; readonly behavior: Decision["behavior"] }
  /** An interrupt, or a request from agentd. `request`: number of the request, counted by `requests`. */
  | { readonly say: "interrupt" | "request" }
  /** A record that the stream had to send by itself, in order. */
  | { readonly say: "reply" }

interface Turn {
  readonly turnId: string
  /** True if the CLI began the turn by itself. */
  readonly own: boolean
  /**
   * True while the CLI is still in an own turn and has not taken the input yet. Events of that own turn then count for
   * this turn.
   */
  takesIn: boolean
  /** Id of the turn's input in the protocol. Empty for an own turn. */
  readonly uuid: string
  taken: boolean
  /** True if `TurnStarted` has been emitted. */
  started: boolean
  /** True if an interrupt of the turn has been requested. */
  interrupted: boolean
  /** The last message of the turn, as far as it has arrived. */
  answer: string
  /** Text of the message before `answer`. */
  before: string
  /** True if the CLI has ended the turn, but its subagents are still working. */
  held: boolean
}

/** State of an idle process. Stored with a checkpoint, for a daemon that resumes the process. */
export interface KnownStream {
  readonly sessionId: string
  readonly lifecycle: boolean
  readonly opened: number
  readonly requests: number
  readonly news: string
  readonly message: string
  readonly pieces: number
  readonly thoughts: number
  readonly commands: string
  readonly usage: KnownUsage
  readonly calls: KnownCalls
  readonly background: KnownBackground
}

/** Maximum length of the stored answer of an unfinished turn, characters. */
const MAX_ANSWER = 256 * 1024

/** Modes in which Claude Code asks about fewer calls, or about none. */
const UNASKED: ReadonlySet<string> = new Set(["acceptEdits", "auto", "bypassPermissions", "dontAsk"])

const NEW: Omit<Turn, "turnId" | "uuid"> = {
  own: false,
  takesIn: false,
  taken: false,
  started: false,
  interrupted: false,
  answer: "",
  before: "",
  held: false
}

/** Returns the complete answer. The CLI's result is not enough: it can be empty, or only a part of the last message. */
const wholeOf = (result: string, { answer, before }: Turn): string => {
  const said = answer === "" ? before : answer
  return said.includes(result.trim()) ? said : result
}

export class ClaudeStream {
  private events: Array<RunEvent> = []
  private says: Array<ClaudeRecord> = []
  private readonly usage: ClaudeUsage
  private readonly pid: number
  private turn: Turn | undefined = undefined
  private up: boolean
  private sessionId: string
  /** True between the beginning and the result of a turn, whether agentd gave the turn or the CLI began it. */
  private busy = false
  /** True if the CLI reports when it takes an input. */
  private lifecycle: boolean
  private readonly calls: ClaudeCalls
  private readonly background: ClaudeBackground
  /** Number of own turns. */
  private opened: number
  /** The CLI's summary of the last task that ended: the reason for its next own turn. */
  private news: string
  /** Id of the message that is arriving, and number of characters of its current block that have been emitted. */
  private message: string
  private pieces: number
  /** Number of characters of the current thinking block that have been emitted. */
  private thoughts: number
  private error = ""
  private resetsAt: number | undefined = undefined
  private requests: number
  /** Requests from agentd that the CLI has not answered yet, by id. */
  private readonly asks = new Map<string, (refusal: string | undefined) => void>()
  private commands: string
  /** Mode of the session. Empty as long as the session has had no mode in which calls run without approval. */
  private mode = ""
  /** The fault that ended the last turn. */
  fault: Fault | undefined = undefined
  /** An error message that the CLI sent before it was ready. */
  complaint = ""

  /**
   * Creates the stream. `given`: MCP servers that agentd provides to the run. `known`: state of the process at its last
   * checkpoint.
   */
  constructor(pid: number, given: ReadonlyArray<string> = [], known: Partial<KnownStream> = {}) {
    const {
      commands = "",
      lifecycle = false,
      message = "",
      news = "",
      opened = 0,
      pieces = 0,
      requests = 0,
      thoughts = 0
    } = known
    this.pid = pid
    this.up = known.sessionId !== undefined
    this.sessionId = known.sessionId ?? ""
    this.lifecycle = lifecycle
    this.opened = opened
    this.news = news
    this.message = message
    this.pieces = pieces
    this.thoughts = thoughts
    this.requests = requests
    this.commands = commands
    this.usage = new ClaudeUsage(known.usage)
    this.calls = new ClaudeCalls(given, known.calls)
    this.background = new ClaudeBackground(known.background)
  }

  /** The state for a later daemon; undefined if a turn is active or the CLI still has to answer a request. */
  get known(): KnownStream | undefined {
    if (!this.idle || this.calls.busy || this.asks.size > 0) return undefined
    const { commands, lifecycle, message, news, opened, pieces, requests, sessionId, thoughts } = this
    const words = { commands, lifecycle, message, news, opened, pieces, requests, sessionId, thoughts }
    const { background, calls, usage } = this
    return { ...words, background: background.known, calls: calls.known, usage: usage.known }
  }

  /** Id of the session; empty until the CLI is ready. */
  get session(): string {
    return this.sessionId
  }

  get isUp(): boolean {
    return this.up
  }

  /** True if the active turn came from agentd: it then takes no further input. */
  get given(): boolean {
    return this.turn !== undefined && !this.turn.own
  }

  /** True if a turn has not ended, whether agentd gave it or the CLI began it. */
  get active(): boolean {
    return this.turn !== undefined
  }

  /** True if the CLI is ready and works on no turn. */
  get idle(): boolean {
    return this.up && !this.active && !this.busy
  }

  get interrupted(): boolean {
    return this.turn?.interrupted === true
  }

  /**
   * Returns the step that the CLI must take next. Undefined if no step is due, a call is running, or the user was
   * asked.
   */
  get waits(): Wait | undefined {
    if (!this.up) return "ready"
    const { turn } = this
    if (turn === undefined || this.calls.busy) return undefined
    return turn.held && this.background.agents === 0 && !this.busy ? "report" : "answer"
  }

  /** Starts a turn with this input. `blocks`: the input's files, in the form of the model's API. */
  give(turnId: string, uuid: string, input: string, blocks: ReadonlyArray<ClaudeRecord> = []): ClaudeRecord {
    const takesIn = this.turn !== undefined
    this.turn = { ...NEW, turnId, uuid, takesIn }
    return {
      type: "user",
      uuid,
      parent_tool_use_id: null,
      message: { role: "user", content: [{ type: "text", text: input }, ...blocks] }
    }
  }

  /**
   * The record that interrupts the turn; undefined if there is no turn, or if the record is sent later, when the turn
   * starts.
   */
  interrupt(): ClaudeRecord | undefined {
    const { turn } = this
    if (turn === undefined || turn.interrupted) return undefined
    turn.interrupted = true
    return turn.started || turn.takesIn ? this.request("interrupt") : undefined
  }

  /** The record that answers a question; undefined if the question is no longer open. */
  answer(callId: string, decision: Decision): ClaudeRecord | undefined {
    return this.calls.answer(callId, decision)
  }

  forget(callId: string): void {
    this.calls.forget(callId)
  }

  /** Replays a line that an earlier daemon wrote to the CLI. */
  recall(note: Note): void {
    switch (note.say) {
      case "turn":
        this.give(note.turnId, note.uuid, "")
        return
      case "answer":
        this.answer(note.callId, note.behavior === "allow" ? { behavior: "allow" } : { behavior: "deny", message: "" })
        return
      case "interrupt":
        this.interrupt()
        return
      case "request":
        this.requests++
        return
      case "reply":
        return
    }
  }

  /** Id of the active turn; undefined if no turn is active. */
  get turnId(): string | undefined {
    return this.turn?.turnId
  }

  /** Ends the turn for a reason that the CLI did not report. */
  end(end: End): ReadonlyArray<RunEvent> {
    this.finish(end)
    return this.events.splice(0)
  }

  /** Ends a turn whose subagents have ended, although the CLI has not reported on them. */
  settle(): ReadonlyArray<RunEvent> {
    return this.turn?.held === true ? this.end({ _tag: "Completed", output: this.turn.answer }) : []
  }

  /** Handles a record. `now`: ms since the epoch. */
  take(record: ClaudeRecord, now: number): Heard {
    this.step(record, now)
    return { events: this.events.splice(0), says: this.says.splice(0) }
  }

  private step(record: ClaudeRecord, now: number): void {
    const main = typeof record["parent_tool_use_id"] !== "string"
    switch (record["type"]) {
      case "system":
        return this.system(record, now)
      case "command_lifecycle":
        this.lifecycle = true
        return record["state"] === "started" ? this.taken([text(record, "command_uuid")]) : undefined
      case "stream_event":
        return main ? this.streamed(inner(record, "event"), now) : undefined
      case "assistant":
        return this.assistant(record, main, now)
      case "user":
        return this.user(record, main)
      case "result":
        return this.result(record, now)
      case "control_request":
        return this.asked(text(record, "request_id"), inner(record, "request"), now)
      case "control_cancel_request":
        return this.tell(...this.calls.withdrawn(text(record, "request_id")))
      case "control_response":
        return this.responded(inner(record, "response"))
      case "tool_progress":
        return this.tell(...this.calls.runs(text(record, "tool_use_id")))
      case "rate_limit_event":
        return this.limited(inner(record, "rate_limit_info"))
      default:
        return
    }
  }

  private tell(...events: ReadonlyArray<RunEvent>): void {
    this.events.push(...events)
  }

  private notice(words: string): void {
    if (words !== "") this.tell({ _tag: "Notice", text: words })
  }

  private request(subtype: string, more: ClaudeRecord = {}): ClaudeRecord {
    return { type: "control_request", request_id: `agentd-${++this.requests}`, request: { subtype, ...more } }
  }

  /**
   * Requests another model or mode. `answered` gets the reason for a refusal, or undefined if the request succeeded.
   */
  choose(kind: "model" | "mode", name: string, answered: (refusal: string | undefined) => void): ClaudeRecord {
    const record =
      kind === "model"
        ? this.request("set_model", { model: name })
        : this.request("set_permission_mode", { mode: name })
    this.asks.set(text(record, "request_id"), answered)
    return record
  }

  private system(record: ClaudeRecord, now: number): void {
    switch (record["subtype"]) {
      case "init": {
        this.busy = true
        const first = !this.up
        this.up = true
        if (first) this.sessionId = text(record, "session_id")
        if (first) this.tell({ _tag: "Started", pid: this.pid, sessionId: this.sessionId })
        this.offers(texts(record, "slash_commands"))
        this.inMode(text(record, "permissionMode"))
        // a CLI that does not report which inputs it takes has taken the waiting input when it begins a turn
        if (this.turn?.taken === true || !this.lifecycle) this.begin()
        if (!first) this.open(now)
        return
      }
      case "api_retry":
        return this.retried(record)
      case "status":
        return record["status"] === "compacting" ? this.notice("it compacts its conversation") : undefined
      case "informational":
        return this.notice(text(record, "content"))
      case "permission_denied":
        return this.calls.refuse(text(record, "tool_use_id"))
      case "background_tasks_changed":
        this.background.changed(record)
        return this.works()
      case "task_notification":
        this.news = text(record, "summary")
        return
      case "task_started":
        return this.tell(...this.calls.runs(text(record, "tool_use_id")))
      default:
        return
    }
  }

  /** Handles the list of commands that Claude Code sends with each turn. It is emitted if it has changed. */
  private offers(names: ReadonlyArray<string>): void {
    const told = names.join(" ")
    if (told === this.commands) return
    this.commands = told
    const commands = names.map((name) => ({ name, description: "", hint: "" }))
    this.tell({ _tag: "Offers", ...AgentOptions.bounded({ commands }) })
  }

  /**
   * Emits the mode if it changes to one in which calls run without approval. After that, emits every change of the
   * mode.
   */
  private inMode(id: string): void {
    const isUnasked = UNASKED.has(id)
    if (id === this.mode || (!isUnasked && this.mode === "")) return
    this.mode = id
    this.tell({ _tag: "Offers", mode: { id, isUnasked } })
  }

  private retried(record: ClaudeRecord): void {
    const [attempt, most] = [number(record, "attempt") ?? "?", number(record, "max_retries") ?? "?"]
    const what = [number(record, "error_status"), text(record, "error")].filter((one) => one !== undefined).join(" ")
    const wait = Math.round((number(record, "retry_delay_ms") ?? 0) / 1000)
    const words = `the API failed (${what.trim()}); try ${attempt} of ${most} follows in ${wait} s`
    this.tell({ _tag: "Notice", text: words, retries: {} })
  }

  private limited(info: ClaudeRecord): void {
    const told = ClaudeWindows.of(info)
    // if no request was rejected, the reset time of a window must not be used as the end of a limit
    this.resetsAt = told.rejected?.until
    if (told.windows.length > 0 || told.rejected !== undefined) this.tell({ _tag: "Windows", ...told })
    const status = text(info, "status")
    if (status === "allowed" || status === "") return
    const at = epoch(number(info, "resetsAt") ?? 0)
    const until = at === undefined ? "" : `, until ${new Date(at).toISOString()}`
    this.notice(`the limit on use (${text(info, "rateLimitType")}) is ${status}${until}`)
  }

  /** Handles the CLI's report that it is processing these inputs. */
  private taken(uuids: ReadonlyArray<string>): void {
    if (this.turn === undefined || !uuids.includes(this.turn.uuid)) return
    this.turn.taken = true
    if (this.up) this.begin()
  }

  private works(): void {
    this.tell({ _tag: "Background", works: this.background.works })
  }

  /** Begins an own turn if no turn is active. */
  private open(now: number): void {
    if (!this.up || this.turn !== undefined) return
    const isWoken = this.background.woke(now)
    if (isWoken) this.works()
    const turnId = `own-${++this.opened}`
    const why = isWoken ? "a wake-up that it had scheduled is due" : oneLine(this.news) || "it goes on by itself"
    this.news = ""
    this.error = ""
    // if only a subagent is active, no result for the turn itself will come
    this.turn = { ...NEW, turnId, uuid: "", own: true, taken: true, started: true, held: !this.busy }
    this.tell({ _tag: "TurnOpened", turnId, why })
  }

  /** Assigns a tool call or a question of the CLI to a turn. */
  private acts(now: number): void {
    this.open(now)
    if (this.turn?.started === false) this.turn.takesIn = true
  }

  private begin(): void {
    const { turn } = this
    if (turn === undefined || turn.started) return
    turn.takesIn = false
    turn.taken = true
    turn.started = true
    this.error = ""
    this.tell({ _tag: "TurnStarted", turnId: turn.turnId })
    if (turn.interrupted) this.says.push(this.request("interrupt"))
  }

  private finish(end: End): void {
    const { turn } = this
    if (turn === undefined) return
    const { turnId } = turn
    this.turn = undefined
    this.calls.clear()
    this.tell(...this.usage.cut())
    if (end._tag === "Failed") this.fault = end.fault
    if (!turn.started || end._tag === "Exited") return
    if (end._tag === "Completed") this.tell({ _tag: "TurnCompleted", turnId, output: end.output })
    else if (end._tag === "Interrupted") this.tell({ _tag: "TurnInterrupted", turnId, output: turn.answer })
    else {
      const { errorType, message, retry } = end.fault
      this.tell({ _tag: "TurnError", turnId, errorType, message, retry })
    }
  }

  private thinks(piece: string): void {
    if (piece !== "") this.tell({ _tag: "Delta", stream: "thinking", text: piece })
  }

  private said(piece: string): void {
    if (piece === "") return
    const { turn } = this
    if (turn?.started === true) turn.answer = (turn.answer + piece).slice(0, MAX_ANSWER)
    this.tell({ _tag: "Delta", stream: "assistant", text: piece })
  }

  private streamed(event: ClaudeRecord, now: number): void {
    if (event["type"] === "message_start") this.open(now)
    this.tell(...this.usage.streamed(event))
    switch (event["type"]) {
      case "message_start":
        this.heading(text(inner(event, "message"), "id"))
        return
      case "content_block_start":
        this.pieces = 0
        this.thoughts = 0
        return
      case "content_block_delta": {
        const delta = inner(event, "delta")
        const [piece, thought] = [text(delta, "text"), text(delta, "thinking")]
        this.pieces += piece.length
        this.thoughts += thought.length
        this.thinks(thought)
        return this.said(piece)
      }
      default:
        return
    }
  }

  /** Handles the beginning of a message, which begins a new answer. */
  private heading(id: string): void {
    if (id === this.message) return
    this.message = id
    this.pieces = 0
    this.thoughts = 0
    const { turn } = this
    if (turn === undefined || turn.answer === "") return
    turn.before = turn.answer
    turn.answer = ""
  }

  private assistant(record: ClaudeRecord, main: boolean, now: number): void {
    const message = inner(record, "message")
    const error = text(record, "error")
    // the text of an error is also in the result
    if (error !== "" || record["is_api_error_message"] === true) {
      if (main) this.error = error
      return
    }
    this.tell(...this.usage.message(message))
    if (main) this.heading(text(message, "id"))
    for (const block of list(message, "content")) {
      // the CLI has no turn before it is ready
      if (block["type"] === "tool_use" && this.up) {
        this.acts(now)
        this.tell(...this.calls.called(text(block, "id"), text(block, "name"), block["input"]))
      }
      if (block["type"] === "thinking" && main) {
        this.thinks(text(block, "thinking").slice(this.thoughts))
        this.thoughts = 0
      }
      if (block["type"] !== "text" || !main) continue
      this.said(text(block, "text").slice(this.pieces))
      this.pieces = 0
    }
  }

  private user(record: ClaudeRecord, main: boolean): void {
    if (main && record["isReplay"] === true) return this.taken([text(record, "uuid")])
    this.scheduled(record)
    this.tell(...this.calls.results(record, this.interrupted))
  }

  private scheduled(record: ClaudeRecord): void {
    const changes = list(inner(record, "message"), "content").filter((block) => {
      const call = this.calls.made(text(block, "tool_use_id"))
      return call !== undefined && block["is_error"] !== true && this.background.called(call.tool, call.input, record)
    })
    if (changes.length > 0) this.works()
  }

  private result(record: ClaudeRecord, now: number): void {
    this.tell(...this.usage.result(record))
    this.busy = false
    if (!this.up) {
      this.complaint = texts(record, "errors").join("\n") || text(record, "result")
      return
    }
    const { turn } = this
    if (turn === undefined) return
    if (!this.concerns(record, turn)) {
      // the result ends the own turn that the turn from agentd has taken over
      if (turn.takesIn) this.calls.clear()
      turn.takesIn = false
      return
    }
    this.begin()
    const { error, resetsAt } = this
    const told = ClaudeFault.endOf(record, { error, resetsAt, interrupted: turn.interrupted, now })
    const end = told._tag === "Completed" ? { ...told, output: wholeOf(told.output, turn) } : told
    if (end._tag !== "Completed" || this.background.agents === 0) return this.finish(end)
    turn.held = true
    turn.answer = end.output.slice(0, MAX_ANSWER)
  }

  /**
   * Whether a result belongs to the active turn. Results of own turns have an origin. While a turn from agentd waits
   * for its subagents (`held`), such a result is the report on them. If a result names its inputs, it belongs only to
   * the turn of these inputs, so a late result of an earlier turn ends no turn.
   */
  private concerns(record: ClaudeRecord, turn: Turn): boolean {
    const inputs = texts(record, "user_message_uuids")
    if (inputs.includes(turn.uuid) || turn.held) return true
    if (turn.own || inputs.length > 0) return inputs.length === 0
    const origin = text(inner(record, "origin"), "kind")
    return (origin === "" || origin === "human") && (turn.started || !this.lifecycle)
  }

  private asked(requestId: string, request: ClaudeRecord, now: number): void {
    const subtype = text(request, "subtype")
    if (subtype !== "can_use_tool") {
      this.says.push(refusalOf(requestId, `agentd does not know ${subtype}`))
      return
    }
    if (!this.up) {
      this.says.push(refusalOf(requestId, "it was asked before the session began"))
      return
    }
    this.acts(now)
    this.tell(...this.calls.asked(requestId, request))
  }

  /**
   * Handles the CLI's answer to a request. After an interrupt of a turn in which only subagents worked, the CLI sends
   * nothing else.
   */
  private responded(response: ClaudeRecord): void {
    const id = text(response, "request_id")
    const answered = this.asks.get(id)
    if (answered !== undefined) {
      this.asks.delete(id)
      return answered(text(response, "subtype") === "error" ? oneLine(text(response, "error")) : undefined)
    }
    if (text(response, "subtype") === "error") this.notice(`claude refused: ${text(response, "error")}`)
    else if (this.turn?.held === true && this.turn.interrupted && !this.busy) this.finish({ _tag: "Interrupted" })
  }
}
