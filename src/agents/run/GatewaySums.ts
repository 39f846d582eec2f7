/**
 * GatewaySums: what of a run's tokens the gateway has counted is spending that has not been told. The gateway tells
 * sums; the log has how much of them was told, beside the spending itself, so that a daemon that takes the run up goes
 * on from there: what passed while no daemon was there counts, once.
 *
 * Guarantees: nothing is told twice, and nothing that was counted is left out; where a gateway was started anew, whose
 * sums begin anew, that is said, since what passed the one before it in its last moments is not known.
 */
import type { RunEvent } from "../../runs/Backend.ts"
import type { Told } from "./Told.ts"

type Passed = Extract<RunEvent, { readonly _tag: "Passed" }>
type Usage = Extract<RunEvent, { readonly _tag: "Usage" }>

const FIELDS = ["input", "output", "cacheRead", "cacheWrite"] as const

const PREFIX = "gateway "
const keyOf = (route: string, model: string, field: string): string => `${PREFIX}${route} ${field} ${model}`

/** The words for a person, where a gateway took another's place. */
export const RENEWED =
  "the gateway that counts its tokens was started anew: what passed the one before it in its last moments is not counted"

export class GatewaySums {
  private told: Told | undefined = undefined
  private route: string | undefined = undefined
  private sums = new Map<string, number>()
  /** Sums that wait until it is known what has become of their turn. */
  private waiting: Passed | undefined = undefined

  /** A run begins; `told`: what the log has of one that was taken up. */
  begin(told: Told | undefined): void {
    this.told = told
    this.route = told?.keys(PREFIX).at(-1)?.slice(PREFIX.length).split(" ", 1)[0]
    this.sums = new Map()
    this.waiting = undefined
  }

  wait(event: Passed): void {
    this.waiting = event
  }

  /** Takes the sums that have waited. */
  rest(): Passed | undefined {
    const { waiting } = this
    this.waiting = undefined
    return waiting
  }

  /** The spending since the sums that were told last, and whether another gateway has begun to count. */
  take({ route, tokens }: Passed): { readonly spent: ReadonlyArray<Usage>; readonly isRenewed: boolean } {
    const isRenewed = this.route !== undefined && this.route !== route
    // what an earlier one counted was told with what it counted
    if (isRenewed) this.sums.clear()
    this.route = route
    const spent = tokens.flatMap((sum): ReadonlyArray<Usage> => {
      const { model } = sum
      const [input = 0, output = 0, cacheRead = 0, cacheWrite = 0] = FIELDS.map((field) => {
        const key = keyOf(route, model, field)
        const before = this.sums.get(key) ?? this.told?.saidOf(key) ?? 0
        this.sums.set(key, Math.max(before, sum[field]))
        return Math.max(0, sum[field] - before)
      })
      if (input + output === 0) return []
      const named = model === "" ? {} : { model }
      return [{ _tag: "Usage", inputTokens: input, outputTokens: output, cacheRead, cacheWrite, ...named }]
    })
    return { spent, isRenewed }
  }

  /** The sums that are told, for the runes that tell of them. */
  get said(): { readonly [key: string]: number } | undefined {
    const counted = [...this.sums].filter(([, sum]) => sum > 0)
    return counted.length === 0 ? undefined : Object.fromEntries(counted)
  }
}
