/**
 * Session: one session of Claude Code, as a person has it: what it does, what it writes, what
 * it tells of itself by its hooks and its note, and what is so of it whatever anybody has heard.
 */
import type { Chance } from "../Chance.ts"
import type { Answer, Sessions } from "./Sessions.ts"

/** The true states of a session. */
export type Truth = "idle" | "busy" | "permission" | "question" | "failed" | "gone"

type Fields = { readonly [field: string]: unknown }

export const CLAUDE = "/.claude"
const TOOLS = ["Bash", "Write", "Read", "AskUserQuestion", "ExitPlanMode"] as const

/** A call of a tool; `agentId` where a sub-agent makes it. */
interface Call {
  readonly tool_name: string
  readonly tool_input: Fields
  readonly tool_use_id: string
  readonly agentId?: string
}

/** Until its hook has been answered an agent does nothing else, ms. */
const STEP = 80

export class Session {
  readonly number: number
  readonly cwd: string
  /** Whether its process notes what it is about. */
  readonly isNoted: boolean
  id = ""
  readonly formerIds: Array<string> = []
  pid = 0
  /** By the machine's clock, when its process began. */
  private startedAt = 0
  /** `AGENTD_PLATE` in its environment. */
  plate: string | undefined = undefined
  truth: Truth = "gone"
  /** When that began; when it began under its id; ms since the world's beginning. */
  changedAt = 0
  bornAt = 0
  /** Whether that was noted by a clock that was set back: what was heard before seems newer. */
  isBehind = false
  /** When its transcript first said something after the truth had changed; whether that says that the turn is over. */
  toldAt = Infinity
  endedAs: "nothing" | "interrupt" | "end" = "nothing"
  /** When its newest hook came to a daemon; when one came that was late, or at a bad time. */
  postedAt = -Infinity
  disorderedAt = -Infinity
  /** When it said itself that it ends, and a daemon heard it. */
  saidEndAt = -Infinity
  /** When its hooks are answered, in order. */
  busyUntil = 0
  private readonly world: Sessions
  private readonly chance: Chance
  private ids = 0
  private calls = 0
  private messages = 0
  /** The number of the turn: work that was under way is over when it has changed. */
  private turn = 0

  constructor(world: Sessions, number: number, chance: Chance) {
    this.world = world
    this.number = number
    this.chance = chance
    this.cwd = `/home/ada/work${number % 3}`
    this.isNoted = chance.is(world.habits.noted)
    this.anew()
  }

  /** True where hooks come out of order, which those of the real one do not: what is told late is believed until more is told. */
  get isOdd(): boolean {
    return this.world.habits.strays > 0
  }

  get isGone(): boolean {
    return this.truth === "gone"
  }

  get asks(): boolean {
    return this.truth === "permission" || this.truth === "question"
  }

  get transcript(): string {
    return `${CLAUDE}/projects/${this.cwd.replaceAll("/", "-")}/${this.id}.jsonl`
  }

  private anew(): void {
    if (this.id !== "") this.formerIds.push(this.id)
    this.id = `${String(this.number).padStart(4, "0")}c0de-0000-4000-8000-${String(++this.ids).padStart(12, "0")}`
  }

  private later(low: number, high: number, run: () => void): void {
    const { turn } = this
    this.world.universe.later(this.chance.skewed(low, high), () => {
      if (this.turn === turn) run()
    })
  }

  /** Noted before a hook tells of it, as the real one does. */
  private becomes(truth: Truth): void {
    const { universe } = this.world
    if (this.truth !== truth) {
      this.changedAt = universe.now
      this.toldAt = Infinity
      this.endedAs = "nothing"
      this.isBehind = this.world.isBehind()
    }
    universe.note(`session ${this.number} ${this.id.slice(-2)} is ${truth}`)
    this.world.sometimes(`session: ${truth}`)
    this.truth = truth
    this.note()
  }

