/**
 * `agentd hooks install|uninstall|status`: manages agentd's hooks in Claude Code's settings.
 *
 * The hooks are commands that write to the daemon's unix socket. With --http, hooks that decide nothing send requests
 * to a port instead. While the daemon is not running, any program on the machine could listen on that port. Hooks are
 * written to the user's own settings or to a project's settings.local.json, never to a file that git would commit.
 */
import { Clock, Config, Duration, Effect, FileSystem, Option } from "effect"
import * as Account from "../../config/Account.ts"
import * as NodePath from "node:path"
import { call } from "../../api/rpc/ControlClient.ts"
import type { Check } from "../../board/DaemonMessages.ts"
import { portOf, type UserConfig } from "../../config/Config.ts"
import * as UserGit from "../../runs/git/UserGit.ts"
import { loadUser } from "../../config/ConfigFile.ts"
import type { PlateInfo } from "../../domain/Messages.ts"
import * as HookCommand from "../../api/http/HookCommand.ts"
import * as Spool from "../../api/http/Spool.ts"
import * as Tokens from "../../api/http/Tokens.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import * as HookScripts from "./HookScripts.ts"
import * as HookSettings from "./HookSettings.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { age, type Cell, paint, plain, table } from "../render/Output.ts"
import type { SessionSource } from "../../plates/SessionSource.ts"
import * as PluginFile from "./PluginFile.ts"
import * as SettingsFile from "./SettingsFile.ts"
import * as SourceHooks from "./SourceHooks.ts"

export interface Input {
  readonly action: "install" | "uninstall" | "status"
  readonly project: boolean
  readonly user: boolean
  /**
   * True if agentd may answer permission requests. Undefined: as in the installed hooks; false if none are installed.
   */
  readonly approvals: boolean | undefined
  /** True if hooks that decide nothing send their requests to the daemon's port. */
  readonly http: boolean
  /** True if the user is not asked before the settings are changed. */
  readonly yes: boolean
  /** The coding CLIs whose hooks are meant: claude, another one by its id, or all. Undefined: claude. */
  readonly agent?: string | undefined
}

/** Time in seconds that the user still has to decide in the session after agentd's timeout. */
const MARGIN_S = 10

const userFile = Effect.map(Effect.orDie(Config.option(Config.String("CLAUDE_CONFIG_DIR"))), (folder) =>
  NodePath.join(
    Option.getOrElse(folder, () => NodePath.join(Account.home(), ".claude")),
    "settings.json"
  )
)

/** The settings files of the user whose hooks belong to this state directory. */
export const installedFor = Effect.fnUntraced(function* (state: string) {
  return yield* Effect.filter([yield* userFile, ...(yield* SourceHooks.files)], (file) =>
    Effect.map(
      Effect.orElseSucceed(textsIn(file), () => []),
      (texts) => texts.some((text) => text.includes(JSON.stringify(state).slice(1, -1)))
    )
  )
})

const isFolder = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.orElseSucceed(
    Effect.map(fs.stat(path), ({ type }) => type === "Directory"),
    () => false
  )
})

/** The texts with agentd's hooks: in a settings file, a plugin, or a folder of scripts. */
const textsIn = Effect.fnUntraced(function* (file: string) {
  if (yield* isFolder(file)) return [...(yield* HookScripts.ours(file)).values()]
  if (PluginFile.isName(file)) return [(yield* PluginFile.read(file)).text ?? ""]
  const { document, text } = yield* SettingsFile.read(file)
  return text !== undefined && HookSettings.find(document.settings).events.length > 0 ? [text] : []
})

export const takeOut = Effect.fnUntraced(function* (file: string) {
  if (yield* isFolder(file)) yield* HookScripts.uninstall(file)
  else yield* PluginFile.isName(file) ? PluginFile.uninstall(file) : SettingsFile.uninstall(file)
})

const projectFile = NodePath.resolve(".claude", "settings.local.json")

const git = (...args: ReadonlyArray<string>) =>
  UserGit.run(".", ...args).pipe(
    Effect.map(({ code }) => code),
    // if git cannot be run, treat the folder as if it were in no repository
    Effect.orElseSucceed(() => 128)
  )

/** Fails if git would commit the file, because it contains paths of this machine and might contain a token. */
const checkIgnored = Effect.fnUntraced(function* (file: string) {
  if ((yield* git("rev-parse", "--is-inside-work-tree")) !== 0) return
  const tracked = (yield* git("ls-files", "--error-unmatch", "--", file)) === 0
  if (!tracked && (yield* git("check-ignore", "-q", "--", file)) === 0) return
  return yield* new VerbFailed({
    message: tracked ? `${file} is committed in this repository.` : `git would add ${file} with the next "git add".`,
    remedy: tracked
      ? "Remove the file from git (git rm --cached) and ignore it. Or install the hooks for your user: agentd hooks install"
      : `Ignore the file: echo .claude/settings.local.json >> "$(git rev-parse --git-path info/exclude)"`,
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
      message: "The daemon listens on no port, so hooks cannot send requests to it over HTTP.",
      remedy: `Run the command without --http: the hooks then use the daemon's socket. Or set http.enabled to true in ${paths.userConfig}, then: agentd restart`,
      exitCode: ExitCode.config
    })
  }
  yield* SourceHooks.writeScripts(paths.state)
  const plan = yield* commands(approvals, config)
  return http && port !== undefined
    ? { ...plan, http: { port, token: yield* Tokens.read(paths.state, "hooks") } }
    : plan
})

const answered = (approvals: boolean): string =>
  approvals
    ? "Permission requests can also be answered with agentd approve and deny (to turn this off: --no-approvals)."
    : "Permission requests can be answered only in the sessions' own terminals (to let agentd approve answer them: --approvals)."

