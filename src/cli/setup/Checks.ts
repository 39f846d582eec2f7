/**
 * Checks: what `doctor` checks from outside the daemon. Each check returns one
 * finding and never fails; a problem has a remedy.
 */
import type { AgentConfig } from "../../config/AgentConfig.ts"
import { channelsFor, type NotifyConfig } from "../../config/NotifyConfig.ts"
import { limitIn } from "../../config/Span.ts"
import { span } from "../../domain/Words.ts"
import { Duration, Effect, FileSystem, Option, type PlatformError } from "effect"
import { statfs } from "node:fs/promises"
import * as NodePath from "node:path"
import { checkLength, probe } from "../../api/rpc/Endpoint.ts"
import type { Check } from "../../board/DaemonMessages.ts"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import * as PersonGit from "../../runs/git/PersonGit.ts"
import { shown as bytes } from "../../config/ByteCount.ts"
import { zoneOf } from "../render/OwnZone.ts"
import { load, loadUser } from "../../config/ConfigFile.ts"
import * as StoreLock from "../../core/event-log/StoreLock.ts"
import * as Unit from "../../systemd/Unit.ts"
import { noProject } from "../parse/NearName.ts"
import { count } from "../render/Output.ts"
import type { Paths } from "../parse/Paths.ts"

const ok = (name: string, detail: string): Check => ({ name, level: "ok", detail, remedy: null })
const warn = (name: string, detail: string, remedy: string): Check => ({ name, level: "warn", detail, remedy })
const fail = (name: string, detail: string, remedy: string): Check => ({ name, level: "fail", detail, remedy })

/** A warning if escalations would come after a call has expired; undefined if none would. */
export const toldTooLate = (
  { escalate }: Pick<NotifyConfig, "escalate">,
  agents: { readonly [agent: string]: Pick<AgentConfig, "approvals"> }
): string | undefined => {
  const after = escalate === undefined ? 0 : Duration.toMillis(escalate.after)
  const late = Object.entries(agents).filter(([, { approvals }]) => (limitIn(approvals.timeout) ?? Infinity) <= after)
  return late.length === 0
    ? undefined
    : `notify.escalate tells on after ${span(after)} what has expired by then: see approvals.timeout of ${late.map(([name]) => name).join(", ")}`
}

const LEAST_NODE = [24, 15] as const
/** Free bytes: below `fail`, runs will soon fail; below `warn`, a person should look. */
const SPACE = { fail: 200_000_000, warn: 2_000_000_000 } as const

export const node = (version: string): Check => {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number)
  const enough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])
  return enough
    ? ok("node", version)
    : fail("node", `${version} is too old`, `Install Node ${LEAST_NODE.join(".")} or newer.`)
}

/** The folder itself, or its nearest existing parent. */
const existing = (fs: FileSystem.FileSystem, path: string): Effect.Effect<string, PlatformError.PlatformError> =>
  Effect.flatMap(fs.exists(path), (there) => (there ? Effect.succeed(path) : existing(fs, NodePath.dirname(path))))

const broken = (name: string, remedy: string) => (error: { readonly message: string }) =>
  Effect.succeed(fail(name, error.message, remedy))

export const folder = (name: string, path: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    if (!(yield* fs.exists(path))) return ok(name, `${path} (is made at the first start)`)
    const info = yield* fs.stat(path)
    const mode = (info.mode & 0o777).toString(8)
    const owner = Option.getOrUndefined(info.uid)
    if (info.type !== "Directory") return fail(name, `${path} is no folder`, "Move it away.")
    if (owner !== undefined && owner !== process.getuid?.()) {
      return fail(name, `${path} belongs to user ${owner}`, "Choose a folder of your own with --state DIR.")
    }
    if ((info.mode & 0o022) !== 0) {
      return fail(name, `others may write in ${path} (mode ${mode})`, `Run: chmod 700 '${path}'`)
    }
    return (info.mode & 0o055) === 0
      ? ok(name, `${path} (mode ${mode})`)
      : warn(name, `others may look into ${path} (mode ${mode})`, `Run: chmod 700 '${path}'`)
  }).pipe(Effect.catch(broken(name, "Make it accessible to you, or choose another with --state DIR.")))

/** The time zone of times without a zone, from the variable TZ. */
export const zone = (tz: string | undefined): Check => {
  const { doubt, name } = zoneOf(tz)
  return doubt === null
    ? ok("time zone", name)
    : warn("time zone", doubt, 'Set TZ to a name such as "Europe/Berlin"; then: agentd restart')
}

/** Number of zombies that shows that nobody reaps them: an init never has that many. */
const UNREAPED = 4

/** A warning if nobody reaps the processes that agents leave behind. */
export const reaped = (daemon: number): ReadonlyArray<Check> => {
  const left = ProcessTable.unreaped()
  if (daemon !== 1 && left < UNREAPED) return []
  const detail =
    daemon === 1
      ? "the daemon is the first process here (pid 1), and nobody reaps what its agents leave behind"
      : `${left} processes have ended and were not reaped by the first process (pid 1)`
  return [warn("pid 1", detail, "Begin the container with an init: docker run --init; or with agentd up itself.")]
}

export const space = (path: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const at = yield* existing(fs, path)
    const { bavail, bsize } = yield* Effect.promise(() => statfs(at))
    const free = bavail * bsize
    const detail = `${bytes(free)} free at ${at}`
    const remedy = "Make room: when the disk is full the rune log takes no writes and every run is ended."
    return free < SPACE.fail
      ? fail("disk", detail, remedy)
      : free < SPACE.warn
        ? warn("disk", detail, remedy)
        : ok("disk", detail)
  }).pipe(Effect.catch(broken("disk", "Check that the state folder's disk is there.")))

