/**
 * Notify: tells systemd that the daemon is ready, what it does, that it stops,
 * and that it is alive (sd_notify and its watchdog).
 *
 * Guarantees: outside systemd every call is a no-op. No call fails: a message
 * that could not be sent is logged, because a daemon that works must not end
 * over its service manager. The socket is hidden from every process agentd
 * starts later, so that no agent can speak in the daemon's name.
 *
 * Messages go out through `systemd-notify`: Node has no Unix datagram sockets.
 * The unit therefore says `NotifyAccess=all`.
 */
import { Config, Context, Duration, Effect, Layer, Option, Schedule, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

/** `systemd-notify` waits up to 5 s for the manager; beyond this it hangs. */
const DEADLINE = Duration.seconds(10)

/** A start that goes on gets so much time anew … */
const EXTENSION = Duration.seconds(90)
/** … each time that so much has passed … */
const EXTEND_EVERY = Duration.seconds(30)
/** … and so often: beyond half an hour it is a start that does not end. */
const MAX_EXTENSIONS = 60

class NotifyError extends Schema.TaggedError<NotifyError>()("NotifyError", { message: Schema.String }) {}

export class Notify extends Context.Service<
  Notify,
  {
    /** While the daemon opens its log: systemd waits on, for as long as the event loop runs, within a limit. */
    readonly starting: Effect.Effect<void>
    /** The daemon answers; `agentd start` and units ordered after it go on. */
    readonly ready: Effect.Effect<void>
    /** Sets the status line that `systemctl status` shows. */
    readonly status: (text: string) => Effect.Effect<void>
    /** The daemon ends of its own will; `systemctl` shows it as deactivating. */
    readonly stopping: Effect.Effect<void>
    /**
     * Feeds the watchdog for as long as `alive` says so, twice per its period. systemd restarts
     * the daemon when `alive` says no, does not answer, or the event loop is blocked.
     */
    readonly watch: (alive: Effect.Effect<boolean>) => Effect.Effect<never>
  }
>()("agentd/systemd/Notify") {
  static readonly layer = Layer.effect(
    Notify,
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      const socket = yield* Config.String("NOTIFY_SOCKET").pipe(Config.option)
      const period = yield* watchdogPeriod
      yield* hideFromChildren

      if (Option.isNone(socket)) {
        return Notify.of({
          starting: Effect.void,
          ready: Effect.void,
          status: () => Effect.void,
          stopping: Effect.void,
          watch: () => Effect.never
        })
      }

      const send = (...assignments: ReadonlyArray<string>): Effect.Effect<void> =>
        spawner.exitCode(command(socket.value, assignments)).pipe(
          Effect.timeout(DEADLINE),
          Effect.flatMap((code) => (code === 0 ? Effect.void : new NotifyError({ message: `it exited with ${code}` }))),
          Effect.catch((error) =>
            Effect.logWarning(
              `systemd was not told ${assignments.join(" ")}: ${error.message}. ` +
                "Check that systemd-notify is on the daemon's PATH and that the unit has NotifyAccess=all."
            )
          )
        )

      return Notify.of({
        starting: send(`EXTEND_TIMEOUT_USEC=${Duration.toMillis(EXTENSION) * 1_000}`).pipe(
          Effect.delay(EXTEND_EVERY),
          Effect.repeat(Schedule.recurs(MAX_EXTENSIONS - 1)),
          Effect.asVoid
        ),
        ready: send("READY=1"),
        status: (text) => send(`STATUS=${oneLine(text)}`),
        stopping: send("STOPPING=1"),
        watch: (alive) =>
          Option.match(period, {
            onNone: () => Effect.never,
            onSome: (every) =>
              alive.pipe(
                Effect.flatMap((isAlive) =>
                  isAlive
                    ? send("WATCHDOG=1")
                    : Effect.logError("The watchdog is not fed: the daemon says it is not well.")
                ),
                Effect.repeat(Schedule.spaced(Duration.millis(Duration.toMillis(every) / 2))),
                Effect.andThen(Effect.never)
              )
          })
      })
    })
  )
}

/** How long systemd waits for a sign of life, where it watches this very process. */
const watchdogPeriod = Effect.gen(function* () {
  const micros = yield* Config.Int("WATCHDOG_USEC").pipe(Config.option)
  const pid = yield* Config.Int("WATCHDOG_PID").pipe(Config.option)
  const ours = Option.isNone(pid) || pid.value === process.pid
  return ours ? Option.map(micros, (usec) => Duration.millis(usec / 1000)) : Option.none<Duration.Duration>()
})

/** Removes the variables, as sd_notify(3) does by `unset_environment`. Config only reads, so this edge writes the real environment. */
const hideFromChildren = Effect.sync(() => {
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete process.env[name]
})

const command = (socket: string, assignments: ReadonlyArray<string>) =>
  ChildProcess.make("systemd-notify", assignments, {
    env: { NOTIFY_SOCKET: socket },
    extendEnv: true,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    forceKillAfter: "1 second"
  })

/** A line break would start another assignment. */
const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim().slice(0, 200)
