/**
 * SourceHooks: installs, removes and checks agentd's hooks in the settings of coding CLIs other than Claude Code.
 *
 * Guarantees: those of SettingsFile. With `all`, a CLI that was never started by this user is skipped: it has no
 * settings folder.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import * as HookCommand from "../../api/http/HookCommand.ts"
import * as SessionPlugin from "../../api/http/SessionPlugin.ts"
import * as Spool from "../../api/http/Spool.ts"
import * as StateFolder from "../../core/event-log/StateFolder.ts"
import * as Account from "../../config/Account.ts"
import type { SessionSource } from "../../plates/SessionSource.ts"
import { RECORDED_SOURCES, SESSION_SOURCES } from "../../plates/SessionSources.ts"
import { confirm } from "../parse/Confirm.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { diffLines } from "../projects/ConfigRows.ts"
import { Entry, Invocation, printLines } from "../parse/Invocation.ts"
import { paint, plain, table, type TableOptions } from "../render/Output.ts"
import * as HookScripts from "./HookScripts.ts"
import * as HookSettings from "./HookSettings.ts"
import * as PluginFile from "./PluginFile.ts"
import * as SettingsFile from "./SettingsFile.ts"

/** The result of a command for one CLI. */
export interface Done {
  readonly json: object
  readonly lines: ReadonlyArray<string>
}

const IDS = ["claude", ...SESSION_SOURCES.map(({ id }) => id), "all"]

const folderOf = Effect.fnUntraced(function* ({ file }: SessionSource) {
  const { env } = yield* Entry
  const named = file.variable === undefined ? undefined : env[file.variable]
  return named === undefined || named === "" ? NodePath.join(Account.home(), file.folder) : named
})

/** Whether each hook of the CLI is a file of its own. */
const hasScripts = ({ file }: SessionSource) => file.ending !== undefined

/** The settings file, or the folder of the scripts. */
const fileOf = (source: SessionSource) =>
  Effect.map(folderOf(source), (folder) => NodePath.join(folder, source.file.name))

/** The settings files, plugins and folders of scripts of all CLIs. They need not exist. */
export const files = Effect.forEach(SESSION_SOURCES, fileOf)

/** The folder without which the user has never started the CLI. */
const homeOf = (source: SessionSource) =>
  Effect.map(fileOf(source), (file) => NodePath.dirname(source.plugin ? NodePath.dirname(file) : file))

/** The CLIs that a name means, without Claude Code. */
export const named = Effect.fnUntraced(function* (agent: string) {
  const recorded = RECORDED_SOURCES.find(({ id }) => id === agent)
  if (recorded !== undefined) {
    return yield* new VerbFailed({
      message: `${recorded.name} needs no hooks: agentd reads what it writes about its sessions.`,
      remedy: "See what it tells: agentd hooks status",
      exitCode: ExitCode.usage
    })
  }
  if (!IDS.includes(agent)) {
    return yield* new VerbFailed({
      message: `agentd has no hooks for "${agent}".`,
      remedy: `Give --agent one of: ${IDS.join(", ")}`,
      exitCode: ExitCode.usage
    })
  }
  const fs = yield* FileSystem.FileSystem
  if (agent !== "all") return SESSION_SOURCES.filter(({ id }) => id === agent)
  return yield* Effect.filter(SESSION_SOURCES, (source) =>
    Effect.flatMap(homeOf(source), (folder) => Effect.orElseSucceed(fs.exists(folder), () => false))
  )
})

export const onlyUser = Effect.fail(
  new VerbFailed({
    message: "Only the hooks of Claude Code can be installed for one project.",
    remedy: "Run the command without --project",
    exitCode: ExitCode.usage
  })
)

const planOf = Effect.fnUntraced(function* (source: SessionSource) {
  const { paths } = yield* Invocation
  const { env } = yield* Entry
  const { hooks } = Spool.foldersOf(paths.state)
  const reporter = yield* HookCommand.reporter({ folder: hooks, socket: paths.http, path: env["PATH"] ?? "" })
  return { source, reporter } satisfies HookSettings.SourcePlan
})

/** The text of the CLI's plugin. */
const pluginOf = ({ id }: SessionSource) =>
  Effect.map(Invocation, ({ paths: { http: socket, state } }) => SessionPlugin.textOf(id, { socket, state }))

/** Whether the file contains agentd's hooks, and those that this agentd writes. */
const look = Effect.fnUntraced(function* (source: SessionSource, file: string) {
  if (source.plugin) {
    const { text } = yield* PluginFile.read(file)
    return { installed: text !== undefined, isCurrent: text === (yield* pluginOf(source)) }
  }
  const plan = yield* planOf(source)
  if (hasScripts(source)) return yield* HookScripts.find(file, plan)
  const { settings } = (yield* SettingsFile.read(file)).document
  return { installed: HookSettings.find(settings).events.length > 0, isCurrent: HookSettings.isCurrent(settings, plan) }
})

