/**
 * GatewayUsage: the gateway counts the tokens of a run in sums. This module computes from them the usage that has not
 * been reported yet. The reported part of the sums is logged together with the usage. A daemon that adopts the run
 * continues from that part, so tokens used while no daemon was running are counted once.
 *
 * Guarantees: No usage is reported twice, and no counted usage is omitted. If the gateway was restarted, its sums start
 * at 0 again. A notice reports this, because the last tokens that the previous gateway counted are unknown.
 */
import type { RunEvent } from "../../runs/Backend.ts"
import type { ProcessedEvents } from "./ProcessedEvents.ts"

type Passed = Extract<RunEvent, { readonly _tag: "Passed" }>
type Usage = Extract<RunEvent, { readonly _tag: "Usage" }>

const FIELDS = ["input", "output", "cacheRead", "cacheWrite"] as const

const PREFIX = "gateway "
const keyOf = (route: string, model: string, field: string): string => `${PREFIX}${route} ${field} ${model}`

export const RENEWED =
  "the gateway that counts its tokens was restarted: tokens of the last moments before the restart are not counted"

export class GatewayUsage {
  private told: ProcessedEvents | undefined = undefined
  private route: string | undefined = undefined
  private sums = new Map<string, number>()
  /** The newest sums. Kept here until it is known whether an adopted run's turn is still open. */
  private waiting: Passed | undefined = undefined

  /** `told`: the part of an adopted run that is in the log; undefined for a new run. */
  begin(told: ProcessedEvents | undefined): void {
    this.told = told
    this.route = told?.keys(PREFIX).at(-1)?.slice(PREFIX.length).split(" ", 1)[0]
    this.sums = new Map()
    this.waiting = undefined
  }

  wait(event: Passed): void {
    this.waiting = event
  }

  /** Returns and clears the sums that were kept. */
  rest(): Passed | undefined {
    const { waiting } = this
    this.waiting = undefined
    return waiting
  }

  /** Returns the usage since the last report, and whether a new gateway has started to count. */
  take({ route, tokens }: Passed): { readonly spent: ReadonlyArray<Usage>; readonly isRenewed: boolean } {
    const isRenewed = this.route !== undefined && this.route !== route
    // the sums of the previous gateway were already reported
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

  /** The sums that were reported, to be stored in the runes of the usage; undefined if there are none. */
  get said(): { readonly [key: string]: number } | undefined {
    const counted = [...this.sums].filter(([, sum]) => sum > 0)
    return counted.length === 0 ? undefined : Object.fromEntries(counted)
  }
}
