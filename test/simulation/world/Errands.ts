/**
 * Errands: what an agent asks agentd for by its tools as it works on a turn: to tell another
 * agent, to report, to ask a person, to spawn a sub-agent, to look into its inbox.
 */
import type { Report } from "../../../src/domain/Messages.ts"
import type { Chance } from "../Chance.ts"

export const ERRANDS = ["message", "report", "ask", "spawn", "inbox"] as const
export type ErrandName = (typeof ERRANDS)[number]

export type Errand =
  | { readonly _tag: "message"; readonly to: string }
  | { readonly _tag: "report"; readonly status: Report["status"] }
  | { readonly _tag: "ask" }
  | { readonly _tag: "spawn"; readonly name: string }
  | { readonly _tag: "inbox" }

/** Asks the daemon on behalf of a run. */
export type Asks = (runId: string, errand: Errand) => void

/** How often agents ask for what; the probability that one does in a turn. */
export interface Manners {
  readonly share: number
  readonly often: { readonly [name in ErrandName]: number }
}

export class Errands {
  private readonly runId: string
  private readonly chance: Chance
  private readonly manners: Manners | undefined

  constructor(runId: string, chance: Chance, manners: Manners | undefined) {
    this.runId = runId
    this.chance = chance
    this.manners = manners
  }

  /** Begins the errands of a turn. */
  begin(asks: Asks | undefined, others: ReadonlyArray<string>, later: (ms: number, run: () => void) => void): void {
    const { chance, manners } = this
    if (manners === undefined || asks === undefined || !chance.is(manners.share)) return
    for (let left = 1 + chance.below(2); left > 0; left--) {
      const errand = this.errand(chance.weighed(manners.often), others)
      later(chance.skewed(1, 2_000), () => asks(this.runId, errand))
    }
  }

  private errand(name: ErrandName, others: ReadonlyArray<string>): Errand {
    const { chance } = this
    switch (name) {
      case "message":
        return { _tag: name, to: chance.pick(others) }
      case "report":
        return { _tag: name, status: chance.pick(["done", "failed", "blocked"]) }
      case "spawn":
        return { _tag: name, name: chance.pick(["helper", "scout"]) }
      default:
        return { _tag: name }
    }
  }
}
