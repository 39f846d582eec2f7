/**
 * AcpUpdates: turns an agent's session updates into events of a run. It does no I/O and does not depend on time: the
 * same messages in the same order give the same events.
 *
 * Guarantees: a turn begins once, at the first sign of it, and ends once. Each call has one ToolCall and one
 * ToolResult, whatever statuses the agent sends. Its id is unique in the run, although agents repeat their ids. Each
 * call asks at most once. All calls are closed when the turn ends. Text, calls or questions outside a prompt form an
 * own turn, but only after the first prompt: before it, they are the replay of an old session. An action that agentd
 * performs for the agent (a deed) is a call with an id that no call of the agent can have.
 *
 * Statuses are not reliable. One agent reports `in_progress` before it asks, one reports `pending` to the end, one
 * mentions a call only when it asks. Refused and cancelled calls end in any status or none. Arguments come in pieces
 * while a call is pending. A call's ToolCall is therefore held back until the call asks, changes its status, or gets no
 * message for a while. Some agents ask first and send the call afterwards, with more arguments: a question with new
 * arguments is therefore held back, too. Kinds are not reliable either: a call of kind `read` counts as having side
 * effects, unless the config trusts that kind.
 */
import { isReadonlyObject as isObject } from "effect/Predicate"
import type { RunEvent, ToolStatus } from "../Backend.ts"
import { isSame } from "../CanonicalJson.ts"
import * as AgentOptions from "../AgentOptions.ts"
import { changes, isReadOnly, type Trusts } from "./AcpEffects.ts"
import * as Messages from "./AcpMessages.ts"
import * as AcpMeta from "./AcpMeta.ts"
import { AcpUsage, type KnownUsage } from "./AcpUsage.ts"

type Call = Messages.ToolCall

export interface Open {
  /** Ids by which agentd knows the call. More than one if the agent asks again for the same call. */
  readonly ids: Array<string>
  /** The call's first title, which names the tool. Later titles describe what the call does. */
  readonly title: Call["title"]
  /** The data of the call, merged from all messages about it. */
  known: Call
  /** Number of the call's last change. */
  changed: number
  told: boolean
  /** The arguments as they were last emitted. */
  shown: unknown
  asked: boolean
  /** True while the call's question is held back. */
  asks: boolean
  denied: boolean
  started: boolean
  /** The call's output so far, because some agents repeat it. */
  written: string
}

/** An action that the agent asks agentd to perform. */
export interface Deed {
  /** The protocol's method. */
  readonly tool: string
  readonly arguments: unknown
  readonly readOnly: boolean
  /** Id of the agent's request for the action. */
  readonly request?: unknown
}

/** A call that ran without asking the user: its id in agentd, and its title. */
export interface Unasked {
  readonly id: string
  readonly title: string
  readonly isOver: boolean
}

export interface Turn {
  readonly turnId: string
  /** True if the agent began the turn by itself. */
  readonly isOwn: boolean
  begun: boolean
  /** True after a request to stop: a call that ends later counts as cancelled. */
  cancelled: boolean
  /** Text of the current message, and of the last message before it. */
  text: string
  before: string
  messageId: string | undefined
  piece: string
  /** Newest error of the agent's provider, in the agent's own form. */
  trouble: unknown
  /** True if the agent reports that it has failed. The text after this gives the reason. */
  failed: boolean
  readonly open: Map<string, Open>
  /** Deeds that have no result yet, by call id; `terminalId` is set if the deed runs a command. */
  readonly deeds: Map<string, { terminalId: string | undefined }>
  /** The agent's ids for calls that already have a result. */
  readonly closed: Set<string>
  /** A call that may have changed something, but ended before it asked for approval. */
  unasked: Unasked | undefined
}

/** A call that asks for an approval: its id in agentd, and the events to emit. */
export interface Asked {
  readonly callId: string
  readonly events: ReadonlyArray<RunEvent>
}

export type End =
  /** Exited: the process has ended. The end of the run ends the turn, so no end of the turn is emitted. */
  | { readonly _tag: "Completed" | "Exited" | "Interrupted" }
  | { readonly _tag: "Failed"; readonly errorType: string; readonly message: string; readonly retry: boolean }

