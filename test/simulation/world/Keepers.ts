/**
 * Keepers: the keepers of the simulated machine, which speak the words of the real one (Protocol): programs that
 * outlive daemons, output in real files by position, inputs by rising numbers, records of exits, the lease.
 *
 * They die and hang as processes do; what they held goes on, and the next one of the folder finds it. The daemon's end
 * (Keeper, KeeperLink, KeeperProgram) is the real one, over wires that are played.
 */
import { Duration, Effect, Schema } from "effect"
import { EventEmitter } from "node:events"
import * as fs from "node:fs"
import type { Socket } from "node:net"
import * as path from "node:path"
import { Span } from "../../../src/config/Span.ts"
import type { ExitStatus } from "../../../src/runs/process/ChildProcess.ts"
import type * as Keeper from "../../../src/runs/keeper/Keeper.ts"
import * as Proof from "../../../src/runs/keeper/Proof.ts"
import { KeeperLink } from "../../../src/runs/keeper/KeeperLink.ts"
import {
  type Listed,
  type Order,
  type Reply,
  type StreamName,
  type Tale,
  VERSION
} from "../../../src/runs/keeper/Protocol.ts"
import * as EndedPrograms from "../../../src/runs/keeper/EndedPrograms.ts"
import type { Program } from "../../../src/runs/keeper/SpawnScript.ts"
import { Chance } from "../Chance.ts"
import type { Life, Universe } from "../Universe.ts"
import type { AgentProcess, Processes } from "./Processes.ts"

/** How keepers fare in a world. */
export interface Keeping {
  /** The user's `orphanGrace`. */
  readonly lease: string
  /** Bytes of a file of output. */
  readonly segment: number
  /** Mean time between two deaths of the newest keeper, and until it hangs, ms; 0 for never. */
  readonly dies: number
  readonly hangs: number
  /** The probability that a daemon that is asked to stop leaves its runs to the next. */
  readonly leaves: number
  /** The probability that what a machine had not put on its disk is gone after a power cut. */
  readonly loses: number
}

/** A program that has been started for a keeper: its input, and what it is. */
export interface Started {
  readonly process: AgentProcess
  readonly write: (text: string) => void
  readonly close: () => void
}

/** The news of a program. Undefined: the pipe's end. */
export interface Ends {
  readonly wrote: (name: StreamName, chunk: Uint8Array | undefined) => void
  readonly exited: (status: ExitStatus) => void
}

export type Start = (run: string, program: Program, chance: Chance, ends: Ends) => Started

/** From SIGTERM to SIGKILL; a pipe that others hold; without anything to hold; between two looks at what is not one's child, ms. */
const GRACE = 5_000
const HELD = 2_000
const LINGER = 2_000
const LOOK = 200
/** Until the kernel has let go of what was killed, at most; a keeper hangs no longer, ms. */
const ENDING = 25_000
export const LONGEST_HANG = 60_000

/** A way on which all comes in order, late. */
const ordered = (universe: Universe, chance: Chance, life?: Life) => {
  const waiting: Array<() => void> = []
  return (come: () => void): void => {
    waiting.push(come)
    universe.later(chance.skewed(0.02, 2), () => waiting.shift()!(), life)
  }
}

/** The daemon's end of a connection: as much of a socket as KeeperLink uses. */
class Wire extends EventEmitter {
  destroyed = false
  readonly life: Life
  private readonly toKeeper: (come: () => void) => void
  private readonly toDaemon: (come: () => void) => void
  private keeper: Played | undefined
  private readonly isTouched: () => boolean

  constructor(world: Processes, life: Life, chance: Chance, keeper: Played) {
    super()
    this.life = life
    this.keeper = keeper
    this.toKeeper = ordered(world.universe, chance)
    this.toDaemon = ordered(world.universe, chance, life)
    this.isTouched = () => world.touch("event: before")
  }

  write(line: string): void {
    const { keeper } = this
    this.toKeeper(() => keeper?.hears(this, JSON.parse(line) as Order & { readonly id: number }))
  }

  /** Words of the keeper. */
  says(message: Reply | Tale): void {
    this.toDaemon(() => {
      if (!this.destroyed && this.isTouched()) this.emit("data", Buffer.from(`${JSON.stringify(message)}\n`))
    })
  }

