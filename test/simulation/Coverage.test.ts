/**
 * The worlds come to what there is: at least 85 of 100 of the legal cells of each machine's
 * table in a recorded list of few seeds, of a plate's 75; under `ALL=1` 95 of 100, all ways
 * to end, all refusals, and each fault while each command is open. A cell that no daemon
 * comes to is named with its reason in Unreached, a refusal in Refusals.
 */
import { assert, describe, it } from "@effect/vitest"
import { cellsOf } from "../support/Cells.ts"
import { unreached } from "../support/Unreached.ts"
import { noCells } from "./checks/Tables.ts"
import * as Coverage from "./Coverage.ts"
import { simulate } from "./Simulation.ts"
import { type Swarm, swarmOf } from "./Swarm.ts"
import { all, long } from "../support/Long.ts"

const MINUTES = 3
/** Of the worlds of what is rare, those that together come to much in little time. */
const SEEDS = [
  60_054, 60_064, 60_051, 60_015, 60_014, 60_021, 60_050, 60_063, 60_077, 60_001, 60_010, 60_035, 60_052, 60_079
]
/** Of those with a board, and of those in which its hooks come at all times. */
const BOARDS = [10_031, 15_016, 15_031, 15_060, 15_056, 15_030, 15_044, 15_032, 15_027, 15_035]
const BY_FEW = 0.85
const BY_BOARDS = 0.75
const BY_MANY = 0.95
const MANY = Array.from({ length: 230 }, (_, n) => 60_001 + n)
/** Each has one mishap, which lies in wait for commands. */
const LURKING = Array.from({ length: 208 }, (_, n) => 61_001 + n)
const MANY_BOARDS = Array.from({ length: 150 }, (_, n) => 15_001 + n)
/** ms: this is work and no waiting, and ends by itself. */
const limit = { timeout: 3_600_000 }

/** Plays them; what they break is a broken promise here, too. */
const played = (
  seeds: ReadonlyArray<number>,
  minutes = MINUTES,
  more: (swarm: Swarm) => Partial<Swarm> = () => ({})
) => {
  const cells = noCells()
  const reached = new Map<string, number>()
  for (const seed of seeds) {
    const swarm = swarmOf(seed)
    const result = simulate({ seed, stormy: minutes * 60_000, swarm: { ...swarm, ...more(swarm) } })
    const again = `npm run simulate -- --seed ${seed} --minutes ${minutes}`
    const broken = result.violations.map(({ detail, promise }) => `${again}: ${promise}: ${detail}`)
    assert.deepStrictEqual(broken, [])
    Coverage.add(cells, result.cells)
    for (const [what, times] of result.reached) reached.set(what, (reached.get(what) ?? 0) + times)
  }
  return { cells, reached }
}

const isPlate = ({ name }: Coverage.Covered): boolean => name === "plate"

const areReached = (covered: ReadonlyArray<Coverage.Covered>, share: number): void => {
  for (const { all, missing, name, reached } of covered)
    assert.isAtLeast(reached / all, share, `${name}: ${reached} of ${all}; never: ${missing.join(", ")}`)
}

const names = Object.keys(Coverage.tables) as ReadonlyArray<keyof typeof Coverage.tables>

describe("what the worlds come to", () => {
  long.it("few seeds: 85 of 100 legal cells of each table, and none that is named as unreached", limit, () => {
    const { cells } = played(SEEDS)
    areReached(
      Coverage.coverage(cells).filter((table) => !isPlate(table)),
      BY_FEW
    )
    for (const name of names)
      for (const cell of Object.keys(unreached[name])) assert.isFalse(cells[name].has(cell), `${name}: ${cell}`)
  })

  long.it("few seeds with a board: 75 of 100 of a plate's cells", limit, () => {
    const { cells } = played(BOARDS)
    areReached(Coverage.coverage(cells).filter(isPlate), BY_BOARDS)
  })

  it("no cell is named as unreached that is not in its table", () => {
    for (const name of names) assert.includeMembers([...cellsOf(Coverage.tables[name])], Object.keys(unreached[name]))
  })

  all.it("many seeds: 95 of 100 cells of each table, and of the ways to end", limit, () => {
    const { cells, reached } = played([...MANY, ...MANY_BOARDS])
    const ends = Coverage.sometimes(reached).filter(({ name }) => name === "ways to end")
    areReached(Coverage.coverage(cells), BY_MANY)
    areReached(ends, 1)
  })

  all.it("each fault while each command is open, and each refusal", limit, () => {
    const { reached } = played(LURKING, 10)
    const others = [
      played([60_006, 60_007, 60_017, 60_022], MINUTES),
      // calls and seats on which much is asked again
      played([61_166, 61_144], 10, (swarm) => ({
        commands: { ...swarm.commands, answerAgain: 2, channelRequeue: 2, approve: 1, close: 0, pause: 0 }
      })),
      // a budget that is spent before anybody could say so
      played([60_006, 60_009], MINUTES, (swarm) => ({
        pause: 100,
        people: 4,
        spends: 1,
        every: { ...swarm.every, diskSlow: 3_000 },
        conversation: { budget: { tokens: 20 } },
        commands: { ...swarm.commands, send: 3, urgent: 2, resume: 3 }
      }))
    ]
    for (const other of others)
      for (const [what, times] of other.reached) reached.set(what, (reached.get(what) ?? 0) + times)
    areReached(
      Coverage.sometimes(reached).filter(({ name }) => name !== "ways to end"),
      1
    )
  })
})
