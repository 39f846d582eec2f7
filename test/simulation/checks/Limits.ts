/**
 * Limits: an agent that has failed as often as its file allows stops; no more of its runs begin in
 * an hour than the file allows.
 */
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Seen } from "../world/Processes.ts"
import type { Check, Verdicts } from "./Check.ts"

const HOUR = 3_600_000

/** As the project's file has it. */
export interface Settings {
  readonly maxConsecutiveErrors?: number
  readonly maxTotalErrors?: number
  readonly maxRunsPerHour?: number
}

export interface Surroundings {
  /** Undefined for an agent that the file does not name. */
  readonly settingsOf: (agent: string) => Settings | undefined
  /** Whether the file has these limits now, and the clock shows the time that goes by. */
  readonly areMeant: () => boolean
  /** Daemons so far: one that dies between a spawn and its rune does not count it. */
  readonly lives: () => number
}

export class Limits implements Check {
  private readonly verdicts: Verdicts
  private readonly around: Surroundings
  private readonly spawns = new Map<string, Array<number>>()

  constructor(verdicts: Verdicts, around: Surroundings) {
    this.verdicts = verdicts
    this.around = around
  }

  rune({ actor, eventId, kind, payload, to }: Rune): void {
    // its agents are new
    if (kind === "session.created") this.spawns.clear()
    if (kind !== "worker.moved" || to !== "CoolingDown") return
    const agent = actor.slice(actor.indexOf("/") + 1)
    const settings = this.around.settingsOf(agent)
    if (settings === undefined) return
    const { consecutiveErrors, totalErrors } = payload as { readonly [field: string]: number }
    const { maxConsecutiveErrors = 5, maxTotalErrors = 20 } = settings
    if (consecutiveErrors! >= maxConsecutiveErrors || totalErrors! >= maxTotalErrors)
      this.verdicts.broken(
        "who has failed often enough stops",
        `${agent}: ${consecutiveErrors} in a row, ${totalErrors} in all; rune ${eventId}`
      )
  }

  spawned({ agent }: Seen): void {
    const { maxRunsPerHour } = this.around.settingsOf(agent) ?? {}
    if (maxRunsPerHour === undefined || !this.around.areMeant()) return
    const { now } = this.verdicts
    const spawns = [...(this.spawns.get(agent) ?? []).filter((at) => at > now - HOUR), now]
    this.spawns.set(agent, spawns)
    if (spawns.length > maxRunsPerHour + this.around.lives() - 1)
      this.verdicts.broken("no more runs an hour than the file allows", `${agent}: ${spawns.length}`)
  }
}