  private note(): void {
    if (!this.isNoted || this.isGone) return
    const { pid, truth, world } = this
    const status = truth === "failed" ? "idle" : this.asks ? "waiting" : truth
    const note = {
      pid,
      procStart: String(world.startOf(pid)),
      sessionId: this.id,
      cwd: this.cwd,
      kind: "interactive",
      entrypoint: "cli",
      startedAt: this.startedAt,
      status,
      ...(this.asks ? { waitingFor: truth === "permission" ? "permission prompt" : "input needed" } : {}),
      statusUpdatedAt: world.wall
    }
    world.files.write(`${CLAUDE}/sessions/${pid}.json`, JSON.stringify(note), world.wall)
  }

  /** A record of the session's own chain, or of a sub-agent's. */
  private write(record: Fields, agentId?: string): void {
    const { world } = this
    const timestamp = new Date(world.wall).toISOString()
    const line = { isSidechain: agentId !== undefined, sessionId: this.id, timestamp, ...record }
    const file =
      agentId === undefined
        ? this.transcript
        : `${this.transcript.replace(/\.jsonl$/, "")}/subagents/agent-${agentId}.jsonl`
    world.files.append(file, `${JSON.stringify(line)}\n`, world.wall)
    if (agentId === undefined) this.toldAt = Math.min(this.toldAt, world.universe.now)
  }

  private body(hook_event_name: string, more: Fields = {}): Fields {
    const { cwd, id, transcript } = this
    return { session_id: id, transcript_path: transcript, cwd, permission_mode: "default", hook_event_name, ...more }
  }

  private hook(name: string, more: Fields = {}): void {
    this.world.hook(this, this.body(name, more))
  }

  private starts(source: string): void {
    this.world.drop(this, this.body("SessionStart", { source }))
  }

  // What a person does.

  start(source: "startup" | "resume"): void {
    this.turn += 1
    this.pid = this.world.fork()
    this.bornAt = this.world.universe.now
    this.startedAt = this.world.wall
    this.plate = source === "startup" && this.chance.is(this.world.habits.wrapped) ? this.world.wrap(this) : undefined
    this.becomes("idle")
    this.starts(source)
    this.goesOn()
  }

  /** Waits for a prompt. */
  private goesOn(): void {
    const { habits } = this.world
    this.later(Math.max(STEP, habits.pause / 10), habits.pause * 3, () => {
      if (!this.world.isUnruly) return
      const what = this.chance.weighed({
        prompt: 10,
        exit: 1,
        clear: 0.6,
        compact: this.isOdd ? 3 : 0.4,
        crash: habits.crashes * 5,
        notify: 0.3
      })
      switch (what) {
        case "prompt":
          return this.prompt()
        case "exit":
          return this.exit()
        case "clear":
          return this.clear()
        case "compact":
          return this.compact()
        case "crash":
          return this.crash()
        case "notify":
          this.hook("Notification", { message: "Claude is waiting for your input", notification_type: "idle_prompt" })
          return this.goesOn()
      }
    })
  }

  private prompt(): void {
    this.turn += 1
    this.becomes("busy")
    this.hook("UserPromptSubmit", { prompt: "go" })
    this.write({ type: "user", message: { role: "user", content: "go" } })
    this.work(this.chance.below(5))
  }

  private work(left: number): void {
    this.later(STEP, 8_000, () => {
      if (this.chance.is(this.world.habits.crashes / 4)) return this.crash()
      if (this.chance.is(0.08)) return this.escape("")
      if (left <= 0) return this.stops()
      if (this.chance.is(0.15)) return this.delegate(left)
      if (this.isNoted && this.chance.is(this.isOdd ? 0.2 : 0.08)) return this.elicit(left)
      this.call(left)
    })
  }

  private make(tool_name: string, agentId?: string): Call {
    const n = ++this.calls
    const questions = [
      { question: "Which?", header: "One", options: [{ label: "A" }, { label: "B" }], multiSelect: false }
    ]
    const tool_input = tool_name === "AskUserQuestion" ? { questions, n } : { n }
    const call = { tool_name, tool_input, tool_use_id: `toolu_${this.number}_${n}` }
    return agentId === undefined ? call : { ...call, agentId }
  }

