/**
 * `agentd demo`: starts a separate daemon with scripted agents, with which a user can try the board, questions, a goal,
 * a channel, and an agent that stops permanently. The demo runs until `agentd demo --stop`, or for an hour.
 *
 * Guarantees: the demo calls no model, sends no mail, and uses no setting, session or daemon of the user. All its files
 * are in one folder, which only its user can access, and which is removed at the end. All its processes are ended, too.
 * A folder that does not belong to a demo is neither used nor removed. If two demos start at the same time, one of them
 * fails.
 */
import { Duration, Effect, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { acquire, type StoreInUse } from "../../core/event-log/StoreLock.ts"
import * as UserGit from "../../runs/git/UserGit.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import * as DemoShop from "./DemoShop.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"

interface Input {
  readonly stop: boolean
}

/** Length of the demo: number of checks, and seconds before each check. */
const LASTS = { looks: 720, seconds: 5 } as const
const WITHIN = Duration.minutes(2)
/** Name of the file that marks the folder of a demo. */
const MARK = "agentd-demo"

const failed = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.failed })

const places = Effect.sync(() => {
  const uid = process.getuid?.() ?? 0
  const folder = join(tmpdir(), `agentd-demo-${uid}`)
  const state = join(folder, "state")
  return { folder, state, socket: join(state, "control.sock"), project: join(folder, "shop"), uid }
})
type Places = Effect.Success<typeof places>

/** True if the demo's folder exists. Fails if the folder belongs to another user, or does not belong to a demo. */
const isThere = Effect.fnUntraced(function* ({ folder, uid }: Places) {
  const found = yield* Effect.sync(() => fs.lstatSync(folder, { throwIfNoEntry: false }))
  if (found === undefined) return false
  const isOurs = found.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0
  if (isOurs && fs.existsSync(join(folder, MARK))) return true
  return yield* failed(
    `${folder} already exists, but is not a demo of yours.`,
    `Move the folder away, or use another one: TMPDIR=DIR agentd demo`
  )
})

/** The environment without the user's settings, sessions and systemd user manager. */
const environmentOf = ({ folder }: Places, env: { readonly [name: string]: string }) => {
  const { AGENTD_RUN: _run, DBUS_SESSION_BUS_ADDRESS: _bus, XDG_RUNTIME_DIR: _runtime, ...rest } = env
  return {
    ...rest,
    DEMO_FOLDER: folder,
    NO_COLOR: "1",
    XDG_CONFIG_HOME: join(folder, "config"),
    CLAUDE_CONFIG_DIR: join(folder, "claude"),
    CODEX_HOME: join(folder, "codex")
  }
}

/** Runs a program. If the program fails, the error contains its error output. */
const ran = Effect.fnUntraced(function* (at: Places, [program = "", ...args]: ReadonlyArray<string>) {
  const { env } = yield* Entry
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const cwd = fs.existsSync(at.project) ? at.project : "/"
  const options = {
    cwd,
    env: environmentOf(at, env),
    extendEnv: false,
    stdin: "ignore",
    forceKillAfter: "5 seconds"
  } as const
  const broken = (why: string) => failed(`The demo failed: ${why}`, "Start it again: agentd demo --stop && agentd demo")
  const said = Effect.gen(function* () {
    const child = yield* spawner.spawn(ChildProcess.make(program, args, options))
    const text = (bytes: typeof child.stdout) => Stream.mkString(Stream.decodeText(bytes))
    return yield* Effect.all([child.exitCode, text(child.stdout), text(child.stderr)], { concurrency: "unbounded" })
  })
  const [code, , stderr] = yield* said.pipe(
    Effect.scoped,
    Effect.timeoutOrElse({ duration: WITHIN, orElse: () => Effect.fail(broken(`${program} did not end`)) }),
    Effect.catchTag("PlatformError", ({ message }) => Effect.fail(broken(message)))
  )
  if (Number(code) !== 0) return yield* broken(plain(stderr.trim()))
})

const agentd = Effect.fnUntraced(function* (at: Places, ...args: ReadonlyArray<string>) {
  const { command } = yield* Entry
  yield* ran(at, [...command, "--state", at.state, ...args])
})

/** Starts a detached process that ends the demo after an hour. If the demo ends earlier, the process exits. */
const clock = Effect.fnUntraced(function* (at: Places, mark: string) {
  const { command, env } = yield* Entry
  const line = `i=0; while [ $i -lt ${LASTS.looks} ]; do sleep ${LASTS.seconds}; [ -e "$1" ] || exit 0; i=$((i+1)); done; shift; exec "$@"`
  const words = ["sh", "-c", line, "agentd-demo", mark, ...command, "demo", "--stop"]
  // with setsid, the process continues when the terminal is closed, and does not keep the terminal's files open
  yield* ran(at, ["sh", "-c", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "sh", ...words]).pipe(
    Effect.provideService(Entry, { ...(yield* Entry), env })
  )
})

