/**
 * CommandBackend: runs any program as an agent. The prompt is its input, its lines are the output, its exit code is the
 * outcome. One run is one turn.
 *
 * Guarantees: `Started` is sent once the program has run for `readyAfter`, or has succeeded sooner. A program that
 * fails sooner never started. `Delta` is sent for each line of output, even before `Started`. `Exited` is sent once, as
 * the last event, when all processes of the run have ended. Processes that the program leaves behind are ended first,
 * with the grace period.
 *
 * The program sees AGENTD_RUN, AGENTD_STORE and AGENTD_AGENT. AGENTD_PROMPT_FILE is set if the prompt is in a file: by
 * config, or because it is too long for an argument. AGENTD_FILES is set if files come with the prompt; it contains
 * their paths, one per line. With `shell`, "$1" is the prompt or the path of its file.
 */
import { type Cause, Effect, Fiber, type FileSystem, Queue, Semaphore, Stream } from "effect"
import * as path from "node:path"
import type * as Config from "../../config/BackendConfig.ts"
import type { Outcome } from "../Outcome.ts"
import { type Backend, BackendError, type Place, type Run, type RunEvent, type RunSpec } from "../Backend.ts"
import type { Argv, Host } from "../Host.ts"
import * as OrphanRuns from "../OrphanRuns.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import * as FileContents from "../FileContents.ts"
import * as ChildEnvironment from "../process/ChildEnvironment.ts"
import type { Line } from "../../config/LineSplitter.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as RunFolder from "../RunFolder.ts"
import * as GatewayMeter from "../GatewayMeter.ts"
import * as ConfinedSpawn from "../sandbox/ConfinedSpawn.ts"
import { services } from "../CapturedServices.ts"

/** Meanings of an exit code other than success and error. */
export type ExitClass = "quota" | "overflow" | "held" | "auth"

export interface CommandConfig extends Config.CommandBackend {
  /** Maximum length of a line, characters. A longer line is split into marked pieces. By default 16,384. */
  readonly maxLine?: number | undefined
  /** Exit codes with a more precise meaning than "failed": `{ "75": "quota" }`. */
  readonly exitCodes?: { readonly [code: string]: ExitClass } | undefined
  /** Wraps the command, for example into `systemd-run --user --scope`. */
  readonly wrap?: ((argv: Argv) => Argv) | undefined
}

/** Maximum number of unread events. If the queue is full, the program's pipe fills up and the program waits. */
const CAPACITY = 256
const MAX_LINE = 16_384
/** Maximum size of one argument, bytes (a limit of the system). */
const MAX_ARGUMENT = 128 * 1024 - 1

const config = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: true })

const argvOf = ({ argv, shell, wrap }: CommandConfig, last: ReadonlyArray<string>): Argv | undefined => {
  const [program, ...args] = argv ?? ["/bin/sh", "-c", shell ?? "", "agentd"]
  if (program === undefined) return undefined
  const plain: Argv = [program, ...args, ...last]
  return wrap === undefined ? plain : wrap(plain)
}

/** Puts the files of a prompt into a folder of the run, and adds their paths to the prompt. */
const handed = Effect.fnUntraced(function* (host: Host, spec: RunSpec) {
  const { found, gone } = yield* (yield* FileContents.reader)(spec.files)
  if (found.length === 0) return { folder: undefined, paths: [], prompt: FileContents.withLines(spec.prompt, gone) }
  const { path: folder, put } = yield* FileContents.folderOf(host, spec)
  const paths = yield* put(found)
  const lines = found.map(({ label }, at) => `${label}: ${paths[at]}`)
  return { folder, paths, prompt: FileContents.withLines(spec.prompt, [...lines, ...gone]) }
})

/** Joins as many paths as fit into one variable, one per line. The prompt names all of them. */
const listed = (paths: ReadonlyArray<string>): string => {
  let size = "AGENTD_FILES=".length
  return paths.filter((one) => (size += Buffer.byteLength(one) + 1) < MAX_ARGUMENT).join("\n")
}

const enclosed = (
  command: CommandConfig,
  host: Host,
  spec: RunSpec,
  argv: Argv,
  file: string | undefined,
  { folder, paths }: Pick<Effect.Success<ReturnType<typeof handed>>, "folder" | "paths"> = {
    folder: undefined,
    paths: []
  }
): ConfinedSpawn.EnclosureOptions => ({
  config: command,
  provider: command.provider,
  host,
  spec,
  inherited: ChildEnvironment.given(host.environment, { program: argv[0], passEnv: command.passEnv }),
  passEnv: command.passEnv,
  own: {
    ...command.env,
    ...spec.env,
    AGENTD_AGENT: spec.agent,
    ...(file === undefined ? {} : { AGENTD_PROMPT_FILE: file }),
    ...(folder === undefined ? {} : { AGENTD_FILES: listed(paths) })
  },
  files: [file, folder].filter((one) => one !== undefined),
  keeps: true
})

