/**
 * Truth: what `why` tells rests on runes that are there, in their order, and names processes that
 * were there; an agent that is said to rest has none.
 */
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { WhyReply } from "../../../src/board/DaemonMessages.ts"
import type { AgentInfo } from "../../../src/domain/Messages.ts"
import type { Seen } from "../world/Processes.ts"
import type { AgentProcess } from "../world/Processes.ts"
import type { Check, Verdicts } from "./Check.ts"
import type { Chronicle } from "./Chronicle.ts"

const PROMISE = "what agentd says is true"

/** Longer answers are not kept whole. */
const WHOLE = 10_000

/** States in which no process of the agent is there. */
const RESTING: ReadonlyArray<string> = ["CoolingDown", "Initializing", "SessionComplete", "Stopped"]

export class Truth implements Check {
  private readonly verdicts: Verdicts
  private readonly log: Chronicle
  private readonly pids = new Map<string, Set<string>>()
  private readonly begun = new Set<string>()
  /** Outputs with which agents ended their turns. */
  private readonly outputs = new Map<string, string>()

  constructor(verdicts: Verdicts, log: Chronicle) {
    this.verdicts = verdicts
    this.log = log
  }

  rune({ eventId, kind, payload }: Rune): void {
    const turnId = String(payload["turn_id"])
    if (kind === "turn.started") this.begun.add(turnId)
    if (kind === "turn.assistant_delta" && !this.begun.has(turnId))
      this.verdicts.broken("what is said is of a turn that has begun", `turn ${turnId}, rune ${eventId}`)
    const output = this.outputs.get(turnId) ?? ""
    if (kind === "turn.completed" && output.length < WHOLE && !String(payload["final_output"]).includes(output))
      this.verdicts.broken("an answer is what its agent said", `turn ${turnId}, rune ${eventId}: ${output}`)
  }

  said(_: AgentProcess, event: RunEvent): void {
    if (event._tag === "TurnCompleted") this.outputs.set(event.turnId, event.output)
  }

  spawned({ agent, pid }: Seen): void {
    this.pids.set(agent, (this.pids.get(agent) ?? new Set()).add(String(pid)))
  }

  why({ agent: row, lines }: WhyReply): void {
    let before = 0
    for (const { eventId, text } of lines) {
      const untrue = (what: string) =>
        this.verdicts.broken(PROMISE, `why ${row.agent}: "${text.slice(0, 80)}" (rune ${eventId}): ${what}`)
      if (eventId === 0) continue
      const rune = this.log.at(eventId)
      if (rune === undefined) untrue("there is no such rune")
      else if (rune.stream !== row.conversation) untrue(`the rune is of ${rune.stream}`)
      // what is so now may rest on an older rune, of the conversation
      else if (rune.actor.endsWith(`/${row.agent}`)) {
        if (eventId < before && eventId !== row.restsOn) untrue(`it comes after rune ${before}`)
        before = eventId
      }
      const pid = /\(pid (\d+)\)/.exec(text)?.[1]
      if (pid !== undefined && this.pids.get(row.agent)?.has(pid) !== true) untrue("it had no such process")
      const by = (rune?.payload["event"] as { readonly by?: string } | undefined)?.by
      if (text.startsWith("stopped by") && !text.startsWith(`stopped by ${by}`)) untrue(`it was stopped by ${by}`)
    }
  }

  /** Nothing moves. */
  isQuiet(rows: ReadonlyArray<AgentInfo>, isLiving: (agent: string) => boolean): void {
    for (const { agent, state } of rows)
      if (RESTING.includes(state) && isLiving(agent))
        this.verdicts.broken(PROMISE, `${agent} is said to be ${state}, and a process of it lives`)
  }
}
