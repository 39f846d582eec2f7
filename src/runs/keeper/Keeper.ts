/**
 * Keeper: the daemon's side of the keeper, a small process that keeps programs running while daemons stop and start.
 *
 * A keeper has its own folder, `<folder>/<n>`, with a copy of its program. The newest keeper takes new programs. A
 * keeper that an older agentd started keeps its programs, accepts no new ones, and exits after the last one.
 *
 * Guarantees: A keeper is replaced if it died or hangs, or if another process has taken its socket or ownership. The
 * next keeper finds its programs. While no keeper can be reached, `trouble` says why. Programs from before this daemon
 * are known before any query about them is answered. If there can be no keeper, no program is held, and the log says
 * why. When the daemon ends, its keepers continue: they wait for the next daemon until the lease expires, or exit at
 * once if they hold no program.
 */
import { Clock, Context, Deferred, Duration, Effect, Latch, Layer, Result, Schema, type Scope, Semaphore } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Backoff from "../../core/supervision/Backoff.ts"
import { KeeperProgram } from "./KeeperProgram.ts"
import * as KeeperFile from "./KeeperFile.ts"
import { connect, type KeeperLink } from "./KeeperLink.ts"
import * as Proof from "./Proof.ts"
import { type Listed, type Tale, VERSION } from "./Protocol.ts"
import * as EndedPrograms from "./EndedPrograms.ts"
import * as SpawnScript from "./SpawnScript.ts"

/**
 * The program could not be started. `code`: the system's error code, "retired", or "keeper" if no keeper can be reached
 * now.
 */
export class NotHeld extends Schema.TaggedError<NotHeld>()("NotHeld", { code: Schema.String }) {}

export interface Wanted {
  /** Name of the program, never reused. It contains only letters, digits, and `_ . + -`. */
  readonly name: string
  readonly argv: ReadonlyArray<string>
  readonly cwd: string
  readonly env: { readonly [name: string]: string | undefined }
  /** True if the program reads no input: its input ends at once. */
  readonly isDeaf: boolean
  readonly handed: ReadonlyArray<Uint8Array>
  readonly limits?: SpawnScript.Limits | undefined
}

