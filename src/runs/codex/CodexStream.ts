/**
 * CodexStream: turns the lines of one `codex app-server` process into run events. Pure: lines in, events and lines out;
 * no clock, no process.
 *
 * The process has one thread, which agentd starts, resumes or forks. A turn of agentd is a turn of that thread.
 *
 * Guarantees: a turn starts when Codex reports that it has taken the input, and ends once. A turn that Codex begins by
 * itself is an own turn, which an input from agentd takes over. Every request of Codex is answered; an unknown one is
 * rejected. If the thread to resume no longer exists, a new one begins, and that is reported. After an interrupt, the
 * commands that the turn began are ended: Codex leaves them running. Unknown or malformed messages change nothing.
 */
import { type Decision, denialOf, type RunEvent, type Work } from "../Backend.ts"
import { CLIENT_INFO } from "../ClientInfo.ts"
import * as FileContents from "../FileContents.ts"
import type { Fault } from "../Fault.ts"
import type { UsageWindow } from "../gateway/LimitHeaders.ts"
import type { End, Heard, Input, LineProtocol, Said, Wait } from "../line/LineProtocol.ts"
import type { Outcome } from "../Outcome.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"
import { CodexCalls, type KnownCalls } from "./CodexCalls.ts"
import * as CodexFault from "./CodexFault.ts"
import * as Messages from "./CodexMessages.ts"
import { CodexUsage, type KnownUsage, renewsAt, windowsOf } from "./CodexUsage.ts"

/** A note about a line that was written to Codex. It contains no text from the line. */
export type Note =
  /** The input of a turn. If the thread was not ready, the input was written later, when the thread was. */
  | { readonly say: "turn"; readonly turnId: string; readonly uuid: string }
  | { readonly say: "answer"; readonly callId: string; readonly behavior: Decision["behavior"] }
  /** The reason for a denial, which follows the answer. */
  | { readonly say: "reason" }
  | { readonly say: "opening" | "interrupt" | "choose" }
  /** A line that the stream had to send by itself, in order. */
  | { readonly say: "reply" }

/** The session of a new process. */
export type Session =
  | { readonly _tag: "New" }
  | { readonly _tag: "Resumed"; readonly id: string }
  | { readonly _tag: "Forked"; readonly from: string }

export interface Options {
  readonly pid: number
  readonly session: Session
  /** Parameters of the request that starts, resumes or forks the thread. */
  readonly thread: { readonly [name: string]: unknown }
  /** Names of the MCP servers that agentd provides to the run. */
  readonly given: ReadonlyArray<string>
}

interface Turn {
  readonly turnId: string
  /** True if Codex began the turn by itself. */
  readonly own: boolean
  /** Id of the turn's input in the protocol. Empty for an own turn. */
  readonly uuid: string
  /** The input; undefined once it has been sent. */
  input: ReadonlyArray<unknown> | undefined
  /** Codex's id of the turn; empty until it is known. */
  id: string
  /** True if `TurnStarted` has been emitted. */
  started: boolean
  /** True if an interrupt of the turn has been requested. */
  interrupted: boolean
  /** True if the interrupt was sent to Codex. It needs the id of a turn that has begun. */
  stopped: boolean
  /** The last message of the turn, as far as it has arrived. */
  answer: string
}

const NEW: Omit<Turn, "turnId"> = {
  own: false,
  uuid: "",
  input: undefined,
  id: "",
  started: false,
  interrupted: false,
  stopped: false,
  answer: ""
}

/** State of an idle process. Stored with a checkpoint, for a daemon that resumes the process. */
export interface KnownStream {
  readonly thread: string
  readonly model: string
  readonly isHeld: boolean
  readonly opened: number
  readonly requests: number
  readonly usage: KnownUsage
  readonly calls: KnownCalls
  readonly background: ReadonlyArray<readonly [item: string, command: string]>
}

/** Maximum length of the stored answer of an unfinished turn, characters. */
const MAX_ANSWER = 256 * 1024
/** Maximum number of warnings that are kept to recognize repeated ones, and of commands in the background. */
const MAX_KEPT = 100
/** JSON-RPC's code for an unknown method. */
const UNKNOWN = -32601

