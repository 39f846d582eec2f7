/**
 * Unit: the daemon as a service of the user's systemd: its name, its settings, its start as a transient unit, and its
 * status.
 *
 * If a unit file with the same name exists (from the NixOS module, or the user's own), that unit is started instead,
 * with its own settings.
 */
import { createHash } from "node:crypto"
import { Duration, Effect, Option, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

/** Timeout for an answer of `systemctl`. */
const ANSWER_WITHIN = Duration.seconds(10)
/** Maximum size of a command's output that is stored, in bytes. */
const OUTPUT_LIMIT = 64 * 1024

export class SystemdError extends Schema.TaggedError<SystemdError>()("SystemdError", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Settings of systemd.service(5), each with the reason for it. */
export const serviceSettings: { readonly [setting: string]: string } = {
  // a service of type notify counts as started when the daemon answers; the daemon reports that through systemd-notify,
  // a child process
  Type: "notify",
  NotifyAccess: "all",
  WatchdogSec: "60",
  TimeoutStartSec: "120",
  // systemd restarts the daemon after a crash, but not after a requested stop (130, 143), and not after a configuration
  // error (78), which no restart fixes.
  Restart: "on-failure",
  RestartSec: "5",
  SuccessExitStatus: "130 143",
  RestartPreventExitStatus: "78",
  // The daemon ends its runs itself, each with a grace period. After that, systemd kills the remaining processes.
  KillMode: "mixed",
  TimeoutStopSec: "90",
  // A daemon that hangs does not react to a request to abort.
  TimeoutAbortSec: "10",
  // If an agent uses too much memory, only that agent is killed: the daemon notices and decides what to do.
  OOMPolicy: "continue"
}

/** Settings of systemd.unit(5), with which systemd gives up after ten failed starts in ten minutes. */
export const unitSettings: { readonly [setting: string]: string } = {
  StartLimitIntervalSec: "600",
  StartLimitBurst: "10"
}

/** Name of the unit: `agentd` for the default state directory. Each other state directory has a separate unit. */
export const unitName = (state: string, defaultState: string): string =>
  state === defaultState ? "agentd" : `agentd-${createHash("sha256").update(state).digest("hex").slice(0, 8)}`

export const SYSTEM_STATE = "/var/lib/agentd"

/** Variables that describe the shell in which `start` was called, and would be wrong in the service. */
const OF_THE_SHELL = new Set(
  "_ SHLVL PWD OLDPWD TERM COLUMNS LINES NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID INVOCATION_ID JOURNAL_STREAM MAINPID LISTEN_FDS LISTEN_PID LISTEN_FDNAMES SYSTEMD_EXEC_PID MANAGERPID".split(
    " "
  )
)

/**
 * The names of the variables in `env` that the service gets, such as PATH and API keys, so that agents have the same
 * variables under systemd as in the shell. Variables that systemd would reject are left out.
 */
export const passedOn = (env: { readonly [name: string]: string }): ReadonlyArray<string> =>
  Object.entries(env)
    .filter(([name, value]) => !OF_THE_SHELL.has(name) && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && isPlain(value))
    .map(([name]) => name)
    .toSorted()

/** True if the value contains no control characters other than tabs and line breaks. */
const isPlain = (value: string): boolean => !/\p{Cc}/u.test(value.replaceAll(/[\t\n]/g, ""))

export interface Service {
  readonly unit: string
  /** Command line of the program. Its first element is the program's absolute path. */
  readonly command: ReadonlyArray<string>
  /** Absolute path of the working directory. */
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
}

/**
 * The arguments of `systemd-run`. Variables are passed by name only, because their values would be visible in the
 * process list.
 */
export const systemdRunArguments = (service: Service): ReadonlyArray<string> => [
  "--user",
  "--quiet",
  `--unit=${service.unit}`,
  "--description=agentd: supervises AI coding agents",
  `--working-directory=${service.cwd}`,
  ...Object.entries({ ...serviceSettings, ...unitSettings }).map(
    ([setting, value]) => `--property=${setting}=${value}`
  ),
  ...passedOn(service.env).map((name) => `--setenv=${name}`),
  "--",
  ...service.command
]

export interface UnitStatus {
  readonly unit: string
  /** True if the unit has a unit file. Otherwise the unit is transient, and disappears at a reboot. */
  readonly installed: boolean
  /** State of the unit: "active", "activating", "deactivating", "failed", "inactive" … */
  readonly state: string
  /** How the unit last ended: "success", "exit-code", "watchdog", "start-limit-hit" … */
  readonly result: string
  readonly exitCode: number
  readonly pid: number | undefined
  readonly restarts: number
}

const STATUS_PROPERTIES = "LoadState,ActiveState,Result,ExecMainStatus,MainPID,NRestarts,FragmentPath,Transient"

/** Parses the output of `systemctl show`. None if systemd does not know the unit. */
export const parseStatus = (unit: string, text: string): Option.Option<UnitStatus> => {
  const shown = new Map(text.split("\n").map((line) => [line.split("=", 1)[0], line.slice(line.indexOf("=") + 1)]))
  if (shown.get("LoadState") !== "loaded") return Option.none()
  const pid = Number(shown.get("MainPID"))
  return Option.some({
    unit,
    installed: shown.get("Transient") !== "yes",
    state: shown.get("ActiveState") ?? "unknown",
    result: shown.get("Result") ?? "unknown",
    exitCode: Number(shown.get("ExecMainStatus") ?? 0),
    pid: pid > 0 ? pid : undefined,
    restarts: Number(shown.get("NRestarts") ?? 0)
  })
}

export type Manager = "user" | "system"

/** True if this systemd manager runs and accepts commands. */
export const hasManager = (manager: Manager) =>
  Effect.suspend(() => run(["systemctl", `--${manager}`, "is-system-running"])).pipe(
    Effect.map(({ stdout }) => ["running", "degraded", "starting"].includes(stdout.trim())),
    Effect.orElseSucceed(() => false)
  )

export const hasUserManager = hasManager("user")

/** Status of the unit. None if systemd is missing, or does not know the unit. */
export const status = (unit: string, manager: Manager = "user") =>
  run(["systemctl", `--${manager}`, "show", `${unit}.service`, `--property=${STATUS_PROPERTIES}`]).pipe(
    Effect.map(({ code, stdout }) => (code === 0 ? parseStatus(unit, stdout) : Option.none<UnitStatus>())),
    Effect.orElseSucceed(() => Option.none<UnitStatus>())
  )

/** True if systemd listens on the daemon's socket, and would start the daemon at a connection. */
export const listens = (unit: string, manager: Manager) =>
  Effect.map(
    answer(["systemctl", `--${manager}`, "show", `${unit}.socket`, "--property=ActiveState", "--value"]),
    (state) => state === "active"
  )

/**
 * Makes systemd stop listening on the daemon's socket; a running daemon keeps listening. Returns true if systemd
 * accepted the command.
 */
export const stopListening = (unit: string, manager: Manager) =>
  run(["systemctl", `--${manager}`, "--no-ask-password", "stop", `${unit}.socket`]).pipe(
    Effect.map(({ code }) => code === 0),
    Effect.orElseSucceed(() => false)
  )

/** Stops the service. If systemd is waiting to restart it, the restart is cancelled. */
export const stop = (unit: string) => Effect.asVoid(run(["systemctl", "--user", "stop", `${unit}.service`]))

/** True if the user's services continue after the last logout. If false, the remedy is `loginctl enable-linger`. */
export const lingers = (user: string) =>
  run(["loginctl", "show-user", user, "--property=Linger", "--value"]).pipe(
    Effect.map(({ stdout }) => stdout.trim() === "yes"),
    Effect.orElseSucceed(() => false)
  )

/** Starts the service if it is not running, and returns when it reports that it is ready. */
export const start = Effect.fn("Unit.start")(function* (service: Service) {
  const file = `${service.unit}.service`
  const before = yield* status(service.unit)
  // A failed transient unit is kept, so that `agentd status` can show the reason. It must be removed before the unit is
  // started again.
  const leftover = Option.isSome(before) && !before.value.installed && before.value.state === "failed"
  if (leftover) yield* run(["systemctl", "--user", "reset-failed", file])

  const { code, stderr } =
    Option.isSome(before) && !leftover
      ? yield* run(["systemctl", "--user", "start", file], { within: START_WITHIN })
      : yield* run(["systemd-run", ...systemdRunArguments(service)], { within: START_WITHIN, env: service.env })
  if (code === 0) return

  const after = Option.getOrUndefined(yield* status(service.unit))
  // not `--user --unit`, because a user's journal does not contain the lines of a system account
  const last = yield* run(["journalctl", "--quiet", "--output=cat", "--lines=10", `--user-unit=${file}`]).pipe(
    Effect.match({ onFailure: () => "", onSuccess: ({ stdout }) => stdout.trim() })
  )
  const ended = after === undefined ? "" : ` (${after.result}, exit code ${after.exitCode})`
  return yield* new SystemdError({
    message: [`${file} did not start${ended}.`, stderr.trim(), last].filter((part) => part !== "").join("\n"),
    remedy: `See 'journalctl --user-unit=${service.unit}', or run it in the foreground with 'agentd up'.`
  })
})

/** The output of a tool, trimmed; empty if the tool cannot be run. */
export const answer = (words: ReadonlyArray<string>) =>
  run(words).pipe(
    Effect.map(({ stdout }) => stdout.trim()),
    Effect.orElseSucceed(() => "")
  )

/** Runs a tool of systemd, or another system tool, and waits until it exits. */
export const tool = (words: ReadonlyArray<string>) => run(words, { within: START_WITHIN })

/** The unit's last lines in the journal, whether the unit belongs to the user's manager or to the system's. */
export const lastWords = (unit: string) =>
  Effect.gen(function* () {
    for (const which of ["--user-unit", "--unit"]) {
      const text = yield* answer(["journalctl", "--quiet", "--output=cat", "--lines=20", `${which}=${unit}.service`])
      if (text !== "") return text
    }
    return ""
  })

/** Timeout of a start. It is longer than `TimeoutStartSec`, with which systemd normally ends a start earlier. */
const START_WITHIN = Duration.seconds(150)

interface RunOptions {
  readonly within?: Duration.Duration
  readonly env?: { readonly [name: string]: string }
}

const run = (
  [program = "", ...args]: ReadonlyArray<string>,
  { env, within = ANSWER_WITHIN }: RunOptions = {}
): Effect.Effect<
  { readonly code: number; readonly stdout: string; readonly stderr: string },
  SystemdError,
  ChildProcessSpawner.ChildProcessSpawner
> =>
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const child = yield* spawner.spawn(
      ChildProcess.make(program, args, {
        stdin: "ignore",
        forceKillAfter: "1 second",
        ...(env === undefined ? {} : { env, extendEnv: false })
      })
    )
    const [code, stdout, stderr] = yield* Effect.all([child.exitCode, text(child.stdout), text(child.stderr)], {
      concurrency: "unbounded"
    })
    return { code, stdout, stderr }
  }).pipe(
    Effect.scoped,
    Effect.timeout(within),
    Effect.mapError(
      (error) =>
        new SystemdError({
          message: `${program} could not be run: ${error.message}`,
          remedy: "Without systemd, run 'agentd up' in the foreground, or let another service manager do it."
        })
    )
  )

/** Reads a stream to its end, and returns only its first part. If the rest were not read, the writer would block. */
const text = <E>(bytes: Stream.Stream<Uint8Array, E>): Effect.Effect<string, E> =>
  bytes.pipe(
    Stream.decodeText(),
    Stream.runFold(
      () => "",
      (kept, part) => (kept.length < OUTPUT_LIMIT ? kept + part : kept)
    )
  )
