/**
 * Lookout: the sessions of a world, and a person who looks at the board every other second: what
 * it shows is held against what is so, unless clock, disk or daemon are not as they should be.
 */
import { Exit } from "effect"
import type { Plates } from "../checks/Plates.ts"
import { STATE, type Up } from "../Daemon.ts"
import type { Swarm } from "../Swarm.ts"
import type { Life, Universe, Wall } from "../Universe.ts"
import type { Disk } from "../world/Disk.ts"
import type { Files } from "../world/Files.ts"
import type { Processes } from "../world/Processes.ts"
import { Sessions } from "../world/Sessions.ts"

/** Between two looks, ms: in the storm, and after it. */
const LOOKS = { stormy: 2_000, calm: 10_000 } as const

export interface Machine {
  readonly seed: number
  readonly universe: Universe
  readonly swarm: Swarm
  readonly wall: Wall
  readonly disk: Disk
  readonly files: Files
  readonly processes: Processes
  /** The daemon, where one is up. */
  readonly up: () => { readonly life: Life; readonly daemon: Up } | undefined
}

export class Lookout {
  readonly sessions: Sessions | undefined
  private readonly machine: Machine
  private readonly plates: Plates
  /** The latest that the machine's clock has ever shown, ms since the world's epoch. */
  private latest = 0
  private isStormy = true

  constructor(machine: Machine, plates: Plates) {
    const { files, processes, seed, swarm, universe, wall } = machine
    this.machine = machine
    this.plates = plates
    if (swarm.board === undefined) return
    this.sessions = new Sessions(universe, { seed, habits: swarm.board, files, wall, state: STATE, onlooker: plates })
    this.sessions.isBehind = () => universe.now + wall.skew < this.latest
    this.sessions.agents = () => [...processes.living].map(({ pid }) => pid)
    this.look()
  }

  private look(): void {
    const { disk, universe, up, wall } = this.machine
    const shows = universe.now + wall.skew
    // what is noted by a clock that was set back is older than what was heard before
    if (disk.state !== "well" || disk.slowest > 5 || shows < this.latest) this.disturbed()
    this.latest = Math.max(this.latest, shows)
    const there = up()
    const askedAt = universe.now
    there?.life.run(there.daemon.client.Plates({ all: true }), (exit) => {
      if (Exit.isSuccess(exit)) this.plates.shown(exit.value, askedAt)
    })
    universe.later(this.isStormy ? LOOKS.stormy : LOOKS.calm, () => this.look())
  }

  /** Something has gone wrong now. */
  disturbed(): void {
    const { universe, wall } = this.machine
    this.latest = Math.max(this.latest, universe.now + wall.skew)
    this.plates.disturbedAt = this.machine.universe.now
  }

  /** Nothing goes wrong any more. */
  calms(): void {
    const { universe, wall } = this.machine
    this.isStormy = false
    // a person sets the clock right
    if (this.sessions?.isBehind() === true) wall.skew = this.latest - universe.now
    this.plates.calmSince = this.machine.universe.now
    if (this.sessions !== undefined) this.sessions.isUnruly = false
  }

  /** The daemon is gone: no hook finds it. */
  closes(): void {
    if (this.sessions !== undefined) this.sessions.door = undefined
  }
}