export const socket = (path: string) =>
  Effect.gen(function* () {
    yield* checkLength(path)
    switch (yield* probe(path)) {
      case "live":
        return ok("socket", `${path} answers`)
      case "absent":
        return warn("socket", `nobody listens at ${path}: the daemon is not running`, "Start it: agentd start")
      case "stale":
        return warn(
          "socket",
          `${path} is left over from a daemon that died`,
          "Start it again (agentd start): it is replaced."
        )
      case "forbidden":
        return fail("socket", `${path} belongs to another user`, "Run this as the user that runs the daemon.")
    }
  }).pipe(Effect.catch((error) => Effect.succeed(fail("socket", error.message, error.remedy))))

/** Whether a process holds the store: tested by locking the store for a moment. */
export const lock = (paths: Paths, live: boolean) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    if (!(yield* fs.exists(paths.lock))) return ok("lock", "never taken: no daemon has run here yet")
    const taken = yield* Effect.result(Effect.scoped(StoreLock.acquire({ folder: paths.state, socket: null })))
    if (taken._tag === "Success") {
      return live
        ? fail("lock", `a daemon answers and does not hold ${paths.lock}`, "Restart it: agentd restart")
        : ok("lock", "free")
    }
    const error = taken.failure
    if (error._tag !== "StoreInUse") return fail("lock", error.message, error.remedy)
    const holder = error.pid === null ? "a daemon" : `the daemon with pid ${error.pid}`
    return live
      ? ok("lock", `held by ${holder}`)
      : fail("lock", `${holder} holds ${paths.lock} and does not answer`, `Look at what it does, then end it.`)
  }).pipe(Effect.catch(broken("lock", "Make the state folder accessible to you.")))

export const systemd = Effect.fnUntraced(function* (unit: string, user: string) {
  if (!(yield* Unit.hasUserManager)) {
    return [
      warn(
        "systemd",
        "there is no user manager: the daemon runs detached and does not come back by itself",
        "Log in through a session that has one, or start agentd up from a service manager of yours."
      )
    ]
  }
  const status = yield* Unit.status(unit)
  const state = Option.match(status, {
    onNone: () => ok("systemd", `a user manager is there; it has no unit ${unit} yet`),
    onSome: (found) =>
      found.state === "failed"
        ? fail(
            "systemd",
            `${unit} failed: ${found.result} (exit code ${found.exitCode})`,
            `See why: journalctl --user -u ${unit}`
          )
        : ok("systemd", `${unit} is ${found.state}${found.restarts === 0 ? "" : `, restarted ${found.restarts} times`}`)
  })
  return (yield* Unit.lingers(user))
    ? [state, ok("linger", "your services outlive your logout")]
    : [
        state,
        warn("linger", "your services end with your last logout, agentd with them", "Run: loginctl enable-linger")
      ]
})

export const git = Effect.gen(function* () {
  const { stdout } = yield* PersonGit.run(".", "--version")
  return ok("git", stdout.trim())
}).pipe(
  Effect.timeout("10 seconds"),
  Effect.orElseSucceed(() =>
    warn("git", "git cannot be run", 'Install it; agents with "worktree" cannot work without.')
  )
)

export const configs = Effect.fnUntraced(function* (project: string | null, user: string) {
  const mine = yield* Effect.result(project === null ? Effect.succeed(null) : load(project))
  const users = yield* Effect.result(loadUser(user))
  const found: Array<Check> = []
  if (mine._tag === "Failure") found.push(fail("config", mine.failure.message, mine.failure.remedy))
  else if (mine.success === null) {
    const { message, remedy } = yield* noProject
    found.push(warn("config", message.replace(/^T/, "t").replace(/\.$/, ""), remedy))
  } else found.push(ok("config", `${project}: ${count(Object.keys(mine.success.agents).length, "agent")}`))
  if (users._tag === "Failure") found.push(fail("config", users.failure.message, users.failure.remedy))
  const mail =
    (mine._tag === "Success" && mine.success !== null ? mine.success.mail : undefined) ??
    (users._tag === "Success" ? users.success.mail : undefined)
  const notify = users._tag === "Success" ? users.success.notify : undefined
  const told = notify === undefined ? [] : channelsFor(notify, "failed")
  const late = mine._tag === "Success" && mine.success && notify && toldTooLate(notify, mine.success.agents)
  if (late) found.push(warn("notify", late, `Escalate sooner (${user}), or let calls wait longer.`))
  found.push(
    mail === undefined && told.length > 0
      ? ok("mail", `no mail section: you are told by ${told.join(", ")}`)
      : mail === undefined
        ? warn(
            "mail",
            "nobody is mailed when an agent stops for good",
            `Add a mail section to agentd.jsonc or ${user}.`
          )
        : ok("mail", `alerts go to ${[mail.to].flat().join(", ")} through ${mail.smtp.host}; try it: agentd alert test`)
  )
  return found
})

export const all = Effect.fnUntraced(function* (paths: Paths, project: string | null, user: string) {
  const answer = yield* socket(paths.socket)
  return [
    node(process.version),
    yield* folder("state", paths.state),
    yield* folder("socket folder", NodePath.dirname(paths.socket)),
    yield* space(paths.state),
    answer,
    yield* lock(paths, answer.level === "ok"),
    ...(yield* systemd(Unit.unitName(paths.state, paths.defaultState), user)),
    yield* git,
    ...(yield* configs(project, paths.userConfig))
  ]
})
