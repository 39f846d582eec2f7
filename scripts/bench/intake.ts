/**
 * Bench of what others notice while the real daemon takes in a long plan: a client asks `Status` again and again,
 * over a connection of its own, while another submits plans of growing size; and beside it the same client with
 * nothing else under way.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { type Bench, folder, interleave, type Measure, quantile, type Subject } from "./Bench.ts"
import { type Place, started, stopped } from "./History.ts"
import { Line } from "./Line.ts"
import { raw } from "./plans.ts"

const ROUNDS = 3
/** ms between an answer and the next question. */
const PAUSE = 2
/** ms for which the client of an idle daemon asks. */
const LOOK = 3_000

const measures: ReadonlyArray<Measure> = [
  { what: "took", unit: "ms", better: "less" },
  { what: "p50", unit: "ms", better: "less" },
  { what: "p99", unit: "ms", better: "less" },
  { what: "slowest", unit: "ms", better: "less" }
]

/** Asks until the work is done; what each answer took. */
const asking = async (place: Place, work: Promise<unknown>): Promise<ReadonlyArray<number>> => {
  const line = await Line.open(join(place.state, "control.sock"))
  const ended = new AbortController()
  const end = work.finally(() => ended.abort())
  const samples: Array<number> = []
  while (!ended.signal.aborted) {
    const at = performance.now()
    await line.ask("Status")
    samples.push(performance.now() - at)
    await wait(PAUSE)
  }
  line.close()
  await end
  return samples
}

const figures = async (place: Place, work: () => Promise<unknown>) => {
  const at = performance.now()
  const samples = await asking(place, work())
  const took = performance.now() - at
  return { took, p50: quantile(samples, 0.5), p99: quantile(samples, 0.99), slowest: Math.max(...samples) }
}

const submit = async ({ project, state }: Place, plan: string): Promise<void> => {
  const line = await Line.open(join(state, "control.sock"))
  const caller = { by: "bench", config: join(project, "agentd.jsonc") }
  const request = { goal: "all of it", plan, autoStart: false }
  const { goalId } = (await line.ask("GoalSubmit", { request, caller })) as { readonly goalId: string }
  await line.ask("GoalCancel", { name: goalId, caller, reason: "the bench goes on" })
  line.close()
}

const placeOf = (root: string): Place => {
  const project = join(root, "shop")
  mkdirSync(project, { recursive: true })
  const backend = { type: "command", shell: "cat" }
  writeFileSync(join(project, "agentd.jsonc"), JSON.stringify({ agents: { one: { backend }, two: { backend } } }))
  return {
    state: join(root, "s"),
    project,
    environment: { ...process.env, XDG_CONFIG_HOME: join(root, "config"), CLAUDE_CONFIG_DIR: join(root, "claude") }
  }
}

const IDLE = "nothing beside it"
const nameOf = (size: number): string => `a plan of ${size.toLocaleString("en")}`
const SIZES = [10_000, 100_000]

export const bench: Bench = {
  name: "intake",
  run: async () => {
    const root = folder()
    const place = placeOf(root)
    const { daemon } = await started(place)
    const subjects = SIZES.map((size): Subject => {
      const plan = join(root, `${size}.json`)
      writeFileSync(plan, JSON.stringify({ tasks: raw(size) }))
      return { subject: nameOf(size), round: () => figures(place, () => submit(place, plan)) }
    })
    try {
      return await interleave(
        measures,
        [...subjects.toReversed(), { subject: IDLE, round: () => figures(place, () => wait(LOOK)) }],
        ROUNDS
      )
    } finally {
      await stopped(daemon)
    }
  },
  aims: [{ what: "p99", of: nameOf(100_000), atMost: 20 }]
}
