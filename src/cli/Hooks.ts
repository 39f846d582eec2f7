/**
 * `agentd hooks install|uninstall|status`: our hooks in Claude Code's settings.
 *
 * They go into the user's own settings, or into the settings.local.json of a
 * project, and never into a file that gets committed: they hold a token.
 */
import { Clock, Config, Duration, Effect, FileSystem, Option } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { homedir } from "node:os"
import * as NodePath from "node:path"
import { call } from "../rpc/ControlClient.ts"
import { loadUser } from "../config/ConfigFile.ts"
import type { PlateInfo } from "../domain/Messages.ts"
import * as Spool from "../http/Spool.ts"
import * as Tokens from "../http/Tokens.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import * as HookSettings from "./HookSettings.ts"
import { Invocation, print } from "./Invocation.ts"
import { age, type Cell, paint, plain, table } from "./Output.ts"
import * as SettingsFile from "./SettingsFile.ts"

export interface Input {
  readonly action: "install" | "uninstall" | "status"
  readonly project: boolean
  readonly user: boolean
  /** Undefined: as it is written there, and off where nothing is. */
  readonly approvals: boolean | undefined
}

/** Seconds that a person has after the last moment in which agentd could answer. */
const MARGIN_S = 10

const userFile = Effect.map(Effect.orDie(Config.option(Config.String("CLAUDE_CONFIG_DIR"))), (folder) =>
  NodePath.join(
    Option.getOrElse(folder, () => NodePath.join(homedir(), ".claude")),
    "settings.json"
  )
)

const projectFile = NodePath.resolve(".claude", "settings.local.json")

const git = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(ChildProcessSpawner.ChildProcessSpawner, (spawner) =>
    spawner.exitCode(ChildProcess.make("git", args, { stdout: "ignore", stderr: "ignore", stdin: "ignore" }))
  ).pipe(
    Effect.map(Number),
    // No git, no repository.
    Effect.orElseSucceed(() => 128)
  )

/** The file holds a token: one that the next `git add .` takes up is refused. */
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

const planOf = Effect.fnUntraced(function* (approvals: boolean) {
  const { paths } = yield* Invocation
  const config = yield* loadUser(paths.userConfig)
  if (!config.http.enabled) {
    return yield* new VerbFailed({
      message: "The daemon's TCP port is turned off, so Claude Code's hooks could not reach it.",
      remedy: `Set http.enabled to true in ${paths.userConfig}, then: agentd restart`,
      exitCode: ExitCode.config
    })
  }
  const token = yield* Tokens.read(paths.state, "hooks")
  const { script } = yield* Effect.mapError(
    Spool.prepare(paths.state),
    (error) =>
      new VerbFailed({
        message: `The hook's script cannot be written: ${error.message}`,
        remedy: "See that the state folder is yours: agentd doctor",
        exitCode: ExitCode.failed
      })
  )
  return {
    port: config.http.port,
    token,
    script,
    approvals: approvals ? Math.ceil(Duration.toSeconds(config.approvals.timeout)) + MARGIN_S : undefined
  } satisfies HookSettings.Plan
})

/** Says in words who answers permission requests. */
const answered = (approvals: boolean): string =>
  approvals
    ? "Permission requests can be answered with agentd approve and deny, too (--no-approvals turns that off)."
    : "Permission requests are answered in the sessions' own terminals only (--approvals lets agentd approve answer them)."

const install = Effect.fnUntraced(function* (input: Input) {
  const file = input.project ? projectFile : yield* userFile
  if (input.project) yield* checkIgnored(file)
  const approvals = input.approvals ?? HookSettings.find((yield* SettingsFile.read(file)).document.settings).approvals
  const plan = yield* planOf(approvals)
  const { backup, changed, settings } = yield* SettingsFile.install(file, plan)
  const obstacles = HookSettings.obstacles(settings, plan.port)
  yield* print({ file, changed, backup, approvals, obstacles }, () => [
    changed ? `The hooks are in ${file}.` : `The hooks were in ${file} already.`,
    answered(approvals),
    ...(backup === null ? [] : [`What was there before: ${backup}`]),
    ...obstacles.map((obstacle) => `But ${obstacle}.`),
    "Sessions that are open now take them up when they are started again. See who was heard from: agentd hooks status"
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

/** Reads the hooks of a settings file; an error says why it cannot be read. */
const writtenIn = Effect.fnUntraced(function* (scope: "user" | "project", file: string, port: number) {
  const found = yield* Effect.result(SettingsFile.read(file))
  if (found._tag === "Failure") return { scope, file, installed: false, problem: found.failure.message }
  const { settings } = found.success.document
  const { approvals, events, urls } = HookSettings.find(settings)
  const expected = `http://127.0.0.1:${port}`
  const missing = HookSettings.EVENTS.some((event) => !events.includes(event))
  const old = missing || urls.some((url) => !url.startsWith(`${expected}/`))
  const problems = [
    ...HookSettings.obstacles(settings, port),
    ...(old ? ["they are of another version or port: agentd hooks install brings them up to date"] : [])
  ]
  return {
    scope,
    file,
    installed: events.length > 0,
    approvals,
    problem: events.length === 0 || problems.length === 0 ? null : problems.join("; ")
  }
})

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
  const { http } = yield* loadUser(paths.userConfig)
  const written = [
    yield* writtenIn("user", yield* userFile, http.port),
    yield* writtenIn("project", projectFile, http.port)
  ]
  const script = yield* Effect.orElseSucceed(fs.exists(Spool.foldersOf(paths.state).script), () => false)
  const heard = yield* Effect.result(call(paths.socket, (client) => client.Plates({ all: false })))
  const now = yield* Clock.currentTimeMillis
  const sessions = heard._tag === "Success" ? heard.success : null
  yield* print({ written, script, sessions }, () => [
    ...written.map(({ approvals = false, file, installed, problem, scope }) => {
      const how = `installed, approvals ${approvals ? "on" : "off"},`
      const state = installed ? paint(colour, "green", how) : "not installed"
      return `${scope.padEnd(8)}${state} in ${file}${problem === null ? "" : `: ${paint(colour, "yellow", problem)}`}`
    }),
    "",
    ...(heard._tag === "Failure"
      ? [`Who was heard from cannot be told: ${heard.failure.message} ${heard.failure.remedy}`]
      : heard.success.length === 0
        ? [
            "No session was heard from yet. Start one, or look whether its folder is trusted: untrusted ones run no hooks."
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
