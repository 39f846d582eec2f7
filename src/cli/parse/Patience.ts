/**
 * Patience: how long a command waits for a daemon that was launched and does not answer yet: for as long
 * as it works, and a while longer.
 *
 * Guarantees: a daemon that has ended, or does nothing, is given up after a while; one that reads a long log
 * is not, within a limit; a person hears what is waited for. Without /proc there is no telling, and the while
 * is all.
 */
import { Console, Duration, Effect } from "effect"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import { holderOf } from "../../core/event-log/StoreLock.ts"

/** Without a sign of work for so long it is given up … */
const WHILE = Duration.seconds(30)
/** … and in any case after so long. */
const LONGEST = Duration.minutes(30)
const LOOK = Duration.seconds(1)
/** Looks after which a person is told. */
const TELL = 4
/** Ticks of the processor (1/100 s) that are work: a process that only waits uses fewer. */
const WORK = 50

/** Of the daemon that holds the state folder. */
const workOf = (state: string): number | undefined => {
  const holder = holderOf(state)
  return holder === undefined ? undefined : ProcessTable.ticks(holder.pid)
}

/** Returns when the daemon of the state folder has done nothing for a while. */
export const untilIdle = (state: string, quiet: boolean, ticks = workOf): Effect.Effect<void> =>
  Effect.gen(function* () {
    const most = Duration.toMillis(WHILE) / Duration.toMillis(LOOK)
    let seen = 0
    let idle = 0
    for (let looks = 1; idle < most; looks++) {
      yield* Effect.sleep(LOOK)
      const now = ticks(state)
      if (now !== undefined && now >= seen + WORK) {
        seen = now
        idle = 0
      } else idle += 1
      if (looks === TELL && !quiet) yield* Console.error("Waiting for the daemon to open its log …")
    }
  }).pipe(Effect.timeoutOption(LONGEST), Effect.asVoid)
