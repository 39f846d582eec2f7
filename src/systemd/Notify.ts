/**
 * Notify: tells systemd when the daemon is ready, what it is doing, when it stops, and that it is alive (sd_notify and
 * its watchdog).
 *
 * Guarantees: without systemd every call does nothing. No call fails: if a message cannot be sent, that is logged,
 * because a working daemon must not end for this reason. The socket is hidden from every process that agentd starts
 * later, so that no agent can send messages in the daemon's name.
 *
 * Messages are sent by `systemd-notify`, because Node has no Unix datagram sockets. The unit therefore has
 * `NotifyAccess=all`.
 */
import { Config, Context, Duration, Effect, Layer, Option, Schedule, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

/**
 * Timeout for `systemd-notify`, which itself waits up to 5 s for the manager. After this time it is considered stuck.
 */
const DEADLINE = Duration.seconds(10)

/** Additional time per extension that systemd gives a daemon that is still starting. */
const EXTENSION = Duration.seconds(90)
/** Interval at which the start timeout is extended. */
const EXTEND_EVERY = Duration.seconds(30)
/** Maximum number of extensions. A start that takes longer than half an hour is considered stuck. */
const MAX_EXTENSIONS = 60

class NotifyError extends Schema.TaggedError<NotifyError>()("NotifyError", { message: Schema.String }) {}

export class Notify extends Context.Service<
  Notify,
  {
    /**
     * Called while the daemon opens its log. While the event loop runs, systemd is asked to keep waiting, up to a
     * limit.
     */
    readonly starting: Effect.Effect<void>
    /** Reports that the daemon answers. `agentd start`, and units that are ordered after it, then continue. */
    readonly ready: Effect.Effect<void>
    /** Sets the status line that `systemctl status` shows. */
    readonly status: (text: string) => Effect.Effect<void>
    /** Reports that the daemon is ending. `systemctl` then shows it as deactivating. */
    readonly stopping: Effect.Effect<void>
    /**
     * Resets the watchdog twice per period while `alive` is true. systemd restarts the daemon when `alive` is false or
     * does not answer, or when the event loop is blocked.
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
              `systemd could not be notified (${assignments.join(" ")}): ${error.message}. ` +
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
                    : Effect.logError("The watchdog is not fed, because the daemon is not healthy.")
                ),
                Effect.repeat(Schedule.spaced(Duration.millis(Duration.toMillis(every) / 2))),
                Effect.andThen(Effect.never)
              )
          })
      })
    })
  )
}

/** The watchdog period: how long systemd waits for a sign of life. None if systemd does not watch this process. */
const watchdogPeriod = Effect.gen(function* () {
  const micros = yield* Config.Int("WATCHDOG_USEC").pipe(Config.option)
  const pid = yield* Config.Int("WATCHDOG_PID").pipe(Config.option)
  const ours = Option.isNone(pid) || pid.value === process.pid
  return ours ? Option.map(micros, (usec) => Duration.millis(usec / 1000)) : Option.none<Duration.Duration>()
})

/**
 * Removes systemd's variables from the environment, as sd_notify(3) does with `unset_environment`. Config can only
 * read, so the real environment is changed directly.
 */
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

/** Joins a text into one line, because a line break would start another assignment. */
const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim().slice(0, 200)
