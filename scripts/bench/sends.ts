/**
 * Bench of what a message costs the real daemon: by a new connection each, as a command sends it, greeting and all,
 * and one after the other on one connection. CPU is the daemon's, by message; its agents are stopped and keep them.
 */
import { join } from "node:path"
import { ourselves } from "../../src/api/rpc/Version.ts"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { cpuOf, type Place, started, stopped, stoppedAgents } from "./History.ts"
import { Line } from "./Line.ts"

const ROUNDS = 7
const MESSAGES = 100
const AGENTS = 20

const measures: ReadonlyArray<Measure> = [
  { what: "CPU", unit: "ms", better: "less" },
  { what: "wall", unit: "ms", better: "less" }
]

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
    const place = stoppedAgents(folder(), AGENTS)
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
