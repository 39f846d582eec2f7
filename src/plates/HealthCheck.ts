/**
 * HealthCheck: makes missed hooks good, every 10 seconds.
 *
 * Guarantees: it asks through each plate's own actor and decides nothing itself;
 * a plate whose files hang holds up no other; a check that comes late by more than
 * three intervals (the machine slept) waits one round; without open plates it does
 * not even wake up. `checkedAt` tells a check that works from one that is stuck.
 */
import { Clock, Effect, Option } from "effect"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import * as PlateMachine from "./PlateMachine.ts"
import type { PlateActor } from "./PlateActor.ts"
import type { PlateRegistry } from "./PlateRegistry.ts"

/** The time for one plate's files: the others are looked at in every round nonetheless. */
const LOOK_LIMIT = PlateMachine.HEALTH_CHECK_INTERVAL
const CONCURRENCY = 16
/** A closed plate fades after this, ms. */
export const FADES_AFTER = 24 * 60 * 60 * 1_000

export class HealthCheck {
  private readonly registry: PlateRegistry
  /** When the last round began that went through them all, ms since the epoch. */
  checkedAt: number | null = null
  /** Plates whose files cannot be read in time: said once. */
  private readonly stuck = new Set<string>()

  constructor(registry: PlateRegistry) {
    this.registry = registry
  }

  /** Through all open plates once. */
  private readonly round = Effect.gen({ self: this }, function* () {
    const now = yield* Clock.currentTimeMillis
    yield* Effect.forEach(this.registry.open, (plate) => this.look(plate), { concurrency: CONCURRENCY, discard: true })
    for (const plate of this.registry.plates.values()) {
      if (!plate.isOpen && now - plate.stand.at > FADES_AFTER) yield* this.registry.retire(plate)
    }
    this.checkedAt = now
  })

  /** Looks once more, within the bound, at what was being written during the round: it has had the time to be whole. */
  private readonly again = Effect.gen({ self: this }, function* () {
    const behind = this.registry.open.filter(({ transcript }) => transcript?.found?._tag === "Behind")
    if (behind.length === 0) return
    yield* Effect.sleep(PlateMachine.MAX_RECOVERY - PlateMachine.HEALTH_CHECK_INTERVAL)
    yield* Effect.forEach(behind, (plate) => this.look(plate), { concurrency: CONCURRENCY, discard: true })
  })

  private look(plate: PlateActor): Effect.Effect<void> {
    return Effect.timeoutOption(plate.look("round"), LOOK_LIMIT).pipe(
      Effect.flatMap((done) => {
        if (Option.isSome(done)) this.stuck.delete(plate.plateId)
        if (Option.isSome(done) || this.stuck.has(plate.plateId)) return Effect.void
        this.stuck.add(plate.plateId)
        return Effect.logWarning(`${plate.plateId}: its transcript cannot be read in ${LOOK_LIMIT} ms`)
      })
    )
  }

  readonly loop: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    let last: number | undefined
    while (true) {
      if (last !== undefined && this.registry.open.length === 0) {
        // The next thing that is heard opens it again.
        this.registry.populated.closeUnsafe()
        this.stuck.clear()
        last = undefined
      }
      yield* this.registry.populated.await
      const now = yield* Clock.currentTimeMillis
      const late =
        last !== undefined && now - last > (1 + PlateMachine.MAX_LATE_INTERVALS) * PlateMachine.HEALTH_CHECK_INTERVAL
      last = now
      const began = yield* Monotonic.now
      if (!late) yield* Effect.andThen(this.round, this.again)
      const took = (yield* Monotonic.now) - began
      yield* Effect.sleep(Math.max(0, PlateMachine.HEALTH_CHECK_INTERVAL - took))
    }
  })
}
