/**
 * Programs: the agents' processes as the system shows them to a backend: bytes in, bytes out, an
 * exit. Bytes come late and cut anywhere, an exit before or after the last of them, and a pipe may
 * stay open when its process is gone.
 */
import { Deferred, Effect, Stream } from "effect"
import { type Backend, BackendError, type Decision, type TurnInput } from "../../../src/runs/Backend.ts"
import type { ChildProcess, ExitStatus, Pipe, Program, Spawn } from "../../../src/runs/process/ChildProcess.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import { Chance } from "../Chance.ts"
import { storeId } from "../../../src/runs/process/PeerProcess.ts"
import type { Life } from "../Universe.ts"
import { AcpTongue } from "./AcpTongue.ts"
import { type Keeping, Keepers, type Start } from "./Keepers.ts"
import { Machine } from "./Machine.ts"
import { type AgentProcess, type Processes } from "./Processes.ts"
import { ClaudeTongue, CommandTongue, type Mouth, type Tongue, type TongueName } from "./Tongue.ts"

/** How bytes fare in a seed's world. */
export interface Bytes {
  /** The program of each agent, by name; the others are claude. */
  readonly of: { readonly [agent: string]: TongueName }
  /** The probability that what is written comes in pieces. */
  readonly cuts: number
  /** The probability that a line comes with noise before it. */
  readonly noise: number
  /** The probability that a session is not there any more that is to be resumed. */
  readonly forgets: number
  /** The probability that somebody unknown holds the pipes of a process that is gone. */
  readonly holds: number
  /** Further habits, in later worlds. */
  readonly wild: Wild | undefined
  /** How keepers hold the programs; undefined in a world where they end with their daemon. */
  readonly kept: Keeping | undefined
}

export interface Wild {
  /** The probability that noise comes that is no UTF-8, ends lines in other ways, or is long. */
  readonly noise: number
  /** The probability that a call starts a process that stays, and that a pid is used again. */
  readonly litters: number
  /** The probability that what a process has not written yet when it is killed is lost. */
  readonly tears: number
}

/** Marks the runs of the daemon's store. */
export const STORE = storeId("/state")

/** The program's end of a pipe. */
interface End {
  readonly write: (whole: Uint8Array) => void
  readonly tear: (most: number) => void
  readonly end: () => void
}

/** The daemon's end of a pipe. */
class Outlet implements Pipe {
  private readonly chunks: Array<Uint8Array | undefined> = []
  private reader: ((chunk: Uint8Array | undefined) => void) | undefined = undefined

  readonly read = Effect.callback<Uint8Array | undefined>((resume) => {
    if (this.chunks.length > 0) {
      const chunk = this.chunks[0]
      // its end can be read again and again
      if (chunk !== undefined) this.chunks.shift()
      return resume(Effect.succeed(chunk))
    }
    this.reader = (chunk) => resume(Effect.succeed(chunk))
    return Effect.sync(() => void (this.reader = undefined))
  })

  /** Undefined: its end. */
  give(chunk: Uint8Array | undefined): void {
    const { reader } = this
    this.reader = undefined
    if (reader === undefined || chunk === undefined) this.chunks.push(chunk)
    reader?.(chunk)
  }
}

const SIGNAL = /^killed by (SIG[A-Z]+)$/

const statusOf = (outcome: Outcome): ExitStatus => {
  if (outcome._tag === "Success") return { code: 0, signal: null }
  const signal = outcome._tag === "Error" ? SIGNAL.exec(outcome.detail)?.[1] : undefined
  return signal === undefined ? { code: 1, signal: null } : { code: null, signal: signal as NodeJS.Signals }
}

const NOISES = [
  "warning: something is old\n",
  "\n",
  '{"type":"news","of":"tomorrow"}\n',
  "{}\n",
  "[1]\n",
  "{\n",
  "�é…\n"
]

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** Further output of programs, in later worlds. */
const WILD_NOISES: ReadonlyArray<Uint8Array> = [
  ...["\r\n", "null\n", "\u{1F600}é…\r\n", '{"jsonrpc":"2.0","method":"news","params":{}}\n', "{}{}\n"].map(bytesOf),
  // no UTF-8: a character that is cut off, bytes that are none
  new Uint8Array([0xe2, 0x82, 0x0a]),
  new Uint8Array([0xff, 0xfe, 0x00, 0x0a])
]
/** Bytes of a line that is longer than most. */
const LONG = 1_048_576
/** The most that is read at once. */
const MOST = 65_536

export class Programs {
  private readonly world: Processes
  private readonly bytes: Bytes
  /** Inputs that runs were given and their programs have not read. */
  private readonly inputs = new Map<string, Array<TurnInput>>()
  readonly keepers: Keepers | undefined

  constructor(world: Processes, bytes: Bytes) {
    this.world = world
    this.bytes = bytes
    const sometimes = (what: string) => world.witness.contract?.seen(what)
    this.keepers =
      bytes.kept && new Keepers(world, { habits: bytes.kept, seed: world.seed, start: this.held, sometimes })
    if (bytes.wild === undefined) return
    const machine = new Machine(world, STORE, bytes.wild.litters)
    world.machine = machine
    if (world.witness.contract !== undefined) world.witness.contract.left = (isOf) => machine.left(isOf)
  }

