/**
 * TranscriptView: folds the records of one transcript, one by one.
 *
 * Guarantees: a record of an unknown kind is not an error, and nothing is read from it, not even its time. Of known
 * records only the needed parts are stored, and everything stored is bounded. The view of a chain ignores records of
 * other chains. The result depends only on the records and their order, not on when the file was read.
 */
import { isReadonlyObject as isObject } from "effect/Predicate"

type Json = { readonly [key: string]: unknown }

/** Kind of transcript: the main agent's, or that of one of its subagents. */
export type Chain = "main" | "side"

export const INTERRUPTED = "[Request interrupted by user"

/**
 * Maximum time between the dequeuing of a queued prompt and the interrupt that makes room for it, ms. The interrupt's
 * line is written after the prompt's line, and does not end the prompt's turn.
 */
const QUEUED_MILLIS = 500

const MAX_CALLS = 512
const MAX_TASKS = 1_000
const MAX_TITLE = 200

const ENDING = new Set(["stop_hook_summary", "turn_duration"])
/** Other subtypes of `system` that Claude Code writes. None of them shows that the main agent continues. */
const NOTICES = new Set(
  (
    "agents_killed api_error away_summary bridge_status compact_boundary file_snapshot informational local_command " +
    "memory_saved microcompact_boundary model_consent_fallback model_fallback model_refusal_fallback " +
    "model_refusal_no_fallback permission_retry rewind_stand_in scheduled_task_fire"
  ).split(" ")
)
/**
 * Records of Claude Code's own bookkeeping (2.1.332, and older versions). They are written at any time: in the
 * background, and while a dialog is open.
 */
const BOOKKEEPING = new Set(
  (
    "agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-resumed " +
    "api-request-shape artifact-autoreact-ledger artifact-comment-monitor atis-latch attachment " +
    "attribution-snapshot bridge-session content-replacement continued-in cost-state custom-title " +
    "data-flow-incomplete data-flow-records derived-from dev-mods ended-by-model file-history-delta " +
    "file-history-snapshot fork-context-ref frame-link history-suppression host-row hybrid-organization " +
    "isolation-latch last-prompt memory-mode mode observer-ref permission-mode pr-link progress queue-operation " +
    "relocated repl-mode resume-head-vouch session-owner summary tag tools-used worktree-state"
  ).split(" ")
)
const ENDING_REASONS = new Set(["end_turn", "stop_sequence", "max_tokens", "refusal"])

const objects = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value.filter(isObject) : [])

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

const number = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0)

/** Adds an entry to a map, and removes the oldest one if the map is full. */
const remember = <K, V>(map: Map<K, V>, key: K, value: V, max: number): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value!)
}

/** Kind of a record. `nothing`: bookkeeping, or a record of another chain. `opaque`: a record of an unknown form. */
type Said = "something" | "nothing" | "opaque"

export class TranscriptView {
  readonly chain: Chain
  /** When the newest interrupt that ended a turn was written, ms since the epoch; 0 if none. */
  interruptAt = 0
  /** When the agent's newest message began, or the user's newest prompt was accepted. Earlier calls have ended. */
  movedAt = 0
  /** When the user's newest prompt or command was accepted. */
  promptAt = 0
  /** When the turn ended, if the last record ends one; otherwise undefined. */
  endedAt: number | undefined = undefined
  /** When a turn last failed; 0 if none has. */
  failedAt = 0
  /** Kind of the failure, as the StopFailure hook names it. */
  failure = ""
  /** The session's title, from the best source found so far. */
  title: string | undefined = undefined
  prompt: string | undefined = undefined
  branch: string | undefined = undefined
  lastTool: string | undefined = undefined
  toolCalls = 0
  tokens = 0
  /**
   * Content before this time is partly unknown. It is the time of the first known record after unknown ones: infinite
   * if no known record follows, 0 if everything is known.
   */
  opaqueUntil = 0

  /** The time of the newest known record. */
  private at = 0
  /** Calls without a result: the tool of each, by call id. */
  private readonly calls = new Map<string, string>()
  private readonly results = new Map<string, number>()
  private readonly lastResults = new Map<string, number>()
  private titleRank = 0
  private message = ""
  private usage = 0
  private dequeuedAt = Number.NEGATIVE_INFINITY
  private todos: number | undefined = undefined
  private readonly tasks = new Map<string, boolean>()
  private taskNumber = 0
  private readonly translate: (record: Json) => Json | undefined

  /** `translate`: for the transcript of another CLI; undefined if the record says nothing. */
  constructor(chain: Chain, translate: (record: Json) => Json | undefined = (record) => record) {
    this.chain = chain
    this.translate = translate
  }

  /** Number of open todos; undefined if none were ever written. */
  get openTodos(): number | undefined {
    if (this.tasks.size === 0) return this.todos
    let open = 0
    for (const isOpen of this.tasks.values()) if (isOpen) open += 1
    return open
  }

  hasResult(callId: string): boolean {
    return this.results.has(callId)
  }

  /** When a call of the tool last ended; 0 if none has, or if one is open now. */
  resultOf(tool: string): number {
    for (const open of this.calls.values()) if (open === tool) return 0
    return this.lastResults.get(tool) ?? 0
  }

  /**
   * Reads one line. A record with content but without a time counts as unknown: it is at least as new as the records
   * before it, and the file's mtime is a better estimate.
   */
  take(line: string): void {
    const read = parsed(line)
    const record = read === undefined ? read : this.translate(read)
    if (read !== undefined && record === undefined) return
    const at = typeof record?.["timestamp"] === "string" ? Date.parse(record["timestamp"]) : Number.NaN
    const isTimed = !Number.isNaN(at)
    const said = record === undefined ? "opaque" : this.record(record, isTimed ? at : this.at)
    if (said === "opaque" || (said === "something" && !isTimed)) return this.passOver()
    if (!isTimed) return
    this.at = at
    if (this.opaqueUntil === Number.POSITIVE_INFINITY) this.opaqueUntil = at
  }

