/**
 * Bench of the daemon's stop over what waits: the real daemon, from the signal to its end, with as many waiting
 * messages as 200 stopped agents may have; when all have just come, when one more has, and beside a daemon with none.
 */
import { join } from "node:path"
import { ourselves } from "../../src/api/rpc/Version.ts"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { type Place, started, stopped, stoppedAgents } from "./History.ts"
import { Line } from "./Line.ts"

const ROUNDS = 1
const AGENTS = 200
const MESSAGES = 1_000

const measures: ReadonlyArray<Measure> = [{ what: "stop", unit: "s", better: "less" }]

/** Sends so many to each agent, to all agents at a time. */
const send = async ({ project, state }: Place, each: number): Promise<void> => {
  const line = await Line.open(join(state, "control.sock"))
  await line.ask("Hello", { ...ourselves, pid: process.pid })
  const caller = { by: "bench", config: join(project, "agentd.jsonc") }
  const text = "Say again what the tests of the shop say, and why. ".repeat(4)
  for (let sent = 0; sent < each; sent++) {
    await Promise.all(
      Array.from({ length: AGENTS }, (_, n) => line.ask("Send", { name: `agent${n}`, text, how: "queue", caller }))
    )
  }
  line.close()
}

/** Seconds from the signal to the end. */
const stopOf = async (place: Place, work: () => Promise<void> = async () => {}): Promise<number> => {
  const { daemon } = await started(place)
  await work()
  const at = performance.now()
  await stopped(daemon)
  return (performance.now() - at) / 1_000
}

const [NONE, ALL, MORE] = ["no message", "200,000, just come", "200,000, and one more each"] as const

export const bench: Bench = {
  name: "stop",
  isLong: true,
  run: async () => {
    const [none, full] = [stoppedAgents(folder(), AGENTS), stoppedAgents(folder(), AGENTS)]
    const first = await stopOf(full, () => send(full, MESSAGES - ROUNDS - 1))
    const subject = (subject: string, place: Place, each: number): Subject => ({
      subject,
      round: async () => ({ stop: await stopOf(place, () => send(place, each)) })
    })
    const rows = await interleave(measures, [subject(MORE, full, 1), subject(NONE, none, 0)], ROUNDS)
    const just = { what: "stop", subject: ALL, unit: "s", median: first, samples: [first], ratios: [1] }
    return [...rows, just]
  },
  aims: [
    { what: "stop", of: ALL, atMost: 5 },
    { what: "stop", of: MORE, atMost: 5 }
  ]
}
