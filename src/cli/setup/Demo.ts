/**
 * `agentd demo`: starts a separate daemon with scripted agents, to try the board, questions, a goal, a channel, and an
 * agent that stops for good. The demo runs until `agentd demo --stop`, or for an hour.
 *
 * Guarantees: the demo calls no model, sends no mail, and uses no setting, session or daemon of the user. All of its
 * files are in one folder that only its user can access and that is removed at the end; no process remains. A folder
 * that is not a demo's is neither used nor removed; if two demos start at once, one is refused.
 */
import { Duration, Effect, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { acquire, type StoreInUse } from "../../core/event-log/StoreLock.ts"
import * as PersonGit from "../../runs/git/PersonGit.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import * as DemoShop from "./DemoShop.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"

interface Input {
  readonly stop: boolean
}

/** The demo ends by itself after this number of checks, each after this many seconds. */
const LASTS = { looks: 720, seconds: 5 } as const
const WITHIN = Duration.minutes(2)
/** Name of the file that marks a folder as a demo's. */
const MARK = "agentd-demo"

const failed = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.failed })

const places = Effect.sync(() => {
  const { uid } = userInfo()
  const folder = join(tmpdir(), `agentd-demo-${uid}`)
  const state = join(folder, "state")
  return { folder, state, socket: join(state, "control.sock"), project: join(folder, "shop"), uid }
})
type Places = Effect.Success<typeof places>

/** Whether the demo's folder exists; fails if the folder belongs to another user, or is not a demo's. */
const isThere = Effect.fnUntraced(function* ({ folder, uid }: Places) {
  const found = yield* Effect.sync(() => fs.lstatSync(folder, { throwIfNoEntry: false }))
  if (found === undefined) return false
  const isOurs = found.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0
  if (isOurs && fs.existsSync(join(folder, MARK))) return true
  return yield* failed(
    `${folder} is there, and is no demo of yours.`,
    `Move it away, or choose another place: TMPDIR=DIR agentd demo`
  )
})

/** An environment without the user's settings, sessions and user manager. */
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

/** Runs a program to its end; fails with its error output. */
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
  const broken = (why: string) => failed(`The demo broke: ${why}`, "Start again: agentd demo --stop && agentd demo")
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

/** Runs agentd with the demo's state directory. */
const agentd = Effect.fnUntraced(function* (at: Places, ...args: ReadonlyArray<string>) {
  const { command } = yield* Entry
  yield* ran(at, [...command, "--state", at.state, ...args])
})

/** Starts a detached process that ends the demo after its time. The process exits when the demo is gone. */
const clock = Effect.fnUntraced(function* (at: Places, mark: string) {
  const { command, env } = yield* Entry
  const line = `i=0; while [ $i -lt ${LASTS.looks} ]; do sleep ${LASTS.seconds}; [ -e "$1" ] || exit 0; i=$((i+1)); done; shift; exec "$@"`
  const words = ["sh", "-c", line, "agentd-demo", mark, ...command, "demo", "--stop"]
  // setsid: the process outlives the terminal, and keeps none of its files open
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
    catch: (cause) => failed(`${at.folder} cannot be made: ${String(cause)}`, "See that there is room.")
  })
  const who = ["-c", "user.name=you", "-c", "user.email=you@example.org"]
  for (const words of [
    ["init", "-q", "-b", "main", "--template="],
    [...DemoShop.PLAIN_GIT, ...who, "commit", "-q", "--allow-empty", "-m", "first"]
  ]) {
    const { code, stderr } = yield* PersonGit.run(at.project, ...words)
    if (code !== 0)
      return yield* failed(`git ${words.at(0)}: ${plain(stderr)}`, "See that git works, then: agentd demo")
  }
})

/** Ends the daemon and its runs, then removes the folder. */
const ended = Effect.fnUntraced(function* (at: Places) {
  if ((yield* probe(at.socket)) === "live") yield* agentd(at, "stop", "--daemon", "--yes")
  yield* Effect.sync(() => fs.rmSync(at.folder, { recursive: true, force: true, maxRetries: 5 }))
})

/** Starts all parts; if one fails, removes all. The clock starts before the daemon, so that it always ends. */
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
  ["", "the board: who acts next; ? names its keys, q leaves"],
  ["ps", "the same as a list"],
  ["approve", "what waits for you: the builder asks before it writes"],
  ["attach shop/builder", "watch it, and talk to it; a message makes it write a page"],
  ["send shop/thinker --urgent 'Stop thinking.'", "an urgent message interrupts a run"],
  ["why shop/doomed", "why an agent was stopped for good"],
  ["goal watch shop/g1", "five tasks, two workers in branches of their own, a critic that sends one back"],
  ["goal merge shop/g1", "takes in what they made, once it is met"],
  ["channel join shop/counter", "two agents take turns; say something"],
  ["log --text -f", "everything, live"],
  ["open", "the same as a page in your browser"]
]

const linesOf = (at: Places, isNew: boolean): ReadonlyArray<string> => {
  const typed = TRY.map(([verb, shows]) => [`agentd --state ${at.state} ${verb}`.trim(), shows] as const)
  const width = Math.max(...typed.map(([command]) => command.length))
  return [
    `The demo ${isNew ? "runs" : "runs already"}: a daemon of its own in ${at.folder}, eight agents that are small scripts, a goal, a channel.`,
    `It asks no model and mails nobody. Its project is a git repository: cd ${at.project}`,
    "Try, in this terminal or others:",
    ...typed.map(([command, shows]) => `  ${command.padEnd(width)}  # ${shows}`),
    "End it: agentd demo --stop. It ends by itself within an hour, and leaves nothing behind."
  ]
}

/** Holds a lock until the scope closes: a demo that starts or ends must not remove what another one creates. */
const alone = ({ folder }: Places) => {
  const lock = `${folder}-lock`
  const others = ({ pid }: StoreInUse) =>
    failed(
      `Another agentd demo is beginning or ending${pid === null ? "" : ` (pid ${pid})`}. Nothing was done.`,
      "Wait a moment, then again: agentd demo"
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
      there ? `The demo has ended; ${folder} is gone.` : "No demo runs. Begin one: agentd demo"
    ])
  }
  const isNew = !there || (yield* probe(at.socket)) !== "live"
  if (isNew) {
    // remains of a demo that was running when the machine went down
    if (there) yield* ended(at)
    yield* begun(at)
  }
  yield* print({ folder, project, state, running: true, begun: isNew }, () => linesOf(at, isNew))
}, Effect.scoped)