/** The command of a run and how it is confined, without the prompt. */
export const outlined = (command: CommandConfig, host: Host, spec: RunSpec) => {
  const argv = argvOf(command, []) ?? [""]
  const file = command.promptBy === "file" ? "" : undefined
  return { argv, options: { ...enclosed(command, host, spec, argv, file), files: [] } } as const
}

const launch = Effect.fnUntraced(function* (command: CommandConfig, host: Host, spec: RunSpec) {
  if (!/^\S+$/.test(spec.runId))
    return yield* config(
      `the run id "${spec.runId}" is empty or contains a blank`,
      "this is a bug of agentd: report it"
    )
  const { prompt, ...files } = yield* handed(host, spec)
  const isLong = command.promptBy === "argument" && Buffer.byteLength(prompt) > MAX_ARGUMENT
  const isFile = command.promptBy === "file" || isLong
  const file = isFile ? yield* RunFolder.file(host, spec, "prompt", prompt) : undefined
  const last =
    file === undefined
      ? command.promptBy === "argument"
        ? [prompt.replaceAll("\0", "\uFFFD")]
        : []
      : [isLong ? `The prompt is too long for an argument: read all of it in the file ${file}` : file]
  const argv = argvOf(command, last)
  if (argv === undefined) return yield* config("argv is empty", "name a program in argv, or a line in shell")
  const enclosure = yield* ConfinedSpawn.make(enclosed(command, host, spec, argv, file, files))
  const program = yield* RunProcess.make({
    store: host.store,
    runId: spec.runId,
    keeps: true,
    takesUp: spec.adopt !== undefined,
    ...(yield* enclosure.start(argv, path.resolve(spec.cwd, command.cwd ?? "."))),
    env: enclosure.env,
    limits: spec.limits,
    input: command.promptBy === "stdin" ? prompt : undefined,
    grace: command.killGrace
  })
  return { program, passed: enclosure.passed }
})

const oneLine = (text: string) =>
  text
    .replaceAll(/\p{Cc}+/gu, " ")
    .trim()
    .slice(0, 500)

/** The outcome of a program that has ended. Pure. `said`: its last line on standard error. */
export const outcomeOf = (status: ExitStatus, said: string, exitCodes: CommandConfig["exitCodes"] = {}): Outcome => {
  if (status.signal === null && status.code === null) return { _tag: "Uncounted", reason: "lost" }
  if (status.signal !== null) return { _tag: "Error", detail: `killed by ${status.signal}` }
  if (status.code === 0) return { _tag: "Success" }
  const line = oneLine(said)
  const detail = `exit code ${status.code}${line === "" ? "" : `: ${line}`}`
  const meaning = exitCodes[String(status.code)]
  if (meaning === undefined) return { _tag: "Error", detail }
  return meaning === "auth"
    ? {
        _tag: "Fatal",
        detail,
        remedy: "log in again, then start the agent. Or set a new key in your environment, then: agentd restart"
      }
    : { _tag: "Uncounted", reason: meaning }
}

type Events = Queue.Queue<RunEvent, Cause.Done>