const textOf = (text: string) => ({ type: "text", text, text_elements: [] })

/** Converts the input of a turn. Images are sent in the message, other files as the paths where Codex reads them. */
const inputOf = ({ files: { found, gone }, paths, text }: Input): ReadonlyArray<unknown> => [
  textOf(text),
  ...found.flatMap((content, at): ReadonlyArray<unknown> => {
    if (FileContents.isText(content)) return [textOf(FileContents.fenced(content))]
    if (!FileContents.isImage(content)) return [textOf(`${content.label}: ${paths[at] ?? ""}`)]
    const url = `data:${content.type};base64,${FileContents.base64Of(content)}`
    return [textOf(`${content.label}:`), { type: "image", url }]
  }),
  ...gone.map(textOf)
]

export class CodexStream implements LineProtocol<Note> {
  private readonly options: Options
  private events: Array<RunEvent> = []
  private says: Array<Said<Note>> = []
  private readonly usage: CodexUsage
  private readonly calls: CodexCalls
  private turn: Turn | undefined = undefined
  private thread: string
  private model: string
  /** True if Codex's own sandbox lets commands only read, without network. */
  private isHeld: boolean
  private up: boolean
  /** Id of the thread's active turn; empty if there is none. */
  private active = ""
  private opened: number
  private requests: number
  /** Requests of agentd that Codex has not answered yet, by id. */
  private readonly asks = new Map<string, (answer: typeof Messages.Message.Type) => void>()
  /** Commands that run on after their turn, by the id of their item. */
  private readonly background: Map<string, string>
  private readonly warned = new Set<string>()
  private windows: ReadonlyArray<UsageWindow> = []
  private now = 0
  /** Message of the error because of which the thread is not ready. */
  private complaint = ""
  fault: Fault | undefined = undefined

  constructor(options: Options, known: Partial<KnownStream> = {}) {
    const { background = [], isHeld = false, model = "", opened = 0, requests = 0, thread = "" } = known
    this.options = options
    this.thread = thread
    this.model = model
    this.isHeld = isHeld
    this.up = thread !== ""
    this.opened = opened
    this.requests = requests
    this.background = new Map(background)
    this.usage = new CodexUsage(known.usage)
    this.calls = new CodexCalls(options.given, known.calls)
  }

  get known(): KnownStream | undefined {
    if (!this.isIdle || this.asks.size > 0) return undefined
    const { background, calls, isHeld, model, opened, requests, thread, usage } = this
    const words = { isHeld, model, opened, requests, thread }
    return { ...words, background: [...background], calls: calls.known, usage: usage.known }
  }

  get session(): string | undefined {
    return this.thread === "" ? undefined : this.thread
  }

  get turnId(): string | undefined {
    return this.turn?.turnId
  }

  get isGiven(): boolean {
    return this.turn !== undefined && !this.turn.own
  }

  get isInterrupted(): boolean {
    return this.turn?.interrupted === true
  }

  get isUp(): boolean {
    return this.up
  }

  get isIdle(): boolean {
    return this.up && this.turn === undefined && this.active === ""
  }

  get waits(): Wait | undefined {
    if (!this.up) return "ready"
    return this.turn === undefined || this.calls.busy ? undefined : "answer"
  }

  opening(): ReadonlyArray<Said<Note>> {
    const capabilities = { experimentalApi: true, requestAttestation: false }
    this.request("initialize", { clientInfo: CLIENT_INFO, capabilities }, (answer) => this.initialized(answer))
    return this.said("opening")
  }

  give(input: Input): ReadonlyArray<Said<Note>> {
    const { turnId, uuid } = input
    this.begins({ turnId, uuid }, inputOf(input))
    return this.up ? this.said("turn") : []
  }

  interrupt(): ReadonlyArray<Said<Note>> {
    const { turn } = this
    if (turn === undefined || turn.interrupted) return []
    turn.interrupted = true
    this.interrupts(turn)
    return this.said("interrupt")
  }

