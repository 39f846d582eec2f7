/**
 * Programs: the agents' processes as the system shows them to a backend: bytes in, bytes out, an
 * exit. Bytes come late and cut anywhere, an exit before or after the last of them, and a pipe may
 * stay open when its process is gone.
 */
import { Deferred, Effect } from "effect"
import { type Backend, BackendError, type TurnInput } from "../../../src/backends/Backend.ts"
import type { ChildProcess, ExitStatus, Pipe, Program, Spawn } from "../../../src/backends/process/ChildProcess.ts"
import type { Outcome } from "../../../src/backends/Outcome.ts"
import type { Chance } from "../Chance.ts"
import type { Life } from "../Universe.ts"
import { type AgentProcess, type Processes } from "./Processes.ts"
import { ClaudeTongue, CommandTongue, type Mouth, type Tongue, type TongueName } from "./Tongue.ts"

/** How bytes fare in a seed's world. */
export interface Bytes {
  /** Which program an agent is, by name; the others are claude. */
  readonly of: { readonly [agent: string]: TongueName }
  /** The probability that what is written comes in pieces. */
  readonly cuts: number
  /** The probability that a line comes with noise before it. */
  readonly noise: number
  /** The probability that a session is not there any more that is to be resumed. */
  readonly forgets: number
  /** The probability that somebody unknown holds the pipes of a process that is gone. */
  readonly holds: number
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

export class Programs {
  private readonly world: Processes
  private readonly bytes: Bytes
  /** What runs were given and their programs have not read. */
  private readonly inputs = new Map<string, Array<TurnInput>>()

  constructor(world: Processes, bytes: Bytes) {
    this.world = world
    this.bytes = bytes
  }

  /** Notes what a backend is given, so that who reads it knows the turn. */
  readonly noting = (backend: Backend): Backend => ({
    ...backend,
    start: Effect.fnUntraced({ self: this }, function* (this: Programs, spec) {
      const inputs: Array<TurnInput> = [{ turnId: spec.turnId, text: spec.prompt }]
      this.inputs.set(spec.runId, inputs)
      const run = yield* backend.start(spec)
      return {
        ...run,
        send: (input: TurnInput) => {
          inputs.push(input)
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

  /** One end of a pipe: text becomes bytes, which come in order, late, in pieces. */
  private pipe(outlet: Outlet, chance: Chance, life: Life) {
    const { bytes, world } = this
    const waiting: Array<Uint8Array | undefined> = []
    const give = (chunk: Uint8Array | undefined, ms: number) => {
      waiting.push(chunk)
      const come = () => {
        if (world.touch("event: before")) outlet.give(waiting.shift())
      }
      world.universe.later(ms, come, life)
    }
    const write = (text: string) => {
      let rest = new TextEncoder().encode(text)
      while (rest.length > 0) {
        const length = world.unruly && chance.is(bytes.cuts) ? 1 + chance.below(rest.length) : rest.length
        give(rest.subarray(0, length), chance.skewed(0.02, 5))
        rest = rest.subarray(length)
      }
    }
    return { write, end: () => give(undefined, chance.skewed(0.02, 5)) }
  }

  readonly spawn =
    (life: Life): Spawn =>
    (program) =>
      Effect.gen({ self: this }, function* () {
        const { world } = this
        const [agent, runId] = [program.env["AGENTD_AGENT"] ?? "", program.env["AGENTD_RUN"] ?? ""]
        const chance = world.dice(agent)
        yield* Effect.sleep(chance.skewed(1, 200))
        if (world.unruly && chance.is(world.swarm.failsStart))
          return yield* new BackendError({ message: "too many processes", remedy: "wait", fatal: chance.is(0.1) })
        if (!world.touch("spawn: before")) return yield* Effect.never
        const process = world.born({ agent, runId, cwd: program.cwd }, chance)
        const child = this.child(process, program, chance, life)
        return world.touch("spawn: after") ? child : yield* Effect.never
      })

  private child(process: AgentProcess, program: Program, chance: Chance, life: Life): ChildProcess {
    const { bytes, world } = this
    const [stdout, stderr] = [new Outlet(), new Outlet()]
    const [out, err] = [this.pipe(stdout, chance, life), this.pipe(stderr, chance, life)]
    const exited = Deferred.makeUnsafe<ExitStatus>()
    const mouth: Mouth = {
      out: (text) => out.write(world.unruly && chance.is(bytes.noise) ? chance.pick(NOISES) + text : text),
      err: err.write,
      turnOf: (text) => this.turnOf(process.runId, text)
    }
    const forgets = () => world.unruly && chance.is(bytes.forgets)
    const tongue = tongueOf(process, program, mouth, chance)
    process.listener = (event) => {
      tongue.says(event)
      if (event._tag !== "Exited") return
      const tell = () => Deferred.doneUnsafe(exited, Effect.succeed(statusOf(event.outcome)))
      world.universe.later(chance.skewed(0.02, 20), tell, life)
      if (world.unruly && chance.is(bytes.holds)) return
      out.end()
      err.end()
    }
    const isLost = program.argv.includes("--resume") && forgets()
    if (isLost) {
      err.write("No conversation found with session ID\n")
      process.fails()
    }
    const input = this.input(process, isLost ? { ...tongue, hears: () => {}, closed: () => {} } : tongue, chance)
    if (program.input !== undefined) input.write(program.input)
    if (program.keepInput !== true) input.close()
    return {
      id: { pid: process.pid, start: 1 },
      stdout,
      stderr,
      exited: Deferred.await(exited),
      write: (text) => world.act("turn", () => input.write(text)),
      closeInput: Effect.sync(input.close),
      discard: Effect.void,
      close: Effect.void
    }
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

const tongueOf = (process: AgentProcess, { argv }: Program, mouth: Mouth, chance: Chance): Tongue => {
  if (argv[0] === "tool") return new CommandTongue(process, mouth)
  const session = argv[argv.indexOf(argv.includes("--session-id") ? "--session-id" : "--resume") + 1] ?? ""
  return new ClaudeTongue(process, mouth, session, chance)
}

/** What the project's file says of an agent that is such a program. */
export const backendOf = (name: TongueName | undefined): object =>
  name === "command" ? { type: "command", argv: ["tool"] } : { type: "claude" }
