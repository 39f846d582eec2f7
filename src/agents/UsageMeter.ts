/**
 * UsageMeter: what one agent spends, as runes, and the end of its budget at once.
 *
 * Guarantees: what was spent is durable before it is enforced; the time of a turn
 * is counted while it runs, so that a budget of time ends it in its midst, and a
 * crash loses no more than a minute of it.
 */
import { Clock, Duration, Effect, Fiber, Scope } from "effect"
import type { BudgetConfig } from "../config/AgentConfig.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import * as Budget from "./Budget.ts"
import { refOf, type RuneRef } from "../event-log/Rune.ts"

export interface Surroundings {
  readonly conversation: string
  readonly agent: string
  readonly log: EventLog["Service"]
  readonly limits: () => BudgetConfig
  /** The conversation counts, too. */
  readonly used: (spent: Partial<Budget.Spent>, cause: RuneRef) => Effect.Effect<void>
  readonly exhausted: (what: Budget.Exhausted, cause: RuneRef) => Effect.Effect<void>
}

/** The time of a turn is written this often, ms. */
const TICK = 60_000

export class UsageMeter {
  spent: Budget.Spent
  private readonly around: Surroundings
  private readonly scope: Scope.Scope
  private clock: { readonly turnId: string; readonly fiber: Fiber.Fiber<void>; from: number } | undefined = undefined

  constructor(around: Surroundings, spent: Budget.Spent, scope: Scope.Scope) {
    this.around = around
    this.spent = spent
    this.scope = scope
  }

  /** A new incarnation begins with nothing spent. */
  reset(): void {
    this.spent = Budget.nothing
  }

  get exhausted(): Budget.Exhausted | undefined {
    return Budget.exhausted(this.around.limits(), this.spent)
  }

  readonly use = (turnId: string, spent: Partial<Budget.Spent>): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      const { agent, conversation, log } = this.around
      const [rune] = yield* log.append([
        {
          stream: conversation,
          kind: "agent.usage",
          actor: `meter/${agent}`,
          payload: {
            agent_id: agent,
            turn_id: turnId,
            tokens: spent.tokens ?? 0,
            tool_calls: spent.toolCalls ?? 0,
            wall_time: spent.wallTime ?? 0,
            usd: spent.usd ?? 0
          }
        }
      ])
      this.spent = Budget.add(this.spent, spent)
      yield* this.around.used(spent, refOf(rune!))
      const { exhausted } = this
      if (exhausted !== undefined) yield* this.around.exhausted(exhausted, refOf(rune!))
    }).pipe(
      // a log that takes nothing more ends the daemon by itself
      Effect.catch((error) => Effect.logWarning(`${this.around.agent}: what it spent is not written: ${error.message}`))
    )

  /** From here on the turn's time counts. */
  readonly start = (turnId: string): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      yield* this.stop(turnId)
      const from = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkIn(this.watch(turnId), this.scope)
      this.clock = { turnId, fiber, from }
    })

  private watch(turnId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const limit = this.around.limits().wallTime
      const left = limit === undefined ? TICK : Duration.toMillis(limit) - this.spent.wallTime
      // clocks round: what is not quite over is looked at again
      return left <= 0
        ? Effect.void
        : Effect.sleep(Math.min(left, TICK)).pipe(
            Effect.andThen(this.count(turnId)),
            Effect.andThen(this.watch(turnId))
          )
    })
  }

  private count(turnId: string): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { clock } = this
      if (clock === undefined || clock.turnId !== turnId) return
      const now = yield* Clock.currentTimeMillis
      const wallTime = Math.max(0, now - clock.from)
      clock.from = now
      if (wallTime > 0) yield* this.use(turnId, { wallTime })
      // whoever stops the clock finds all of it counted, or nothing
    }).pipe(Effect.uninterruptible)
  }

  /** The turn is over; whatever it took is counted. */
  readonly stop = (turnId: string): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      const { clock } = this
      if (clock === undefined) return
      yield* Fiber.interrupt(clock.fiber)
      if (clock.turnId === turnId) yield* this.count(turnId)
      this.clock = undefined
    })
}
