/**
 * Fallbacks: another account is asked only while an agent's own cannot be had, or has reached its limit and the file
 * lets the agent move; and it comes back.
 */
import { type ApiMood, keyOf, type Request } from "../world/ModelApi.ts"
import type { Verdicts } from "./Check.ts"

/** ms between a daemon's decision and the asking by it: its disk may take ten seconds. */
const LAG = 30_000

const LIMITS: ReadonlySet<ApiMood> = new Set(["limited", "limitedFor", "limitedForLong"])
/** Answers that show that the account is there, whatever they say. */
const THERE: ReadonlySet<ApiMood> = new Set([
  "answers",
  "calls",
  "cutShort",
  "refuses",
  "filters",
  "pauses",
  "says nothing",
  "unauthorized",
  "unpaid",
  "tooLong",
  "redirects"
])

type Trouble = "limit" | "outage"

/** The troubles that are known of an account; `until`: an answer of it came then. */
interface Account {
  readonly troubles: Set<Trouble>
  until: number
}

/** The settings of an agent that has others to ask, as the file has them. */
export interface Moving {
  readonly onLimit: "move" | "wait" | "stop"
}

export class Fallbacks {
  private readonly verdicts: Verdicts
  private readonly settingsOf: (agent: string) => Moving | undefined
  private readonly accounts = new Map<string, Account>()
  /** Agents whose newest answer was that of a fallback. */
  private readonly away = new Set<string>()

  /** `settingsOf`: undefined for an agent that has no other account. */
  constructor(verdicts: Verdicts, settingsOf: (agent: string) => Moving | undefined) {
    this.verdicts = verdicts
    this.settingsOf = settingsOf
  }

  readonly asked = ({ agent, key, mood, number }: Request): void => {
    const settings = this.settingsOf(agent)
    if (key === keyOf(agent) || settings === undefined) return this.noted(key, mood)
    const troubles = this.troublesOf(keyOf(agent))
    const isMoved = troubles.has("outage") || (troubles.has("limit") && settings.onLimit === "move")
    this.verdicts.sometimes(`a fallback is asked: ${[...troubles].toSorted().join(" and ")}`)
    if (!isMoved) {
      const known = troubles.size === 0 ? "nothing is known against its own" : `its own has reached its limit`
      this.verdicts.broken(
        "a fallback is asked only while its agent's own account cannot be had",
        `${agent}: request ${number}; ${known}, onLimit ${settings.onLimit}`
      )
    }
    this.noted(key, mood)
  }

  readonly answered = ({ agent, key }: Request): void => {
    const account = this.accounts.get(key)
    if (account !== undefined) account.until = Math.min(account.until, this.verdicts.now)
    if (this.settingsOf(agent) === undefined) return
    if (key !== keyOf(agent)) this.away.add(agent)
    else if (this.away.delete(agent)) this.verdicts.sometimes("an agent comes back to its own account")
  }

  private noted(key: string, mood: ApiMood): void {
    if (THERE.has(mood)) return
    const troubles = this.troublesOf(key)
    this.accounts.set(key, {
      troubles: new Set([...troubles, LIMITS.has(mood) ? "limit" : "outage"]),
      until: Number.POSITIVE_INFINITY
    })
  }

  private troublesOf(key: string): ReadonlySet<Trouble> {
    const account = this.accounts.get(key)
    return account === undefined || this.verdicts.now > account.until + LAG ? new Set() : account.troubles
  }
}