/** State of a session between two turns. Stored with a checkpoint, for a daemon that resumes the agent. */
export interface KnownUpdates {
  readonly used: ReadonlyArray<readonly [string, number]>
  readonly changes: number
  readonly deeds: number
  readonly usage: KnownUsage
  /** Number of own turns; undefined in the state of an older agentd. */
  readonly ownTurns?: number
}

/** Maximum length of an answer, characters. If an answer is longer, only its end is kept. */
const MAX_ANSWER = 1024 * 1024
const MAX_OUTPUT = 256 * 1024
const MAX_CHUNK = 64 * 1024
const MAX_REASON = 500
/** Maximum number of ids that are kept to recognize repeated ids. */
const MAX_IDS = 10_000

const NEW: Omit<Turn, "turnId" | "isOwn" | "open" | "deeds" | "closed"> = {
  begun: false,
  cancelled: false,
  text: "",
  before: "",
  messageId: undefined,
  piece: "",
  trouble: undefined,
  failed: false,
  unasked: undefined
}

/** Prefix of the ids of deeds. No id of the agent can have this prefix. */
const OURS = "agentd:"
/** Updates that are also handled when no turn is active. */
const IDLE: ReadonlySet<string> = new Set([
  "current_mode_update",
  "config_option_update",
  "session_info_update",
  "usage_update"
])

/**
 * Merges the arguments of a call. If the new arguments only repeat or extend the old ones, the result contains all of
 * them.
 */
const joined = (before: unknown, now: unknown): unknown =>
  isObject(before) &&
  isObject(now) &&
  Object.keys(now).every((name) => !(name in before) || isSame(before[name], now[name]))
    ? { ...now, ...before }
    : now

/** Pattern for the beginning of an error that an agent writes into its answer. */
const FAILED = /^(API )?Error: /

const merge = (known: Call, news: Call): Call => {
  const told = Object.entries(news).filter(([, value]) => value !== null && value !== undefined)
  const rawInput = isEmpty(news.rawInput) ? known.rawInput : joined(known.rawInput, news.rawInput)
  return { ...known, ...Object.fromEntries(told), rawInput }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0)

const bounded = (value: unknown): unknown => {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "")
  return text.length <= MAX_OUTPUT ? value : `${text.slice(0, MAX_OUTPUT)}…`
}

const isOver = ({ status }: Call): boolean => status === "completed" || status === "failed"

const textOf = (content: Call["content"]): string =>
  (content ?? [])
    .flatMap((part) => (part.type === "content" && typeof part.content?.text === "string" ? [part.content.text] : []))
    .join("\n")

/** Returns the agent's name for the tool, or else the protocol's kind of the call. */
const toolOf = ({ kind, name }: Call, title: Call["title"]): string => {
  if (typeof name === "string" && name !== "") return name
  if (typeof kind === "string" && kind !== "" && kind !== "other") return kind
  return typeof title === "string" && /^[\w.:/-]{1,64}$/.test(title) ? title : "other"
}

const titleOf = ({ known, title }: Open): string => (known.title ?? toolOf(known, title)).slice(0, MAX_REASON)

const unaskedOf = (open: Open, isOver: boolean): Unasked => ({ id: open.ids[0]!, title: titleOf(open), isOver })

/** Returns the complete arguments of a call, because they can determine the user's decision. */
const argumentsOf = ({ content, locations, rawInput, title }: Call): unknown => {
  if (!isEmpty(rawInput)) return rawInput
  return {
    ...(title === undefined ? {} : { title }),
    ...(isEmpty(locations) ? {} : { locations: locations!.map(({ path }) => path) }),
    ...(isEmpty(content) ? {} : { content })
  }
}

const outputOf = ({ content, rawOutput }: Call): unknown => {
  if (!isEmpty(rawOutput)) return bounded(rawOutput)
  const text = textOf(content)
  return text !== "" || isEmpty(content) ? bounded(text) : bounded(content)
}

