/**
 * Bench of a daemon that has nothing to do, as it is installed and started: memory that is its own in any company,
 * and how often its threads wake. Beside it a bare Node that waits.
 */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { type Bench, folder, type Row } from "./Bench.ts"
import { ownMemory } from "./History.ts"
import { crewOf, dismissed, installed } from "./Installed.ts"

const AGENTS = 200
/** ms for which is looked; and of each look until they are all alike, so many in a row, of at least and at most so many. */
const [LOOK, STEP, ALIKE, LEAST, MOST] = [60_000, 5_000, 4, 12, 60]

/** Context switches that the threads of a process made of their own accord. */
const wakeupsOf = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"))
    .reduce((sum, status) => sum + Number(/^voluntary_ctxt_switches:\s+(\d+)/mu.exec(status)?.[1] ?? 0), 0)

/**
 * Returns when what the start began is over: it wakes no less from one look to the next. Collections that give its memory
 * back come for most of a minute, and as regularly.
 */
const settled = async (pid: number): Promise<void> => {
  const looks: Array<number> = []
  for (let before = wakeupsOf(pid); looks.length < MOST; before = wakeupsOf(pid)) {
    await wait(STEP)
    looks.push(wakeupsOf(pid) - before)
    const last = looks.slice(-ALIKE)
    if (looks.length >= LEAST && Math.max(...last) <= Math.min(...last) * 1.5 + 3) return
  }
  console.log(`It does not settle: wakeups of looks of ${STEP} ms: ${looks.join(" ")}`)
}

const rowsOf = (subject: string, memory: number, wakeups: number): ReadonlyArray<Row> => [
  { what: "own memory", subject, unit: "MB", median: memory, samples: [memory], ratios: [] },
  { what: "wakeups", subject, unit: "a minute", median: wakeups, samples: [wakeups], ratios: [] }
]

const IDLE = `${AGENTS} agents`

export const bench: Bench = {
  name: "idle",
  isLong: true,
  run: async () => {
    const at = folder()
    const command = installed(join(at, "npm"))
    // what the first start of an installation compiles is kept for the others
    await dismissed(await crewOf(at, command, 1))
    const crew = await crewOf(at, command, AGENTS)
    const bare = spawn(process.execPath, ["-e", "setTimeout(() => {}, 1e9)"], { stdio: "ignore" })
    try {
      await settled(crew.daemon.pid!)
      const pids = [crew.daemon.pid!, bare.pid!]
      const before = pids.map(wakeupsOf)
      await wait(LOOK)
      return pids.flatMap((pid, index) =>
        rowsOf([IDLE, "bare node"][index]!, ownMemory(pid), ((wakeupsOf(pid) - before[index]!) * 60_000) / LOOK)
      )
    } finally {
      bare.kill()
      await dismissed(crew)
    }
  },
  aims: [
    { what: "own memory", of: IDLE, atMost: 50 },
    { what: "wakeups", of: IDLE, atMost: 50 }
  ]
}
