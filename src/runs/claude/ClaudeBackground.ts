/**
 * ClaudeBackground: the background work of a Claude Code process, which continues or is scheduled outside its turns:
 * background shells, sub-agents, wake-ups. Pure.
 *
 * Guarantees: each list of tasks from the CLI replaces the previous one. A wake-up exists from the
 * result that schedules it until a turn begins after its time, or until it is deleted. Every part
 * is limited in size.
 */
import type { Work } from "../Backend.ts"
import { type ClaudeRecord, inner, list, number, oneLine, text } from "./ClaudeRecord.ts"

const KINDS: { readonly [type: string]: Work["kind"] } = { local_bash: "shell", local_agent: "sub-agent" }
/** Maximum number of tasks, and of wake-ups, that are reported. */
const MAX = 64
const MAX_WORDS = 200
/** Id of the wake-up that an agent schedules for itself. There is only one: the next one replaces it. */
const WAKE_UP = "wake-up"
/** Tolerance in ms for the time of a wake-up, because clocks are rounded. */
const EARLY = 1_000

/** State that is stored with a checkpoint for a daemon that resumes the process. */
export interface KnownBackground {
  readonly tasks: ReadonlyArray<Work>
  readonly wakeUps: ReadonlyArray<Work>
}

export class ClaudeBackground {
  private tasks: ReadonlyArray<Work>
  private readonly wakeUps: Map<string, Work>

  constructor({ tasks = [], wakeUps = [] }: Partial<KnownBackground> = {}) {
    this.tasks = tasks
    this.wakeUps = new Map(wakeUps.map((work) => [work.id, work]))
  }

  get known(): KnownBackground {
    return { tasks: this.tasks, wakeUps: [...this.wakeUps.values()] }
  }

  get agents(): number {
    return this.tasks.filter(({ kind }) => kind === "sub-agent").length
  }

  get works(): ReadonlyArray<Work> {
    return [...this.tasks, ...this.wakeUps.values()]
  }

  changed(record: ClaudeRecord): void {
    this.tasks = list(record, "tasks")
      .slice(0, MAX)
      .map((task) => ({
        id: text(task, "task_id"),
        kind: KINDS[text(task, "task_type")] ?? "task",
        text: oneLine(text(task, "description")).slice(0, MAX_WORDS)
      }))
  }

  /** Handles a successful tool call. Returns true if it has changed the scheduled wake-ups. */
  called(tool: string, input: ClaudeRecord, record: ClaudeRecord): boolean {
    const result = inner(record, "tool_use_result")
    switch (tool) {
      case "ScheduleWakeup": {
        const at = number(result, "scheduledFor")
        return this.schedule(WAKE_UP, text(input, "reason") || text(input, "prompt"), at)
      }
      case "CronCreate": {
        const id = text(result, "id")
        const at = result["recurring"] === false ? number(result, "nextFireAt") : undefined
        return id !== "" && this.schedule(id, text(input, "prompt") || text(result, "humanSchedule"), at)
      }
      case "CronDelete":
        return this.wakeUps.delete(text(input, "id"))
      default:
        return false
    }
  }

  /**
   * Removes due wake-ups because the CLI has begun a turn by itself. `now`: ms since the epoch. Returns true if any was
   * due.
   */
  woke(now: number): boolean {
    const due = [...this.wakeUps.values()].filter(({ at = Number.POSITIVE_INFINITY }) => at <= now + EARLY)
    for (const { id } of due) this.wakeUps.delete(id)
    return due.length > 0
  }

  private schedule(id: string, words: string, at?: number): boolean {
    if (this.wakeUps.size >= MAX && !this.wakeUps.has(id)) return false
    const what = oneLine(words).slice(0, MAX_WORDS)
    this.wakeUps.set(id, { id, kind: "wake-up", text: what, ...(at === undefined ? {} : { at }) })
    return true
  }
}