  /** The daemon's end closes; what was written before comes to the keeper. */
  destroySoon(): void {
    if (this.keeper === undefined) return
    const { keeper } = this
    this.keeper = undefined
    this.destroyed = true
    this.toKeeper(() => keeper.misses(this))
    this.toDaemon(() => this.emit("close"))
  }

  destroy(): void {
    this.destroySoon()
  }

  /** The keeper's end closes. */
  hangsUp(): void {
    this.keeper = undefined
    this.toDaemon(() => {
      if (this.destroyed) return
      this.destroyed = true
      this.emit("close")
    })
  }
}

interface Pipe {
  size: number
  base: number
  isOver: boolean
  /** Written, and in no file yet. */
  readonly waiting: Array<Uint8Array>
}

const fresh = (): Pipe => ({ size: 0, base: 0, isOver: false, waiting: [] })

/** A program's folder, pipes and process: what outlives a keeper. */
class Held {
  readonly name: string
  readonly folder: string
  readonly out = fresh()
  readonly err = fresh()
  seq = 0
  isClosed = false
  /** How the process ended; the keeper that started it hears it. */
  status: ExitStatus | undefined = undefined
  /** As a keeper has it. */
  exit: ExitStatus | undefined = undefined
  /** The record is durable. */
  ended = false
  forgotten = false
  /** The machine was switched off since. */
  isCut = false
  started: Started | undefined = undefined
  /** The keeper whose child the process is. */
  parent: Played | undefined

  constructor(name: string, folder: string, parent: Played) {
    this.name = name
    this.folder = folder
    this.parent = parent
    fs.mkdirSync(folder, { recursive: true })
    for (const file of ["out.0", "err.0"]) fs.writeFileSync(path.join(folder, file), "")
  }

  get isAlive(): boolean {
    return this.status === undefined
  }

  writes(file: string, content: object): void {
    fs.writeFileSync(path.join(this.folder, file), JSON.stringify(content))
  }

  get listed(): Listed {
    const { ended, err, exit, name, out, seq, started } = this
    const { born, pid } = started!.process
    const listed = { run: name, pid, start: String(born), seq, out: out.size, err: err.size, ended }
    return exit === undefined ? listed : { ...listed, exit }
  }
}

/** A folder of keepers, one after the other. */
class Home {
  readonly folder: string
  readonly runs = new Map<string, Held>()
  keeper: Played | undefined = undefined
  /** Keepers that there have been. */
  count = 0

  constructor(folder: string) {
    this.folder = folder
  }
}

/** A keeper's process. */
class Played {
  readonly home: Home
  private readonly world: Keepers
  private readonly lease: number
  private readonly chance: Chance
  private client: Wire | undefined = undefined
  private isRetired = false
  private isHanging = false
  /** Deeds that wait while it hangs. */
  private readonly left: Array<() => void> = []
  private watch = 0

  constructor(world: Keepers, home: Home, lease: number) {
    this.world = world
    this.home = home
    this.lease = lease
    this.chance = new Chance(world.seed, `keeper ${home.folder.split("/").at(-1)} ${++home.count}`)
  }

  /** Finds what the one before has left, and listens. */
  begins(): void {
    const { folder, runs } = this.home
    fs.writeFileSync(path.join(folder, "sock"), "")
    // what has its record is the daemon's
    for (const [name, { ended }] of runs) if (ended) runs.delete(name)
    for (const held of runs.values()) this.adopts(held)
    this.unwatched(Math.max(this.lease, GRACE))
  }

  get isAlive(): boolean {
    return this.home.keeper === this
  }

  private does(act: () => void): void {
    if (!this.isAlive) return
    if (this.isHanging) this.left.push(act)
    else act()
  }

  private later(low: number, high: number, act: () => void): void {
    this.world.universe.later(this.chance.skewed(low, high), () => this.does(act))
  }

  hangs(ms: number): void {
    this.isHanging = true
    this.world.universe.later(ms, () => {
      this.isHanging = false
      for (const act of this.left.splice(0)) this.does(act)
    })
  }

  /** SIGKILL, or its own end. */
  dies(): void {
    if (!this.isAlive) return
    this.home.keeper = undefined
    this.client?.hangsUp()
    this.world.note(`keeper ${this.home.folder.split("/").at(-1)} is gone`)
    const { count, runs } = this.home
    // the anchors
    for (const { started } of runs.values())
      this.world.universe.later(this.lease, () => {
        if (this.home.count !== count) return
        started?.process.term()
        this.world.universe.later(GRACE, () => started?.process.kill())
      })
  }