const commandsOf = (update: unknown): ReadonlyArray<RunEvent> => {
  const told = Messages.read(Messages.CommandsUpdate, update)
  if (told === undefined) return []
  const commands = told.availableCommands.map(({ description, input, name }) => ({
    name,
    description: description ?? "",
    hint: input?.hint ?? ""
  }))
  return [{ _tag: "Offers", ...AgentOptions.bounded({ commands }) }]
}

export class AcpUpdates {
  protected turn: Turn | undefined = undefined
  /** For each request id: the agent's id of the call that asked, or agentd's id of the deed. */
  private readonly requests = new Map<string, string>()
  /** How often the agent has used each id. The newest id is last. */
  private readonly used: Map<string, number>
  private readonly usages: AcpUsage
  private doubted = false
  private changes: number
  private deeds: number
  private ownTurns: number
  /** True if the agent can begin turns by itself. */
  private isUp: boolean
  private readonly trusts: Trusts

  /** `trusts`: what the config treats as read-only. `known`: the state of a resumed session. */
  constructor(trusts: Trusts = { trustKinds: [], readOnlyTools: [] }, known?: KnownUpdates) {
    this.trusts = trusts
    this.used = new Map(known?.used ?? [])
    this.usages = new AcpUsage(known?.usage)
    this.changes = known?.changes ?? 0
    this.deeds = known?.deeds ?? 0
    this.ownTurns = known?.ownTurns ?? 0
    this.isUp = known !== undefined
  }

  /** State that is stored for a later daemon. Valid only between two turns. */
  get known(): KnownUpdates {
    const { changes, deeds, ownTurns, usages, used } = this
    return { used: [...used], changes, deeds, ownTurns, usage: usages.known }
  }

  get active(): string | undefined {
    return this.turn?.turnId
  }

  get isOwn(): boolean {
    return this.turn?.isOwn === true
  }

  /** True if a call of the current turn has no result yet. */
  get isCalling(): boolean {
    return this.turn !== undefined && this.turn.open.size + this.turn.deeds.size > 0
  }

  /** True if a call or a question is being held back. */
  get holding(): boolean {
    return [...(this.turn?.open.values() ?? [])].some(({ asks, told }) => asks || !told)
  }

  /** Number of the newest change of any call. */
  get version(): number {
    return this.changes
  }

  /** Begins the turn of a prompt. The turn takes over the open calls of a turn that the agent began by itself. */
  begin(turnId: string): void {
    const { closed = new Set<string>(), deeds = new Map(), open = new Map() } = this.turn ?? {}
    this.isUp = true
    this.usages.begin()
    this.turn = { ...NEW, turnId, isOwn: false, open, deeds, closed }
  }

  /** Called when the run ends: from then on the agent begins no turns by itself. */
  ends(): void {
    this.isUp = false
  }

  /** If no turn is active, begins a turn that the agent started by itself. */
  private opens(): ReadonlyArray<RunEvent> {
    if (this.turn !== undefined || !this.isUp) return []
    const turnId = `own-${++this.ownTurns}`
    this.usages.begin()
    this.turn = { ...NEW, turnId, isOwn: true, begun: true, open: new Map(), deeds: new Map(), closed: new Set() }
    return [{ _tag: "TurnOpened", turnId, why: "it goes on by itself" }]
  }

  /** True if the update shows that the agent is working: it writes text or makes a call. */
  private isWork(update: { readonly sessionUpdate: string }): boolean {
    const kind = update.sessionUpdate
    if (kind === "agent_message_chunk" || kind === "agent_thought_chunk")
      return (Messages.read(Messages.Chunk, update)?.content.text ?? "") !== ""
    const call =
      kind === "tool_call" || kind === "tool_call_update" ? Messages.read(Messages.ToolCall, update) : undefined
    return call !== undefined && (kind === "tool_call" ? !isOver(call) : !this.used.has(call.toolCallId))
  }

  /** Finds a call with side effects that has run, or is running, although the user was not asked. */
  get unasked(): Unasked | undefined {
    const open = [...(this.turn?.open.values() ?? [])].find(
      ({ asked, known }) => !asked && known.status === "in_progress" && changes(known)
    )
    return this.turn?.unasked ?? (open === undefined ? undefined : unaskedOf(open, false))
  }