  /** As its hooks have it. */
  private told({ agentId, ...call }: Call): Fields {
    return agentId === undefined ? call : { ...call, agent_id: agentId, agent_type: "general-purpose" }
  }

  private begins(call: Call): void {
    const { agentId, tool_input: input, tool_name: name, tool_use_id: id } = call
    this.says([{ type: "tool_use", id, name, input }], "tool_use", agentId)
    this.hook("PreToolUse", this.told(call))
  }

  private call(left: number): void {
    const call = this.make(this.chance.pick(TOOLS))
    this.begins(call)
    const asks = call.tool_name === "AskUserQuestion" || call.tool_name === "ExitPlanMode" || this.chance.is(0.4)
    const then = () => this.work(left - 1)
    // its hook is answered first
    if (asks) this.later(STEP, STEP * 2, () => this.ask(call, then))
    else this.runs(call, then)
  }

  /** A sub-agent works, and the agent waits for it. */
  private delegate(left: number): void {
    const task = this.make("Task")
    this.begins(task)
    const agentId = `a${this.number}x${this.calls}`
    const ended = () => {
      this.hook("SubagentStop", { agent_id: agentId, agent_type: "general-purpose", stop_hook_active: false })
      this.ends(task, "PostToolUse")
      this.work(left - 1)
    }
    this.later(STEP, 4_000, () => {
      const inner = this.make("Bash", agentId)
      this.begins(inner)
      if (this.chance.is(0.5)) this.later(STEP, STEP * 2, () => this.ask(inner, ended))
      else this.runs(inner, ended)
    })
  }

  /** A server of the session's asks for something. */
  private elicit(left: number): void {
    const of = { mcp_server_name: "desk" }
    this.becomes("question")
    this.hook("Elicitation", { ...of, message: "Which?" })
    this.later(1_000, 60_000, () => {
      this.becomes("busy")
      this.hook("ElicitationResult", { ...of, action: "accept" })
      this.work(left - 1)
    })
  }

  private says(content: ReadonlyArray<Fields>, stop_reason: string, agentId?: string): void {
    const usage = { input_tokens: 10, output_tokens: 5 }
    const message = { id: `msg_${this.number}_${++this.messages}`, role: "assistant", content, stop_reason, usage }
    this.write({ type: "assistant", message }, agentId)
  }

  /** A dialog: answered in the terminal, through agentd, or not at all. */
  private ask(call: Call, then: () => void): void {
    const isQuestion = call.tool_name === "AskUserQuestion" || call.tool_name === "ExitPlanMode"
    this.becomes(isQuestion ? "question" : "permission")
    const { turn } = this
    const isOpen = () => this.turn === turn && this.asks
    const { tool_use_id: _, ...request } = this.told(call)
    const through = this.chance.is(this.world.habits.approvals)
    const answered = (answer: Answer) => {
      if (answer.decision === undefined || !isOpen()) return
      this.world.sometimes(`session: ${answer.decision} through agentd`)
      if (answer.decision === "allow") this.allowed(call, then)
      else this.denied(call, then)
    }
    const input = JSON.stringify(call.tool_input)
    this.world.request(this, this.body("PermissionRequest", request), { through, input, answered })
    this.later(1_000, 90_000, () => {
      if (!isOpen()) return
      const how = this.chance.weighed({ allow: 6, deny: 1, escape: 2 })
      if (how === "escape") return this.escape(" for tool use")
      if (how === "deny") return this.denied(call, then)
      this.allowed(call, then)
    })
    this.later(6_000, 6_001, () => {
      if (!isOpen()) return
      this.hook("Notification", { message: "Claude needs your permission", notification_type: "permission_prompt" })
    })
  }

