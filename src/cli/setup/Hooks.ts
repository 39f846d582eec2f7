/**
 * `agentd hooks install|uninstall|status`: manages our hooks in Claude Code's settings.
 *
 * The hooks are commands that write to the daemon's unix socket. With --http, hooks that
 * decide nothing send requests to a port instead. While the daemon is down, any program of
 * the machine could listen on that port. Hooks go into the user's own settings or into the
 * settings.local.json of a project, and never into a file that gets committed.
 */
import { Clock, Config, Duration, Effect, FileSystem, Option } from "effect"
import { homedir } from "node:os"
import * as NodePath from "node:path"
import { call } from "../../api/rpc/ControlClient.ts"
import type { Check } from "../../board/DaemonMessages.ts"
import { portOf, type UserConfig } from "../../config/Config.ts"
import * as PersonGit from "../../runs/git/PersonGit.ts"
import * as StateFolder from "../../core/event-log/StateFolder.ts"
import { loadUser } from "../../config/ConfigFile.ts"
import type { PlateInfo } from "../../domain/Messages.ts"
import * as HookCommand from "../../api/http/HookCommand.ts"
import * as Spool from "../../api/http/Spool.ts"
import * as Tokens from "../../api/http/Tokens.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import * as HookSettings from "./HookSettings.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { age, type Cell, paint, plain, table } from "../render/Output.ts"
import * as SettingsFile from "./SettingsFile.ts"

export interface Input {
  readonly action: "install" | "uninstall" | "status"
  readonly project: boolean
  readonly user: boolean
  /** Undefined: keep the setting of the installed hooks; off if there are none. */
  readonly approvals: boolean | undefined
  /** Hooks that decide nothing send their requests to the daemon's port. */
  readonly http: boolean
}

/** Seconds that a person still has after the last moment at which agentd could answer. */
const MARGIN_S = 10

const userFile = Effect.map(Effect.orDie(Config.option(Config.String("CLAUDE_CONFIG_DIR"))), (folder) =>
  NodePath.join(
    Option.getOrElse(folder, () => NodePath.join(homedir(), ".claude")),
    "settings.json"
  )
)

/** The user's settings file, if its hooks belong to this state directory; else undefined. */
export const installedFor = Effect.fnUntraced(function* (state: string) {
  const file = yield* userFile
  const found = yield* Effect.orElseSucceed(SettingsFile.read(file), () => undefined)
  if (found?.text === undefined || HookSettings.find(found.document.settings).events.length === 0) return undefined
  return found.text.includes(JSON.stringify(state).slice(1, -1)) ? file : undefined
})

/** Removes agentd's hooks from a file. */
export const takeOut = SettingsFile.uninstall

const projectFile = NodePath.resolve(".claude", "settings.local.json")

const git = (...args: ReadonlyArray<string>) =>
  PersonGit.run(".", ...args).pipe(
    Effect.map(({ code }) => code),
    // without git, there is no repository
    Effect.orElseSucceed(() => 128)
  )

/** Refuses a file that git would commit: it holds paths of this machine, and can hold a token. */
const checkIgnored = Effect.fnUntraced(function* (file: string) {
  if ((yield* git("rev-parse", "--is-inside-work-tree")) !== 0) return
  const tracked = (yield* git("ls-files", "--error-unmatch", "--", file)) === 0
  if (!tracked && (yield* git("check-ignore", "-q", "--", file)) === 0) return
  return yield* new VerbFailed({
    message: tracked
      ? `${file} is committed in this repository.`
      : `git would take up ${file} with the next "git add".`,
    remedy: tracked
      ? "Take it out (git rm --cached), and ignore it; or install for the user: agentd hooks install"
      : `Ignore it: echo .claude/settings.local.json >> "$(git rev-parse --git-path info/exclude)"`,
    exitCode: ExitCode.failed
  })
})

const ownPort = ({ http }: UserConfig) => portOf(http, process.getuid?.() ?? 0)

