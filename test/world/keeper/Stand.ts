/**
 * Stand: real keepers with real programs, for tests: a folder of keepers, daemons' ends that come and go, and looks
 * at the machine. All that was started has ended when the scope closes.
 */
import { Context, Duration, Effect, Exit, Layer, Schedule, Scope } from "effect"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { KeeperProgram } from "../../../src/runs/keeper/KeeperProgram.ts"
import * as Keeper from "../../../src/runs/keeper/Keeper.ts"
import { connect, type KeeperLink } from "../../../src/runs/keeper/KeeperLink.ts"
import * as Proof from "../../../src/runs/keeper/Proof.ts"
import type { StreamName, Tale } from "../../../src/runs/keeper/Protocol.ts"
import { PATIENCE } from "../../support/Patience.ts"

export const PATH = process.env["PATH"] ?? ""

/** Looks again and again. */
export const until = (what: () => boolean): Effect.Effect<void> =>
  Effect.sync(what).pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("10 millis") }),
    Effect.timeoutOrElse({
      duration: PATIENCE,
      orElse: () => Effect.die(new Error(`it never came true: ${what}`))
    }),
    Effect.asVoid
  )

export const textOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

/** False for one that has ended and was not yet waited for. */
export const lives = (pid: number): boolean => {
  const stat = textOf(`/proc/${pid}/stat`)
  return stat !== "" && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2))
}

export const kill = (pid: number, signal: NodeJS.Signals = "SIGKILL"): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // it has ended
  }
}

/** Pids whose command line names the folder. */
export const namedIn = (folder: string): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => textOf(`/proc/${pid}/cmdline`).includes(folder) && lives(Number(pid)))
    .map(Number)

/** Processes of a session: a program's and its anchor's. */
export const session = (leader: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const stat = textOf(`/proc/${pid}/stat`)
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return Number(fields[3]) === leader && fields[0] !== "Z"
    })
    .map(Number)

const endings = (folder: string) =>
  Effect.gen(function* () {
    const homes = existsSync(folder) ? readdirSync(folder) : []
    const programs = homes
      .flatMap((home) => {
        const runs = join(folder, home, "runs")
        return existsSync(runs) ? readdirSync(runs).map((run) => textOf(join(runs, run, "meta"))) : []
      })
      .flatMap((meta) => /"pid":(\d+)/.exec(meta)?.[1] ?? [])
    for (let left = namedIn(folder); left.length > 0; left = namedIn(folder)) {
      left.forEach((pid) => kill(pid))
      yield* Effect.sleep("5 millis")
    }
    for (const leader of programs) session(Number(leader)).forEach((pid) => kill(pid))
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })

/** A folder for keepers of its own. */
export const stand = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "keeper-"))),
  endings
)

export interface Daemon {
  readonly keeper: Keeper.Keeper
  /** Ends in order. */
  readonly close: Effect.Effect<void>
  /** Ends its connections, and says nothing before. */
  readonly vanish: Effect.Effect<void>
}

type More = Partial<Keeper.KeeperOptions>

export const optionsOf = (folder: string, more: More = {}): Keeper.KeeperOptions => ({
  folder,
  lease: Duration.minutes(5),
  path: PATH,
  ...more
})

/** A daemon's end of the keepers in that folder. */
export const daemon = Effect.fnUntraced(function* (folder: string, more: More = {}) {
  const scope = yield* Scope.make()
  const close = Scope.close(scope, Exit.void)
  yield* Effect.addFinalizer(() => close)
  const context = yield* Layer.buildWithScope(Keeper.layer(optionsOf(folder, more)), scope)
  const keeper = Context.get(context, Keeper.Keeper)
  yield* keeper.isThere
  const result: Daemon = { keeper, close, vanish: Effect.andThen(keeper.leave, close) }
  return result
})

export const wanted = (
  name: string,
  argv: ReadonlyArray<string>,
  more: Partial<Keeper.Wanted> = {}
): Keeper.Wanted => ({
  name,
  argv,
  cwd: "/",
  env: { PATH },
  isDeaf: false,
  handed: [],
  ...more
})

/** A shell's script as a program. */
export const script = ({ keeper }: Daemon, name: string, text: string, more: Partial<Keeper.Wanted> = {}) =>
  keeper.spawn(wanted(name, ["/bin/sh", "-c", text], more))

/** All that it writes, to its end. */
export const whole = Effect.fnUntraced(function* (held: KeeperProgram, name: StreamName = "out") {
  const chunks: Array<Uint8Array> = []
  for (let chunk = yield* held.read(name); chunk !== undefined; chunk = yield* held.read(name)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
})

/** Reads until that text has come; hands out all that came. */
export const readUntil = Effect.fnUntraced(function* (held: KeeperProgram, wanted: string, name: StreamName = "out") {
  let text = ""
  while (!text.includes(wanted)) {
    const chunk = yield* held.read(name)
    if (chunk === undefined) return yield* Effect.die(new Error(`it ended with ${JSON.stringify(text.slice(-500))}`))
    text += Buffer.from(chunk).toString()
  }
  return text
})

export const homeOf = (folder: string, number = 1): string => join(folder, `${number}`)

export const runFolder = (folder: string, name: string, number = 1): string =>
  join(homeOf(folder, number), "runs", name)

export const pidOf = (folder: string, number = 1): number => Number(textOf(join(homeOf(folder, number), "pid")))

/** Bytes of a stream that are on the disk, and in how many files. */
export const kept = (folder: string, name: string, stream: StreamName) => {
  const files = readdirSync(runFolder(folder, name)).filter((file) => file.startsWith(`${stream}.`))
  const size = files.reduce((sum, file) => sum + readFileSync(join(runFolder(folder, name), file)).length, 0)
  return { size, files: files.length }
}

/** Kills the keeper, and waits until it has gone. */
export const killKeeper = Effect.fnUntraced(function* (folder: string, number = 1) {
  const pid = pidOf(folder, number)
  kill(pid)
  yield* until(() => !lives(pid))
  return pid
})

/** Another daemon's connection, by the words of the protocol. */
export const link = Effect.fnUntraced(function* (folder: string, told: Array<Tale> = []) {
  const found = yield* Effect.orDie(connect(join(homeOf(folder), "sock"), (tale) => void told.push(tale)))
  yield* Effect.addFinalizer(() => Effect.sync(() => found.close()))
  return found
})

export const epochOf = (folder: string): number => Number(textOf(join(homeOf(folder), "epoch")).split(" ")[0])

/** As a daemon of the store says it. `before`: what happens just before its last word. */
export const hello = (folder: string, to: KeeperLink, epoch: number, before: () => void = () => {}) =>
  Effect.flatMap(to.ask({ op: "meet", nonce: "" }), ({ nonce = "" }) => {
    before()
    const proof = Proof.proofOf(Proof.secretOf(folder), "daemon", nonce, epoch)
    return to.ask({ op: "hello", epoch, proof })
  })

/** The same, as the keeper's owner: a newer daemon than any before. */
export const owner = Effect.fnUntraced(function* (folder: string, told: Array<Tale> = [], before?: () => void) {
  const found = yield* link(folder, told)
  const epoch = epochOf(folder) + 1
  const { error, runs = [] } = yield* hello(folder, found, epoch, before)
  if (error !== undefined) return yield* Effect.die(new Error(error))
  return Object.assign(found, { runs })
})

export type Owner = KeeperLink
