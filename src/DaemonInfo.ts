/**
 * DaemonInfo: what the daemon says of itself: its status, its own checks, and how
 * it is asked to end.
 */
import { Config, Deferred, Effect, FileSystem, Option } from "effect"
import { join } from "node:path"
import { Fleet } from "./agents/Fleet.ts"
import { DaemonControl } from "./control/DaemonControl.ts"
import type { Check, DaemonStatus } from "./control/Protocol.ts"
import { RuneLog } from "./runes/RuneLog.ts"

export interface Facts {
  readonly version: string
  readonly state: string
  readonly socket: string
  /** ms since the epoch */
  readonly startedAt: number
  /** Completed with the reason when somebody asks for the end. */
  readonly asked: Deferred.Deferred<string>
}

/** systemd gives each service an invocation id; a daemon in the background has no terminal. */
const supervision = Effect.gen(function* () {
  const invocation = yield* Config.option(Config.String("INVOCATION_ID"))
  const unit = yield* ownUnit
  if (Option.isSome(invocation) && unit !== null) {
    return { by: "systemd", unit, restsOn: "its control group" } as const
  }
  return process.stdin.isTTY
    ? ({ by: "foreground", unit: null, restsOn: "its standard input is a terminal" } as const)
    : ({ by: "detached", unit: null, restsOn: "its standard input is no terminal" } as const)
})

/** `…/agentd.service` */
const ownUnit = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const groups = yield* Effect.orElseSucceed(fs.readFileString("/proc/self/cgroup"), () => "")
  return /\/([^/\n]+\.service)\s*$/m.exec(groups)?.[1] ?? null
})

const size = (file: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(file)).pipe(
    Effect.match({ onSuccess: (info) => Number(info.size), onFailure: () => 0 })
  )

const projectChecks = Effect.map(
  Effect.flatMap(Fleet, (fleet) => fleet.projects),
  (projects): ReadonlyArray<Check> =>
    projects.map(({ agents, config, name, problems }) =>
      problems.length === 0
        ? { name: `project ${name}`, level: "ok", detail: `${config}: ${agents.length} agents`, remedy: null }
        : {
            name: `project ${name}`,
            level: "fail",
            detail: problems.join("\n"),
            remedy: `Mend ${config}; it is read again when it changes.`
          }
    )
)

const agentChecks = Effect.map(
  Effect.flatMap(Fleet, (fleet) => fleet.agents),
  (agents): ReadonlyArray<Check> =>
    agents
      .filter(({ state, totalErrors }) => state === "Stopped" && totalErrors > 0)
      .map(({ agent, detail, project }) => ({
        name: `agent ${project}/${agent}`,
        level: "warn",
        detail,
        remedy: `See why: agentd why ${project}/${agent}. Start it again: agentd start ${project}/${agent}`
      }))
)

export const make = Effect.fnUntraced(function* (facts: Facts) {
  const log = yield* RuneLog
  const fleet = yield* Fleet
  const context = yield* Effect.context<FileSystem.FileSystem | Fleet>()
  const by = yield* Effect.orDie(supervision)
  const status: Effect.Effect<DaemonStatus> = Effect.gen(function* () {
    return {
      pid: process.pid,
      version: facts.version,
      startedAt: facts.startedAt,
      state: facts.state,
      socket: facts.socket,
      phase: (yield* Deferred.isDone(facts.asked)) ? "stopping" : (yield* fleet.ready) ? "ready" : "recovering",
      supervision: by,
      log: { head: yield* log.head, bytes: yield* size(join(facts.state, "runes.db")) },
      outbox: { configured: false, waiting: 0, failed: 0, lastSentAt: null, lastError: null, restsOn: 0 }
    } satisfies DaemonStatus
  }).pipe(Effect.provideContext(context))
  return DaemonControl.of({
    status,
    shutdown: (reason, who) => Effect.asVoid(Deferred.succeed(facts.asked, `${reason} (${who})`)),
    alertTest: Effect.die("not yet"),
    checks: Effect.all([projectChecks, agentChecks]).pipe(
      Effect.map((lists) => lists.flat()),
      Effect.provideContext(context)
    )
  })
})
