/**
 * `agentd uninstall`: ends the daemon and removes the files that it has created on this machine.
 *
 * Guarantees: everything is listed before the question. Only names that agentd uses are removed, and only from a folder
 * that contains a store. A work tree with uncommitted or unmerged work is kept, with the files that it needs, and the
 * output says so.
 */
import { Effect, Option } from "effect"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import * as ToolSandbox from "../../runs/ToolSandbox.ts"
import { storageError } from "../../core/event-log/StorageFailure.ts"
import * as StoreLock from "../../core/event-log/StoreLock.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import * as Unit from "../../systemd/Unit.ts"
import { sizeOf } from "../daemon/Backup.ts"
import { confirm } from "../parse/Confirm.ts"
import * as DaemonLife from "../daemon/DaemonLife.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { folderBytes } from "./FolderBytes.ts"
import * as Hooks from "./Hooks.ts"
import * as Installed from "./Installed.ts"
import { Entry, Invocation, print, printLines } from "../parse/Invocation.ts"
import * as Service from "./Service.ts"
import * as UnusedFiles from "./UnusedFiles.ts"
import { count, plain } from "../render/Output.ts"

interface Input {
  readonly dryRun: boolean
  readonly yes: boolean
}

/** Matches the names that agentd uses in a state directory. */
const OURS =
  /^(runes\.db.*|failure-mailed\.json.*|before-.*\.tar\.zst|lock\.(db|json).*|daemon\.log.*|(control|http)\.sock|http-.*\.token|restore\.(part|json).*|replaced-.*|archive|caches|configs|damaged|files|gateway|goals|homes|hooks|hosts|keeper|logins|runs|segments|sessions|setups|sockets|store|waiting|worktrees)$/

const namesIn = (folder: string): ReadonlyArray<string> => (fs.existsSync(folder) ? fs.readdirSync(folder) : [])

/** Paths of the sockets that are not in the state directory. */
const socketsOf = (state: string, socket: string): ReadonlyArray<string> =>
  dirname(socket) === state
    ? []
    : namesIn(dirname(socket))
        .filter((name) => name.endsWith(".sock"))
        .map((name) => join(dirname(socket), name))

const looked = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const { state } = paths
  const names = namesIn(state)
  if (!names.includes("runes.db")) {
    return yield* new VerbFailed({
      message: `There are no files of agentd in ${state}.`,
      remedy: `Pass the right state directory with --state DIR. ${yield* Installed.removal}`,
      exitCode: ExitCode.failed
    })
  }
  const { kept } = yield* UnusedFiles.find({ state, before: Number.MAX_SAFE_INTEGER, agents: [] })
  const ours = names.filter((name) => OURS.test(name)).map((name) => join(state, name))
  const hooks = yield* Hooks.installedFor(state)
  return {
    items: [...ours, ...socketsOf(state, paths.socket)].map((path) => ({ path, bytes: folderBytes(path) })),
    hooks,
    kept,
    strange: names.filter((name) => !OURS.test(name)).map((name) => join(state, name))
  }
})
type Looked = Effect.Success<typeof looked>

const linesOf = ({ hooks, items, kept, strange }: Looked, daemon: string | undefined): ReadonlyArray<string> => [
  ...(daemon === undefined ? [] : [daemon]),
  ...items.map(({ bytes, path }) => `removes: ${plain(path)} (${sizeOf(bytes)})`),
  ...hooks.map((file) => `removes: agentd's hooks in ${plain(file)}`),
  ...kept.map(({ path, why }) => `keeps: ${plain(path)}: ${plain(why)}`),
  ...strange.map((path) => `keeps: ${plain(path)}: it does not belong to agentd`)
]

/** Lines about the files that this command does not remove, and how to remove them. */
const rest = (userConfig: string, program: string): ReadonlyArray<string> => [
  `Not removed: your own ${userConfig}, the agentd.jsonc of projects, branches agentd/… in your repositories.`,
  "If you added lines for completions or PATH to your shell's startup file, remove them yourself.",
  program
]

/**
 * The systemd unit that is still installed and would start the daemon again, with the command that disables it;
 * undefined if there is none.
 */
