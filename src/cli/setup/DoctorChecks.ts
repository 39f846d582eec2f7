/**
 * DoctorChecks: the checks in `doctor` that do not need the daemon. Each check returns a finding and never fails. A
 * finding that is a problem has a remedy.
 */
import type { AgentConfig } from "../../config/AgentConfig.ts"
import { channelsFor, type NotifyConfig } from "../../config/NotifyConfig.ts"
import { limitIn } from "../../config/Span.ts"
import { span } from "../../domain/StatusWords.ts"
import { Duration, Effect, FileSystem, Option, type PlatformError } from "effect"
import { statfs } from "node:fs/promises"
import * as NodePath from "node:path"
import { checkLength, probe } from "../../api/rpc/Endpoint.ts"
import type { Check } from "../../board/DaemonMessages.ts"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import * as UserGit from "../../runs/git/UserGit.ts"
import { shown as bytes } from "../../config/ByteCount.ts"
import { zoneOf } from "../render/OwnZone.ts"
import { load, loadUser } from "../../config/ConfigFile.ts"
import * as StoreLock from "../../core/event-log/StoreLock.ts"
import * as Unit from "../../systemd/Unit.ts"
import { noProject } from "../parse/MisnamedConfig.ts"
import { count } from "../render/Output.ts"
import type { Paths } from "../parse/Paths.ts"

const ok = (name: string, detail: string): Check => ({ name, level: "ok", detail, remedy: null })
const warn = (name: string, detail: string, remedy: string): Check => ({ name, level: "warn", detail, remedy })
const fail = (name: string, detail: string, remedy: string): Check => ({ name, level: "fail", detail, remedy })

/** A warning if an agent's calls expire before the reminder about them is sent; otherwise undefined. */
export const toldTooLate = (
  { escalate }: Pick<NotifyConfig, "escalate">,
  agents: { readonly [agent: string]: Pick<AgentConfig, "approvals"> }
): string | undefined => {
  const after = escalate === undefined ? 0 : Duration.toMillis(escalate.after)
  const late = Object.entries(agents).filter(([, { approvals }]) => (limitIn(approvals.timeout) ?? Infinity) <= after)
  return late.length === 0
    ? undefined
    : `notify.escalate sends reminders after ${span(after)}, but calls of these agents expire earlier (approvals.timeout): ${late.map(([name]) => name).join(", ")}`
}

const LEAST_NODE = [24, 15] as const
/**
 * Limits for free disk space, in bytes. Below `fail`, runs will soon fail; below `warn`, the user should free disk
 * space.
 */
const SPACE = { fail: 200_000_000, warn: 2_000_000_000 } as const

export const node = (version: string): Check => {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number)
  const enough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])
  return enough
    ? ok("node", version)
    : fail("node", `${version} is too old`, `Install Node ${LEAST_NODE.join(".")} or newer.`)
}

/** The folder with this path, or its nearest existing parent. */
const existing = (fs: FileSystem.FileSystem, path: string): Effect.Effect<string, PlatformError.PlatformError> =>
  Effect.flatMap(fs.exists(path), (there) => (there ? Effect.succeed(path) : existing(fs, NodePath.dirname(path))))

const broken = (name: string, remedy: string) => (error: { readonly message: string }) =>
  Effect.succeed(fail(name, error.message, remedy))

export const folder = (name: string, path: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    if (!(yield* fs.exists(path))) return ok(name, `${path} (will be created at the first start)`)
    const info = yield* fs.stat(path)
    const mode = (info.mode & 0o777).toString(8)
    const owner = Option.getOrUndefined(info.uid)
    if (info.type !== "Directory") return fail(name, `${path} is not a folder`, "Move the file away.")
    if (owner !== undefined && owner !== process.getuid?.()) {
      return fail(name, `${path} belongs to user ${owner}`, "Use your own folder with --state DIR.")
    }
    if ((info.mode & 0o022) !== 0) {
      return fail(name, `other users can write in ${path} (mode ${mode})`, `Run: chmod 700 '${path}'`)
    }
    return (info.mode & 0o055) === 0
      ? ok(name, `${path} (mode ${mode})`)
      : warn(name, `other users can read ${path} (mode ${mode})`, `Run: chmod 700 '${path}'`)
  }).pipe(Effect.catch(broken(name, "Make the folder accessible to you, or use another one with --state DIR.")))

/** The time zone that is used for times without a zone. `tz`: value of the variable TZ. */
export const zone = (tz: string | undefined): Check => {
  const { doubt, name } = zoneOf(tz)
  return doubt === null
    ? ok("time zone", name)
    : warn("time zone", doubt, 'Set TZ to a name such as "Europe/Berlin"; then: agentd restart')
}

/**
 * Number of zombie processes at which nothing seems to reap them. With a working init process there are never that
 * many.
 */
