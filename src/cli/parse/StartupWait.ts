/**
 * StartupWait: determines how long a command waits for a launched daemon that does not answer yet: while the daemon
 * works, and 30 seconds longer.
 *
 * Guarantees: the wait ends 30 seconds after the daemon has ended or become idle. While the daemon reads a long log,
 * the command waits for up to 30 minutes, and prints the reason. Without /proc it is unknown whether the daemon works,
 * so the command waits only 30 seconds.
 */
import { Console, Duration, Effect } from "effect"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import { holderOf } from "../../core/event-log/StoreLock.ts"

/** Time for which the daemon must have been idle before the wait ends. */
const WHILE = Duration.seconds(30)
/** Maximum wait, even if the daemon is working. */
const LONGEST = Duration.minutes(30)
const LOOK = Duration.seconds(1)
/** Number of checks after which a message is printed. */
const TELL = 4
/** Minimum additional CPU time that counts as work, in ticks of 1/100 s. A process that only waits uses less. */
const WORK = 50

/** CPU time, in ticks, of the daemon that uses the state directory; undefined if there is no daemon. */
const workOf = (state: string): number | undefined => {
  const holder = holderOf(state)
  return holder === undefined ? undefined : ProcessTable.ticks(holder.pid)
}

/** Waits until the daemon of this state directory has been idle for 30 seconds, at most 30 minutes. */
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
      if (looks === TELL && !quiet) yield* Console.error("Waiting for the daemon to read its log …")
    }
  }).pipe(Effect.timeoutOption(LONGEST), Effect.asVoid)