  answer(callId: string, decision: Decision): ReadonlyArray<Said<Note>> {
    const answer = this.calls.answer(callId, decision)
    if (answer === undefined) return []
    const { behavior } = decision
    const line: Said<Note> = { text: JSON.stringify(answer), note: { say: "answer", callId, behavior } }
    const { turn } = this
    if (decision.behavior === "allow" || decision.interrupt === true || turn === undefined || turn.id === "")
      return [line]
    // Codex tells the model only that the call was rejected. The reason is an input of the turn, and comes first, so
    // that the model has it when it continues.
    const input = [textOf(denialOf(decision.message))]
    this.request("turn/steer", { threadId: this.thread, expectedTurnId: turn.id, input })
    return [...this.said("reason"), line]
  }

  forget(callId: string): void {
    this.calls.forget(callId)
  }

  choose(kind: "model" | "mode", name: string, answered: (refusal: string | undefined) => void) {
    if (kind === "mode") {
      answered("Codex has no modes: agentd sets what it asks about by approvals.mode")
      return []
    }
    this.request("thread/settings/update", { threadId: this.thread, model: name }, ({ error }) => {
      if (!error) this.model = name
      answered(error?.message)
    })
    return this.said("choose")
  }

  settle(): ReadonlyArray<RunEvent> {
    return []
  }

  end(end: End): ReadonlyArray<RunEvent> {
    this.finish(end)
    return this.events.splice(0)
  }

  recall(note: Note): void {
    switch (note.say) {
      case "opening":
        this.opening()
        return
      case "turn": {
        const { turnId, uuid } = note
        this.begins({ turnId, uuid }, undefined)
        break
      }
      case "answer":
        this.calls.answer(
          note.callId,
          note.behavior === "allow" ? { behavior: "allow" } : { behavior: "deny", message: "" }
        )
        return
      case "interrupt":
        this.interrupt()
        return
      case "reason":
      case "choose":
        this.requests++
        return
      case "reply":
        return
    }
    this.says = []
  }

  birth(status: ExitStatus, said: string): Outcome {
    return this.fault?.outcome ?? CodexFault.birthOf(status, `${said}\n${this.complaint}`)
  }

  take(line: string, now: number): Heard<Note> | undefined {
    const message = Messages.parse(line)
    if (message === undefined) return undefined
    this.now = now
    this.step(message)
    return { events: this.events.splice(0), says: this.says.splice(0) }
  }

  private tell(...events: ReadonlyArray<RunEvent>): void {
    this.events.push(...events)
  }

  private say(record: unknown, note: Note = { say: "reply" }): void {
    this.says.push({ text: JSON.stringify(record), note })
  }

  /** The lines that a call of agentd has caused, with their note. */
  private said(say: "opening" | "interrupt" | "choose" | "turn" | "reason"): ReadonlyArray<Said<Note>> {
    const { turnId = "", uuid = "" } = this.turn ?? {}
    const note: Note = say === "turn" ? { say, turnId, uuid } : { say }
    return this.says.splice(0).map(({ text }) => ({ text, note }))
  }

  private request(
    method: string,
    params: unknown,
    answered: (answer: typeof Messages.Message.Type) => void = () => {},
    note?: Note
  ): void {
    const id = `agentd-${++this.requests}`
    this.asks.set(id, answered)
    this.say({ id, method, params }, note)
  }

  private step({ error, id, method, params, result }: typeof Messages.Message.Type): void {
    const isRequest = id !== null && id !== undefined
    if (method === null || method === undefined) {
      const answered = isRequest ? this.asks.get(`${id}`) : undefined
      this.asks.delete(`${id}`)
      return answered?.({ result, error })
    }
    if (isRequest) return this.asked({ id, method, params })
    const about = Messages.read(Messages.About, params)
    const isMain = about?.threadId === this.thread || about?.threadId == null
    if (method.startsWith("item/")) return this.item(method, params, isMain)
    return this.notified(method, params, isMain ? this.thread : (about?.threadId ?? ""))
  }

  private initialized({ error }: typeof Messages.Message.Type): void {
    if (error) return this.fails(CodexFault.ofRefusal(error, "to start"))
    const { session, thread } = this.options
    this.say({ method: "initialized" })
    const answered = (answer: typeof Messages.Message.Type) => this.joined(answer)
    switch (session._tag) {
      case "New":
        return this.request("thread/start", thread, answered)
      case "Resumed":
        return this.request("thread/resume", { ...thread, threadId: session.id, excludeTurns: true }, answered)
      case "Forked":
        return this.request("thread/fork", { ...thread, threadId: session.from, excludeTurns: true }, answered)
    }
  }