const commands = Effect.fnUntraced(function* (approvals: boolean, config: UserConfig) {
  const { paths } = yield* Invocation
  const { env } = yield* Entry
  const { hooks, script } = Spool.foldersOf(paths.state)
  return {
    script,
    reporter: yield* HookCommand.reporter({ folder: hooks, socket: paths.http, path: env["PATH"] ?? "" }),
    http: undefined,
    approvals: approvals ? Math.ceil(Duration.toSeconds(config.approvals.timeout)) + MARGIN_S : undefined
  } satisfies HookSettings.Plan
})

const planOf = Effect.fnUntraced(function* (approvals: boolean, http: boolean) {
  const { paths } = yield* Invocation
  const config = yield* loadUser(paths.userConfig)
  const port = ownPort(config)
  if (http && port === undefined) {
    return yield* new VerbFailed({
      message: "The daemon listens on no port, so hooks could not reach it there.",
      remedy: `Leave out --http: the hooks' commands reach it by its socket. Or set http.enabled to true in ${paths.userConfig}, then: agentd restart`,
      exitCode: ExitCode.config
    })
  }
  yield* StateFolder.check(paths.state)
  yield* Effect.mapError(
    Spool.prepare(paths.state),
    (error) =>
      new VerbFailed({
        message: `The hooks' scripts cannot be written: ${error.message}`,
        remedy: "See that the state folder is yours: agentd doctor",
        exitCode: ExitCode.failed
      })
  )
  const plan = yield* commands(approvals, config)
  return http && port !== undefined
    ? { ...plan, http: { port, token: yield* Tokens.read(paths.state, "hooks") } }
    : plan
})

/** A sentence that says who answers permission requests. */
const answered = (approvals: boolean): string =>
  approvals
    ? "Permission requests can be answered with agentd approve and deny, too (--no-approvals turns that off)."
    : "Permission requests are answered in the sessions' own terminals only (--approvals lets agentd approve answer them)."

const install = Effect.fnUntraced(function* (input: Input) {
  const file = input.project ? projectFile : yield* userFile
  if (input.project) yield* checkIgnored(file)
  const approvals = input.approvals ?? HookSettings.find((yield* SettingsFile.read(file)).document.settings).approvals
  const plan = yield* planOf(approvals, input.http)
  const { backup, changed, settings } = yield* SettingsFile.install(file, plan)
  const obstacles = HookSettings.obstacles(settings, plan.http?.port)
  yield* print({ file, changed, backup, approvals, obstacles, by: plan.reporter.way }, () => [
    changed ? `The hooks are in ${file}.` : `The hooks were in ${file} already.`,
    answered(approvals),
    ...(plan.http === undefined
      ? []
      : [
          `Those that decide nothing go to port ${plan.http.port}: a program that takes it while the daemon is down hears them, and can answer them.`
        ]),
    ...(backup === null ? [] : [`What was there before: ${backup}`]),
    ...obstacles.map((obstacle) => `But ${obstacle}.`),
    "Open sessions use them when you start them again. See which have reported: agentd hooks status"
  ])
})

const uninstall = Effect.fnUntraced(function* (input: Input) {
  const file = input.project ? projectFile : yield* userFile
  const { changed, kept } = yield* SettingsFile.uninstall(file)
  yield* print({ file, changed, backup: kept }, () => [
    changed ? `The hooks are out of ${file}.` : `There were no hooks of ours in ${file}.`,
    ...(kept === null ? [] : [`More has changed there since; as it was before them: ${kept}`])
  ])
})

const OLD = "they are not as this agentd writes them: agentd hooks install brings them up to date"
const OLD_HTTP =
  "they are an older agentd's, and go to a port that any program of this machine can take: agentd hooks install makes commands of them"

/** The plan to which installed hooks are compared: with HTTP if some use it and the port is enabled. */
const planBeside = Effect.fnUntraced(function* ({ approvals, urls }: HookSettings.Installed, config: UserConfig) {
  const { paths } = yield* Invocation
  const plan = yield* commands(approvals, config)
  const port = ownPort(config)
  const token =
    urls.length === 0 || port === undefined ? undefined : yield* Effect.option(Tokens.read(paths.state, "hooks"))
  return port === undefined || token === undefined || Option.isNone(token)
    ? plan
    : { ...plan, http: { port, token: token.value } }
})