  /** Notes what a backend is given and tells, so that who reads it knows the turn. */
  readonly noting = (backend: Backend): Backend => ({
    ...backend,
    start: Effect.fnUntraced({ self: this }, function* (this: Programs, spec) {
      const { runId } = spec
      const { contract } = this.world.witness
      const given = spec.adopt === undefined ? undefined : this.inputs.get(runId)
      const inputs: Array<TurnInput> = given ?? [{ turnId: spec.turnId, text: spec.prompt }]
      this.inputs.set(runId, inputs)
      contract?.started(backend.name, spec)
      const run = yield* backend.start(spec)
      return {
        ...run,
        events: Stream.mapArray(run.events, (events) => {
          for (const event of events) contract?.told(runId, event)
          return events
        }),
        answer: (callId: string, decision: Decision) => {
          contract?.decided(runId, callId, decision)
          return run.answer(callId, decision)
        },
        send: (input: TurnInput) => {
          inputs.push(input)
          contract?.sent(runId, input.turnId)
          return Effect.onError(run.send(input), () => Effect.sync(() => inputs.splice(inputs.indexOf(input), 1)))
        }
      }
    })
  })

  private turnOf(runId: string, text: string): string {
    const inputs = this.inputs.get(runId) ?? []
    const index = inputs.findIndex((input) => input.text === text)
    if (index < 0) this.world.witness.garbled?.(runId, text)
    return inputs.splice(Math.max(0, index), 1)[0]?.turnId ?? runId
  }

  private noise(wild: Chance, write: (bytes: Uint8Array) => void): void {
    if (!this.world.unruly || this.bytes.wild === undefined || !wild.is(this.bytes.wild.noise)) return
    write(wild.is(0.02) ? bytesOf(`${"x".repeat(LONG)}\n`) : wild.pick(WILD_NOISES))
  }

  /** A pipe ends when all that hold it have let it go. */
  private holders(end: () => void): () => () => void {
    let count = 0
    return () => {
      count += 1
      return () => {
        if (--count === 0) end()
      }
    }
  }

  /** An end of a pipe: bytes, which come in order, late, in pieces; undefined: its end. */
  private pipe(take: (chunk: Uint8Array | undefined) => void, chance: Chance, life?: Life) {
    const { bytes, world } = this
    const waiting: Array<Uint8Array | undefined> = []
    const give = (chunk: Uint8Array | undefined, ms: number) => {
      waiting.push(chunk)
      const come = () => {
        if (life === undefined || world.touch("event: before")) take(waiting.shift())
      }
      world.universe.later(ms, come, life)
    }
    const write = (whole: Uint8Array) => {
      let rest = whole
      while (rest.length > 0) {
        const isCut = world.unruly && chance.is(bytes.cuts)
        const length = Math.min(MOST, isCut ? 1 + chance.below(rest.length) : rest.length)
        give(rest.subarray(0, length), chance.skewed(0.02, 5))
        rest = rest.subarray(length)
      }
    }
    /** So many bytes at most of what is not there yet come. */
    const tear = (most: number) => {
      const last = waiting.pop()
      if (last !== undefined) waiting.push(last.subarray(0, most))
    }
    return { write, tear, end: () => give(undefined, chance.skewed(0.02, 5)) }
  }

  readonly spawn =
    (life: Life): Spawn =>
    (program) =>
      Effect.gen({ self: this }, function* () {
        const { world } = this
        const [agent, runId] = [program.env["AGENTD_AGENT"] ?? "", program.env["AGENTD_RUN"] ?? ""]
        const chance = world.dice(agent)
        yield* Effect.sleep(chance.skewed(1, 200))
        if (world.unruly && (world.lurks("noStart") || chance.is(world.swarm.failsStart))) {
          world.strikes("noStart")
          return yield* new BackendError({ message: "too many processes", remedy: "wait", fatal: chance.is(0.1) })
        }
        if (!world.touch("spawn: before")) return yield* Effect.never
        const process = world.born({ agent, runId, cwd: program.cwd }, chance)
        const child = this.child(process, program, chance, life)
        return world.touch("spawn: after") ? child : yield* Effect.never
      })

  private child(process: AgentProcess, program: Program, chance: Chance, life: Life): ChildProcess {
    const { world } = this
    const [stdout, stderr] = [new Outlet(), new Outlet()]
    const [out, err] = [
      this.pipe(
        (chunk) => {
          if (chunk !== undefined) world.witness.contract?.wrote(process, chunk)
          stdout.give(chunk)
        },
        chance,
        life
      ),
      this.pipe((chunk) => stderr.give(chunk), chance, life)
    ]
    const exited = Deferred.makeUnsafe<ExitStatus>()
    const tell = (status: ExitStatus, ms: number) =>
      void world.universe.later(ms, () => Deferred.doneUnsafe(exited, Effect.succeed(status)), life)
    const input = this.begin(process, program, chance, { out, err, tell })
    if (program.input !== undefined) input.write(program.input)
    if (program.keepInput !== true) input.close()
    return {
      id: { pid: process.pid, start: process.born },
      stdout,
      stderr,
      exited: Deferred.await(exited),
      write: (text) => world.act("turn", () => input.write(text)),
      closeInput: Effect.sync(input.close),
      discard: Effect.void,
      close: Effect.void
    }
  }