  /** Handles the answer to the request that starts, resumes or forks the thread. */
  private joined({ error, result }: typeof Messages.Message.Type): void {
    const { pid, session, thread } = this.options
    if (error && session._tag !== "New" && CodexFault.isGone(error)) {
      const text = "its last conversation no longer exists: a new one begins, without memory of the old one"
      this.tell({ _tag: "MemoryLost", text })
      return this.request("thread/start", thread, (answer) => this.joined(answer))
    }
    const told = Messages.read(Messages.ThreadAnswer, result)
    if (error || told === undefined) {
      const refusal = error ?? { code: null, message: "it named no thread" }
      return this.fails(
        CodexFault.ofRefusal(refusal, session._tag === "New" ? "a new thread" : "to continue its thread")
      )
    }
    this.thread = told.thread.id
    this.model = told.model ?? ""
    this.up = true
    this.tell({ _tag: "Started", pid, sessionId: this.thread })
    this.inMode(told)
    if (this.turn !== undefined) this.sends(this.turn)
  }

  /** Emits what Codex does without approval. Its own config, or that of an organization, can differ from agentd's. */
  private inMode({ approvalPolicy, sandbox }: Messages.ThreadAnswer): void {
    const policy = typeof approvalPolicy === "string" ? approvalPolicy : "granular"
    const isOffline = sandbox?.networkAccess === undefined || sandbox.networkAccess === false
    const isReadOnly = sandbox?.type === "readOnly" && isOffline
    this.isHeld = isReadOnly
    const isUnasked = policy !== "untrusted" && !isReadOnly
    this.tell({ _tag: "Offers", mode: { id: `${policy}, ${sandbox?.type ?? "unknown"}`, isUnasked } })
  }

  private fails(fault: Fault): void {
    this.complaint = fault.message
    this.finish({ _tag: "Failed", fault })
    this.fault = fault
  }

  private begins({ turnId, uuid }: { readonly turnId: string; readonly uuid: string }, input: Turn["input"]): void {
    this.turn = { ...NEW, turnId, uuid, input }
    if (this.up) this.sends(this.turn)
  }

  /** Sends the input of a turn. A recalled turn has no input: the earlier daemon has sent it. */
  private sends(turn: Turn): void {
    const { input, turnId, uuid } = turn
    turn.input = undefined
    const before = this.says.length
    const params = { threadId: this.thread, input, clientUserMessageId: uuid }
    this.request(
      "turn/start",
      params,
      ({ error, result }) => {
        if (this.turn !== turn) return
        if (error) {
          this.begin()
          return this.finish({ _tag: "Failed", fault: CodexFault.ofRefusal(error, "the turn") })
        }
        turn.id = Messages.read(Messages.TurnNotice, result)?.turn.id ?? turn.id
        this.interrupts(turn)
      },
      { say: "turn", turnId, uuid }
    )
    if (input === undefined) this.says.splice(before)
  }

  private interrupts(turn: Turn): void {
    const { id, interrupted, started, stopped } = turn
    if (!interrupted || stopped || !started || id === "") return
    turn.stopped = true
    this.request("turn/interrupt", { threadId: this.thread, turnId: id })
  }

  private begin(): void {
    const { turn } = this
    if (turn === undefined || turn.started) return
    turn.started = true
    this.tell({ _tag: "TurnStarted", turnId: turn.turnId })
    this.interrupts(turn)
  }

  /** Begins an own turn if no turn is active. */
  private open(id: string): void {
    const turnId = `own-${++this.opened}`
    this.turn = { ...NEW, turnId, id, own: true, started: true }
    this.tell({ _tag: "TurnOpened", turnId, why: "it goes on by itself" })
  }