  /** Called when the prompt is answered and another prompt follows in the same turn. Closes the open calls. */
  again(): ReadonlyArray<RunEvent> {
    const { turn } = this
    if (turn === undefined) return []
    const over = [...turn.open].flatMap(([id, open]) => this.close(turn, id, open.denied ? "denied" : "unknown"))
    this.pause(turn)
    this.usages.begin()
    return over
  }

  cancel(): void {
    if (this.turn !== undefined) this.turn.cancelled = true
  }

  /** Emits the start of the turn at the first sign of work. */
  sign(): ReadonlyArray<RunEvent> {
    const { turn } = this
    if (turn === undefined || turn.begun) return []
    turn.begun = true
    return [{ _tag: "TurnStarted", turnId: turn.turnId }]
  }

  update(update: { readonly sessionUpdate: string }): ReadonlyArray<RunEvent> {
    const events = this.take(update)
    return this.turn === undefined ? events : [...events, ...this.usages.difference(AcpMeta.usageOf(update))]
  }

  private take(update: { readonly sessionUpdate: string }): ReadonlyArray<RunEvent> {
    const kind = update.sessionUpdate
    const own = this.turn === undefined && this.isWork(update) ? this.opens() : []
    const { turn } = this
    if (kind === "available_commands_update") return commandsOf(update)
    if (kind === "usage_update") return this.usages.update(update, turn !== undefined)
    if (turn !== undefined && kind === "session_info_update") return this.inform(turn, update)
    if (turn === undefined || IDLE.has(kind)) return []
    const sign = [...own, ...this.sign()]
    if (kind === "agent_message_chunk") return [...sign, ...this.chunk(turn, update), ...this.usages.chunk(update)]
    if (kind === "agent_thought_chunk") return [...sign, ...this.thought(update)]
    if (kind !== "tool_call" && kind !== "tool_call_update") return sign
    const call = Messages.read(Messages.ToolCall, update)
    if (call === undefined) return [...sign, { _tag: "Notice", text: `the agent reported a tool call without an id` }]
    return [...sign, ...this.tool(turn, call, kind === "tool_call")]
  }

  get spending(): AcpUsage {
    return this.usages
  }

  /**
   * Returns a failure that the turn's answer hides, because the answer reports success; undefined if there is no sign
   * of one.
   */
  failure(spent: Messages.Spent): { readonly said: unknown; readonly words: string } | undefined {
    const { turn } = this
    if (turn?.failed === true) return { said: turn.trouble, words: turn.text.trim() }
    if (turn === undefined || !this.isDoubtful(spent) || !FAILED.test(turn.piece)) return undefined
    return { said: undefined, words: turn.piece.replace(FAILED, "") }
  }

  /**
   * Emits a notice if a successful turn shows no sign that the model answered. Emits another notice when an answer is
   * seen again.
   */
  doubt(spent: Messages.Spent): ReadonlyArray<RunEvent> {
    const isDoubtful = this.isDoubtful(spent)
    if (isDoubtful === this.doubted) return []
    this.doubted = isDoubtful
    const text = isDoubtful
      ? "its turn succeeded, but it reported no request to its model: check whether it did its task"
      : "it reports its requests to its model again"
    return [{ _tag: "Notice", text, lasting: { about: "a sign that its model answered", isOver: !isDoubtful } }]
  }

  /** True if the agent usually reports tokens, but reported none for this turn. */
  isDoubtful(spent: Messages.Spent): boolean {
    const isNone = spent.untold === true || (spent.own === undefined && this.usages.repeats(spent))
    return isNone && this.usages.meters && !this.usages.isTold
  }

  private inform(turn: Turn, update: unknown): ReadonlyArray<RunEvent> {
    const { error, threadStatus } = Messages.read(Messages.CodexInfo, update)?._meta.codex ?? {}
    turn.trouble = error ?? turn.trouble
    turn.failed = threadStatus == null ? turn.failed : threadStatus.type === "systemError"
    if (threadStatus != null && turn.failed) this.pause(turn)
    return this.retried(Messages.codexRetry(error))
  }

