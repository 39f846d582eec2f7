/**
 * Patience: how long a command waits for a launched daemon that does not answer yet: as long
 * as it works, and a while longer.
 *
 * Guarantees: the wait ends a while after the daemon has ended or become idle; a daemon that reads
 * a long log is waited for, up to a limit; a person sees what the command waits for. Without /proc,
 * work cannot be measured, and the wait is just the short while.
 */
import { Console, Duration, Effect } from "effect"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import { holderOf } from "../../core/event-log/StoreLock.ts"

/** The wait ends after this time without a sign of work … */
const WHILE = Duration.seconds(30)
/** … and in any case after this time. */
const LONGEST = Duration.minutes(30)
const LOOK = Duration.seconds(1)
/** After this number of looks, a message is printed. */
const TELL = 4
/** Minimum CPU time (in ticks of 1/100 s) that counts as work; a process that only waits uses less. */
const WORK = 50

/** CPU ticks of the daemon that holds the state directory; undefined if there is none. */
const workOf = (state: string): number | undefined => {
  const holder = holderOf(state)
  return holder === undefined ? undefined : ProcessTable.ticks(holder.pid)
}

/** Returns when the daemon of this state directory has done nothing for a while. */
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