const UNREAPED = 4

/** A warning if nothing reaps the zombie processes that agents leave behind. `daemon`: pid of the daemon. */
export const reaped = (daemon: number): ReadonlyArray<Check> => {
  const left = ProcessTable.unreaped()
  if (daemon !== 1 && left < UNREAPED) return []
  const detail =
    daemon === 1
      ? "the daemon is the first process (pid 1), so no process reaps the zombies of its agents"
      : `${left} ended processes were not reaped by the first process (pid 1)`
  return [
    warn(
      "pid 1",
      detail,
      "Start the container with an init process: docker run --init. Or run agentd up as its first process."
    )
  ]
}

export const space = (path: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const at = yield* existing(fs, path)
    const { bavail, bsize } = yield* Effect.promise(() => statfs(at))
    const free = bavail * bsize
    const detail = `${bytes(free)} free at ${at}`
    const remedy = "Free some space: when the disk is full, the log cannot be written, and every run ends."
    return free < SPACE.fail
      ? fail("disk", detail, remedy)
      : free < SPACE.warn
        ? warn("disk", detail, remedy)
        : ok("disk", detail)
  }).pipe(Effect.catch(broken("disk", "Check that the disk of the state directory is mounted.")))

export const socket = (path: string) =>
  Effect.gen(function* () {
    yield* checkLength(path)
    switch (yield* probe(path)) {
      case "live":
        return ok("socket", `${path} answers`)
      case "absent":
        return warn(
          "socket",
          `no process listens at ${path}: the daemon is not running`,
          "Start the daemon: agentd start"
        )
      case "stale":
        return warn(
          "socket",
          `${path} is left over from a daemon that ended unexpectedly`,
          "Start the daemon again, which replaces the socket: agentd start"
        )
      case "forbidden":
        return fail("socket", `${path} belongs to another user`, "Run this command as the user that runs the daemon.")
    }
  }).pipe(Effect.catch((error) => Effect.succeed(fail("socket", error.message, error.remedy))))

/** Checks whether another process has locked the store, by locking it for a moment. */
export const lock = (paths: Paths, live: boolean) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    if (!(yield* fs.exists(paths.lock))) return ok("lock", "never used: no daemon has run here yet")
    const taken = yield* Effect.result(Effect.scoped(StoreLock.acquire({ folder: paths.state, socket: null })))
    if (taken._tag === "Success") {
      return live
        ? fail(
            "lock",
            `a daemon answers, but does not hold the lock ${paths.lock}`,
            "Restart the daemon: agentd restart"
          )
        : ok("lock", "free")
    }
    const error = taken.failure
    if (error._tag !== "StoreInUse") return fail("lock", error.message, error.remedy)
    const holder = error.pid === null ? "a daemon" : `the daemon with pid ${error.pid}`
    return live
      ? ok("lock", `held by ${holder}`)
      : fail(
          "lock",
          `${holder} holds the lock ${paths.lock}, but does not answer`,
          `Check what this process does, then end it.`
        )
  }).pipe(Effect.catch(broken("lock", "Make the state directory accessible to you.")))

export const systemd = Effect.fnUntraced(function* (unit: string, user: string) {
  if (!(yield* Unit.hasUserManager)) {
    return [
      warn(
        "systemd",
        "there is no systemd user manager: the daemon runs detached, and does not start again by itself",
        "Log in with a session that has one, or start agentd up from your own service manager."
      )
    ]
  }
  const status = yield* Unit.status(unit)
  const state = Option.match(status, {
    onNone: () => ok("systemd", `there is a user manager, but it has no unit ${unit} yet`),
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
    ? [state, ok("linger", "your services continue after your logout")]
    : [
        state,
        warn("linger", "your services, including agentd, end with your last logout", "Run: loginctl enable-linger")
      ]
})

export const git = Effect.gen(function* () {
  const { stdout } = yield* UserGit.run(".", "--version")
  return ok("git", stdout.trim())
}).pipe(
  Effect.timeout("10 seconds"),
  Effect.orElseSucceed(() =>
    warn("git", "git cannot be run", 'Install git. Agents with "worktree" cannot work without it.')
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
  if (late) found.push(warn("notify", late, `Set a shorter notify.escalate in ${user}, or a longer approvals.timeout.`))
  found.push(
    mail === undefined && told.length > 0
      ? ok("mail", `no mail section: alerts are sent by ${told.join(", ")}`)
      : mail === undefined
        ? warn(
            "mail",
            "no mail is sent when an agent stops permanently",
            `Add a mail section to agentd.jsonc or ${user}.`
          )
        : ok(
            "mail",
            `alerts go to ${[mail.to].flat().join(", ")} through ${mail.smtp.host}; to test it: agentd alert test`
          )
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