/** A command line that is put in front of another one, with the environment variables that it needs. */
export interface Via {
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

export interface KeeperOptions {
  /** Folder that contains only the keepers; created with mode 0700. */
  readonly folder: string
  /** How long programs keep running without a daemon. */
  readonly lease: Duration.Duration
  /** The PATH in which a shell, `mkfifo` and `sleep` are searched. */
  readonly path: string
  /**
   * Starts a keeper in its own systemd unit with a delegated cgroup. A name is not reused while a unit with this name
   * is active.
   */
  readonly via?: ((name: string) => Via) | undefined
  /** Maximum size of the unread output in one stream, bytes. If it is reached, the program waits for the daemon. */
  readonly bound?: number | undefined
  /** Size after which a new output file is started, bytes. */
  readonly segment?: number | undefined
  /** How often a keeper that holds programs is checked, so that a hang is noticed. */
  readonly look?: Duration.Duration
}

export interface Keeper {
  /** How long programs keep running without a daemon. */
  readonly lease: Duration.Duration
  /** Whether there is a keeper. If not, programs are started without one. */
  readonly isThere: Effect.Effect<boolean>
  readonly spawn: (wanted: Wanted) => Effect.Effect<KeeperProgram, NotHeld>
  /** Takes over the program, if a keeper holds it and it has not been taken since the daemon started. */
  readonly take: (name: string) => Effect.Effect<KeeperProgram | undefined>
  /** Programs that an earlier daemon left and that have not been taken. */
  readonly left: Effect.Effect<ReadonlyArray<KeeperProgram>>
  /** Opened when all unwanted programs of an earlier daemon have ended. No program is started before that. */
  readonly settled: Latch.Latch
  /** Discards these programs when they have ended. Never ends a live program. */
  readonly forget: (which: (name: string) => boolean) => Effect.Effect<void>
  /** Announces that this daemon ends and another one follows. From then on, no program ends when its scope closes. */
  readonly leave: Effect.Effect<void>
  readonly isLeaving: () => boolean
  /** Why the keeper cannot be reached now although there should be one, and since when (ms since the epoch). */
  readonly trouble: () => Trouble | undefined
}

export interface Trouble {
  readonly message: string
  readonly since: number
}

const NONE: Keeper = {
  lease: Duration.zero,
  isThere: Effect.succeed(false),
  spawn: () => Effect.fail(new NotHeld({ code: "keeper" })),
  take: () => Effect.succeed(undefined),
  left: Effect.succeed([]),
  settled: Latch.makeUnsafe(true),
  forget: () => Effect.void,
  leave: Effect.void,
  isLeaving: () => false,
  trouble: () => undefined
}

/** The keeper; by default there is none, and programs end with the daemon. */
export const Keeper = Context.Reference<Keeper>("agentd/keeper/Keeper", { defaultValue: () => NONE })

export const layer = (options: KeeperOptions) => Layer.effect(Keeper, make(options))

/** Number of bytes of output after which a keeper is told how much has been read. */
const MARK = 1 << 20
/** Number of bytes of output between two checkpoints of a program. */
const WORTH = 4 << 20
/** Maximum length of a socket's path (`sun_path`) in bytes, without the final zero byte. */
const MAX_PATH_BYTES = 107
const START_LIMIT = 250
const LOOK = "20 millis"
const START_WAIT = "20 seconds"
const LOOK_AGAIN = Duration.seconds(30)
/** Delay before a keeper that has not answered yet is checked. */
const SOON = "2 seconds"
/** Maximum epoch for a keeper up to version 2. With a higher epoch, no later daemon could own that keeper. */
const MAX_OLDER = 2 ** 31
/**
 * Number of failed attempts to reach the keeper (about ten seconds in total) after which programs that have died count
 * as lost.
 */
const PATIENT = 8
const AGAIN: Backoff.Policy = { base: 20, factor: 2, cap: 10_000, jitter: 0 }

const onDisk = <A>(work: () => A): Effect.Effect<A, string> =>
  Effect.try({ try: work, catch: (cause) => (cause instanceof Error ? cause.message : String(cause)) })

const contentOf = (file: string): string => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

/** Whether the program is alive. Also true if the system cannot tell. */
const lives = ({ pid, start }: Pick<KeeperProgram, "pid" | "start">): boolean => {
  const stat = contentOf(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return contentOf("/proc/self/stat") === "" || (fields[0] !== "Z" && Number(fields[19]) === start)
}

/**
 * Kills the keeper of this folder. Finds the keeper by its command line, because the `pid` file can be damaged or
 * missing.
 */
const killed = (folder: string): void => {
  for (const name of fs.existsSync("/proc") ? fs.readdirSync("/proc") : []) {
    if (!/^\d+$/.test(name)) continue
    if (!contentOf(`/proc/${name}/cmdline`).split("\0").includes(path.join(folder, "keeper.mjs"))) continue
    try {
      process.kill(Number(name), "SIGKILL")
    } catch {
      // it has already ended
    }
  }
}

export interface Launched {
  /** Why the keeper could not start; undefined if it may be running. */
  failed: string | undefined
}

/**
 * A shell script that prepares the unit's cgroup for delegation. A cgroup that is divided must contain no process
 * itself, so the keeper moves into a child. The command in the remaining arguments gets the cgroup's path as its last
 * argument.
 */
const DELEGATED = [
  `while IFS=: read -r number _ name; do [ "$number" != 0 ] || own=$name; done </proc/self/cgroup`,
  "cgroup=",
  `for root in /sys/fs/cgroup /sys/fs/cgroup/unified`,
  `do [ ! -e $root/cgroup.procs ] || { mkdir -p "$root$own/keeper" && echo $$ >"$root$own/keeper/cgroup.procs" && cgroup=$root$own && break; }`,
  "done",
  // enabled one by one, so that a missing controller does not prevent the others
  `[ -z "$cgroup" ] || for one in memory pids cpu; do echo +$one >"$cgroup/cgroup.subtree_control"; done`,
  `exec "$@" "$cgroup"`
]
  .join("; ")
  .replaceAll("; do [", " ; do [")

/** Starts a keeper. `around`: the command that starts the keeper in a unit of its own; undefined for no unit. */
const launch = (
  folder: string,
  { bound, lease, path: PATH, segment }: KeeperOptions,
  around: Via | undefined
): Launched => {
  const file = path.join(folder, "keeper.mjs")
  const log = fs.openSync(path.join(folder, "log"), "a", 0o600)
  const settings = JSON.stringify({ lease: Duration.toMillis(lease), bound, segment })
  const words = [process.execPath, "--max-semi-space-size=1", "--disable-sigusr1", file, folder, settings]
  const [first = "", ...rest] =
    around === undefined ? words : [...around.argv, "/bin/sh", "-c", DELEGATED, "keeper", ...words]
  const env = { ...around?.env, PATH }
  const child = spawn(first, rest, { cwd: "/", env, detached: true, stdio: ["ignore", log, log] })
  const launched: Launched = { failed: undefined }
  child.on("error", ({ message }) => void (launched.failed = message))
  child.on("exit", (code) => {
    if (code !== 0) launched.failed = `${path.basename(first)} ended with ${code}: see ${path.join(folder, "log")}`
  })
  child.unref()
  fs.closeSync(log)
  return launched
}

/** Functions with which the keeper's processes and sockets are used. */
export interface Machinery {
  readonly connect: typeof connect
  readonly launch: typeof launch
  readonly killed: typeof killed
  readonly lives: typeof lives
  readonly script: typeof SpawnScript.of
}

/** By default, real processes and sockets; a simulation provides its own. */
export const Machinery = Context.Reference<Machinery>("agentd/keeper/Machinery", {
  defaultValue: () => ({ connect, launch, killed, lives, script: SpawnScript.of })
})

/** Manages the keepers of one folder, which run one after the other. */
class Home {
  readonly folder: string
  /** True if the keeper in this folder takes new programs. */
  isActive: boolean
  readonly up = Latch.makeUnsafe(false)
  /**
   * Completed when the keeper's programs have been listed once, or when it is clear that the keeper cannot be reached.
   */
  readonly known = Deferred.makeUnsafe<void>()
  readonly programs = new Map<string, KeeperProgram>()
  private readonly options: KeeperOptions
  private readonly machinery: Machinery
  keeper: number | undefined = undefined
  private current: KeeperLink | undefined = undefined
  private awaited: { readonly name: string; readonly tales: Array<Tale> } | undefined = undefined
  private isClosed = false
  /**
   * Epoch of this daemon. It is chosen only once: a daemon that was replaced by a newer one must not become owner
   * again.
   */
  private epoch: number | undefined = undefined
  trouble: Trouble | undefined = undefined
  /** True if the keeper has exited and no new one is needed: output is then read from its folder. */
  private isPast = false
  private launches = 0
  /** Programs that were discarded while there was no keeper. */
  private readonly forgotten = new Set<string>()
  /** Programs that no keeper manages any more. */
  private readonly recorded = new Set<string>()

  readonly mark: number
  readonly worth: number

  constructor(folder: string, isActive: boolean, options: KeeperOptions, machinery: Machinery) {
    this.folder = folder
    this.isActive = isActive
    this.options = options
    this.machinery = machinery
    this.mark = Math.min(MARK, (options.bound ?? MARK * 4) / 4)
    this.worth = options.segment ?? WORTH
  }

  readonly link: Effect.Effect<KeeperLink> = Effect.suspend(() =>
    this.current === undefined ? Effect.andThen(this.up.await, this.link) : Effect.succeed(this.current)
  )

  folderOf(name: string): string {
    return path.join(this.folder, "runs", name)
  }

  private heard(tale: Tale): void {
    const known = this.programs.get(tale.run)
    if (known !== undefined) known.heard(tale)
    else if (tale.run === this.awaited?.name) this.awaited.tales.push(tale)
  }

  /** Collects messages about this program until the program is known. */
  awaits(name: string): void {
    this.awaited = { name, tales: [] }
  }

  begun(held: KeeperProgram): void {
    held.isTaken = true
    this.programs.set(held.name, held)
    for (const tale of this.awaited?.tales ?? []) held.heard(tale)
    this.awaited = undefined
  }

  /** Connects to the keeper. Starts a keeper if none answers. */
  private readonly reach = Effect.gen({ self: this }, function* () {
    const { connect, launch } = this.machinery
    const socket = path.join(this.folder, "sock")
    const heard = (tale: Tale) => this.heard(tale)
    const found = yield* Effect.result(connect(socket, heard))
    if (Result.isSuccess(found)) return found.success
    // the socket file of a keeper that died would prevent the next one from listening
    yield* onDisk(() => {
      if (found.failure !== "ENOENT") fs.rmSync(socket, { recursive: true, force: true })
      fs.mkdirSync(this.folder, { recursive: true, mode: 0o700 })
      for (const [name, text] of Object.entries(KeeperFile.files()))
        fs.writeFileSync(path.join(this.folder, name), text, { mode: 0o600 })
    })
    const around = this.options.via?.(`${path.basename(this.folder)}-${process.pid}-${++this.launches}`)
    let launched = yield* onDisk(() => launch(this.folder, this.options, around))
    let isAround = around !== undefined
    for (let look = 0; look < START_LIMIT; look++) {
      yield* Effect.sleep(LOOK)
      const link = yield* Effect.result(connect(socket, heard))
      if (Result.isSuccess(link)) return link.success
      if (!isAround || launched.failed === undefined) continue
      yield* Effect.logWarning(
        `the keeper of runs has no unit of its own: ${launched.failed}. It is in the daemon's: runs may end with that`
      )
      isAround = false
      launched = yield* onDisk(() => launch(this.folder, this.options, undefined))
    }
    return yield* Effect.fail("it does not start")
  })

  /** Kills the keeper, so that the next attempt starts another. */
  private replace(link: KeeperLink, why: string): Effect.Effect<never, string> {
    link.close()
    this.machinery.killed(this.folder)
    // another process may be listening at this path
    const freed = onDisk(() => fs.rmSync(path.join(this.folder, "sock"), { recursive: true, force: true }))
    return Effect.andThen(freed, Effect.fail(why))
  }

  /**
   * Builds the hello for a keeper that has proved its identity. A keeper of an earlier version cannot prove it and is
   * trusted.
   */
  private readonly greeting = (link: KeeperLink, secret: string) =>
    Effect.gen({ self: this }, function* () {
      const nonce = Proof.nonce()
      const { epoch = -1, error, nonce: theirs = "", proof } = yield* link.ask({ op: "meet", nonce })
      if (error === "late") return yield* this.replace(link, "it does not answer")
      if (error !== undefined && error !== "hello first") return yield* Effect.fail(error)
      const isOlder = error !== undefined
      if (!isOlder && !Proof.isProof(proof, secret, "keeper", nonce, theirs, epoch))
        return yield* this.replace(link, "another process answers in its place")
      const last = isOlder ? Number(contentOf(path.join(this.folder, "epoch"))) || 0 : epoch
      this.epoch ??= Math.max(0, last) + 1
      const words = { op: "hello", epoch: this.epoch } as const
      if (!isOlder) return { ...words, proof: Proof.proofOf(secret, "daemon", theirs, this.epoch) }
      // with a higher epoch, this keeper would accept no later daemon
      const isBeyond = this.epoch > MAX_OLDER
      if (isBeyond) this.epoch = undefined
      return isBeyond ? yield* this.replace(link, "another process has taken it") : words
    })

  /**
   * Connects to the keeper, and takes over its list of programs. A keeper that does not answer is killed: the next one
   * finds its programs.
   */
  private readonly begin = Effect.gen({ self: this }, function* () {
    const link = yield* this.reach
    const greeting = yield* this.greeting(link, yield* onDisk(() => Proof.secretOf(this.options.folder)))
    const { error, pid, runs = [], version } = yield* link.ask(greeting)
    if (error !== undefined) {
      if (error === "late") return yield* this.replace(link, "it does not answer")
      // only this daemon uses the store, so another process has taken the keeper
      if (error === "fenced" && !("proof" in greeting)) {
        this.epoch = undefined
        return yield* this.replace(link, "another process has taken it")
      }
      link.close()
      return yield* Effect.fail(error === "fenced" ? "a newer daemon has it" : error)
    }
    if (version !== VERSION) this.isActive = false
    if (!this.isActive) link.tell({ op: "retire" })
    this.keeper = pid
    yield* Effect.tapError(
      onDisk(() => this.take(link, runs)),
      () => Effect.sync(() => link.close())
    )
    this.current = link
    link.ended = () => {
      this.current = undefined
      this.up.closeUnsafe()
    }
    this.up.openUnsafe()
    Deferred.doneUnsafe(this.known, Effect.void)
    return link
  })

  private take(link: KeeperLink, held: ReadonlyArray<Listed>): void {
    const recorded = EndedPrograms.of(this.folder, new Set(held.map(({ run }) => run)))
    for (const { run } of recorded) this.recorded.add(run)
    for (const run of this.forgotten) this.letGo(link, run)
    const listed = [...held, ...recorded].filter(({ run }) => !this.forgotten.has(run))
    this.forgotten.clear()
    const names = new Set(listed.map(({ run }) => run))
    for (const one of listed) {
      const known = this.programs.get(one.run)
      if (known === undefined) this.programs.set(one.run, new KeeperProgram(this, this.folderOf(one.run), one))
      else {
        known.listed(one)
        known.mark(link)
      }
    }
    for (const [name, one] of this.programs) if (!names.has(name)) one.lost()
  }

  /** Checks the keeper regularly, so that a hang is noticed even if there are no orders. */
  private watch(link: KeeperLink) {
    return Effect.forever(
      Effect.gen({ self: this }, function* () {
        yield* Effect.sleep(this.options.look ?? LOOK_AGAIN)
        if (this.programs.size === 0 && this.awaited === undefined) return
        yield* this.look(link)
      })
    )
  }

  /** Sends an order that can take long to answer. Meanwhile, the keeper must respond to checks. */
  asks(link: KeeperLink, order: Parameters<KeeperLink["ask"]>[0]) {
    const looks = Effect.andThen(Effect.delay(this.look(link), SOON), Effect.never)
    return Effect.raceFirst(link.ask(order, null), looks)
  }

  /** Checks the keeper. If it hangs, kills it and closes the connection. */
  look(link: KeeperLink) {
    return Effect.gen({ self: this }, function* () {
      const { error } = yield* link.ask({ op: "mark", run: "", out: 0, err: 0 })
      if (error !== "late") return
      yield* Effect.logWarning("the keeper does not answer: another one replaces it")
      this.machinery.killed(this.folder)
      link.close()
    })
  }

  /** Keeps a connection to the keeper open as long as the keeper is needed. */
  readonly life = Effect.gen({ self: this }, function* () {
    for (let failures = 0; !this.isClosed;) {
      const link = yield* Effect.catch(this.begin, (why) =>
        Effect.gen({ self: this }, function* () {
          this.trouble = { message: why, since: this.trouble?.since ?? (yield* Clock.currentTimeMillis) }
          if (failures > 0) yield* Effect.logWarning(`the keeper of runs cannot be reached: ${why}`)
          return undefined
        })
      )
      if (link === undefined) {
        if (failures > 2) Deferred.doneUnsafe(this.known, Effect.void)
        // no keeper will report that these programs have ended
        if (failures > PATIENT) for (const one of this.programs.values()) if (!this.machinery.lives(one)) one.lost()
        yield* Effect.sleep(Backoff.wait(AGAIN, ++failures))
        continue
      }
      failures = 0
      this.trouble = undefined
      yield* Effect.raceFirst(Deferred.await(link.gone), this.watch(link))
      link.ended()
      if (this.isClosed) return
      if (!this.isActive && this.programs.size === 0)
        return void fs.rmSync(this.folder, { recursive: true, force: true })
      this.isPast = !this.isActive && [...this.programs.values()].every(({ isWhole }) => isWhole)
      if (this.isPast) return
      yield* Effect.logWarning("the keeper has ended; another one replaces it. How runs ended meanwhile is unknown")
    }
  })

  private letGo(link: KeeperLink, run: string): void {
    if (this.recorded.delete(run)) EndedPrograms.clear(this.folder, run)
    else link.tell({ op: "forget", run })
  }

  /** Discards a program. If no keeper is connected now, the next keeper gets the order. */
  forget(held: KeeperProgram): void {
    held.close()
    this.programs.delete(held.name)
    if (this.isPast) {
      if (this.programs.size === 0) fs.rmSync(this.folder, { recursive: true, force: true })
      else EndedPrograms.clear(this.folder, held.name)
    } else if (this.current === undefined) this.forgotten.add(held.name)
    else this.letGo(this.current, held.name)
  }

  /** Closes the connection. `isKept`: true if the next daemon will resume the programs. */
  close(isKept: boolean): void {
    this.isClosed = true
    const { current } = this
    if (!isKept && current !== undefined) for (const run of this.programs.keys()) this.letGo(current, run)
    current?.close()
  }
}

/** Finds the folders that may contain programs, and removes all others. */
const homesOf = (options: KeeperOptions, machinery: Machinery): ReadonlyArray<Home> => {
  const homeOf = (folder: string, isActive: boolean) => new Home(folder, isActive, options, machinery)
  fs.mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  const numbers = fs
    .readdirSync(options.folder)
    .map(Number)
    .filter((number) => Number.isInteger(number) && number > 0)
    .toSorted((a, b) => a - b)
  const files = Object.entries(KeeperFile.files())
  const homes: Array<Home> = []
  for (const number of numbers) {
    const folder = path.join(options.folder, `${number}`)
    const runs = path.join(folder, "runs")
    const holds = fs.existsSync(runs) && fs.readdirSync(runs).some((name) => !name.startsWith("slot-"))
    const isOurs = files.every(([name, text]) => contentOf(path.join(folder, name)) === text)
    if (holds || (isOurs && fs.existsSync(path.join(folder, "sock")))) homes.push(homeOf(folder, isOurs))
    else fs.rmSync(folder, { recursive: true, force: true })
  }
  const active = homes.findLast(({ isActive }) => isActive)
  for (const home of homes) home.isActive = home === active
  if (active !== undefined) return homes
  return [...homes, homeOf(path.join(options.folder, `${(numbers.at(-1) ?? 0) + 1}`), true)]
}

const make = Effect.fnUntraced(function* (options: KeeperOptions): Effect.fn.Return<Keeper, never, Scope.Scope> {
  const longest = path.join(options.folder, "999", "sock")
  if (Buffer.byteLength(longest) > MAX_PATH_BYTES) {
    yield* Effect.logWarning(
      `Runs end with the daemon: ${longest} has ${Buffer.byteLength(longest)} bytes and may have ${MAX_PATH_BYTES}. Choose a shorter state directory with --state DIR.`
    )
    return NONE
  }
  const machinery = yield* Machinery
  const homes = homesOf(options, machinery)
  for (const home of homes) yield* Effect.forkScoped(home.life)
  let isLeaving = false
  yield* Effect.addFinalizer(() => Effect.sync(() => homes.forEach((home) => home.close(isLeaving))))
  const active = homes.find(({ isActive }) => isActive)!
  const known = Effect.forEach(homes, (home) => Deferred.await(home.known), { discard: true })
  const one = Semaphore.makeUnsafe(1)
  const all = () => homes.flatMap((home) => [...home.programs.values()].map((held) => ({ home, held })))

  const link = Effect.timeoutOrElse(active.link, {
    duration: START_WAIT,
    orElse: () => Effect.fail(new NotHeld({ code: "keeper" }))
  })

  const spawn = Effect.fnUntraced(function* ({ argv, cwd, env, handed, isDeaf, limits, name }: Wanted) {
    const of = yield* link
    const words = Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const]))
    const made = machinery.script({ argv, cwd, env: Object.fromEntries(words), isDeaf, handed: handed.length, limits })
    if ("code" in made) return yield* new NotHeld({ code: made.code })
    const order = {
      op: "spawn",
      run: name,
      script: made.script,
      ...(handed.length === 0 ? {} : { handed: handed.map((bytes) => Buffer.from(bytes).toString("base64")) })
    } as const
    active.awaits(name)
    const { anchor, births, error, pid = 0, start = "" } = yield* active.asks(of, order)
    if (error !== undefined && error !== "gone") return yield* new NotHeld({ code: error })
    if (error === "gone") {
      // the program may have been started; the next keeper knows whether it was
      yield* link
      const held = active.programs.get(name)
      if (held === undefined) return yield* new NotHeld({ code: "keeper" })
      held.isTaken = true
      return held
    }
    const known = { ...(anchor === undefined ? {} : { anchor }), ...(births === undefined ? {} : { births }) }
    const listed = { run: name, pid, start, ...known, seq: 0, out: 0, err: 0, ended: false }
    const held = new KeeperProgram(active, active.folderOf(name), listed)
    active.begun(held)
    return held
  })

  const service: Keeper = {
    lease: options.lease,
    isThere: Effect.map(known, () => true),
    // uninterruptible, so that a started program is always registered
    spawn: (wanted) => one.withPermit(Effect.uninterruptible(spawn(wanted))),
    take: (name) =>
      Effect.map(known, () => {
        const held = all().find(({ held }) => held.name === name && !held.isTaken)?.held
        if (held !== undefined) held.isTaken = true
        return held
      }),
    left: Effect.map(known, () => all().flatMap(({ held }) => (held.isTaken ? [] : [held]))),
    settled: Latch.makeUnsafe(false),
    forget: (which) =>
      Effect.sync(() => {
        for (const { held, home } of all()) if (which(held.name)) home.forget(held)
      }),
    leave: Effect.sync(() => void (isLeaving = true)),
    isLeaving: () => isLeaving,
    trouble: () => homes.find(({ trouble }) => trouble !== undefined)?.trouble
  }
  return service
})
