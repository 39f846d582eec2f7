/**
 * DaemonLife: the daemon's beginning and end, seen from outside: launch it and
 * wait until it answers; ask it to end and wait until its process is gone.
 */
import { Clock, Console, Duration, Effect } from "effect"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import * as StoreHolder from "../../core/event-log/StoreHolder.ts"
import { loadUser } from "../../config/ConfigFile.ts"
import * as StateFolder from "../../core/event-log/StateFolder.ts"
import { call, cutOff, type DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import { checkLength, probe } from "../../api/rpc/Endpoint.ts"
import type { StatusReply } from "../../board/DaemonMessages.ts"
import * as DaemonNode from "../../systemd/DaemonNode.ts"
import { type How, fewFiles, launch } from "../../systemd/Launch.ts"
import * as Unit from "../../systemd/Unit.ts"
import { unitName } from "../../systemd/Unit.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"
import * as Patience from "../parse/Patience.ts"
import type { Paths } from "../parse/Paths.ts"
import { supported } from "../parse/Supported.ts"
import type { CommandRefused } from "../../domain/Messages.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"

/** Every agent gets its grace; systemd would not wait longer either. */
const GONE_WITHIN = Duration.minutes(2)
const POLL = Duration.millis(50)
/** Lines of a daemon's last words that are repeated. */
const MOST_WORDS = 12

export const status = (socket: string): Effect.Effect<StatusReply, DaemonUnreachable | CommandRefused | StorageError> =>
  call(socket, (client) => client.Status())

/** Whether a process of that id runs. One that has ended and waits for its parent to notice does not. */
const alive = (pid: number) =>
  Effect.sync(() => {
    if (ProcessTable.isAvailable()) return ProcessTable.isAlive(ProcessTable.identify(pid))
    try {
      // signal 0 asks and does nothing
      process.kill(pid, 0)
      return true
    } catch (error) {
      return error instanceof Error && "code" in error && error.code === "EPERM"
    }
  })

/** Until it answers, for as long as it works; `where` says where its last words are if it does not. */
const untilItAnswers = ({ socket, state }: Paths, where: string, quiet: boolean) =>
  status(socket).pipe(
    Effect.retry({
      schedule: Backoff.waits(Backoff.constant(POLL)),
      while: (error) => error._tag === "DaemonUnreachable" && error.reason === "not-running"
    }),
    Effect.raceFirst(
      Effect.andThen(
        Patience.untilIdle(state, quiet),
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

/** Fails when the daemon that was launched has ended, with its own words; one that found another in its place says nothing. */
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
            message: said === "" ? `The daemon has ended at once (${code ?? "by a signal"}).` : said,
            remedy: `${few === undefined ? "" : `${few} `}Then start it again: agentd start. All that it wrote is in ${how.log}`,
            exitCode: code === null || code === 0 ? ExitCode.failed : code
          })
        )
      })

/** The daemon that has the state folder although nobody answers, once it does; undefined where there is none, or it has ended. */
export const comesBack = Effect.fnUntraced(function* ({ socket, state }: Paths, quiet: boolean) {
  const pid = StoreHolder.here(state)
  if (pid === undefined) return undefined
  if (!quiet) yield* Console.error(`${cutOff(socket, pid).message} Waiting for it …`)
  const ended: Effect.Effect<undefined> = Effect.suspend(() =>
    StoreHolder.here(state) === undefined ? Effect.succeed(undefined) : Effect.andThen(Effect.sleep(POLL), ended)
  )
  const answers = Effect.retry(status(socket), Backoff.waits(Backoff.constant(POLL)))
  const given = Effect.andThen(Patience.untilIdle(state, true), Effect.fail(cutOff(socket, pid)))
  return yield* Effect.raceAllFirst([answers, ended, given])
})

export interface Started {
  readonly status: StatusReply
  /** False: it ran already. */
  readonly launched: boolean
}

/** Fails where a daemon that is started now would end at once, before another one is ended for it. */
export const checkStart = Effect.gen(function* () {
  const { paths } = yield* Invocation
  yield* supported
  yield* StateFolder.check(paths.state)
  yield* checkLength(paths.socket)
  yield* Effect.mapError(loadUser(paths.userConfig), ({ message }) => {
    const remedy = `Mend ${paths.userConfig}: the daemon was not stopped, and what is in force stays in force.`
    return new VerbFailed({ message, remedy, exitCode: ExitCode.config })
  })
})

/** `since`: one that started after that was launched by this, whoever carried it out. */
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
    // Not the project: the daemon must not keep a folder busy, nor take up a project by where it was started.
    cwd: "/",
    env: { ...entry.env, ...DaemonNode.variablesFor(entry.env) },
    log: paths.log
  })
  const where = how._tag === "Systemd" ? `journalctl --user -u ${how.unit}` : how.log
  const answered = yield* Effect.raceFirst(untilItAnswers(paths, where, json), untilItEnds(how))
  return { status: answered, launched: true } satisfies Started
})

/** systemd, where it listens on the daemon's socket. */
const listener = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const unit = unitName(paths.state, paths.defaultState)
  if (yield* Unit.listens(unit, "user")) return { unit, manager: "user" } as const
  const isSystems = paths.state === Unit.SYSTEM_STATE && (yield* Unit.listens("agentd", "system"))
  return isSystems ? ({ unit: "agentd", manager: "system" } as const) : undefined
})

/** `isShared`: somebody else listens there, too, and would begin a daemon for whoever looked. */
const untilGone = (pid: number, socket: string, isShared: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const listening = !isShared && (yield* probe(socket)) === "live"
    if (!listening && !(yield* alive(pid))) return
    yield* Effect.sleep(POLL)
    return yield* untilGone(pid, socket, isShared)
  })

export interface Stopped {
  readonly pid: number
  /** ms */
  readonly took: number
  /** The unit that begins it again for whoever connects: it is not ours to stop. */
  readonly returnsBy: string | undefined
}

/** Asks it to end, and returns when it is gone. `keep`: its runs are left to the daemon that comes next. */
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
            remedy: `See what it waits for: agentd status. To end it at once: kill -9 ${pid} (the next start finds its runs).`,
            exitCode: ExitCode.failed
          })
        )
    })
  )
  const took = (yield* Clock.currentTimeMillis) - began
  return { pid, took, returnsBy: stays ? `${by.unit}.socket` : undefined } satisfies Stopped
})