  // Programs.

  private adopts(held: Held): void {
    held.parent = undefined
    held.exit = undefined
    for (const name of ["out", "err"] as const) this.takes(held, name)
    const look = () => {
      if (held.isAlive) this.later(LOOK / 2, LOOK, look)
      else this.exits(held, { code: null, signal: null })
    }
    look()
  }

  private tell(tale: Tale): void {
    this.client?.says(tale)
  }

  /** Puts into files the words of the program. */
  takes(held: Held, name: StreamName): void {
    this.does(() => {
      const pipe = held[name]
      for (const chunk of pipe.waiting.splice(0)) {
        if (!held.forgotten) {
          if (pipe.size - pipe.base >= this.world.habits.segment) pipe.base = pipe.size
          fs.appendFileSync(path.join(held.folder, `${name}.${pipe.base}`), chunk)
        }
        pipe.size += chunk.length
        this.tell({ tell: "output", run: held.name, stream: name, size: pipe.size })
      }
      this.settles(held)
    })
  }

  exits(held: Held, status: ExitStatus): void {
    this.does(() => {
      if (held.exit !== undefined) return
      held.exit = status
      const { code, signal } = status
      this.tell({ tell: "exited", run: held.name, code, signal })
      this.settles(held)
      // somebody else holds a pipe, and says nothing
      this.later(HELD / 2, HELD, () => {
        held.out.isOver = true
        held.err.isOver = true
        this.settles(held)
      })
    })
  }

  private settles(held: Held): void {
    const { err, exit, out } = held
    if (exit === undefined || held.ended || !out.isOver || !err.isOver) return
    if (out.waiting.length + err.waiting.length > 0) return
    const tale = { run: held.name, ...exit, out: out.size, err: err.size }
    this.tell({ tell: "whole", ...tale })
    this.later(0.5, 20, () => {
      if (held.ended) return
      held.ended = true
      const { code, signal } = exit
      if ((code ?? signal) !== null) this.world.recorded(held)
      if (!held.forgotten) held.writes("exit", { code, signal, out: out.size, err: err.size, seq: held.seq })
      const isFreed = !fs.existsSync(path.join(held.folder, "out.0"))
      if (isFreed) this.world.sometimes("keeper: output is freed")
      this.tell({ tell: "ended", ...tale })
      if (held.forgotten) this.forgets(held)
      this.rests()
    })
  }

  private forgets(held: Held): void {
    held.forgotten = true
    if (!held.ended) return
    this.home.runs.delete(held.name)
    fs.rmSync(held.folder, { recursive: true, force: true })
    this.rests()
  }

  private ends(): void {
    this.isRetired = true
    for (const { started } of this.home.runs.values()) {
      started?.process.term()
      this.world.universe.later(GRACE, () => started?.process.kill())
    }
    this.rests()
  }

  // The daemon.

  private get isQuiet(): boolean {
    return [...this.home.runs.values()].every(({ ended }) => ended)
  }

  /** With nothing to do it leaves: at once where it is retired, else after a while without a daemon. */
  private rests(): void {
    if (this.isRetired && this.isQuiet) return this.leaves()
    const isIdle = () => this.client === undefined && this.home.runs.size === 0
    if (isIdle()) this.world.universe.later(LINGER, () => this.does(() => isIdle() && this.leaves()))
  }

  private leaves(): void {
    fs.rmSync(path.join(this.home.folder, "sock"), { force: true })
    this.dies()
  }

  private unwatched(ms: number): void {
    const watch = ++this.watch
    this.world.universe.later(ms, () =>
      this.does(() => {
        if (watch !== this.watch || this.client !== undefined) return
        this.world.note(`no daemon for ${ms} ms: all programs are ended`)
        this.world.sometimes("keeper: the lease is over")
        this.ends()
      })
    )
    this.rests()
  }

  misses(wire: Wire): void {
    this.does(() => {
      if (this.client !== wire) return
      this.client = undefined
      this.unwatched(this.lease)
    })
  }

  hears(wire: Wire, { id, ...order }: Order & { readonly id: number }): void {
    this.does(() => this.answers(wire, order as Order, (reply) => this.does(() => wire.says({ re: id, ...reply }))))
  }

