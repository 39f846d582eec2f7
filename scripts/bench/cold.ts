/**
 * Bench of the daemon's start over nothing, as it is installed and as `agentd start` starts it: ten agents, an empty
 * store; from the spawn to its first answer, and until all is ready. Beside it a bare Node with the same flags.
 */
import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { commandOf, variablesFor } from "../../src/systemd/DaemonNode.ts"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { AGENTS, type Place, phaseOf, stopped } from "./History.ts"
import { installed } from "./Installed.ts"

const ROUNDS = 12

const measures: ReadonlyArray<Measure> = [
  { what: "first answer", unit: "ms", better: "less" },
  { what: "all ready", unit: "ms", better: "less" }
]

const [DAEMON, BARE] = ["agentd", "node -e 0"] as const

/** The program of a bundle, by the Node that runs this, as the launcher starts it. */
const started = async (script: string, { environment, project, state }: Place) => {
  const [node = "", ...words] = commandOf([process.execPath, script, "--state", state, "up"])
  const begin = performance.now()
  const env = { ...environment, ...variablesFor(environment) }
  const daemon = spawn(node, words, { cwd: project, env, stdio: "ignore" })
  let answered: number | undefined
  for (;;) {
    const phase = await phaseOf({ environment, project, state })
    const now = performance.now() - begin
    if (phase !== undefined) answered ??= now
    if (phase === "ready") return { daemon, answered: answered!, ready: now }
    if (daemon.exitCode !== null) throw new Error(`the daemon does not start (${daemon.exitCode})`)
    await wait(2)
  }
}

const agentd = (at: string, script: string): Subject => {
  const project = join(at, "shop")
  mkdirSync(project)
  const backend = { type: "command", shell: "cat" }
  const agents = Object.fromEntries(AGENTS.map((name) => [name, { backend }]))
  writeFileSync(join(project, "agentd.jsonc"), JSON.stringify({ agents }))
  const environment = { ...process.env, XDG_CONFIG_HOME: join(at, "config"), XDG_CACHE_HOME: join(at, "cache") }
  let count = 0
  return {
    subject: DAEMON,
    round: async () => {
      const { answered, daemon, ready } = await started(script, {
        environment,
        project,
        state: join(at, `s${count++}`)
      })
      await stopped(daemon)
      return { "first answer": answered, "all ready": ready }
    }
  }
}

const bare: Subject = {
  subject: BARE,
  round: () => {
    const [node = "", ...words] = commandOf([process.execPath, "-e", "0"])
    const begin = performance.now()
    spawnSync(node, words, { env: { ...process.env, ...variablesFor(process.env) }, stdio: "ignore" })
    const took = performance.now() - begin
    return Promise.resolve({ "first answer": took, "all ready": took })
  }
}

export const bench: Bench = {
  name: "cold",
  run: () => {
    const at = folder()
    installed(at)
    return interleave(measures, [agentd(at, join(at, "lib", "agentd", "dist", "agentd.mjs")), bare], ROUNDS)
  },
  aims: [
    { what: "first answer", of: DAEMON, to: { subject: BARE }, atMost: 8 },
    { what: "all ready", of: DAEMON, to: { subject: BARE }, atMost: 14 }
  ]
}
