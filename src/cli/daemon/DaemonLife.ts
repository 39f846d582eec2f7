/**
 * DaemonLife: starts the daemon from another process and waits until it answers; also stops it and waits until its
 * process has ended.
 */
import { Clock, Console, Duration, Effect } from "effect"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import * as StoreOwner from "../../core/event-log/StoreOwner.ts"
import { loadUser } from "../../config/ConfigFile.ts"
import * as StateFolder from "../../core/event-log/StateFolder.ts"
import { call, cutOff, type DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import { checkLength, probe } from "../../api/rpc/Endpoint.ts"
import type { StatusReply } from "../../board/DaemonMessages.ts"
import * as DaemonNode from "../../systemd/DaemonNode.ts"
import { type How, fewFiles, launch } from "../../systemd/DaemonLauncher.ts"
import * as Unit from "../../systemd/Unit.ts"
import { unitName } from "../../systemd/Unit.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"
import * as StartupWait from "../parse/StartupWait.ts"
import type { Paths } from "../parse/Paths.ts"
import { supported } from "../parse/PlatformCheck.ts"
import type { CommandRefused } from "../../domain/Messages.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"

/** Timeout of a stop. It is longer than the grace period of any agent, and systemd waits no longer either. */
const GONE_WITHIN = Duration.minutes(2)
const POLL = Duration.millis(50)
/** Maximum number of output lines of a failed daemon in an error. The last lines are shown. */
const MOST_WORDS = 12

export const status = (socket: string): Effect.Effect<StatusReply, DaemonUnreachable | CommandRefused | StorageError> =>
  call(socket, (client) => client.Status())

/** True if a process with this pid runs. If /proc is available, a zombie does not count. */
const alive = (pid: number) =>
  Effect.sync(() => {
    if (ProcessTable.isAvailable()) return ProcessTable.isAlive(ProcessTable.identify(pid))
    try {
      // signal 0 only tests whether the process exists
      process.kill(pid, 0)
      return true
    } catch (error) {
      return error instanceof Error && "code" in error && error.code === "EPERM"
    }
  })

/**
 * Waits until the daemon answers. Fails if the daemon makes no progress. `where`: how the user can read the daemon's
 * log.
 */
const untilItAnswers = ({ socket, state }: Paths, where: string, quiet: boolean) =>
  status(socket).pipe(
    Effect.retry({
      schedule: Backoff.waits(Backoff.constant(POLL)),
      while: (error) => error._tag === "DaemonUnreachable" && error.reason === "not-running"
    }),
    Effect.raceFirst(
      Effect.andThen(
        StartupWait.untilIdle(state, quiet),
        Effect.fail(
          new VerbFailed({
            message: `The daemon was started but does not answer at ${socket}.`,
            remedy: `See why: ${where}. Or run it in the foreground: agentd up`,
            exitCode: ExitCode.notRunning
          })
        )
      )
    )
  )

/**
 * When the launched daemon ends, fails with its last output. If it ended because another daemon runs, waiting
 * continues.
 */
const untilItEnds = (how: How) =>
  how._tag === "Systemd"
    ? Effect.never
    : Effect.flatMap(how.ended, ({ code, words }) => {
        if (code === ExitCode.taken) return Effect.never
        const lines = words.split("\n").map((line) => line.replace(/^agentd: /, ""))
        const said = lines.slice(-MOST_WORDS).join("\n")
        const few = fewFiles()
        return Effect.fail(
          new VerbFailed({
            message:
              said === ""
                ? `The daemon ended immediately after its start (exit code: ${code ?? "none, ended by a signal"}).`
                : said,
            remedy: `${few === undefined ? "" : `${few} `}Then start the daemon again: agentd start. Its whole output is in ${how.log}`,
            exitCode: code === null || code === 0 ? ExitCode.failed : code
          })
        )
      })

/**
 * Waits until the daemon that already uses the state directory answers. Undefined if there is no such daemon, or if it
 * ends. Fails if it makes no progress.
 */
export const comesBack = Effect.fnUntraced(function* ({ socket, state }: Paths, quiet: boolean) {
  const pid = StoreOwner.here(state)
  if (pid === undefined) return undefined
  if (!quiet) yield* Console.error(`${cutOff(socket, pid).message} Waiting for it …`)
  const ended: Effect.Effect<undefined> = Effect.suspend(() =>
    StoreOwner.here(state) === undefined ? Effect.succeed(undefined) : Effect.andThen(Effect.sleep(POLL), ended)
  )
  const answers = Effect.retry(status(socket), Backoff.waits(Backoff.constant(POLL)))
  const given = Effect.andThen(StartupWait.untilIdle(state, true), Effect.fail(cutOff(socket, pid)))
  return yield* Effect.raceAllFirst([answers, ended, given])
})

export interface Started {
  readonly status: StatusReply
  /** False if the daemon was already running before this command. */
  readonly launched: boolean
}

/** Fails if a new daemon could not start. Called before a running daemon is stopped for a restart. */
export const checkStart = Effect.gen(function* () {
  const { paths } = yield* Invocation
  yield* supported
  yield* StateFolder.check(paths.state)
  yield* checkLength(paths.socket)
  yield* Effect.mapError(loadUser(paths.userConfig), ({ message }) => {
    const remedy = `Fix ${paths.userConfig}: the daemon was not stopped, and the last usable version stays in force.`
    return new VerbFailed({ message, remedy, exitCode: ExitCode.config })
  })
})

/**
 * Starts the daemon if none is running. `since`: a daemon that has started after this time (in ms since the epoch)
 * counts as started by this command, even if another process started it.
 */
export const start = Effect.fnUntraced(function* (since: number) {
  const { json, paths } = yield* Invocation
  yield* supported
  yield* StateFolder.check(paths.state)
  yield* checkLength(paths.socket)
  if ((yield* probe(paths.socket)) === "live") {
    const now = yield* status(paths.socket)
    return { status: now, launched: now.daemon.startedAt >= since } satisfies Started
  }
  const back = yield* comesBack(paths, json)
  if (back !== undefined) return { status: back, launched: back.daemon.startedAt >= since } satisfies Started
  const entry = yield* Entry
  const own = paths.state === paths.defaultState
  const how = yield* launch({
    unit: unitName(paths.state, paths.defaultState),
    command: DaemonNode.commandOf([...entry.command, ...(own ? [] : ["--state", paths.state]), "up"]),
    // do not run in the project's folder, because the daemon would keep that folder in use, and register its project
    cwd: "/",
    env: { ...entry.env, ...DaemonNode.variablesFor(entry.env) },
    log: paths.log
  })
  const where = how._tag === "Systemd" ? `journalctl --user -u ${how.unit}` : how.log
  const answered = yield* Effect.raceFirst(untilItAnswers(paths, where, json), untilItEnds(how))
  return { status: answered, launched: true } satisfies Started
})

/** The systemd socket unit that listens on the daemon's socket; undefined if none does. */
const listener = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const unit = unitName(paths.state, paths.defaultState)
  if (yield* Unit.listens(unit, "user")) return { unit, manager: "user" } as const
  const isSystems = paths.state === Unit.SYSTEM_STATE && (yield* Unit.listens("agentd", "system"))
  return isSystems ? ({ unit: "agentd", manager: "system" } as const) : undefined
})

