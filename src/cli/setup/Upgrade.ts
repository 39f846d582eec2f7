/**
 * `agentd upgrade FILE.tgz`: puts a package of agentd in the place of this one, and restarts the daemon into it. Runs
 * that the keeper holds go on meanwhile.
 *
 * Guarantees: it is shown and asked before anything is touched; the store is backed up and the package before is kept
 * beside; the new program has to answer as what it is, then the new daemon. Where anything fails, an interruption
 * included, the package before is in its place again and its daemon runs, or the words say what to type.
 */
import { Cause, Clock, Console, Duration, Effect, Exit, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import * as fs from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import * as ChildEnvironment from "../../runs/process/ChildEnvironment.ts"
import * as BackupFile from "../../backup/BackupFile.ts"
import { STORE } from "../../backup/Contents.ts"
import * as StateFolder from "../../core/event-log/StateFolder.ts"
import * as StoreCopy from "../../core/event-log/StoreCopy.ts"
import { acquire, holderOf } from "../../core/event-log/StoreLock.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import { VERSION } from "../../api/rpc/Version.ts"
import * as Unit from "../../systemd/Unit.ts"
import { sizeOf } from "../daemon/Backup.ts"
import { confirm } from "../parse/Confirm.ts"
import * as DaemonLife from "../daemon/DaemonLife.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { explain, told } from "../render/Explanation.ts"
import { VerbFailed } from "../parse/Failure.ts"
import * as Installed from "./Installed.ts"
import { Entry, hint, Invocation, print, printLines } from "../parse/Invocation.ts"
import { count, plain } from "../render/Output.ts"
import * as PackageFile from "./PackageFile.ts"
import * as Patience from "../parse/Patience.ts"
import { worldOf } from "../../config/Places.ts"
import { cutShort } from "../daemon/Restart.ts"
import * as Plan from "./UpgradePlan.ts"

interface Input {
  readonly file: string
  readonly dryRun: boolean
  readonly yes: boolean
}

/** npm may have to fetch what the package names. */
const NPM_WITHIN = Duration.minutes(10)
/** A program that only says who it is, or waits for a daemon with a long log. */
const PROGRAM_WITHIN = Duration.minutes(30)
const LOOK = "100 millis"
/** The end of what a program has said. */
const WORDS = 600

const failed = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.failed })

/** Words of a program that failed: those of a verb under --json are a value's. */
const wordsOf = (text: string): string => {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown }
    return typeof message === "string" ? message : text
  } catch {
    return text
  }
}

/** Runs a program to its end; fails, with its own words, unless it ends well. */
const ran = Effect.fnUntraced(function* (
  words: readonly [string, ...ReadonlyArray<string>],
  env: { readonly [name: string]: string | undefined },
  within: Duration.Duration
) {
  const [program, ...args] = words
  const said = words.map((word) => plain(word)).join(" ")
  const broken = (why: string) => failed(`${said}: ${why}`, "See what it says.")
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const answer = Effect.gen(function* () {
    const child = yield* spawner.spawn(
      ChildProcess.make(program, args, {
        cwd: "/",
        env,
        extendEnv: false,
        stdin: "ignore",
        forceKillAfter: "5 seconds"
      })
    )
    const text = (bytes: typeof child.stdout) => Stream.mkString(Stream.decodeText(bytes))
    return yield* Effect.all([child.exitCode, text(child.stdout), text(child.stderr)], { concurrency: "unbounded" })
  })
  const [code, stdout, stderr] = yield* answer.pipe(
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: within,
      orElse: () => Effect.fail(broken(`it did not end within ${Duration.toMinutes(within)} minutes`))
    }),
    Effect.catchTag("PlatformError", ({ message }) => Effect.fail(broken(message)))
  )
  if (Number(code) === 0) return stdout
  return yield* broken(plain(wordsOf(stderr.trim() || stdout.trim()).slice(-WORDS)) || `exit code ${code}`)
})