  retried(text: string | undefined): ReadonlyArray<RunEvent> {
    return text === undefined || this.turn === undefined ? [] : [{ _tag: "Notice", text, retries: {} }]
  }

  /** Emits the part of the turn's usage that its answer reports and that has not been emitted yet. */
  usage(usage: Messages.Spent): ReadonlyArray<RunEvent> {
    return this.turn === undefined ? [] : this.usages.answer(usage)
  }

  private chunk(turn: Turn, update: unknown): ReadonlyArray<RunEvent> {
    const chunk = Messages.read(Messages.Chunk, update)
    if (chunk === undefined) return []
    const { text, type, uri } = chunk.content
    const piece = text ?? uri ?? `[${type}]`
    if (piece === "") return []
    const messageId = chunk.messageId ?? undefined
    if (messageId !== turn.messageId) this.pause(turn)
    turn.messageId = messageId
    turn.piece = piece
    turn.text += piece
    if (turn.text.length > 2 * MAX_ANSWER) turn.text = turn.text.slice(-MAX_ANSWER)
    return turn.failed ? [] : [{ _tag: "Delta", stream: "assistant", text: piece }]
  }

  private thought(update: unknown): ReadonlyArray<RunEvent> {
    const text = Messages.read(Messages.Chunk, update)?.content.text ?? ""
    return text === "" ? [] : [{ _tag: "Delta", stream: "thinking", text }]
  }

  /** Called when a message of the agent is complete: text that follows belongs to another message. */
  private pause(turn: Turn): void {
    if (turn.text === "") return
    turn.before = turn.text
    turn.text = ""
  }

  private tool(turn: Turn, news: Call, isNew: boolean): ReadonlyArray<RunEvent> {
    const id = news.toolCallId
    const ended = isOver(news)
    if (!turn.open.has(id)) {
      // an update for a closed call is a new call only if its type is `tool_call` and its status is not final
      const over = turn.closed.has(id) ? isNew && !ended : isNew || !this.used.has(id)
      if (!over) return []
      this.open(turn, news)
    }
    const open = turn.open.get(id)!
    open.known = merge(open.known, news)
    open.changed = ++this.changes
    if (news.status === "completed" && !open.asked && changes(open.known)) turn.unasked ??= unaskedOf(open, true)
    if (ended) return this.close(turn, id, this.statusOf(turn, open, news.status === "completed" ? "success" : "error"))
    if (open.asks || open.known.status !== "in_progress") return []
    return [...this.tell(open), ...(isNew ? [] : this.written(open, textOf(news.content)))]
  }

  private open(turn: Turn, call: Call): Open {
    const open: Open = {
      ids: [this.unique(call.toolCallId)],
      title: call.title,
      known: call,
      changed: 0,
      told: false,
      shown: undefined,
      asked: false,
      asks: false,
      denied: false,
      started: false,
      written: ""
    }
    this.pause(turn)
    turn.open.set(call.toolCallId, open)
    turn.closed.delete(call.toolCallId)
    return open
  }

  private unique(given: string): string {
    const id = given.startsWith(OURS) ? `the agent's ${given}` : given
    const count = (this.used.get(id) ?? 0) + 1
    this.used.delete(id)
    this.used.set(id, count)
    if (this.used.size > MAX_IDS) this.used.delete(this.used.keys().next().value!)
    return count === 1 ? id : `${id}#${count}`
  }

  protected callEvent(id: string, open: Open): RunEvent {
    const { known, title } = open
    open.shown = argumentsOf(known)
    const tool = toolOf(known, title)
    const readOnly = isReadOnly(this.trusts, known, tool)
    return { _tag: "ToolCall", callId: id, tool, arguments: open.shown, readOnly }
  }

  private tell(open: Open): ReadonlyArray<RunEvent> {
    if (open.told) return []
    open.told = true
    return [this.callEvent(open.ids.at(-1)!, open)]
  }

  protected start(open: Open): ReadonlyArray<RunEvent> {
    if (open.started) return []
    open.started = true
    return [{ _tag: "ToolStarted", callId: open.ids.at(-1)! }]
  }