/**
 * Waits until the daemon's process has ended. `isShared`: systemd also listens on the socket, so the socket is not
 * tested, because a connection would start a new daemon.
 */
const untilGone = (pid: number, socket: string, isShared: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const listening = !isShared && (yield* probe(socket)) === "live"
    if (!listening && !(yield* alive(pid))) return
    yield* Effect.sleep(POLL)
    return yield* untilGone(pid, socket, isShared)
  })

export interface Stopped {
  readonly pid: number
  /** Duration of the stop, in ms. */
  readonly took: number
  /**
   * The systemd socket unit that will start the daemon again at the next connection; undefined if no such unit listens.
   */
  readonly returnsBy: string | undefined
}

/** Asks the daemon to stop, and waits until its process has ended. `keep`: runs continue for the next daemon. */
export const stop = Effect.fnUntraced(function* (reason: string, keep = false) {
  const { caller, json, paths } = yield* Invocation
  const by = yield* listener
  const stays = by !== undefined && (keep || !(yield* Unit.stopListening(by.unit, by.manager)))
  const { pid } = yield* call(paths.socket, (client) =>
    client.Shutdown({ reason, by: caller.by, ...(keep ? { keep } : {}) })
  )
  const began = yield* Clock.currentTimeMillis
  const patience = Effect.delay(Console.error("Waiting for the agents' runs to end …"), "2 seconds")
  const notice = json ? Effect.never : Effect.andThen(patience, Effect.never)
  yield* Effect.raceFirst(untilGone(pid, paths.socket, stays), notice).pipe(
    Effect.timeoutOrElse({
      duration: GONE_WITHIN,
      orElse: () =>
        Effect.fail(
          new VerbFailed({
            message: `The daemon (pid ${pid}) was asked to stop ${Duration.toSeconds(GONE_WITHIN)} s ago and still runs.`,
            remedy: `See what it waits for: agentd status. To end it at once: kill -9 ${pid} (the next daemon finds the runs).`,
            exitCode: ExitCode.failed
          })
        )
    })
  )
  const took = (yield* Clock.currentTimeMillis) - began
  return { pid, took, returnsBy: stays ? `${by.unit}.socket` : undefined } satisfies Stopped
})
