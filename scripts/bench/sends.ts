/**
 * Bench of what a message costs the real daemon: by a new connection each, as a command sends it, greeting and all,
 * and one after the other on one connection. CPU is the daemon's, by message; its agents are stopped and keep them.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ourselves } from "../../src/rpc/Version.ts"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { cpuOf, type Place, started, stopped } from "./History.ts"
import { Line } from "./Line.ts"

const ROUNDS = 7
const MESSAGES = 100
const AGENTS = 20

const measures: ReadonlyArray<Measure> = [
  { what: "CPU", unit: "ms", better: "less" },
  { what: "wall", unit: "ms", better: "less" }
]

const placeOf = (root: string): Place => {
  const project = join(root, "shop")
  mkdirSync(project, { recursive: true })
  const agent = { autostart: false, worktree: false, backend: { type: "command", shell: "cat" } }
  const agents = Object.fromEntries(Array.from({ length: AGENTS }, (_, n) => [`agent${n}`, agent]))
  writeFileSync(join(project, "agentd.jsonc"), JSON.stringify({ agents }))
  return {
    state: join(root, "s"),
    project,
    environment: { ...process.env, XDG_CONFIG_HOME: join(root, "config"), CLAUDE_CONFIG_DIR: join(root, "claude") }
  }
}

const NEW = "a new connection each"
const ONE = "one connection"

const greeted = async ({ state }: Place): Promise<Line> => {
  const line = await Line.open(join(state, "control.sock"))
  await line.ask("Hello", { ...ourselves, pid: process.pid })
  return line
}

export const bench: Bench = {
  name: "sends",
  run: async () => {
    const place = placeOf(folder())
    const { daemon } = await started(place)
    const caller = { by: "bench", config: join(place.project, "agentd.jsonc") }
    let count = 0
    const send = (line: Line) =>
      line.ask("Send", { name: `agent${count++ % AGENTS}`, text: "hello", how: "queue", caller })
    const subject = (name: string, one: () => Promise<unknown>): Subject => ({
      subject: name,
      round: async () => {
        const [before, at] = [cpuOf(daemon.pid!), performance.now()]
        for (let sent = 0; sent < MESSAGES; sent++) await one()
        return { CPU: (cpuOf(daemon.pid!) - before) / MESSAGES, wall: (performance.now() - at) / MESSAGES }
      }
    })
    const kept = await greeted(place)
    try {
      return await interleave(
        measures,
        [
          subject(NEW, async () => {
            const line = await greeted(place)
            await send(line)
            line.close()
          }),
          subject(ONE, () => send(kept))
        ],
        ROUNDS
      )
    } finally {
      kept.close()
      await stopped(daemon)
    }
  },
  aims: [{ what: "CPU", of: NEW, to: { subject: ONE }, atMost: 2.5 }]
}