  private allowed(call: Call, then: () => void): void {
    this.turn += 1
    this.becomes("busy")
    this.runs(call, then)
  }

  private denied(call: Call, then: () => void): void {
    this.turn += 1
    this.becomes("busy")
    this.result(call, "not allowed")
    if (this.chance.is(0.3)) this.hook("PermissionDenied", { ...this.told(call), reason: "no" })
    if (call.agentId === undefined) this.hook("PostToolBatch", { tool_calls: [] })
    else this.hook("PostToolBatch", { tool_calls: [], agent_id: call.agentId })
    this.later(STEP, 2_000, then)
  }

  private result({ agentId, tool_use_id }: Call, content: string): void {
    const block = { type: "tool_result", tool_use_id, content }
    this.write({ type: "user", message: { role: "user", content: [block] } }, agentId)
  }

  private runs(call: Call, then: () => void): void {
    // what the Bash tool runs is a child of the session's process
    const ended = call.tool_name === "Bash" ? this.world.shell(this.pid) : () => {}
    this.later(STEP, 20_000, () => {
      ended()
      if (this.chance.is(this.world.habits.crashes / 4)) return this.crash()
      this.ends(call, this.chance.is(0.1) ? "PostToolUseFailure" : "PostToolUse")
      if (this.chance.is(0.7)) {
        const by = call.agentId === undefined ? {} : { agent_id: call.agentId }
        this.hook("PostToolBatch", { tool_calls: [], ...by })
      }
      this.later(STEP, 1_000, then)
    })
  }

  private ends(call: Call, hook: "PostToolUse" | "PostToolUseFailure"): void {
    this.result(call, "ok")
    if (hook === "PostToolUse") this.hook(hook, { ...this.told(call), tool_response: {} })
    else this.hook(hook, { ...this.told(call), error: "no", is_interrupt: false })
  }

  /** No hook tells of it. */
  private escape(how: string): void {
    this.turn += 1
    this.world.sometimes("session: interrupted")
    this.becomes("idle")
    const content = [{ type: "text", text: `[Request interrupted by user${how}]` }]
    this.write({ type: "user", message: { role: "user", content } })
    this.endedAs = "interrupt"
    this.goesOn()
  }

  private stops(): void {
    this.turn += 1
    if (this.chance.is(this.world.habits.fails)) {
      this.becomes("failed")
      this.hook("StopFailure", { error: "rate_limit" })
    } else {
      this.becomes("idle")
      this.says([{ type: "text", text: "Done." }], "end_turn")
      this.endedAs = "end"
      this.hook("Stop", { stop_hook_active: false, background_tasks: [] })
    }
    this.goesOn()
  }

  private compact(): void {
    this.turn += 1
    this.becomes("busy")
    this.hook("PreCompact", { trigger: "manual" })
    this.later(500, 20_000, () => {
      this.becomes("idle")
      this.starts("compact")
      this.hook("PostCompact", { trigger: "manual" })
      this.goesOn()
    })
  }

  /** The same process, another id. */
  private clear(): void {
    this.turn += 1
    this.world.sometimes("session: cleared")
    this.hook("SessionEnd", { reason: "clear" })
    this.later(STEP, STEP * 2, () => {
      this.anew()
      this.bornAt = this.world.universe.now
      this.changedAt = this.bornAt
      this.becomes("idle")
      this.starts("clear")
      this.goesOn()
    })
  }

  private exit(): void {
    this.turn += 1
    this.hook("SessionEnd", { reason: "prompt_input_exit" })
    this.later(STEP, 300, () => {
      this.world.files.remove(`${CLAUDE}/sessions/${this.pid}.json`)
      this.isOver("session: exited")
    })
  }

  /** Crashes, and leaves the note behind. */
  private crash(): void {
    this.isOver("session: crashed")
  }

  private isOver(how: string): void {
    this.turn += 1
    this.world.sometimes(how)
    this.becomes("gone")
    this.world.exits(this)
  }
}