const laidOut = Effect.fnUntraced(function* (at: Places) {
  yield* Effect.try({
    try: () => {
      fs.mkdirSync(at.folder, { mode: 0o700 })
      fs.writeFileSync(join(at.folder, MARK), "")
      fs.mkdirSync(at.project)
      fs.writeFileSync(join(at.folder, "agent.mjs"), DemoShop.AGENT)
      const config = DemoShop.configOf(process.execPath, join(at.folder, "agent.mjs"))
      fs.writeFileSync(join(at.project, "agentd.jsonc"), `${JSON.stringify(config, null, 2)}\n`)
      fs.writeFileSync(join(at.folder, "plan.json"), JSON.stringify(DemoShop.PLAN))
    },
    catch: (cause) => failed(`${at.folder} cannot be created: ${String(cause)}`, "Check that the disk has free space.")
  })
  const who = ["-c", "user.name=you", "-c", "user.email=you@example.org"]
  for (const words of [
    ["init", "-q", "-b", "main", "--template="],
    [...DemoShop.PLAIN_GIT, ...who, "commit", "-q", "--allow-empty", "-m", "first"]
  ]) {
    const { code, stderr } = yield* UserGit.run(at.project, ...words)
    if (code !== 0)
      return yield* failed(`git ${words.at(0)}: ${plain(stderr)}`, "Check that git works, then run: agentd demo")
  }
})

/** Ends the daemon and its runs, then removes the folder. */
const ended = Effect.fnUntraced(function* (at: Places) {
  if ((yield* probe(at.socket)) === "live") yield* agentd(at, "stop", "--daemon", "--yes")
  yield* Effect.sync(() => fs.rmSync(at.folder, { recursive: true, force: true, maxRetries: 5 }))
})

/**
 * Starts all parts of the demo. If one part fails, everything is removed. The detached process that ends the demo is
 * started before the daemon, so that the demo always ends.
 */
const begun = Effect.fnUntraced(
  function* (at: Places) {
    yield* laidOut(at)
    const mark = join(at.folder, `until-${randomBytes(6).toString("hex")}`)
    yield* Effect.sync(() => fs.writeFileSync(mark, ""))
    yield* clock(at, mark)
    yield* agentd(at, "start")
    yield* agentd(at, "send", "builder", "Write a page.")
    yield* agentd(at, "send", "thinker", "Think about everything.")
    yield* agentd(at, "goal", "Open a shop", "--plan", join(at.folder, "plan.json"))
    yield* agentd(at, "channel", "post", "counter", "When do we open?")
  },
  (begins, at) => Effect.onError(begins, () => Effect.ignore(ended(at)))
)

const TRY: ReadonlyArray<readonly [command: string, shows: string]> = [
  ["", "open the board; ? lists its keys, q leaves"],
  ["ps", "print the board as a list"],
  ["approve", "list what waits for you: the builder asks before it writes a file"],
  ["attach shop/builder", "follow the builder, and send it messages; for each message it writes a page"],
  ["send shop/thinker --urgent 'Stop thinking.'", "interrupt a run with an urgent message"],
  ["why shop/doomed", "explain why an agent stopped permanently"],
  ["goal watch shop/g1", "watch five tasks, two workers in separate branches, and a critic that rejects one task"],
  ["goal merge shop/g1", "merge the work of the goal, when the goal is met"],
  ["channel join shop/counter", "join two agents that take turns, and post a message"],
  ["log --text -f", "follow everything live"],
  ["open", "open the board as a page in your browser"]
]

const linesOf = (at: Places, isNew: boolean): ReadonlyArray<string> => {
  const typed = TRY.map(([verb, shows]) => [`agentd --state ${at.state} ${verb}`.trim(), shows] as const)
  const width = Math.max(...typed.map(([command]) => command.length))
  return [
    `The demo ${isNew ? "is running" : "is already running"}: a separate daemon in ${at.folder}, eight agents that are small scripts, a goal, a channel.`,
    `It calls no model and sends no mail. Its project is a git repository: cd ${at.project}`,
    "Try these commands, in this terminal or another one:",
    ...typed.map(([command, shows]) => `  ${command.padEnd(width)}  # ${shows}`),
    "To end the demo: agentd demo --stop. It also ends by itself after an hour, and all its files are removed."
  ]
}

/**
 * Holds a lock until the scope closes, so that two demos that start or end at the same time do not remove each other's
 * files.
 */
const alone = ({ folder }: Places) => {
  const lock = `${folder}-lock`
  const others = ({ pid }: StoreInUse) =>
    failed(
      `Another agentd demo is starting or ending${pid === null ? "" : ` (pid ${pid})`}. Nothing was done.`,
      "Wait a moment, then try again: agentd demo"
    )
  return acquire({ folder: lock, socket: null }).pipe(
    Effect.catchTag("StoreInUse", others),
    Effect.andThen(Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(lock, { recursive: true, force: true }))))
  )
}

export const run = Effect.fnUntraced(function* ({ stop }: Input) {
  yield* Invocation
  const at = yield* places
  yield* alone(at)
  const there = yield* isThere(at)
  const { folder, project, state } = at
  if (stop) {
    if (there) yield* ended(at)
    return yield* print({ folder, running: false, removed: there }, () => [
      there ? `The demo has ended, and ${folder} was removed.` : "No demo is running. Start one: agentd demo"
    ])
  }
  const isNew = !there || (yield* probe(at.socket)) !== "live"
  if (isNew) {
    // remove the files of a demo that was running when the machine was switched off
    if (there) yield* ended(at)
    yield* begun(at)
  }
  yield* print({ folder, project, state, running: true, begun: isNew }, () => linesOf(at, isNew))
}, Effect.scoped)