  /** A program that a keeper starts. */
  private readonly held: Start = (run, { argv, cwd, env, isDeaf }, chance, { exited, wrote }) => {
    const { world } = this
    const [agent, runId] = [env["AGENTD_AGENT"] ?? "", env["AGENTD_RUN"] ?? run]
    const process = world.born({ agent, runId, cwd }, chance)
    process.isKept = true
    const out = this.pipe((chunk) => {
      if (chunk !== undefined) world.witness.contract?.wrote(process, chunk)
      wrote("out", chunk)
    }, chance)
    const err = this.pipe((chunk) => wrote("err", chunk), chance)
    const tell = (status: ExitStatus, ms: number) => void world.universe.later(ms, () => exited(status))
    const input = this.begin(process, { argv }, chance, { out, err, tell })
    if (isDeaf) input.close()
    return { process, ...input }
  }

  /** The process speaks its program's language. */
  private begin(
    process: AgentProcess,
    program: { readonly argv: ReadonlyArray<string> },
    chance: Chance,
    {
      err,
      out,
      tell
    }: { readonly out: End; readonly err: End; readonly tell: (status: ExitStatus, ms: number) => void }
  ) {
    const { bytes, world } = this
    const wild = new Chance(world.seed, `wild ${process.pid}`)
    const mouth: Mouth = {
      out: (text) => {
        this.noise(wild, out.write)
        out.write(bytesOf(world.unruly && chance.is(bytes.noise) ? chance.pick(NOISES) + text : text))
      },
      err: (text) => err.write(bytesOf(text)),
      turnOf: (text) => this.turnOf(process.runId, text)
    }
    const forgets = () => world.unruly && chance.is(bytes.forgets)
    const tongue = tongueOf(process, program, mouth, { chance, forgets, manners: bytes.wild && wild })
    const held = this.holders(() => {
      out.end()
      err.end()
    })
    process.listener = (event) => {
      tongue.says(event)
      if (event._tag === "ToolStarted") world.machine?.called(process, held)
      if (event._tag !== "Exited") return
      const status = statusOf(event.outcome)
      const isTorn = status.signal === "SIGKILL" && world.unruly && wild.is(bytes.wild?.tears ?? 0)
      if (isTorn) out.tear(wild.below(100))
      tell(status, chance.skewed(0.02, 20))
      if (world.unruly && chance.is(bytes.holds)) return
      letGo()
    }
    const letGo = held()
    const isLost = program.argv.includes("--resume") && forgets()
    if (isLost) {
      mouth.err("No conversation found with session ID\n")
      process.fails()
    }
    return this.input(process, isLost ? { ...tongue, hears: () => {}, closed: () => {} } : tongue, chance)
  }

  /** In order, and cut anywhere; a process that is gone reads nothing. */
  private input(process: AgentProcess, tongue: Tongue, chance: Chance) {
    const { bytes, world } = this
    const waiting: Array<() => void> = []
    const later = (read: () => void) => {
      waiting.push(read)
      world.universe.later(chance.skewed(0.02, 5), () => {
        const next = waiting.shift()!
        if (process.alive) next()
      })
    }
    const write = (text: string) => {
      for (let rest = text; rest.length > 0;) {
        const length = world.unruly && chance.is(bytes.cuts) ? 1 + chance.below(rest.length) : rest.length
        const piece = rest.slice(0, length)
        later(() => tongue.hears(piece))
        rest = rest.slice(length)
      }
    }
    return { write, close: () => later(() => tongue.closed()) }
  }
}

const tongueOf = (
  process: AgentProcess,
  { argv }: { readonly argv: ReadonlyArray<string> },
  mouth: Mouth,
  dice: { readonly chance: Chance; readonly forgets: () => boolean; readonly manners: Chance | undefined }
): Tongue => {
  if (argv[0] === "tool") return new CommandTongue(process, mouth)
  if (argv[0] === "acp") return new AcpTongue(process, mouth, dice.forgets, dice.manners)
  const session = argv[argv.indexOf(argv.includes("--session-id") ? "--session-id" : "--resume") + 1] ?? ""
  return new ClaudeTongue(process, mouth, session, dice.chance)
}

/** The file's settings of an agent that is such a program. */
export const backendOf = (name: TongueName | undefined): object => {
  switch (name) {
    case "command":
      return { type: "command", argv: ["tool"] }
    case "acp":
      return { type: "acp", argv: ["acp"] }
    default:
      return { type: "claude" }
  }
}
