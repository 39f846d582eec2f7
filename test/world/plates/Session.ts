/**
 * A simulated session of Claude Code: what it does, what it tells of it, and what
 * a person at its terminal would say. Its hooks get lost, come late and come
 * twice, as the choices say; its transcript is written in batches.
 */
import { interrupt, result, said, toolUse, user } from "./World.ts"

type Fields = { readonly [field: string]: unknown }

export type Happening =
  | {
      readonly at: number
      readonly _tag: "Hook"
      readonly name: string
      readonly more: Fields
      /** The dialog that it tells of. */
      readonly asks?: string
    }
  /** Records with the time of when they were made, in the file of the session or of a subagent. */
  | { readonly at: number; readonly _tag: "Write"; readonly file: string; readonly records: ReadonlyArray<Fields> }
  /** A dialog opens, or a turn fails; a person answers; it is over when the transcript has it. */
  | { readonly at: number; readonly _tag: "Asks" | "Answered" | "Over"; readonly what: string }

export const SESSION = "s1"
const SUB = "a1"

/** Hooks come so much later at most, ms; records are written so much later. */
const LATE = 2_000
const BATCH = 700

export class Session {
  readonly happenings: Array<Happening> = []
  private readonly choices: ReadonlyArray<number>
  private next = 0
  /** ms since the session began */
  private now = 0
  private count = 0
  /** The last turn that failed. */
  private failed = "none"

  private readonly order: "any" | "kept"

  /** With the order kept hooks get lost and come twice, but none comes late: an agent waits for them. */
  constructor(choices: ReadonlyArray<number>, order: "any" | "kept") {
    this.choices = choices
    this.order = order
    this.hook("SessionStart", { source: "startup" })
    while (this.next < this.choices.length) this.turn()
    this.happenings.sort((a, b) => a.at - b.at)
  }

  private pick(n: number): number {
    return (this.choices[this.next++] ?? 0) % n
  }

  private pass(least: number, most: number): void {
    this.now += least + this.pick(most - least + 1)
  }

  private hook(name: string, more: Fields = {}, asks?: string): void {
    const say = () => {
      const late = this.pick(6) === 0 && this.order === "any" ? this.pick(LATE) : 0
      this.happenings.push({ at: this.now + late, _tag: "Hook", name, more, ...(asks === undefined ? {} : { asks }) })
    }
    const fate = this.pick(10)
    if (fate >= 3) say()
    if (fate === 9) say()
  }

  /** Answers when they are in the file. */
  private write(records: ReadonlyArray<Fields>, file = SESSION): number {
    const at = this.now + this.pick(BATCH)
    this.happenings.push({ at, _tag: "Write", file, records: records.map((record) => ({ ...record, made: this.now })) })
    return at
  }

  private truth(_tag: "Asks" | "Answered" | "Over", what: string, at = this.now): void {
    this.happenings.push({ at, _tag, what })
  }

  private turn(): void {
    this.pass(3_000, 20_000)
    const failure = this.failed
    this.truth("Answered", failure)
    this.hook("UserPromptSubmit", { prompt: "go" })
    this.truth("Over", failure, this.write([user("go")]))
    for (let step = this.pick(4); step > 0; step--) {
      this.pass(100, 5_000)
      if (this.step() === "ended") return
    }
    this.pass(100, 5_000)
    if (this.pick(5) === 0) {
      this.write([said(this.id("m"), "API Error")])
      this.failed = this.id("f")
      this.truth("Asks", this.failed)
      this.hook("StopFailure", { error: "server_error" }, this.failed)
    } else {
      this.write([said(this.id("m")), { type: "system", subtype: "turn_duration" }])
      this.hook("Stop", { background_tasks: this.pick(2) === 0 ? [] : [{ id: SUB }] })
      if (this.pick(3) === 0) this.subagent()
    }
  }

  private id(kind: string): string {
    this.count += 1
    return `${kind}${this.count}`
  }

  private step(): "ended" | "goes on" {
    const message = this.id("m")
    const kind = (["Bash", "Bash", "AskUserQuestion", "ExitPlanMode", "WebFetch"] as const)[this.pick(5)]!
    const call = { tool_name: kind, tool_use_id: this.id("c"), tool_input: { n: this.count } }
    const beside = this.pick(3) === 0 ? { tool_name: "Read", tool_use_id: this.id("c"), tool_input: {} } : undefined
    const uses = [call, ...(beside === undefined ? [] : [beside])]
    this.write(
      uses.map(({ tool_input, tool_name, tool_use_id }) => toolUse(message, tool_use_id, tool_name, tool_input))
    )
    // A question and a plan are told before their dialog opens.
    if (kind === "AskUserQuestion" || kind === "ExitPlanMode") this.truth("Asks", call.tool_use_id)
    for (const use of uses) {
      const opens = use === call && (kind === "AskUserQuestion" || kind === "ExitPlanMode")
      this.hook("PreToolUse", use, opens ? call.tool_use_id : undefined)
    }
    if (kind === "Bash" && this.pick(2) === 0) this.pass(100, 8_000)
    else if (this.dialog(call, beside) === "ended") return "ended"
    this.write([result(call.tool_use_id)])
    this.hook("PostToolUse", call)
    this.hook("PostToolBatch")
    return "goes on"
  }

  private dialog(call: Fields & { readonly tool_use_id: string }, beside: Fields | undefined): "ended" | "goes on" {
    this.now += 80
    const what = call.tool_use_id
    this.truth("Asks", what)
    this.hook("PermissionRequest", { tool_name: call["tool_name"], tool_input: call["tool_input"] }, what)
    const opened = this.now
    this.pass(1_000, 6_000)
    if (beside !== undefined) {
      this.write([result(String(beside["tool_use_id"]))])
      this.hook("PostToolUse", beside)
    }
    if (this.pick(2) === 0) {
      this.now = Math.max(this.now, opened + 6_000)
      this.hook("Notification", { notification_type: "permission_prompt" })
      this.pass(0, 20_000)
    }
    if (this.pick(3) === 0) {
      // No hook tells of an escape.
      this.truth("Answered", what)
      this.truth("Over", what, this.write([result(what), interrupt(" for tool use")]))
      return "ended"
    }
    // What is allowed may run for a while; nothing tells of it before its end.
    this.truth("Answered", what)
    if (call["tool_name"] === "Bash") this.pass(0, 15_000)
    this.truth("Over", what, this.now + BATCH)
    return "goes on"
  }

  /** Lets a subagent ask and work while the main agent is idle. */
  private subagent(): void {
    const file = `${SESSION}/subagents/agent-${SUB}`
    const by = { agent_id: SUB }
    const call = { tool_name: "Bash", tool_use_id: this.id("s"), tool_input: {} }
    this.pass(100, 3_000)
    this.write([{ ...toolUse(this.id("m"), call.tool_use_id, "Bash"), isSidechain: true }], file)
    this.hook("PreToolUse", { ...call, ...by })
    this.now += 80
    this.truth("Asks", call.tool_use_id)
    this.hook("PermissionRequest", { ...call, ...by, tool_use_id: undefined }, call.tool_use_id)
    this.pass(1_000, 20_000)
    this.truth("Answered", call.tool_use_id)
    this.truth("Over", call.tool_use_id, this.write([{ ...result(call.tool_use_id), isSidechain: true }], file))
    this.hook("PostToolUse", { ...call, ...by })
    this.pass(100, 2_000)
    this.hook("SubagentStop", by)
  }
}