/** Checks the hooks in a settings file. `problem`: why they do not run, or cannot be read; null if all is well. */
const writtenIn = Effect.fnUntraced(function* (scope: "user" | "project", file: string, config: UserConfig) {
  const found = yield* Effect.result(SettingsFile.read(file))
  if (found._tag === "Failure") return { scope, file, installed: false, problem: found.failure.message }
  const { settings } = found.success.document
  const there = HookSettings.find(settings)
  const { approvals, events, urls } = there
  const plan = yield* planBeside(there, config)
  const problems = [
    ...HookSettings.obstacles(settings, plan.http?.port),
    ...(HookSettings.isCurrent(settings, plan) ? [] : [urls.length === 0 ? OLD : OLD_HTTP])
  ]
  return {
    scope,
    file,
    installed: events.length > 0,
    approvals,
    problem: events.length === 0 || problems.length === 0 ? null : problems.join("; ")
  }
})

/** The hooks in both settings files: the user's and the project's. */
const written = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const config = yield* loadUser(paths.userConfig)
  return [yield* writtenIn("user", yield* userFile, config), yield* writtenIn("project", projectFile, config)]
})

/** The hooks as findings for `doctor`; empty if none are installed, or if the config cannot be read. */
export const checks = written.pipe(
  Effect.map((places) =>
    places
      .filter(({ installed }) => installed)
      .map(({ file, problem, scope }): Check => ({
        name: scope === "user" ? "hooks" : "project hooks",
        level: problem === null ? "ok" : "warn",
        detail: problem === null ? `they are in ${file}` : `${file}: ${problem}`,
        remedy: problem === null ? null : `Run: agentd hooks install${scope === "user" ? "" : " --project"}`
      }))
  ),
  Effect.orElseSucceed((): ReadonlyArray<Check> => [])
)

const heardRow = ({ cwd, plateId, restsOn, sessionId, status }: PlateInfo, now: number): ReadonlyArray<Cell> => [
  { text: plateId, colour: "bold" },
  { text: status },
  { text: restsOn === null ? "never" : `${age(now - restsOn.at)} ago` },
  { text: restsOn?.signal ?? "-" },
  { text: plain(sessionId ?? "-") },
  { text: plain(cwd ?? "-") }
]

const status = Effect.gen(function* () {
  const { colour, columns, paths } = yield* Invocation
  const fs = yield* FileSystem.FileSystem
  const places = yield* written
  const script = yield* Effect.orElseSucceed(fs.exists(Spool.foldersOf(paths.state).script), () => false)
  const heard = yield* Effect.result(call(paths.socket, (client) => client.Plates({ all: false })))
  const now = yield* Clock.currentTimeMillis
  const sessions = heard._tag === "Success" ? heard.success : null
  yield* print({ written: places, script, sessions }, () => [
    ...places.map(({ approvals = false, file, installed, problem, scope }) => {
      const how = `installed, approvals ${approvals ? "on" : "off"},`
      const state = installed ? paint(colour, "green", how) : "not installed"
      return `${scope.padEnd(8)}${state} in ${file}${problem === null ? "" : `: ${paint(colour, "yellow", problem)}`}`
    }),
    "",
    ...(heard._tag === "Failure"
      ? [`Cannot list the sessions that have reported: ${heard.failure.message} ${heard.failure.remedy}`]
      : heard.success.length === 0
        ? [
            "No session has reported yet. Start one, or look whether its folder is trusted: untrusted ones run no hooks."
          ]
        : table(
            ["PLATE", "STATUS", "HEARD", "BY", "SESSION", "FOLDER"],
            heard.success.map((plate) => heardRow(plate, now)),
            { colour, columns }
          ))
  ])
})

export const run = Effect.fnUntraced(function* (input: Input) {
  switch (input.action) {
    case "install":
      return yield* install(input)
    case "uninstall":
      return yield* uninstall(input)
    case "status":
      return yield* status
  }
})