  private finish(end: End): void {
    const { turn } = this
    if (turn === undefined) return
    const { answer, interrupted, started, turnId } = turn
    this.turn = undefined
    const left = this.calls.commands
    if (!interrupted && end._tag === "Completed") this.tell(...this.calls.leave())
    this.calls.clear()
    if (end._tag === "Exited") return
    if (end._tag === "Failed") this.fault = end.fault
    if (interrupted && left.length > 0 && this.active === "") this.ends(new Set(left.map(([item]) => item)))
    if (!interrupted && left.length > 0) {
      for (const [item, command] of left) if (this.background.size < MAX_KEPT) this.background.set(item, command)
      this.works()
    }
    if (!started) return
    if (end._tag === "Completed") this.tell({ _tag: "TurnCompleted", turnId, output: end.output })
    else if (end._tag === "Interrupted") this.tell({ _tag: "TurnInterrupted", turnId, output: answer })
    else {
      const { errorType, message, retry } = end.fault
      this.tell({ _tag: "TurnError", turnId, errorType, message, retry })
    }
  }

  /** Ends commands that an interrupted turn has left running. `items`: ids of their items. */
  private ends(items: ReadonlySet<string>): void {
    const { thread: threadId } = this
    this.request("thread/backgroundTerminals/list", { threadId }, ({ result }) => {
      for (const { itemId, processId } of Messages.read(Messages.Terminals, result)?.data ?? [])
        if (items.has(itemId)) this.request("thread/backgroundTerminals/terminate", { threadId, processId })
    })
  }

  private works(): void {
    const works = [...this.background].map(([id, text]): Work => ({ id, kind: "shell", text }))
    this.tell({ _tag: "Background", works })
  }

  private asked(request: { readonly id: Messages.RequestId; readonly method: string; readonly params: unknown }): void {
    if (this.up && this.active !== "" && this.turn === undefined) this.open(this.active)
    const events = this.up ? this.calls.asked(request) : undefined
    if (events !== undefined) return this.tell(...events)
    const { id, method, params } = request
    if (method === "mcpServer/elicitation/request") {
      const { message, serverName } = Messages.read(Messages.Elicitation, params) ?? {}
      this.notice(`MCP server ${serverName ?? "?"} asked for an input, which agentd declined: ${message ?? ""}`)
      return this.say({ id, result: { action: "decline", content: null, _meta: null } })
    }
    this.say({ id, error: { code: UNKNOWN, message: `agentd does not know ${method}` } })
  }

  private notice(text: string): void {
    if (this.warned.has(text) || this.warned.size >= MAX_KEPT) return
    this.warned.add(text)
    this.tell({ _tag: "Notice", text })
  }

  private notified(method: string, params: unknown, thread: string): void {
    const isMain = thread === this.thread
    switch (method) {
      case "turn/started":
        return isMain ? this.started(params) : undefined
      case "turn/completed":
        return isMain ? this.completed(params) : undefined
      case "thread/tokenUsage/updated": {
        const told = Messages.read(Messages.TokenUsage, params)
        const { active, model, usage } = this
        if (told !== undefined)
          this.tell(...usage.told(thread, told.tokenUsage, { isActive: active !== "", isMain, model }))
        return
      }
      case "account/rateLimits/updated": {
        const told = Messages.read(Messages.RateLimits, params)
        const windows = told === undefined ? undefined : windowsOf(told.rateLimits)
        if (windows === undefined) return
        this.windows = windows.windows
        return this.tell({ _tag: "Windows", ...windows })
      }
      case "error":
        return this.retried(params)
      case "serverRequest/resolved": {
        const told = Messages.read(Messages.Resolved, params)
        return told === undefined ? undefined : this.tell(...this.calls.resolved(told.requestId))
      }
      case "warning":
      case "guardianWarning":
      case "configWarning": {
        const { message, summary } = Messages.read(Messages.Warning, params) ?? {}
        return this.notice(message ?? summary ?? "")
      }
      case "mcpServer/startupStatus/updated": {
        const told = Messages.read(Messages.ServerStatus, params)
        return told?.error ? this.notice(`MCP server ${told.name}: ${told.error}`) : undefined
      }
      case "model/rerouted": {
        const told = Messages.read(Messages.Rerouted, params)
        if (told === undefined || !isMain) return
        this.model = told.toModel
        return this.notice(`its model is ${told.toModel} instead of ${told.fromModel}`)
      }
      default:
        return
    }
  }

