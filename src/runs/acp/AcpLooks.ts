/**
 * AcpLooks: checks that run shortly after the agent has sent something: whether a pending call must be emitted, whether
 * a call runs without approval, and whether a turn that the agent began by itself has ended.
 *
 * Guarantees: at most one check of each kind runs at a time, and only while there is something to check. No check runs
 * while output that an earlier daemon has read is being replayed.
 */
import { Effect, type Scope } from "effect"
import * as AcpChoices from "./AcpChoices.ts"
import * as AcpFault from "./AcpFault.ts"
import type { AcpSession } from "./AcpSession.ts"
import type { AcpEvents } from "./AcpEvents.ts"
import type { AcpUpdates, Unasked } from "./AcpUpdates.ts"
import type { AcpBackend } from "../../config/BackendConfig.ts"
import type { RunSpec } from "../Backend.ts"

export interface Of {
  readonly config: AcpBackend
  readonly spec: RunSpec
  readonly scope: Scope.Scope
  readonly updates: AcpUpdates
  readonly telling: AcpEvents
  readonly session: () => AcpSession | undefined
  readonly isRecalling: () => boolean
  readonly lines: () => number
  readonly questions: () => number
  readonly fail: (fault: AcpFault.Fault) => Effect.Effect<void>
  /** Ends the turn that the agent began by itself. */
  readonly rested: Effect.Effect<void>
}

/** If no message about a call arrives for this time, the call is emitted with the data known so far. */
const SETTLE = "500 millis"
/** If no message arrives for this time in a turn that the agent began by itself, the turn counts as ended. */
const RESTS = "5 seconds"
/** How long after its start a call can still ask for an approval. */
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

  /**
   * If the agent may only read, finds a running call with side effects that did not ask. In a mode called `read-only`,
   * the agent checks calls itself.
   */
  const runsUnasked = (): Unasked | undefined => {
    const now = session()
    if (spec.approvals !== "read_only" || now === undefined) return undefined
    return AcpChoices.leaveOf(now.choices).mode === "read-only" ? undefined : updates.unasked
  }
  const leave = Effect.gen(function* () {
    const call = runsUnasked()
    // some agents ask shortly after the call has begun
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
      // if the call has ended, check now, before the turn ends
      Effect.suspend(() => (runsUnasked()?.isOver === true && !of.isRecalling() ? leave : later))
    ],
    { discard: true }
  )
}
