/**
 * HealthCheck: corrects the status of plates whose hooks were missed, every 10 seconds.
 *
 * Guarantees: it only makes each plate read its files again; the plates decide the status. A plate whose files hang
 * does not delay the others. If a check is more than three intervals late (the machine slept), that round is skipped.
 * If no plate is open, it does not wake up. `checkedAt` distinguishes a working check from a stuck one.
 */
import { Clock, Effect, Option } from "effect"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import * as PlateMachine from "./PlateMachine.ts"
import type { PlateActor } from "./PlateActor.ts"
import type { PlateRegistry } from "./PlateRegistry.ts"

/** Timeout for reading the files of one plate, ms, so that the others are still checked in every round. */
const LOOK_LIMIT = PlateMachine.HEALTH_CHECK_INTERVAL
const CONCURRENCY = 16
/** Time after which a closed plate disappears from the list, ms. */
export const FADES_AFTER = 24 * 60 * 60 * 1_000

export class HealthCheck {
  private readonly registry: PlateRegistry
  /** When the last complete round began, ms since the epoch; null before the first. */
  checkedAt: number | null = null
  /** Plates whose files could not be read in time. Each of them is logged once. */
  private readonly stuck = new Set<string>()

  constructor(registry: PlateRegistry) {
    this.registry = registry
  }

  /** Checks every open plate once, and archives plates that have been closed for a day. */
  private readonly round = Effect.gen({ self: this }, function* () {
    const now = yield* Clock.currentTimeMillis
    yield* Effect.forEach(this.registry.open, (plate) => this.look(plate), { concurrency: CONCURRENCY, discard: true })
    for (const plate of this.registry.plates.values()) {
      if (!plate.isOpen && now - plate.stand.at > FADES_AFTER) yield* this.registry.retire(plate)
    }
    this.checkedAt = now
  })

  /** Reads again the transcripts that were not read to the end. The delay lets the writer finish first. */
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
        // The latch is opened again by the next event.
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
