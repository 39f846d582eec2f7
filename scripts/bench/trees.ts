/**
 * Bench of work trees: ten agents of a project with the installed packages of this repository start at the same time,
 * each in a new work tree with a copy of `node_modules`; beside ten `cp --reflink=auto -a` at the same time. And one
 * work tree with 200,000 files, and how long the daemon takes to answer meanwhile.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { ourselves } from "../../src/api/rpc/Version.ts"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { type Place, started, stopped } from "./History.ts"
import { Line } from "./Line.ts"

const ROUNDS = 3
const TREES = 10
const FILES = 200_000
const FILES_IN_FOLDER = 500
/** ms between two questions to the daemon. */
const PAUSE = 20

const PACKAGES = join(import.meta.dirname, "../../node_modules")

/** A project whose agents get a copy of `node_modules`. */
const projectOf = (root: string, agents: number, fill: (at: string) => void): string => {
  const project = join(root, "shop")
  mkdirSync(project)
  const git = (...words: ReadonlyArray<string>) => execFileSync("git", ["-C", project, ...words])
  git("init", "-q")
  writeFileSync(join(project, ".gitignore"), "agentd.jsonc\nnode_modules/\n")
  git("add", "-A")
  git("-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-q", "-m", "first")
  fill(join(project, "node_modules"))
  const agent = { autostart: false, backend: { type: "command", shell: "cat" }, worktree: { copy: ["node_modules"] } }
  const all = Object.fromEntries(Array.from({ length: agents }, (_, n) => [`agent${n}`, agent]))
  writeFileSync(join(project, "agentd.jsonc"), JSON.stringify({ agents: all }))
  return project
}

const settled = () => spawnSync("sync")

interface Row {
  readonly agent: string
  readonly state: string
  readonly detail: string
}

/** Starts all agents of a new daemon. Returns how long that takes, s, and the daemon's slowest answer, ms. */
const readyIn = async (root: string, project: string, agents: number) => {
  const environment = { ...process.env, XDG_CONFIG_HOME: join(root, "config"), CLAUDE_CONFIG_DIR: join(root, "claude") }
  const place: Place = { state: join(root, "s"), project, environment }
  const { daemon } = await started(place)
  const line = await Line.open(join(place.state, "control.sock"))
  await line.ask("Hello", { ...ourselves, pid: process.pid })
  const caller = { by: "bench", config: join(project, "agentd.jsonc") }
  settled()
  const begun = performance.now()
  const starts = Array.from({ length: agents }, (_, n) => line.ask("Start", { name: `agent${n}`, caller }))
  let slowest = 0
  for (;;) {
    const asked = performance.now()
    const rows = (await line.ask("Agents")) as ReadonlyArray<Row>
    slowest = Math.max(slowest, performance.now() - asked)
    const failed = rows.find(({ state }) => state === "Failed")
    if (failed !== undefined) throw new Error(`${failed.agent}: ${failed.detail}`)
    if (rows.filter(({ state }) => state === "BuildingPrompt").length === agents) break
    await wait(PAUSE)
  }
  const ready = (performance.now() - begun) / 1_000
  await Promise.all(starts)
  line.close()
  await stopped(daemon)
  rmSync(place.state, { recursive: true })
  return { ready, "slowest answer": slowest }
}

/** As many copies as there are trees, by cp alone. */
const copiedIn = async (root: string, project: string) => {
  const trees = Array.from({ length: TREES }, (_, n) => join(root, "copies", `${n}`))
  for (const tree of trees) mkdirSync(tree, { recursive: true })
  settled()
  const begun = performance.now()
  const copies = trees.map((tree) => spawn("cp", ["--reflink=auto", "-a", join(project, "node_modules"), tree]))
  await Promise.all(copies.map((copy) => once(copy, "exit")))
  const ready = (performance.now() - begun) / 1_000
  rmSync(join(root, "copies"), { recursive: true })
  return { ready }
}

const measures: ReadonlyArray<Measure> = [
  { what: "ready", unit: "s", better: "less" },
  { what: "slowest answer", unit: "ms", better: "less" }
]

const [OURS, CP, MANY] = [`${TREES} work trees`, `${TREES} cp`, `one work tree, ${FILES} files`] as const

const manyFiles = (at: string) => {
  for (let n = 0; n < FILES; n++) {
    const below = join(at, `${Math.floor(n / FILES_IN_FOLDER)}`)
    if (n % FILES_IN_FOLDER === 0) mkdirSync(below, { recursive: true })
    writeFileSync(join(below, `${n}.js`), `export const n = ${n}\n`)
  }
}

export const bench: Bench = {
  name: "trees",
  isLong: true,
  run: async () => {
    const [root, other] = [folder(), folder()]
    const project = projectOf(root, TREES, (at) => execFileSync("cp", ["-a", PACKAGES, at]))
    const large = projectOf(other, 1, manyFiles)
    const subjects: ReadonlyArray<Subject> = [
      { subject: OURS, round: () => readyIn(root, project, TREES) },
      { subject: CP, round: () => copiedIn(root, project) },
      { subject: MANY, round: () => readyIn(other, large, 1) }
    ]
    return interleave(measures, subjects, ROUNDS)
  },
  aims: [
    { what: "ready", to: { subject: CP }, atMost: 1.3 },
    { what: "slowest answer", atMost: 500 },
    { what: "slowest answer", of: MANY, atMost: 500 }
  ]
}