  /** Handles an error that Codex retries. Any other error is also in the turn's end. */
  private retried(params: unknown): void {
    const told = Messages.read(Messages.ErrorNotice, params)
    if (told?.willRetry !== true) return
    const { additionalDetails, message } = told.error
    this.tell({ _tag: "Notice", text: additionalDetails ? `${message} (${additionalDetails})` : message, retries: {} })
  }

  private started(params: unknown): void {
    const id = Messages.read(Messages.TurnNotice, params)?.turn.id
    if (id === undefined) return
    this.active = id
    const { turn } = this
    if (turn === undefined) return this.open(id)
    if (turn.started || (turn.id !== "" && turn.id !== id)) return
    turn.id = id
    this.begin()
  }

  private completed(params: unknown): void {
    const told = Messages.read(Messages.TurnNotice, params)?.turn
    if (told === undefined) return
    if (told.id === this.active) this.active = ""
    const { turn } = this
    if (turn === undefined || turn.id !== told.id) return
    this.begin()
    const { now, windows } = this
    switch (told.status) {
      case "completed":
        return this.finish({ _tag: "Completed", output: turn.answer })
      case "interrupted":
        return this.finish({ _tag: "Interrupted" })
      default:
        return this.finish({
          _tag: "Failed",
          fault: CodexFault.ofTurn(told.error, { now, resetsAt: renewsAt(windows) })
        })
    }
  }

  private item(method: string, params: unknown, isMain: boolean): void {
    switch (method) {
      case "item/started": {
        const item = Messages.read(Messages.ItemNotice, params)?.item
        if (item === undefined) return
        if (item.type === "userMessage") return this.taken(item)
        if (item.type === "contextCompaction")
          return this.tell({ _tag: "Notice", text: "it compacts its conversation" })
        if (item.type === "agentMessage" && isMain && this.turn !== undefined) this.turn.answer = ""
        return this.tell(...this.calls.began(item, this.isHeld))
      }
      case "item/completed": {
        const item = Messages.read(Messages.ItemNotice, params)?.item
        if (item === undefined) return
        if (item.type === "agentMessage" && isMain) return this.answered(item.text ?? "")
        if (this.background.delete(item.id)) this.works()
        return this.tell(...this.calls.began(item, this.isHeld), ...this.calls.completed(item, this.isInterrupted))
      }
      case "item/agentMessage/delta": {
        const delta = Messages.read(Messages.Delta, params)?.delta
        return delta === undefined || !isMain ? undefined : this.spoke(delta)
      }
      case "item/reasoning/textDelta":
      case "item/reasoning/summaryTextDelta": {
        const text = Messages.read(Messages.Delta, params)?.delta
        return text === undefined || !isMain ? undefined : this.tell({ _tag: "Delta", stream: "thinking", text })
      }
      case "item/commandExecution/outputDelta": {
        const delta = Messages.read(Messages.Delta, params)
        return delta === undefined ? undefined : this.tell(...this.calls.progress(delta))
      }
      case "item/fileChange/patchUpdated": {
        const patch = Messages.read(Messages.Patch, params)
        return patch === undefined ? undefined : this.calls.patched(patch)
      }
      default:
        return
    }
  }

  /** Handles Codex's report that it has taken an input. */
  private taken({ clientId }: Messages.Item): void {
    if (this.turn !== undefined && clientId === this.turn.uuid && clientId !== "") this.begin()
  }

  private spoke(text: string): void {
    const { turn } = this
    if (turn !== undefined) turn.answer = (turn.answer + text).slice(0, MAX_ANSWER)
    this.tell({ _tag: "Delta", stream: "assistant", text })
  }

  /** Handles a complete message. Emits the part that has not arrived in pieces. */
  private answered(text: string): void {
    const { turn } = this
    const before = turn?.answer ?? ""
    if (text.startsWith(before) && text.length > before.length && before.length < MAX_ANSWER)
      this.tell({ _tag: "Delta", stream: "assistant", text: text.slice(before.length) })
    if (turn !== undefined && text !== "") turn.answer = text.slice(0, MAX_ANSWER)
  }
}