const installClaude = Effect.fnUntraced(function* (input: Input) {
  const file = input.project ? projectFile : yield* userFile
  if (input.project) yield* checkIgnored(file)
  const approvals = input.approvals ?? HookSettings.find((yield* SettingsFile.read(file)).document.settings).approvals
  const plan = yield* planOf(approvals, input.http)
  const agrees = SourceHooks.agreed({ id: "claude", name: "Claude Code" }, file, input.yes, plan.http?.token)
  const { backup, changed, settings } = yield* SettingsFile.install(file, plan, agrees)
  const obstacles = HookSettings.obstacles(settings, plan.http?.port)
  const lines = [
    changed ? `The hooks were added to ${file}.` : `The hooks were already in ${file}.`,
    answered(approvals),
    ...(plan.http === undefined
      ? []
      : [
          `Hooks that decide nothing use port ${plan.http.port}. While the daemon is down, a program that listens on this port receives and can answer them.`
        ]),
    ...(backup === null ? [] : [`A copy of the previous file: ${backup}`]),
    ...obstacles.map((obstacle) => `Warning: ${obstacle}.`),
    "Open sessions use the hooks after a restart of the session. To see which sessions have reported: agentd hooks status"
  ]
  const json = { file, changed, backup, approvals, obstacles, by: plan.reporter.way }
  return { json, lines } satisfies SourceHooks.Done
})

const uninstallClaude = Effect.fnUntraced(function* (input: Input) {
  const file = input.project ? projectFile : yield* userFile
  const { changed, kept } = yield* SettingsFile.uninstall(file)
  const lines = [
    changed ? `The hooks were removed from ${file}.` : `There were no agentd hooks in ${file}.`,
    ...(kept === null ? [] : [`The file has other changes since the install. A copy from before the install: ${kept}`])
  ]
  return { json: { file, changed, backup: kept }, lines } satisfies SourceHooks.Done
})

const OLD = "the hooks differ from those that this agentd writes. To update them: agentd hooks install"
const OLD_HTTP =
  "the hooks differ from those that this agentd writes, and use a port that any program of this machine can take. To update them: agentd hooks install"

/**
 * The plan against which installed hooks are compared. It uses HTTP if some hooks use it and the config enables a port.
 */
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

/**
 * Checks the hooks in a settings file. `problem` in the result: why the hooks do not run or cannot be read; null if
 * there is no problem.
 */
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

/** The hooks in the user's settings file, and in that of the project. */
const written = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const config = yield* loadUser(paths.userConfig)
  return [yield* writtenIn("user", yield* userFile, config), yield* writtenIn("project", projectFile, config)]
})

/** Findings about the hooks for `doctor`; empty if no hooks are installed, or if the config cannot be read. */
export const checks = written.pipe(
  Effect.map((places) =>
    places
      .filter(({ installed }) => installed)
      .map(({ file, problem, scope }): Check => ({
        name: scope === "user" ? "hooks" : "project hooks",
        level: problem === null ? "ok" : "warn",
        detail: problem === null ? `installed in ${file}` : `${file}: ${problem}`,
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
  const others = yield* SourceHooks.status
  yield* print({ written: places, others, recorded: SourceHooks.recorded, script, sessions }, () => [
    ...places.map(({ approvals = false, file, installed, problem, scope }) => {
      const how = `installed, approvals ${approvals ? "on" : "off"},`
      const state = installed ? paint(colour, "green", how) : "not installed"
      return `${scope.padEnd(8)}${state} in ${file}${problem === null ? "" : `: ${paint(colour, "yellow", problem)}`}`
    }),
    ...SourceHooks.lines(others, { colour, columns }),
    "",
    ...(heard._tag === "Failure"
      ? [`Cannot list the sessions that have reported: ${heard.failure.message} ${heard.failure.remedy}`]
      : heard.success.length === 0
        ? [
            "No session has reported yet. Start a session. Check that Claude Code trusts its folder: in untrusted folders, no hooks run."
          ]
        : table(
            ["PLATE", "STATUS", "HEARD", "BY", "SESSION", "FOLDER"],
            heard.success.map((plate) => heardRow(plate, now)),
            { colour, columns }
          ))
  ])
})

/** Does for each CLI that `agent` names what the command says. */
const forEach = Effect.fnUntraced(function* (input: Input & { readonly action: "install" | "uninstall" }) {
  const { agent = "claude" } = input
  const sources = yield* SourceHooks.named(agent)
  if (agent !== "claude" && input.project) return yield* SourceHooks.onlyUser
  const isInstall = input.action === "install"
  const change = Effect.fnUntraced(function* (source: SessionSource | undefined) {
    if (source === undefined) return yield* isInstall ? installClaude(input) : uninstallClaude(input)
    return yield* isInstall ? SourceHooks.install(source, input.yes) : SourceHooks.uninstall(source)
  })
  if (agent !== "all") {
    const { json, lines } = yield* change(sources[0])
    return yield* print(json, () => lines)
  }
  // one that cannot be changed keeps nobody from the others
  const results = yield* Effect.forEach([undefined, ...sources], (source) => Effect.result(change(source)))
  const done = results.flatMap((one) => (one._tag === "Success" ? [one.success] : []))
  yield* print(
    done.map(({ json }) => json),
    () => done.flatMap(({ lines }) => lines)
  )
  const failure = results.find((one) => one._tag === "Failure")
  if (failure !== undefined) return yield* failure.failure
})

export const run = (input: Input) =>
  Effect.suspend(() => {
    const { action } = input
    return action === "status" ? status : forEach({ ...input, action })
  })
