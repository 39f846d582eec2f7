/**
 * Unit: the daemon as a service of the user's systemd: its name, its settings,
 * how it is started as a transient unit, and what systemd knows of it.
 *
 * A unit file of the same name (the NixOS module's, or a person's own) wins: it
 * is started instead, and its settings are its own.
 */
import { createHash } from "node:crypto"
import { Duration, Effect, Option, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

/** How long `systemctl` may take to answer. */
const ANSWER_WITHIN = Duration.seconds(10)
/** Bytes of a command's output that are kept. */
const OUTPUT_LIMIT = 64 * 1024

export class SystemdError extends Schema.TaggedError<SystemdError>()("SystemdError", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** systemd.service(5), each with its reason. */
export const serviceSettings: { readonly [setting: string]: string } = {
  // Started means: it answers. Its word comes through systemd-notify, a child.
  Type: "notify",
  NotifyAccess: "all",
  WatchdogSec: "60",
  TimeoutStartSec: "120",
  // A crash restarts it; an order to stop (130, 143) does not, and neither does a
  // configuration that no restart repairs (78).
  Restart: "on-failure",
  RestartSec: "5",
  SuccessExitStatus: "130 143",
  RestartPreventExitStatus: "78",
  // The daemon ends its runs itself, each with its grace; what is left then is killed.
  KillMode: "mixed",
  TimeoutStopSec: "90",
  // What hangs does not hear that it is to abort.
  TimeoutAbortSec: "10",
  // An agent that takes too much memory is killed alone: the daemon sees it and decides.
  OOMPolicy: "continue"
}

/** systemd.unit(5): ten failed starts in ten minutes, and systemd gives up. */
export const unitSettings: { readonly [setting: string]: string } = {
  StartLimitIntervalSec: "600",
  StartLimitBurst: "10"
}

/** `agentd` for the default state folder; another folder is another world, and another unit. */
export const unitName = (state: string, defaultState: string): string =>
  state === defaultState ? "agentd" : `agentd-${createHash("sha256").update(state).digest("hex").slice(0, 8)}`

/** The state folder of the system's unit. */
export const SYSTEM_STATE = "/var/lib/agentd"

/** Variables that describe the shell that ran `start`, and would be wrong in the service. */
const OF_THE_SHELL = new Set(
  "_ SHLVL PWD OLDPWD TERM COLUMNS LINES NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID INVOCATION_ID JOURNAL_STREAM MAINPID LISTEN_FDS LISTEN_PID LISTEN_FDNAMES SYSTEMD_EXEC_PID MANAGERPID".split(
    " "
  )
)

/**
 * The names of the variables that the service gets from `env`, so that agents find under systemd
 * what they would find in the shell (PATH, API keys). What systemd refuses is left out.
 */
export const passedOn = (env: { readonly [name: string]: string }): ReadonlyArray<string> =>
  Object.entries(env)
    .filter(([name, value]) => !OF_THE_SHELL.has(name) && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && isPlain(value))
    .map(([name]) => name)
    .toSorted()

/** No control character but tab and line break. */
const isPlain = (value: string): boolean => !/\p{Cc}/u.test(value.replaceAll(/[\t\n]/g, ""))

export interface Service {
  readonly unit: string
  /** Absolute program first. */
  readonly command: ReadonlyArray<string>
  /** Absolute. */
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
}

/** The arguments of `systemd-run`. Variables go by name: their values would be in every process list. */
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
  /** True with a unit file; a unit without one is transient, and gone after a reboot. */
  readonly installed: boolean
  /** "active", "activating", "deactivating", "failed", "inactive" … */
  readonly state: string
  /** "success", "exit-code", "watchdog", "start-limit-hit" …: how it ended last. */
  readonly result: string
  readonly exitCode: number
  readonly pid: number | undefined
  readonly restarts: number
}

const STATUS_PROPERTIES = "LoadState,ActiveState,Result,ExecMainStatus,MainPID,NRestarts,FragmentPath,Transient"

/** Reads the output of `systemctl show`; none where systemd knows no such unit. */
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

/** Whether that systemd is there and takes orders. */
export const hasManager = (manager: Manager) =>
  Effect.suspend(() => run(["systemctl", `--${manager}`, "is-system-running"])).pipe(
    Effect.map(({ stdout }) => ["running", "degraded", "starting"].includes(stdout.trim())),
    Effect.orElseSucceed(() => false)
  )

export const hasUserManager = hasManager("user")

/** None: systemd is not there, or knows no such unit. */
export const status = (unit: string, manager: Manager = "user") =>
  run(["systemctl", `--${manager}`, "show", `${unit}.service`, `--property=${STATUS_PROPERTIES}`]).pipe(
    Effect.map(({ code, stdout }) => (code === 0 ? parseStatus(unit, stdout) : Option.none<UnitStatus>())),
    Effect.orElseSucceed(() => Option.none<UnitStatus>())
  )

/** Whether systemd listens on the daemon's socket, and would start it for whoever connects. */
export const listens = (unit: string, manager: Manager) =>
  Effect.map(
    answer(["systemctl", `--${manager}`, "show", `${unit}.socket`, "--property=ActiveState", "--value"]),
    (state) => state === "active"
  )

/** systemd listens no more; the daemon, if it runs, still does. Answers whether that was so ordered. */
export const stopListening = (unit: string, manager: Manager) =>
  run(["systemctl", `--${manager}`, "--no-ask-password", "stop", `${unit}.socket`]).pipe(
    Effect.map(({ code }) => code === 0),
    Effect.orElseSucceed(() => false)
  )

/** Ends the service, or the wait before systemd starts it again. */
export const stop = (unit: string) => Effect.asVoid(run(["systemctl", "--user", "stop", `${unit}.service`]))

/** Whether the user's services outlive the last logout; if not, `loginctl enable-linger` is the remedy. */
export const lingers = (user: string) =>
  run(["loginctl", "show-user", user, "--property=Linger", "--value"]).pipe(
    Effect.map(({ stdout }) => stdout.trim() === "yes"),
    Effect.orElseSucceed(() => false)
  )

/** Starts the service and returns when it said that it is ready. One that runs already is left alone. */
export const start = Effect.fn("Unit.start")(function* (service: Service) {
  const file = `${service.unit}.service`
  const before = yield* status(service.unit)
  // A transient unit that failed is kept, for `agentd status` to tell why; it has to go before the next one.
  const leftover = Option.isSome(before) && !before.value.installed && before.value.state === "failed"
  if (leftover) yield* run(["systemctl", "--user", "reset-failed", file])

  const { code, stderr } =
    Option.isSome(before) && !leftover
      ? yield* run(["systemctl", "--user", "start", file], { within: START_WITHIN })
      : yield* run(["systemd-run", ...systemdRunArguments(service)], { within: START_WITHIN, env: service.env })
  if (code === 0) return

  const after = Option.getOrUndefined(yield* status(service.unit))
  // Not `--user --unit`: the lines of a system account are not in a user's journal.
  const last = yield* run(["journalctl", "--quiet", "--output=cat", "--lines=10", `--user-unit=${file}`]).pipe(
    Effect.match({ onFailure: () => "", onSuccess: ({ stdout }) => stdout.trim() })
  )
  const ended = after === undefined ? "" : ` (${after.result}, exit code ${after.exitCode})`
  return yield* new SystemdError({
    message: [`${file} did not start${ended}.`, stderr.trim(), last].filter((part) => part !== "").join("\n"),
    remedy: `See 'journalctl --user-unit=${service.unit}', or run it in the foreground with 'agentd up'.`
  })
})

/** The answer of a tool, trimmed; empty where it cannot be asked. */
export const answer = (words: ReadonlyArray<string>) =>
  run(words).pipe(
    Effect.map(({ stdout }) => stdout.trim()),
    Effect.orElseSucceed(() => "")
  )

/** Runs one of systemd's tools, or the system's, to its end. */
export const tool = (words: ReadonlyArray<string>) => run(words, { within: START_WITHIN })

/** The unit's last lines in the journal, whichever manager has it. */
export const lastWords = (unit: string) =>
  Effect.gen(function* () {
    for (const which of ["--user-unit", "--unit"]) {
      const text = yield* answer(["journalctl", "--quiet", "--output=cat", "--lines=20", `${which}=${unit}.service`])
      if (text !== "") return text
    }
    return ""
  })

/** `TimeoutStartSec` ends it earlier. */
const START_WITHIN = Duration.seconds(150)

interface RunOptions {
  readonly within?: Duration.Duration
  readonly env?: { readonly [name: string]: string }
}

/** Runs one of systemd's tools to its end, within a deadline. */
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
          message: `${program} could not be asked: ${error.message}`,
          remedy: "Without systemd, run 'agentd up' in the foreground, or let another service manager do it."
        })
    )
  )

/** All of it is read, the first part of it kept: an unread pipe stops its writer. */
const text = <E>(bytes: Stream.Stream<Uint8Array, E>): Effect.Effect<string, E> =>
  bytes.pipe(
    Stream.decodeText(),
    Stream.runFold(
      () => "",
      (kept, part) => (kept.length < OUTPUT_LIMIT ? kept + part : kept)
    )
  )
