/**
 * StartupWait: how long a command waits for a launched daemon that does not answer yet: as long as the daemon works, and
 * 30 seconds longer.
 *
 * Guarantees: the wait ends 30 seconds after the daemon has ended or become idle. While the daemon reads a long log,
 * the command waits for up to 30 minutes, and prints what it waits for. Without /proc the daemon's work cannot be
 * measured, so the command waits only 30 seconds.
 */
import { Console, Duration, Effect } from "effect"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import { holderOf } from "../../core/event-log/StoreLock.ts"

/** Time without work by the daemon after which the wait ends. */
const WHILE = Duration.seconds(30)
/** Maximum length of the wait, even if the daemon works. */
const LONGEST = Duration.minutes(30)
const LOOK = Duration.seconds(1)
/** Number of checks of the daemon after which a message is printed. */
const TELL = 4
/** Minimum CPU time, in ticks of 1/100 s, that counts as work. A process that only waits uses less. */
const WORK = 50

/** CPU time in ticks of the daemon that uses the state directory; undefined if no daemon does. */
const workOf = (state: string): number | undefined => {
  const holder = holderOf(state)
  return holder === undefined ? undefined : ProcessTable.ticks(holder.pid)
}

/** Returns when the daemon of this state directory has been idle for 30 seconds, or after 30 minutes. */
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