  /** Records that something unknown was written. */
  passOver(): void {
    this.opaqueUntil = Number.POSITIVE_INFINITY
  }

  private record(record: Json, at: number): Said {
    const type = String(record["type"])
    if (BOOKKEEPING.has(type)) {
      this.titled(record)
      if (type === "queue-operation" && record["operation"] === "dequeue") this.dequeuedAt = at
      return "nothing"
    }
    const message = isObject(record["message"]) ? record["message"] : {}
    const { content } = message
    const isSaid = (type === "assistant" || type === "user") && (typeof content === "string" || Array.isArray(content))
    const isOurs = (record["isSidechain"] === true) === (this.chain === "side")
    if (type === "system") return this.system(record, at, isOurs)
    if (!isSaid) return "opaque"
    if (!isOurs) return "nothing"
    this.branch = text(record["gitBranch"]) ?? this.branch
    if (type === "assistant") {
      this.assistant(message, at)
      // written instead of an answer when Claude Code stopped retrying the requests of a turn
      if (record["isApiErrorMessage"] === true) this.failed(text(record["error"]), at)
    } else if (record["isMeta"] !== true) this.user(message, at)
    return "something"
  }

  private system(record: Json, at: number, isOurs: boolean): Said {
    const subtype = String(record["subtype"])
    if (!ENDING.has(subtype) && !NOTICES.has(subtype)) return "opaque"
    // the user typed a command that Claude Code handles itself
    if (subtype === "local_command") this.promptAt = at
    if (!isOurs || NOTICES.has(subtype)) return "nothing"
    this.endedAt = at
    return "something"
  }

  private assistant(message: Json, at: number): void {
    const id = text(message["id"]) ?? ""
    if (id === "" || id !== this.message) {
      // A new message is requested when every call of the previous one has its result.
      this.movedAt = at
      this.calls.clear()
      this.message = id
      this.usage = 0
    }
    const { input_tokens, output_tokens } = isObject(message["usage"]) ? message["usage"] : {}
    const usage = number(input_tokens) + number(output_tokens)
    // Each block of a message is a separate record, which repeats the usage so far.
    this.tokens += Math.max(0, usage - this.usage)
    this.usage = Math.max(this.usage, usage)
    const uses = objects(message["content"]).filter(({ type }) => type === "tool_use")
    for (const use of uses) this.called(use)
    const ends = uses.length === 0 && this.calls.size === 0 && ENDING_REASONS.has(String(message["stop_reason"]))
    this.endedAt = ends ? at : undefined
  }

  private failed(error: string | undefined, at: number): void {
    this.failedAt = at
    this.failure = (error ?? "unknown").slice(0, MAX_TITLE)
  }

  private called(use: Json): void {
    const [id, name] = [text(use["id"]), text(use["name"])]
    if (id === undefined || name === undefined) return
    if (!this.calls.has(id)) this.toolCalls += 1
    this.lastTool = name
    remember(this.calls, id, name, MAX_CALLS)
    const input = isObject(use["input"]) ? use["input"] : {}
    if (name === "TodoWrite") {
      this.todos = objects(input["todos"]).filter(({ status }) => status !== "completed").length
    } else if (name === "TaskCreate") {
      this.taskNumber += 1
      remember(this.tasks, String(this.taskNumber), true, MAX_TASKS)
    } else if (name === "TaskUpdate" && (input["status"] === "completed" || input["status"] === "deleted")) {
      remember(this.tasks, String(input["taskId"]), false, MAX_TASKS)
    }
  }

  private user(message: Json, at: number): void {
    const { content } = message
    const blocks = objects(content)
    for (const block of blocks) {
      if (block["type"] === "tool_result") this.resulted(block, at)
    }
    const typed = text(content) ?? text(blocks.find(({ type }) => type === "text")?.["text"])
    if (typed === undefined) {
      this.endedAt = undefined
      return
    }
    if (typed.startsWith(INTERRUPTED)) return this.interrupted(at)
    this.movedAt = at
    this.promptAt = at
    this.endedAt = undefined
    if (!typed.startsWith("<")) this.prompt = typed.trim().slice(0, MAX_TITLE)
  }

  private resulted(block: Json, at: number): void {
    const id = text(block["tool_use_id"])
    if (id === undefined) return
    const tool = this.calls.get(id)
    this.calls.delete(id)
    remember(this.results, id, at, MAX_CALLS)
    if (tool !== undefined) remember(this.lastResults, tool, at, MAX_CALLS)
  }

  private interrupted(at: number): void {
    this.calls.clear()
    if (at - this.dequeuedAt < QUEUED_MILLIS) {
      this.movedAt = at
      this.endedAt = undefined
      return
    }
    this.interruptAt = at
    this.endedAt = at
  }

  /** The user's title has priority over a generated one, and a generated one over a summary. */
  private titled(record: Json): void {
    const [rank, title] =
      record["type"] === "custom-title"
        ? [3, text(record["customTitle"])]
        : record["type"] === "ai-title"
          ? [2, text(record["aiTitle"])]
          : record["type"] === "summary"
            ? [1, text(record["summary"])]
            : [0, undefined]
    if (title === undefined || rank < this.titleRank) return
    this.title = title.slice(0, MAX_TITLE)
    this.titleRank = rank
  }
}

const parsed = (line: string): Json | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