const isMine = (folder: string): boolean => {
  try {
    fs.accessSync(folder, fs.constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Fails unless npm has installed this program where this user may write, and the state folder is theirs. */
const place = Effect.fnUntraced(function* (file: string) {
  const { paths } = yield* Invocation
  const found = yield* Installed.installation
  const { root } = found
  if (found._tag === "Clone") {
    return yield* failed(
      `This agentd runs from a clone, ${root}: a package does not replace it.`,
      `Upgrade the clone: cd '${root}' && git pull && npm ci && agentd restart`
    )
  }
  if (found._tag === "Other") {
    return yield* failed(
      `This agentd, in ${root}, was not installed by npm install -g.`,
      "Upgrade it in the way that you have installed it, then: agentd restart"
    )
  }
  const { prefix } = found
  const install = `npm install -g --prefix '${prefix}' '${file}'`
  if (paths.state === Unit.SYSTEM_STATE && fs.existsSync(paths.state)) {
    return yield* failed(
      `The system's service runs as a user who may not write in ${prefix}, and root's files may not lie in its state folder.`,
      `Do it in three steps: sudo -u "$(stat -c %U ${paths.state})" agentd backup ${paths.state}/before.tar.zst && sudo ${install} && sudo systemctl restart agentd`
    )
  }
  yield* StateFolder.check(paths.state)
  if ([dirname(root), root, join(prefix, "bin")].every(isMine)) return { root, prefix }
  return yield* failed(
    `You may not write in ${prefix}, where this agentd is installed.`,
    `Do it in three steps: agentd backup before.tar.zst && sudo ${install} && agentd restart`
  )
})

const stampOf = (at: number): string => new Date(at).toISOString().slice(0, 19).replaceAll(":", "-")

/** No other upgrade of the same package until the scope closes: two would keep, and put back, each other's halves. */
const alone = (root: string) =>
  Effect.catchTag(acquire({ folder: Plan.lockAt(root), socket: null }), "StoreInUse", ({ pid }) =>
    failed(
      `Another agentd upgrade of ${root} is under way${pid === null ? "" : ` (pid ${pid})`}. Nothing was done.`,
      "Wait until it is over, then look: agentd --version"
    )
  )

/** All that is known before anything is touched. */
const looked = Effect.fnUntraced(function* (given: string) {
  const { paths } = yield* Invocation
  const file = resolve(given)
  const { prefix, root } = yield* place(file)
  const offered = yield* PackageFile.read(file)
  // while another upgrade works, it may be away
  const own = fs.existsSync(join(root, "package.json"))
    ? PackageFile.manifestIn(fs.readFileSync(join(root, "package.json"), "utf8"))
    : VERSION
  const from = typeof own === "string" ? VERSION : own.version
  const store = fs.existsSync(join(paths.state, STORE)) ? yield* StoreCopy.facts(join(paths.state, STORE)) : undefined
  const isLive = (yield* probe(paths.socket)) === "live"
  const status = isLive ? yield* DaemonLife.status(paths.socket) : yield* DaemonLife.comesBack(paths, true)
  const daemon = status?.daemon
  if (daemon !== undefined) yield* DaemonLife.checkStart
  const [node, platform] = [process.version, `${process.platform}-${process.arch}`]
  const { state } = paths
  const objection = Plan.objectionTo({ from, offered, state, schema: store?.schema, node, platform })
  if (objection !== undefined) return yield* failed(objection.message, objection.remedy)
  const to = offered.version
  const backup = join(state, `before-${to}-${stampOf(yield* Clock.currentTimeMillis)}.tar.zst`)
  return {
    file,
    prefix,
    root,
    offered,
    from,
    to,
    store,
    daemon: daemon === undefined ? undefined : { pid: daemon.pid, version: daemon.version },
    backup: store === undefined ? undefined : backup,
    kept: Plan.keptAt(root, from),
    link: join(prefix, "bin", "agentd"),
    command: join(root, offered.bin)
  }
})
type Looked = Effect.Success<ReturnType<typeof looked>>

/** No package has a say while it is installed: its program is asked who it is, after that. */
const npmOf = ({ file, prefix }: Looked): readonly [string, ...ReadonlyArray<string>] => [
  "npm",
  "install",
  "--global",
  `--prefix=${prefix}`,
  "--ignore-scripts",
  "--no-audit",
  "--no-fund",
  "--no-update-notifier",
  "--loglevel=error",
  file
]

const planOf = (it: Looked, cut: string | undefined): ReadonlyArray<string> => {
  const { backup, daemon, file, from, kept, offered, prefix, store, to } = it
  const needs = Object.keys(offered.needs)
  const forward = store !== undefined && offered.schema !== undefined && offered.schema > store.schema
  return [
    `agentd ${from} → ${to}${from === to ? " (the same version, packed anew)" : ""}: ${plain(file)}`,
    ...(backup === undefined ? [] : [`backs up: the store, ${count(store?.head ?? 0, "rune")}, to ${plain(backup)}`]),
    `keeps: the agentd of now, in ${plain(kept)}`,
    `installs: npm install -g --prefix ${plain(prefix)}${needs.length === 0 ? "" : `, which fetches ${plain(needs.join(", "))}`}`,
    ...(forward ? [`brings forward: the store, from schema ${store.schema} to ${offered.schema}`] : []),
    daemon === undefined
      ? "restarts nothing: no daemon runs"
      : `restarts: the daemon (pid ${daemon.pid}, agentd ${daemon.version}); runs that it holds go on`,
    ...(cut === undefined ? [] : [cut])
  ]
}

/** A copy, whole or not there. */
const keep = ({ kept, root }: Looked): void => {
  fs.rmSync(`${kept}.part`, { recursive: true, force: true })
  fs.cpSync(root, `${kept}.part`, {
    recursive: true,
    verbatimSymlinks: true,
    preserveTimestamps: true,
    mode: fs.constants.COPYFILE_FICLONE
  })
  fs.rmSync(kept, { recursive: true, force: true })
  fs.renameSync(`${kept}.part`, kept)
}

/** As npm calls a package that it has moved aside; one that was killed leaves it. */
const RETIRED = /^\.agentd-[A-Za-z0-9_-]{8}$/

/** The package before, in its place; what was there goes. */
const putBack = ({ kept, link, root }: Looked, target: string | undefined): void => {
  const aside = `${kept}.failed`
  fs.rmSync(aside, { recursive: true, force: true })
  if (fs.existsSync(root)) fs.renameSync(root, aside)
  fs.renameSync(kept, root)
  fs.rmSync(aside, { recursive: true, force: true })
  const modules = dirname(root)
  for (const name of fs.readdirSync(modules))
    if (RETIRED.test(name)) fs.rmSync(join(modules, name), { recursive: true, force: true })
  if (target === undefined || linkOf(link) === target) return
  fs.rmSync(link, { force: true })
  fs.symlinkSync(target, link)
}

const linkOf = (link: string): string | undefined => {
  try {
    return fs.readlinkSync(link)
  } catch {
    return undefined
  }
}

const attempt = (what: string, work: () => void) =>
  Effect.try({
    try: work,
    catch: (cause) =>
      failed(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, "See that there is room.")
  })

/** The new program, asked in this world; its answer is one JSON value. */
const asked = Effect.fnUntraced(function* ({ command }: Looked, verb: string) {
  const { paths } = yield* Invocation
  const world = worldOf(paths)
  const words = [command, ...(world === null ? [] : ["--state", world]), "--json", verb] as const
  const text = yield* ran(words, (yield* Entry).env, PROGRAM_WITHIN)
  return yield* Effect.try({
    try: () => JSON.parse(text) as { readonly version?: unknown; readonly pid?: unknown; readonly daemon?: unknown },
    catch: () => failed(`agentd ${verb} of the new program said no JSON: ${plain(text.slice(0, WORDS))}`, "")
  })
})

/** How far it came; what is done is undone by it. */
interface Progress {
  replaced: boolean
  stopped: boolean
}

/** Begins the new daemon, and returns once that is ready. */
const begun = Effect.fnUntraced(function* (it: Looked) {
  const { json, paths } = yield* Invocation
  const { pid, version } = yield* asked(it, "start")
  if (version !== it.to) {
    return yield* failed(`the daemon that answers is agentd ${plain(String(version))}, not ${it.to}`, "")
  }
  const isReady = Effect.map(
    asked(it, "status"),
    ({ daemon }) => typeof daemon === "object" && daemon !== null && "phase" in daemon && daemon.phase === "ready"
  )
  const ready: Effect.Effect<void, Effect.Error<typeof isReady>, Effect.Services<typeof isReady>> = Effect.flatMap(
    isReady,
    (is) => (is ? Effect.void : Effect.andThen(Effect.sleep(LOOK), ready))
  )
  yield* Effect.raceFirst(
    ready,
    Effect.andThen(
      Patience.untilIdle(paths.state, json),
      Effect.fail(failed("the new daemon answers, and does not get ready", ""))
    )
  )
  return Number(pid)
})

const advanced = Effect.fnUntraced(function* (
  it: Looked,
  progress: Progress,
  tell: (text: string) => Effect.Effect<void>
) {
  const { paths } = yield* Invocation
  const { backup, daemon, to } = it
  if (backup !== undefined) {
    yield* tell("Backing up the store …")
    yield* BackupFile.make({ state: paths.state, file: backup, force: false, version: VERSION, progress: () => {} })
  }
  yield* tell("Keeping the agentd of now …")
  yield* attempt(`${it.kept} could not be made`, () => keep(it))
  yield* tell(`Installing agentd ${to} …`)
  progress.replaced = true
  const { env } = yield* Entry
  const npms = ChildEnvironment.given(env, { passEnv: Object.keys(env).filter((name) => /^npm_/i.test(name)) })
  yield* ran(npmOf(it), npms, NPM_WITHIN)
  const said = (yield* ran([it.command, "--version"], env, PROGRAM_WITHIN)).trim()
  if (said !== `agentd v${to}`) return yield* failed(`the new program says that it is "${plain(said)}"`, "")
  if (daemon === undefined) return undefined
  yield* tell(`Restarting the daemon (pid ${daemon.pid}) …`)
  progress.stopped = true
  yield* DaemonLife.stop("agentd upgrade", true)
  return yield* begun(it)
})

/** Ends a new daemon that is not well: what it holds goes on. */
const endNew = Effect.gen(function* () {
  const { paths } = yield* Invocation
  // where systemd listens somebody is always there: one that has the store is a daemon
  if (holderOf(paths.state) === undefined || (yield* probe(paths.socket)) !== "live") return
  const stopping = DaemonLife.stop("agentd upgrade: back", true)
  yield* Effect.catch(stopping, () =>
    Effect.sync(() => {
      // it speaks otherwise, or hangs; the keeper holds the runs
      const pid = holderOf(paths.state)?.pid
      if (pid !== undefined) process.kill(pid, "SIGKILL")
    })
  )
})

/** The daemon before, again; in words what became of it. */
const begunAgain = Effect.fnUntraced(function* (it: Looked) {
  const { paths } = yield* Invocation
  yield* endNew
  const now = it.store === undefined ? undefined : yield* StoreCopy.facts(join(paths.state, STORE))
  if (now !== undefined && now.schema > (it.store?.schema ?? 0)) {
    return yield* failed(
      `The store has been brought to schema ${now.schema} already, which agentd ${it.from} does not read.`,
      `Put the backup in its place, and go on: agentd restore '${it.backup}' --yes && agentd start`
    )
  }
  const { status } = yield* DaemonLife.start(yield* Clock.currentTimeMillis)
  return `its daemon runs again (pid ${status.daemon.pid})`
})

/** Undoes what was done, and fails with the words for it. */
const undone = Effect.fnUntraced(function* (it: Looked, progress: Progress, target: string | undefined, why: string) {
  const { from, to } = it
  const was = `agentd ${to} is not in force: ${why.replace(/\.$/, "")}.`
  if (!progress.replaced) return yield* failed(`${was} Nothing was replaced.`, "Mend it, then try again.")
  const back = yield* Effect.exit(attempt(`${it.root} could not be put back`, () => putBack(it, target)))
  if (Exit.isFailure(back)) {
    const { message } = explain(Cause.squash(back.cause))
    return yield* failed(
      `${was} And ${message}.`,
      `Put it back yourself: rm -rf '${it.root}' && mv '${it.kept}' '${it.root}' && agentd restart`
    )
  }
  const again = progress.stopped ? yield* Effect.exit(begunAgain(it)) : Exit.succeed("its daemon ran on")
  if (Exit.isFailure(again)) {
    const { message, remedy } = explain(Cause.squash(again.cause))
    return yield* failed(`${was} agentd ${from} is in its place again, and its daemon does not run: ${message}`, remedy)
  }
  const daemon = it.daemon === undefined ? "" : `, and ${again.value}`
  return yield* failed(
    `${was} agentd ${from} is in its place again${daemon}.`,
    it.backup === undefined ? "Nothing was lost." : `Nothing was lost: agentd status. The backup stays: ${it.backup}`
  )
})

/** Only the newest one that was kept stays. */
const tidied = ({ kept }: Looked) =>
  Effect.sync(() => {
    for (const name of fs.readdirSync(dirname(kept)))
      if (Plan.isKept(name) && name !== basename(kept))
        fs.rmSync(join(dirname(kept), name), { recursive: true, force: true })
  })

/** The words of a failure, where an interruption hides it. */
const said = Effect.fnUntraced(function* (failure: VerbFailed) {
  const { json } = yield* Invocation
  yield* Console.error(told({ ...explain(failure), remedy: yield* hint(failure.remedy) }, json))
})

const upgraded = Effect.fnUntraced(function* (it: Looked) {
  const { columns, json } = yield* Invocation
  const tell = (text: string) => (columns !== null && !json ? Console.error(text) : Effect.void)
  const progress: Progress = { replaced: false, stopped: false }
  const target = linkOf(it.link)
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(advanced(it, progress, tell)))
      if (Exit.isSuccess(exit)) return exit.value
      if (progress.replaced) yield* tell(`Putting agentd ${it.from} back …`)
      const isInterrupted = Cause.hasInterruptsOnly(exit.cause)
      const why = isInterrupted ? "it was interrupted" : explain(Cause.squash(exit.cause)).message
      const failing = undone(it, progress, target, why)
      return yield* isInterrupted ? Effect.andThen(Effect.catch(failing, said), Effect.interrupt) : failing
    })
  )
})