/** Shows how the file would change, and asks. A script needs --yes. `secret`: a text that is not shown; "" if none. */
export const agreed = (of: Pick<SessionSource, "id" | "name" | "plugin">, file: string, yes: boolean, secret = "") =>
  Effect.fnUntraced(function* (diff: ReadonlyArray<string>) {
    const { colour, json } = yield* Invocation
    const shown = diffLines(secret === "" ? diff : diff.map((line) => line.replaceAll(secret, "…")), colour)
    if (!json) yield* printLines([`${plain(file)}:`, ...shown])
    const remove = `agentd hooks uninstall${of.id === "claude" ? "" : ` --agent ${of.id}`}`
    const fact = of.plugin
      ? `${of.name} will report its sessions to agentd: it loads the plugin ${file}. ${remove} removes it.`
      : `${of.name} will report its sessions to agentd: agentd's hooks are added to ${file}. Everything else in the file stays as it is, and ${remove} removes them.`
    yield* confirm(yes, fact, of.plugin ? "Add the plugin?" : "Add the hooks?")
  })

/** Writes the scripts that all hooks run. */
export const writeScripts = Effect.fnUntraced(function* (state: string) {
  yield* StateFolder.check(state)
  yield* Effect.mapError(
    Spool.prepare(state),
    (error) =>
      new VerbFailed({
        message: `The hooks' scripts cannot be written: ${error.message}`,
        remedy: "Check that the state directory is yours: agentd doctor",
        exitCode: ExitCode.failed
      })
  )
})

export const install = Effect.fnUntraced(function* (source: SessionSource, yes: boolean) {
  const { paths } = yield* Invocation
  const file = yield* fileOf(source)
  yield* writeScripts(paths.state)
  const agrees = agreed(source, file, yes)
  const { backup, changed } = source.plugin
    ? yield* PluginFile.install(file, yield* pluginOf(source), agrees)
    : yield* (hasScripts(source) ? HookScripts : SettingsFile).install(file, yield* planOf(source), agrees)
  const lines = [
    changed ? `The hooks were added to ${file}.` : `The hooks were already in ${file}.`,
    ...(backup === null ? [] : [`A copy of the previous file: ${backup}`]),
    ...(source.then === undefined ? [] : [source.then]),
    `Sessions of ${source.name} that are open use the hooks after a restart. What they can tell: agentd hooks status`
  ]
  return { json: { agent: source.id, file, changed, backup }, lines } satisfies Done
})

const removed = (changed: boolean, file: string): string =>
  changed ? `The hooks were removed from ${file}.` : `There were no agentd hooks in ${file}.`

export const uninstall = Effect.fnUntraced(function* (source: SessionSource) {
  const file = yield* fileOf(source)
  if (hasScripts(source)) {
    const { changed, kept } = yield* HookScripts.uninstall(file)
    return { json: { agent: source.id, file, changed, backup: null }, lines: [removed(changed, file), ...kept] }
  }
  const { changed, kept } = yield* source.plugin ? PluginFile.uninstall(file) : SettingsFile.uninstall(file)
  const lines = [
    removed(changed, file),
    ...(kept === null ? [] : [`The file has other changes since the install. A copy from before the install: ${kept}`])
  ]
  return { json: { agent: source.id, file, changed, backup: kept }, lines } satisfies Done
})

/** The state of the hooks in a CLI's settings, and what they tell. `problem`: null if there is none. */
export const status = Effect.forEach(
  SESSION_SOURCES,
  Effect.fnUntraced(function* (source) {
    const { id, name, tells, version } = source
    const file = yield* fileOf(source)
    const of = { agent: id, name, measured: version, file, tells }
    const found = yield* Effect.result(look(source, file))
    if (found._tag === "Failure") return { ...of, installed: false, problem: found.failure.message }
    const { installed, isCurrent } = found.success
    const problem =
      !installed || isCurrent
        ? null
        : `the hooks differ from those that this agentd writes. To update them: agentd hooks install --agent ${id}`
    return { ...of, installed, problem }
  })
)

/** The answers of the CLIs whose records are read, so that they need no hooks. */
export const recorded = RECORDED_SOURCES.map(({ id, name, tells, version }) => ({
  agent: id,
  name,
  measured: version,
  tells
}))

export const lines = (
  rows: Effect.Success<typeof status>,
  options: Pick<TableOptions, "colour" | "columns">
): ReadonlyArray<string> => [
  "",
  ...table(
    ["AGENT", "HOOKS", "FOUND BY", "WORKING, DONE", "NEEDS YOU", "ERROR"],
    [
      ...rows.map((row) => ({ ...row, hooks: row.problem ?? (row.installed ? "installed" : "not installed") })),
      ...recorded.map((row) => ({ ...row, hooks: "needs none" }))
    ].map(({ agent, hooks, tells }) => [
      { text: agent, colour: "bold" },
      { text: hooks },
      { text: tells.found },
      { text: tells.work },
      { text: tells.asks },
      { text: tells.error }
    ]),
    options
  ),
  ...(rows.every(({ installed }) => installed)
    ? []
    : [paint(options.colour, "dim", "To install: agentd hooks install --agent NAME (or: all)")])
]
