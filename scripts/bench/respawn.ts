/**
 * Bench of a program that was killed, and is there again: an agent in the real daemon, waits turned off, beside a
 * service of runit, where `runsv` is on the PATH (`apt-get download runit && dpkg -x runit*.deb DIR`). From
 * SIGKILL until the next program says that it runs, by the same shell, the same words and the same sign.
 *
 * Two figures: of supervisors that run all the time and have answered kills before, which is what an agent meets; and
 * the first kill after a supervisor's start, when none of what it needs then has run yet.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { command, type Place, started, stopped } from "./History.ts"

const ROUNDS = 7
/** Kills of a round, of what runs all the time. */
const KILLS = 3
/** ms; runsv lets a service that ran for less than a second wait. */
const LIFE = 1_200
const PATIENCE = 20_000

const RUNNING = "killed to running"
const FIRST = "first kill after a start"

const measures: ReadonlyArray<Measure> = [RUNNING, FIRST].map((what) => ({ what, unit: "ms", better: "less" }))

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

/** ms from the kill to the next life, the median of so many. */
const killed = async (file: string, kills: number): Promise<number> => {
  const samples: Array<number> = []
  for (let kill = 0; kill < kills; kill++) {
    const count = lives(file).length
    const { pid } = await lifeAfter(file, count - 1)
    await wait(LIFE)
    const at = performance.timeOrigin + performance.now()
    process.kill(pid, "SIGKILL")
    samples.push((await lifeAfter(file, count)).at - at)
  }
  return samples.toSorted((a, b) => a - b)[Math.floor(kills / 2)]!
}

const AGENTD = "agentd"
const RUNIT = "runit"

/** A supervisor of the program that notes its lives in this file. */
interface Supervisor {
  readonly file: string
  /** Answers with what ends it. */
  readonly start: () => Promise<() => Promise<void>>
}

/** `running`: runs all the time. `anew`: is started for each first kill. */
const subjectOf = (subject: string, running: string, { file, start }: Supervisor): Subject => ({
  subject,
  round: async () => {
    const figure = await killed(running, KILLS)
    const count = lives(file).length
    const end = await start()
    await lifeAfter(file, count)
    const first = await killed(file, 1)
    await end()
    return { [RUNNING]: figure, [FIRST]: first }
  }
})

const agentd = (place: Place, file: string): Supervisor => ({
  file,
  start: async () => {
    const { daemon } = await started(place)
    return () => stopped(daemon)
  }
})

const runit = (root: string, name: string): Supervisor => {
  const [service, file] = [join(root, name), join(root, `${name}.lives`)]
  mkdirSync(service)
  writeFileSync(join(service, "run"), `#!/bin/sh\n${program(file)}\n`)
  chmodSync(join(service, "run"), 0o755)
  return {
    file,
    start: async () => {
      const supervisor = spawn("runsv", [service], { stdio: "ignore" })
      return async () => {
        supervisor.kill("SIGTERM")
        await once(supervisor, "exit")
      }
    }
  }
}

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

/** An agent that was begun once, so that it comes with its daemon. */
const agentOf = async (root: string, name: string): Promise<Supervisor> => {
  const file = join(root, `${name}.lives`)
  const place = placeOf(join(root, name), file)
  const supervisor = agentd(place, file)
  const end = await supervisor.start()
  command(place, "start")
  await lifeAfter(file, 0)
  await end()
  return supervisor
}

export const bench: Bench = {
  name: "respawn",
  run: async () => {
    const root = folder()
    const pairs: Array<readonly [string, Supervisor, Supervisor]> = [
      [AGENTD, await agentOf(root, "a"), await agentOf(root, "b")]
    ]
    if (hasRunsv()) pairs.push([RUNIT, runit(root, "c"), runit(root, "d")])
    else console.log("no runsv on the PATH: no peer is measured")
    const ends: Array<() => Promise<void>> = []
    for (const [, { file, start }] of pairs) {
      const count = lives(file).length
      ends.push(await start())
      await lifeAfter(file, count)
    }
    const subjects = pairs.map(([subject, { file }, anew]) => subjectOf(subject, file, anew))
    const rows = await interleave(measures, subjects, ROUNDS)
    for (const end of ends) await end()
    return rows
  },
  aims: [RUNNING, FIRST].map((what) => ({ what, of: AGENTD, to: { subject: RUNIT }, atMost: 1.5 }))
}