export const run = Effect.fnUntraced(function* ({ dryRun, file, yes }: Input) {
  const { json } = yield* Invocation
  const it = yield* looked(file)
  const { backup, daemon, from, kept, prefix, root, to } = it
  const cut = daemon === undefined ? undefined : yield* cutShort
  const lines = planOf(it, cut)
  const facts = { file: it.file, from, to, prefix, schema: it.store?.schema ?? null, reads: it.offered.schema ?? null }
  if (dryRun) return yield* print({ ...facts, dryRun, daemon: daemon ?? null, upgraded: false }, () => lines)
  if (!json) yield* printLines(lines)
  yield* confirm(yes, `Replaces agentd ${from} in ${root} by ${to}.`, "Upgrade it?")
  yield* alone(root)
  if ((yield* looked(file)).from !== from) {
    return yield* failed(
      `Another upgrade has replaced agentd ${from} meanwhile. Nothing was done.`,
      "Look: agentd --version"
    )
  }
  const pid = yield* upgraded(it)
  yield* tidied(it)
  const back = yield* hint(`rm -rf '${root}' && mv '${kept}' '${root}' && agentd restart`)
  const isForward = it.store !== undefined && (it.offered.schema ?? 0) > it.store.schema
  yield* print(
    {
      ...facts,
      dryRun,
      upgraded: true,
      backup: backup ?? null,
      kept,
      daemon: pid === undefined ? null : { pid, version: to }
    },
    () => [
      `agentd ${to} is installed${pid === undefined ? ". No daemon ran: agentd start" : `, and its daemon answers (pid ${pid}).`}`,
      ...(backup === undefined ? [] : [`The store as it was: ${backup} (${sizeOf(fs.statSync(backup).size)}).`]),
      ...(isForward ? [`The agentd before: ${kept}`] : [`The way back: ${back}`])
    ]
  )
}, Effect.scoped)
