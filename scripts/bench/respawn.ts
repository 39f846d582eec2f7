/**
 * Bench of a program that was killed, and is there again: an agent in the real daemon, waits turned off, beside a
 * service of runit, where `runsv` is on the PATH (`apt-get download runit && dpkg -x runit*.deb DIR`). From
 * SIGKILL until the next program says that it runs.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { command, type Place, started, stopped } from "./History.ts"

const ROUNDS = 7
/** Kills of a round. */
const KILLS = 3
/** ms; runsv lets a service that ran for less than a second wait. */
const LIFE = 1_200
const PATIENCE = 20_000

const measures: ReadonlyArray<Measure> = [{ what: "killed to running", unit: "ms", better: "less" }]

/** Says who it is and since when, ns since the epoch. */
const program = (file: string): string => `echo $$ $(date +%s%N) >> '${file}'; exec sleep 1000`

interface Life {
  readonly pid: number
  /** ms since the epoch */
  readonly at: number
}

const lives = (file: string): ReadonlyArray<Life> =>
  (existsSync(file) ? readFileSync(file, "utf8") : "")
    .trim()
    .split("\n")
    .filter((line) => line.includes(" "))
    .map((line) => line.split(" "))
    .map(([pid, nanos]) => ({ pid: Number(pid), at: Number(nanos) / 1e6 }))

const lifeAfter = async (file: string, count: number): Promise<Life> => {
  for (let waited = 0; waited < PATIENCE; waited += 20) {
    const all = lives(file)
    if (all.length > count) return all.at(-1)!
    await wait(20)
  }
  throw new Error(`nothing runs again after ${count}: ${JSON.stringify(lives(file))}`)
}

/** ms from the kill to the next life, the median of some. */
const killed = async (file: string): Promise<number> => {
  const samples: Array<number> = []
  for (let kill = 0; kill < KILLS; kill++) {
    const count = lives(file).length
    const { pid } = await lifeAfter(file, count - 1)
    await wait(LIFE)
    const at = performance.timeOrigin + performance.now()
    process.kill(pid, "SIGKILL")
    samples.push((await lifeAfter(file, count)).at - at)
  }
  return samples.toSorted((a, b) => a - b)[Math.floor(KILLS / 2)]!
}

const AGENTD = "agentd"
const RUNIT = "runit"

const agentd = (place: Place, file: string): Subject => ({
  subject: AGENTD,
  round: async () => {
    const count = lives(file).length
    const { daemon } = await started(place)
    await lifeAfter(file, count)
    const figure = await killed(file)
    await stopped(daemon)
    return { "killed to running": figure }
  }
})

const runit = (service: string, file: string): Subject => ({
  subject: RUNIT,
  round: async () => {
    const count = lives(file).length
    const supervisor = spawn("runsv", [service], { stdio: "ignore" })
    await lifeAfter(file, count)
    const figure = await killed(file)
    supervisor.kill("SIGTERM")
    await once(supervisor, "exit")
    return { "killed to running": figure }
  }
})

const placeOf = (root: string, file: string): Place => {
  const project = join(root, "shop")
  mkdirSync(project, { recursive: true })
  const agent = {
    mode: "loop",
    prompt: "run",
    worktree: false,
    // the same program: it reads nothing
    backend: { type: "command", shell: program(file), promptBy: "argument" },
    minRunInterval: "0ms",
    backoff: { base: "0ms", cap: "0ms" },
    maxConsecutiveErrors: 10_000,
    maxTotalErrors: 10_000
  }
  writeFileSync(join(project, "agentd.jsonc"), JSON.stringify({ agents: { loop: agent } }))
  const environment = {
    ...process.env,
    XDG_CONFIG_HOME: join(root, "config"),
    CLAUDE_CONFIG_DIR: join(root, "claude")
  }
  return { state: join(root, "s"), project, environment }
}

const hasRunsv = (): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((path) => existsSync(join(path, "runsv")))

export const bench: Bench = {
  name: "respawn",
  run: async () => {
    const root = folder()
    const [ours, theirs] = [join(root, "agentd.lives"), join(root, "runit.lives")]
    const place = placeOf(root, ours)
    const { daemon } = await started(place)
    command(place, "start")
    await lifeAfter(ours, 0)
    await stopped(daemon)
    const service = join(root, "service")
    mkdirSync(service)
    writeFileSync(join(service, "run"), `#!/bin/sh\n${program(theirs)}\n`)
    chmodSync(join(service, "run"), 0o755)
    const peers = hasRunsv() ? [runit(service, theirs)] : []
    if (peers.length === 0) console.log("no runsv on the PATH: no peer is measured")
    return interleave(measures, [agentd(place, ours), ...peers], ROUNDS)
  },
  aims: [{ what: "killed to running", of: AGENTD, to: { subject: RUNIT }, atMost: 1.5 }]
}
