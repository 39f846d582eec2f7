/**
 * AgentAllowance: the remaining budget of one agent. It is checked before each turn, and the agent's usage is reported
 * to it.
 */
import { Effect } from "effect"
import { type Allowances, type Reach, type Standing, spentWords, unlimited } from "../../domain/SpendingLimits.ts"
import type { Address } from "../../domain/AgentPort.ts"
import type { Usage } from "../../domain/UsageKinds.ts"
import type { RuneRef } from "../../core/event-log/Rune.ts"
import type * as Budget from "../machines/Budget.ts"

export interface AgentAllowance {
  /**
   * The reached limit that prevents a turn now; undefined if a turn may start. `wake` is called when it is worth asking
   * again.
   */
  readonly admits: (spent: Budget.Spent, wake: () => void) => Reach | "unread" | undefined
  /** True if a limit is reached that ends this turn. */
  readonly endsTurn: (spent: Budget.Spent, turnId: string) => boolean
  readonly used: (usage: Usage, ref: RuneRef) => Effect.Effect<void>
  readonly began: (ref: RuneRef) => Effect.Effect<void>
  readonly standing: () => Standing
}

export const make = (allowances: Allowances, who: Address): AgentAllowance => ({
  admits: (spent, wake) => allowances.admits(who, spent, wake),
  endsTurn: (spent, turnId) => allowances.endsTurn(who, spent, turnId),
  used: (usage, ref) => allowances.used(who, usage, ref),
  began: (ref) => allowances.began(who, ref),
  standing: () => allowances.standing(who)
})

export const free: AgentAllowance = make(unlimited, { conversation: "", agent: "" })

/** The reason why the agent starts no turn now. If the limit never resets, the text says to raise it. */
export const words = (reach: Reach): string =>
  reach.until === null ? `${spentWords(reach)}; raise the limit to continue` : spentWords(reach)