/** Turns the program's output into events. `drained`: waits for all output. `isUp`: whether `Started` has been sent. */
const output = Effect.fnUntraced(function* (
  program: RunProcess.RunProcess,
  limit: number,
  queue: Events,
  isUp: () => boolean
) {
  const { before, ended, isKept } = program
  const { err = 0, out = 0 } = before?.point ?? {}
  let said = Checkpoint.of<string>(program)?.state ?? ""
  /** Number of bytes that the program wrote before it was resumed and that have not been reported again yet. */
  const left = { out: before === undefined || before.out === out ? 0 : before.out, err: 0 }
  if (before !== undefined && before.err !== err) left.err = before.err
  /** Number of bytes that have been reported, up to the end of a line. */
  const told = { out, err }
  /** Serializes events, so that a checkpoint covers exactly the events emitted before it. */
  const order = Semaphore.makeUnsafe(1)
  /** Emits a checkpoint if enough output was written since the last one. */
  const point = Effect.suspend(() => {
    const isAgain = left.out > 0 || left.err > 0
    if (isAgain || !isUp() || !program.isDue(told.out, told.err)) return Effect.void
    return Queue.offer(queue, { _tag: "Reached", point: { ...told, seq: 0, state: said } })
  })
  const emit = (stream: "stdout" | "stderr") => (lines: ReadonlyArray<Line>, size: number, whole?: number) => {
    const name = stream === "stdout" ? "out" : "err"
    if (name === "err") said = lines.findLast(({ text }) => text.trim() !== "")?.text ?? said
    const events = lines.map(({ end, text }): RunEvent => {
      const place: Place = name === "out" ? { out: [1, end, 1] } : { err: [1, end] }
      return { _tag: "Delta", stream, text, ...(isKept ? { place } : {}) }
    })
    const isBehind = left.out === 0 && left.err === 0
    if (size >= left[name]) left[name] = 0
    const isCaughtUp = before !== undefined && !isBehind && left.out === 0 && left.err === 0
    const all = Queue.offerAll(queue, isCaughtUp ? [...events, { _tag: "Resumed" }] : events)
    const reached = Effect.suspend(() => {
      told[name] = whole ?? told[name]
      return point
    })
    return order.withPermit(Effect.andThen(all, reached))
  }
  if (before !== undefined && left.out === 0 && left.err === 0) yield* Queue.offer(queue, { _tag: "Resumed" })
  const pumps = yield* Effect.forEach(["stdout", "stderr"] as const, (name) =>
    Effect.forkScoped(RunProcess.drainPlaced(program[name], ended, limit, emit(name)))
  )
  return { drained: Effect.asVoid(Fiber.awaitAll(pumps)), lastError: () => said, order, point }
})

const start = Effect.fnUntraced(function* (command: CommandConfig, host: Host, spec: RunSpec) {
  const queue = yield* Queue.bounded<RunEvent, Cause.Done>(CAPACITY)
  // registered first, so that it runs last when the scope closes and a reader always sees an end
  yield* Effect.addFinalizer(() => Queue.end(queue))
  const { program, passed } = yield* launch(command, host, spec)
  const again = Checkpoint.again(program)
  if (again.length > 0) yield* Queue.offerAll(queue, again)
  else if (spec.adopt?.isUp === true) yield* Queue.offer(queue, { _tag: "Started", pid: program.pid })
  let silent = spec.adopt?.isUp === true
  let isUp = silent
  const { drained, lastError, order, point } = yield* output(program, command.maxLine ?? MAX_LINE, queue, () => isUp)

  const started = Effect.suspend(() => {
    if (silent) return Effect.void
    silent = true
    const up = Effect.map(Queue.offer(queue, { _tag: "Started", pid: program.pid }), () => void (isUp = true))
    return order.withPermit(Effect.andThen(up, point))
  })
  /** Makes sure that `Started` is not sent for a run that agentd ends. */
  const stopping = <A>(how: Effect.Effect<A>) => Effect.suspend(() => ((silent = true), how))

  const ready = yield* Effect.forkScoped(Effect.andThen(Effect.sleep(command.readyAfter), started))
  const finish = Effect.gen(function* () {
    const status = yield* program.exited
    yield* Fiber.interrupt(ready)
    if (status.code === 0) yield* started
    const survived = yield* RunProcess.survival(program)
    yield* drained
    const outcome = survived ?? outcomeOf(status, lastError(), command.exitCodes)
    yield* Queue.offer(queue, { _tag: "Exited", outcome })
  })
  // if `finish` fails, the queue still ends, so that a reader does not wait forever
  yield* Effect.forkScoped(Effect.ensuring(finish, Queue.end(queue)))

  const refused = new BackendError({
    message: `a command accepts no input while it runs`,
    remedy: "send the agent a message: the next run receives it; an urgent message ends this run first",
    fatal: false
  })
  const end = stopping(program.interrupt)
  const result: Run = {
    runId: spec.runId,
    events: Stream.fromQueue(queue),
    send: () => Effect.fail(refused),
    answer: () => Effect.void,
    cancelCall: () => Effect.void,
    keep: (point, heard) => Checkpoint.keep(program, point, heard),
    outlives: () => program.isKept,
    interruptTurn: end,
    end,
    kill: stopping(program.kill)
  }
  return GatewayMeter.metered(result, passed)
})

export const make = Effect.fnUntraced(function* (command: CommandConfig, host: Host) {
  const context = yield* services<ProcessTree | Reaper | FileSystem.FileSystem>()
  const backend: Backend = {
    name: "command",
    turns: false,
    holds: (runId) => Effect.provideContext(KeptProcess.isHeld(runId, { given: false }), context),
    drop: (runId) => Effect.provideContext(OrphanRuns.drop(host.store, runId), context),
    forget: (runId) => Effect.provideContext(KeptProcess.forget(runId), context),
    start: (spec) => start(command, host, spec).pipe(Effect.provideContext(context))
  }
  return backend
})