  /** Emits a call's output. Some agents repeat the whole output with each update, others send only the newest piece. */
  private written(open: Open, text: string): ReadonlyArray<RunEvent> {
    if (text === "" || text === open.written) return []
    const chunk = text.startsWith(open.written) ? text.slice(open.written.length) : text
    open.written = text
    return [...this.start(open), ...this.progress(open, "stdout", chunk)]
  }

  private progress(open: Open, stream: "stdout" | "stderr", chunk: string): ReadonlyArray<RunEvent> {
    return [{ _tag: "ToolProgress", callId: open.ids.at(-1)!, stream, chunk: chunk.slice(-MAX_CHUNK) }]
  }

  protected statusOf(turn: Turn, open: Open, told: ToolStatus): ToolStatus {
    if (open.denied) return "denied"
    return turn.cancelled ? "cancelled" : told
  }

  private close(turn: Turn, id: string, status: ToolStatus): ReadonlyArray<RunEvent> {
    const open = turn.open.get(id)!
    const output = outputOf(open.known)
    turn.open.delete(id)
    turn.closed.add(id)
    const results = open.ids.map((callId): RunEvent => ({ _tag: "ToolResult", callId, status, output }))
    return [...this.tell(open), ...results]
  }

  /** Handles the request for permission for a call. Returns agentd's id of the call, and the events to emit at once. */
  ask(call: Call, request?: unknown): Asked | undefined {
    const own = this.opens()
    const { turn } = this
    if (turn === undefined || turn.cancelled) return undefined
    const sign = [...own, ...this.sign()]
    const before = turn.open.get(call.toolCallId)?.known
    const open = turn.open.get(call.toolCallId) ?? this.open(turn, call)
    const held = open.asks ? this.question(open) : []
    // keep arguments that are known from earlier and that the question does not repeat
    open.known = merge(open.known, call)
    open.changed = ++this.changes
    // each call asks only once, for the arguments that were emitted
    if (open.asked || (open.told && !isSame(open.shown, argumentsOf(open.known)))) this.renew(open)
    open.asked = true
    this.requests.set(JSON.stringify(request), call.toolCallId)
    open.asks = true
    const isNews = before === undefined || !isSame(before.rawInput, open.known.rawInput)
    return { callId: open.ids.at(-1)!, events: [...sign, ...held, ...(isNews ? [] : this.question(open))] }
  }

  private renew(open: Open): void {
    open.ids.push(this.unique(open.known.toolCallId))
    open.told = false
    open.started = false
  }

  protected question(open: Open): ReadonlyArray<RunEvent> {
    open.asks = false
    const callId = open.ids.at(-1)!
    // leaving plan mode means that the plan is carried out, which the user must decide
    const always = open.known.kind === "switch_mode" ? { always: true } : {}
    return [...this.tell(open), { _tag: "ApprovalRequested", callId, reason: titleOf(open), ...always }]
  }

  private byId(callId: string): Open | undefined {
    return [...(this.turn?.open.values() ?? [])].find(({ ids }) => ids.includes(callId))
  }

  /** True if the arguments of the call have changed since it was shown. */
  changed(callId: string): boolean {
    const open = this.byId(callId)
    return open !== undefined && !open.asks && !isSame(open.shown, argumentsOf(open.known))
  }

  /** Asks about a call again, with its new arguments; undefined if they have not changed. */
  askAgain(callId: string): Asked | undefined {
    const open = this.byId(callId)
    if (open === undefined || !this.changed(callId)) return undefined
    open.ids.splice(open.ids.indexOf(callId), 1)
    this.renew(open)
    const output = "the agent has changed it since it asked: it asks again"
    return {
      callId: open.ids.at(-1)!,
      events: [{ _tag: "ToolResult", callId, status: "cancelled", output }, ...this.question(open)]
    }
  }

  /**
   * Handles a request that the agent has withdrawn. `waits`: whether the call's question is still open. A call of the
   * agent may continue; a deed ends.
   */
  withdrawn(request: unknown, waits: (callId: string) => boolean): ReadonlyArray<RunEvent> {
    const id = this.requests.get(JSON.stringify(request)) ?? ""
    const open = this.turn?.open.get(id)
    const callId = open?.ids.at(-1) ?? id
    if (!waits(callId)) return []
    if (open === undefined) return this.settled(callId, "cancelled", "the agent has withdrawn it")
    open.asked = false
    open.asks = false
    return [{ _tag: "ApprovalWithdrawn", callId }]
  }

