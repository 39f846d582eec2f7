/**
 * AcpLooks: what is looked at again a moment after an agent has said something: calls that are still, calls that run
 * unasked, the end of a turn of its own.
 *
 * Guarantees: one look of a kind at a time, for as long as there is something to look at; none while an earlier
 * daemon's knowledge is told again.
 */
import { Effect, type Scope } from "effect"
import * as AcpChoices from "./AcpChoices.ts"
import * as AcpFault from "./AcpFault.ts"
import type { AcpSession } from "./AcpSession.ts"
import type { AcpTelling } from "./AcpTelling.ts"
import type { AcpUpdates, Unasked } from "./AcpUpdates.ts"
import type { AcpBackend } from "../../config/BackendConfig.ts"
import type { RunSpec } from "../Backend.ts"

export interface Of {
  readonly config: AcpBackend
  readonly spec: RunSpec
  readonly scope: Scope.Scope
  readonly updates: AcpUpdates
  readonly telling: AcpTelling
  readonly session: () => AcpSession | undefined
  readonly isRecalling: () => boolean
  /** Rises with each line. */
  readonly lines: () => number
  readonly questions: () => number
  readonly fail: (fault: AcpFault.Fault) => Effect.Effect<void>
  /** Ends the turn of its own. */
  readonly rested: Effect.Effect<void>
}

/** A call of which nothing is heard for so long is told as far as it is known. */
const SETTLE = "500 millis"
/** A turn of its own of which nothing is heard for so long has ended. */
const RESTS = "5 seconds"
/** How long after its beginning a call may ask. */
const ASKS = "2 seconds"

export const make = (of: Of): Effect.Effect<void> => {
  const { config, lines, scope, session, spec, telling, updates } = of
  const single = (isDue: () => boolean, look: Effect.Effect<void>): Effect.Effect<void> => {
    let isLooking = false
    const all = Effect.whileLoop({ while: isDue, body: () => look, step: () => {} })
    return Effect.suspend(() => {
      if (isLooking || of.isRecalling() || !isDue()) return Effect.void
      isLooking = true
      return Effect.asVoid(
        Effect.forkIn(
          Effect.ensuring(
            all,
            Effect.sync(() => void (isLooking = false))
          ),
          scope
        )
      )
    })
  }

  const settle = Effect.gen(function* () {
    const seen = updates.version
    yield* Effect.sleep(SETTLE)
    yield* telling.noted({ say: "settle", version: seen }, () => updates.settle(seen))
  })

  const rest = Effect.gen(function* () {
    const seen = lines()
    yield* Effect.sleep(RESTS)
    if (lines() === seen && of.questions() === 0 && !updates.isCalling) yield* of.rested
  })

  /** An agent that may only read runs nothing that may change something without asking. Its mode may hold its calls itself. */
  const runsUnasked = (): Unasked | undefined => {
    const now = session()
    if (spec.approvals !== "read_only" || now === undefined) return undefined
    return AcpChoices.leaveOf(now.choices).mode === "read-only" ? undefined : updates.unasked
  }
  const leave = Effect.gen(function* () {
    const call = runsUnasked()
    // some ask a moment after it has begun
    if (call?.isOver === false) yield* Effect.sleep(ASKS)
    const now = session()
    if (call === undefined || now === undefined || runsUnasked()?.id !== call.id) return
    const mode = config.mode ?? AcpChoices.leaveOf(now.choices).mode
    yield* of.fail(AcpFault.unasked(now.agent, call.title, mode))
  })

  const later = single(() => runsUnasked() !== undefined, leave)
  return Effect.all(
    [
      single(() => updates.holding, settle),
      single(() => updates.isOwn, rest),
      // what has run is over before its turn may be
      Effect.suspend(() => (runsUnasked()?.isOver === true && !of.isRecalling() ? leave : later))
    ],
    { discard: true }
  )
}