  private answers(wire: Wire, order: Order, reply: (reply: Omit<Reply, "re">) => void): void {
    if (order.op === "meet") return reply(this.proven(order.nonce))
    if (order.op === "hello") return this.greets(wire, order.epoch, reply)
    if (this.client !== wire) return reply({ error: "hello first" })
    if (order.op === "spawn") return this.spawns(wire, order, reply)
    if (order.op === "retire") {
      reply({})
      this.isRetired = true
      return this.rests()
    }
    const held = this.home.runs.get(order.run)
    if (held === undefined) return reply({ error: "unknown" })
    if (order.op === "write") return this.writes(held, order, reply)
    if (order.op === "forget") this.forgets(held)
    reply({})
  }

  private get epoch(): number {
    const file = path.join(this.home.folder, "epoch")
    return fs.existsSync(file) ? Number(fs.readFileSync(file, "utf8")) : -1
  }

  /** Of the world's daemons none is somebody else's: their own proofs are not looked at. */
  private proven(theirs: string): Omit<Reply, "re"> {
    const { epoch } = this
    const secret = Proof.secretOf(path.dirname(this.home.folder))
    return { epoch, nonce: "", proof: Proof.proofOf(secret, "keeper", theirs, "", epoch) }
  }

  private greets(wire: Wire, epoch: number, reply: (reply: Omit<Reply, "re">) => void): void {
    if (epoch < this.epoch) return reply({ error: "fenced" })
    fs.writeFileSync(path.join(this.home.folder, "epoch"), String(epoch))
    if (this.client !== wire) this.client?.hangsUp()
    this.client = wire
    const runs = [...this.home.runs.values()].filter(({ started }) => started !== undefined)
    if (runs.length > 0) this.world.sometimes("keeper: a daemon finds programs")
    reply({ version: VERSION, runs: runs.map(({ listed }) => listed) })
  }

  private spawns(
    wire: Wire,
    { run: name, script }: Extract<Order, { op: "spawn" }>,
    reply: (reply: Omit<Reply, "re">) => void
  ): void {
    const { home, world } = this
    const folder = path.join(home.folder, "runs", name)
    if (this.isRetired) return reply({ error: "retired" })
    if (fs.existsSync(folder)) return reply({ error: "EEXIST" })
    const program = JSON.parse(script) as Program
    const chance = world.processes.dice(program.env["AGENTD_AGENT"] ?? "")
    if (world.processes.unruly && chance.is(world.processes.swarm.failsStart)) return reply({ error: "EAGAIN" })
    this.later(1, 20, () => {
      // the next daemon has been told what is held
      if (this.client !== wire) return reply({ error: "fenced" })
      const held = new Held(name, folder, this)
      home.runs.set(name, held)
      const keeper = () => home.keeper
      held.started = world.start(name, program, chance, {
        wrote: (of, chunk) => {
          if (held.isCut) return
          if (chunk === undefined) held[of].isOver = true
          else held[of].waiting.push(chunk)
          keeper()?.takes(held, of)
        },
        exited: (status) => {
          held.status = status
          // to another one it is no child
          held.parent?.exits(held, status)
        }
      })
      const { born, pid } = held.started.process
      held.writes("meta", { pid, start: String(born), boot: EndedPrograms.boot() })
      reply({ pid, start: String(born) })
    })
  }

  private writes(
    held: Held,
    { data, seq }: Extract<Order, { op: "write" }>,
    reply: (reply: Omit<Reply, "re">) => void
  ): void {
    if (seq <= held.seq) return reply({ seq: held.seq })
    if (seq !== held.seq + 1) return reply({ error: "gap", seq: held.seq })
    if (held.exit !== undefined || held.isClosed) return reply({ error: "EPIPE" })
    held.seq = seq
    held.isClosed = data === null
    if (data === null) held.started?.close()
    else held.started?.write(data)
    reply({ seq })
  }
}

export interface KeepersOptions {
  readonly seed: number
  readonly habits: Keeping
  readonly start: Start
  readonly sometimes: (what: string) => void
}

export class Keepers {
  readonly processes: Processes
  readonly habits: Keeping
  readonly seed: number
  readonly start: Start
  readonly sometimes: (what: string) => void
  /** Keepers and their folders. */
  private readonly homes = new Map<string, Home>()
  private readonly wires = new Set<Wire>()
  /** Changes with each daemon that comes or goes. */
  private absence = 0
  private readonly chance: Chance