  answered(callId: string, allowed: boolean): ReadonlyArray<RunEvent> {
    const open = this.byId(callId)
    if (open === undefined) return []
    if (allowed) return this.start(open)
    open.denied = true
    return []
  }

  /** Emits calls about which no message has arrived since `version`, with the data that is known. */
  settle(version: number): ReadonlyArray<RunEvent> {
    const open = [...(this.turn?.open.values() ?? [])]
    return open.flatMap((call) => (call.changed > version ? [] : call.asks ? this.question(call) : this.tell(call)))
  }

  /** Begins a deed, which asks for an approval. Undefined if no turn is active, or if the turn was asked to stop. */
  deed({ arguments: given, readOnly, request, tool }: Deed): Asked | undefined {
    const own = this.opens()
    const { turn } = this
    if (turn === undefined || turn.cancelled) return undefined
    const callId = `${OURS}${++this.deeds}`
    turn.deeds.set(callId, { terminalId: undefined })
    this.requests.set(JSON.stringify(request), callId)
    const reason = readOnly ? `${tool} has no side effects` : `the agent has agentd do it: ${tool}`
    return {
      callId,
      events: [
        ...own,
        ...this.sign(),
        { _tag: "ToolCall", callId, tool, arguments: given, readOnly },
        { _tag: "ApprovalRequested", callId, reason }
      ]
    }
  }

  /** Called when the deed is allowed and starts. */
  begun(callId: string): ReadonlyArray<RunEvent> {
    return this.turn?.deeds.has(callId) === true ? [{ _tag: "ToolStarted", callId }] : []
  }

  opened(callId: string, terminalId: string): void {
    const deed = this.turn?.deeds.get(callId)
    if (deed !== undefined) deed.terminalId = terminalId
  }

  /** Emits the result of a deed, unless the end of its turn has already done so. */
  settled(callId: string, status: ToolStatus, output: string): ReadonlyArray<RunEvent> {
    if (this.turn?.deeds.delete(callId) !== true) return []
    return [{ _tag: "ToolResult", callId, status, output: bounded(output) }]
  }

  terminal(terminalId: string, stream: "stdout" | "stderr", chunk: string): ReadonlyArray<RunEvent> {
    const [callId] = [...(this.turn?.deeds ?? [])].find(([, deed]) => deed.terminalId === terminalId) ?? []
    if (callId === undefined) return []
    return [{ _tag: "ToolProgress", callId, stream, chunk: chunk.slice(-MAX_CHUNK) }]
  }

  /** Ends the turn: its prompt has been answered, or will never be answered. */
  finish(end: End): ReadonlyArray<RunEvent> {
    this.requests.clear()
    const { turn } = this
    if (turn === undefined) return []
    const sign = this.sign()
    const left: ToolStatus = end._tag === "Interrupted" ? "cancelled" : "unknown"
    const deeds = [...turn.deeds.keys()].map((callId): RunEvent => ({
      _tag: "ToolResult",
      callId,
      status: left,
      output: "its turn ended before the call"
    }))
    const told = [...turn.open].flatMap(([id, open]) => this.close(turn, id, open.denied ? "denied" : left))
    const closing = [...told, ...deeds]
    this.turn = undefined
    const { turnId } = turn
    const answer = turn.text === "" ? turn.before : turn.text
    const output = answer.slice(-MAX_ANSWER)
    switch (end._tag) {
      case "Completed":
        return [...sign, ...closing, { _tag: "TurnCompleted", turnId, output }]
      case "Interrupted":
        return [...sign, ...closing, { _tag: "TurnInterrupted", turnId, output }]
      case "Exited":
        return [...sign, ...closing]
      case "Failed":
        return [
          ...sign,
          ...closing,
          { _tag: "TurnError", turnId, errorType: end.errorType, message: end.message, retry: end.retry }
        ]
    }
  }
}