const unitLeft = Effect.gen(function* () {
  const { paths } = yield* Invocation
  if (paths.state === Unit.SYSTEM_STATE && (yield* Service.isInstalled(true))) {
    return { unit: "agentd", off: "sudo agentd service uninstall --system" }
  }
  const unit = Unit.unitName(paths.state, paths.defaultState)
  const status = yield* Unit.status(unit)
  if (Option.isNone(status)) return undefined
  if (status.value.state === "activating") yield* Unit.stop(unit)
  if (!status.value.installed) return undefined
  if (yield* Service.isInstalled(false)) return { unit, off: "agentd service uninstall" }
  const show = ["systemctl", "--user", "show", `${unit}.socket`, "--property=LoadState", "--value"]
  const isHeard = (yield* Unit.answer(show)) === "loaded"
  return { unit, off: `systemctl --user disable --now ${unit}.service${isHeard ? ` ${unit}.socket` : ""}` }
})

/** Removes a path and all files below it, except the work trees in `kept`. */
const removed = (path: string, kept: ReadonlyArray<string>): void => {
  if (kept.includes(path)) return
  if (kept.some((one) => one.startsWith(`${path}/`))) {
    for (const name of fs.readdirSync(path)) removed(join(path, name), kept)
    return
  }
  fs.rmSync(path, { recursive: true, force: true })
}

const emptied = (folder: string): void => {
  if (fs.existsSync(folder) && fs.readdirSync(folder).length === 0) fs.rmdirSync(folder)
}

const removing = Effect.fnUntraced(function* ({ items, kept }: Looked) {
  const { paths } = yield* Invocation
  const { state } = paths
  const stay = kept.map(({ path }) => path)
  yield* Effect.scoped(
    Effect.andThen(
      StoreLock.acquire({ folder: state, socket: null }),
      Effect.try({
        try: () => {
          for (const { path } of items) {
            // the folder "store" is kept if a work tree is kept, because the work tree needs its git folder there
            if (stay.length === 0 || path !== join(state, "store")) removed(path, stay)
          }
        },
        catch: (cause) => storageError(state, cause)
      })
    )
  )
  yield* Effect.sync(() => {
    for (const name of ["lock.db", "lock.db-journal", "lock.json"]) fs.rmSync(join(state, name), { force: true })
    if (dirname(paths.socket) !== state) emptied(dirname(paths.socket))
    emptied(state)
  })
})

const uninstalling = Effect.fnUntraced(function* ({ dryRun, yes }: Input) {
  const { json, paths } = yield* Invocation
  const running = (yield* probe(paths.socket)) === "live"
  const found = yield* looked
  const daemon = running ? "stops: the daemon, and all runs with it" : undefined
  const more = rest(paths.userConfig, yield* Installed.removal)
  if (dryRun) {
    return yield* print({ dryRun, running, ...found, removed: false }, () => [...linesOf(found, daemon), ...more])
  }
  if (!json) yield* printLines(linesOf(found, daemon))
  const bytes = found.items.reduce((sum, one) => sum + one.bytes, 0)
  yield* confirm(
    yes,
    `This ends agentd in ${paths.state} and permanently removes ${sizeOf(bytes)}, including the log. To make a copy first: agentd backup FILE.`,
    "Uninstall agentd?"
  )
  if (running) yield* DaemonLife.stop("agentd uninstall")
  const left = yield* unitLeft
  // look again, because agents might have worked until the daemon stopped
  const now = yield* looked
  yield* removing(now)
  yield* Effect.forEach(now.hooks, Hooks.takeOut)
  yield* print({ dryRun, running, ...now, removed: true, unit: left?.unit ?? null, off: left?.off ?? null }, () => [
    `Removed: ${count(now.items.length, "item")}.`,
    ...now.kept.map(({ path, why }) => `Kept: ${plain(path)}: ${plain(why)}`),
    ...(left === undefined
      ? []
      : [`The unit ${left.unit} is still installed, and would start the daemon again. To turn it off: ${left.off}`]),
    ...more
  ])
})

export const run = Effect.fnUntraced(function* (input: Input) {
  const { paths } = yield* Invocation
  const { env } = yield* Entry
  yield* Effect.provide(uninstalling(input), ToolSandbox.layer({ environment: env, hidden: [paths.state] }))
})