  constructor(processes: Processes, { habits, seed, sometimes, start }: KeepersOptions) {
    this.processes = processes
    this.habits = habits
    this.seed = seed
    this.start = start
    this.sometimes = sometimes
    this.chance = new Chance(seed, "keepers")
  }

  get universe(): Universe {
    return this.processes.universe
  }

  recorded({ started }: Held): void {
    if (started !== undefined) this.processes.witness.contract?.recorded(started.process.runId)
  }

  note(what: string): void {
    this.universe.note(what)
  }

  private homeOf(folder: string): Home {
    const known = this.homes.get(folder)
    if (known !== undefined) return known
    const home = new Home(folder)
    this.homes.set(folder, home)
    return home
  }

  /** Of a daemon. */
  get environment(): { readonly [name: string]: string } {
    return { AGENTD_KEEPER_SEGMENT: String(this.habits.segment) }
  }

  /** As a daemon starts and reaches them. */
  readonly machinery = (life: Life): Keeper.Machinery => ({
    connect: (file, heard) =>
      Effect.callback((resume) => {
        this.absence += 1
        const come = () => {
          const { keeper } = this.homeOf(path.dirname(file))
          if (keeper === undefined) return resume(Effect.fail("ENOENT"))
          const wire = new Wire(this.processes, life, this.chance, keeper)
          this.wires.add(wire)
          resume(Effect.succeed(new KeeperLink(wire as unknown as Socket, heard)))
        }
        this.universe.later(this.chance.skewed(0.05, 2), come, life)
      }),
    launch: (folder, { lease }) => {
      this.universe.later(this.chance.skewed(20, 300), () => {
        const home = this.homeOf(folder)
        if (home.keeper !== undefined || !fs.existsSync(folder)) return
        this.note(`keeper ${path.basename(folder)} begins`)
        home.keeper = new Played(this, home, Duration.toMillis(lease))
        home.keeper.begins()
      })
      return { failed: undefined }
    },
    killed: (folder) => this.homeOf(folder).keeper?.dies(),
    lives: ({ pid }) => [...this.processes.living].some((process) => process.pid === pid),
    script: (program) => ({ script: JSON.stringify(program) })
  })

  /** The daemon is gone. */
  ends(life: Life): void {
    for (const wire of this.wires) {
      if (wire.life !== life) continue
      wire.destroySoon()
      this.wires.delete(wire)
    }
    const mine = ++this.absence
    const { hangs, lease } = this.habits
    const longest = Duration.toMillis(Schema.decodeSync(Span)(lease)) + GRACE + ENDING
    this.universe.later(longest + (hangs > 0 ? LONGEST_HANG : 0), () => {
      if (mine !== this.absence) return
      for (const process of this.processes.living)
        if (process.isKept) this.processes.witness.contract?.outlived(process)
    })
  }

  private get all(): ReadonlyArray<Played> {
    return [...this.homes.values()].flatMap(({ keeper }) => keeper ?? [])
  }

  /** The newest keeper is killed, or hangs. */
  dies(): void {
    this.all.at(-1)?.dies()
  }

  hangs(ms: number): void {
    this.all.at(-1)?.hangs(ms)
  }

  /** The machine is off: what was in no file yet is gone, and what was on no disk may be. */
  powerCut(): void {
    for (const keeper of this.all) keeper.dies()
    for (const { runs } of this.homes.values())
      for (const held of runs.values()) {
        held.status ??= { code: null, signal: null }
        held.isCut = true
        for (const name of ["out", "err"] as const) {
          // a pipe's content is on no disk
          if (held[name].waiting.splice(0).length > 0) this.tears(held)
          held[name].isOver = true
          if (!held.ended && this.chance.is(this.habits.loses)) this.loses(held, name)
        }
      }
  }

  private tears({ started }: Held): void {
    if (started !== undefined) this.processes.witness.contract?.tore(started.process.runId)
  }

  /** The end of the newest file. */
  private loses(held: Held, name: StreamName): void {
    const { folder } = held
    const pipe = held[name]
    this.tears(held)
    const size = this.chance.below(pipe.size - pipe.base + 1)
    fs.truncateSync(path.join(folder, `${name}.${pipe.base}`), size)
    pipe.size = pipe.base + size
  }
}
