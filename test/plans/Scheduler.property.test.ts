/**
 * Random plans, worked off by random agents with random luck, and held against
 * what a plain look over all tasks says.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"

import type { Task } from "../../src/domain/GoalMessages.ts"
import { type Node, Plan } from "../../src/plans/Plan.ts"
import { decide, isAble, isFree, type Worker } from "../../src/plans/Scheduler.ts"
import { task } from "./Tasks.ts"

const CAN = ["rust", "docs"]

/** A stream of small numbers that the case was given. */
class Luck {
  private readonly seed: number
  private at = 0
  constructor(seed: number) {
    this.seed = seed
  }
  below(most: number): number {
    let hash = Math.imul(this.seed ^ Math.imul(++this.at, 0x9e3779b1), 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
    return ((hash ^ (hash >>> 16)) >>> 0) % most
  }
}

const tasksOf = (luck: Luck, size: number): ReadonlyArray<Task> =>
  Array.from({ length: size }, (_, index) =>
    task(`t${index}`, {
      dependsOn: [...new Set(Array.from({ length: luck.below(3) }, () => `t${luck.below(Math.max(1, index))}`))].filter(
        (id) => id !== `t${index}`
      ),
      priority: luck.below(3),
      owner: luck.below(5) === 0 ? `a${luck.below(3)}` : null,
      needs: luck.below(3) === 0 ? [CAN[luck.below(2)]!] : []
    })
  )

interface Agent {
  readonly name: string
  readonly can: ReadonlyArray<string>
  online: boolean
  spent: boolean
  load: number
  task: Node | undefined
}

const workersOf = (agents: ReadonlyArray<Agent>): ReadonlyArray<Worker> =>
  agents.map((agent) => ({ ...agent, busy: agent.task !== undefined }))

/** As a plain look over all tasks says it. */
const trulyReady = (plan: Plan, node: Node): boolean =>
  node.state === "pending" && node.task.dependsOn.every((id) => plan.find(id)!.state === "completed")

const trulyBlocked = (plan: Plan, node: Node): boolean =>
  node.task.dependsOn.some((id) => ["failed", "cancelled", "blocked"].includes(plan.find(id)!.state))

/** Fails with those words where it does not hold; assertions cost more than all that is tested here. */
const holds = (what: string, is: boolean): void => {
  if (!is) assert.fail(what)
}

const consistent = (plan: Plan): void => {
  const counted: Record<string, number> = {}
  for (const node of plan.nodes) {
    const { id } = node.task
    counted[node.state] = (counted[node.state] ?? 0) + 1
    if (node.state === "pending") holds(`${id} is pending, and depends on what is broken`, !trulyBlocked(plan, node))
    if (node.state === "blocked") holds(`${id} is blocked by nothing`, trulyBlocked(plan, node))
    holds(`${id} is ready or not`, plan.isReady(node) === trulyReady(plan, node))
  }
  for (const [state, count] of Object.entries(plan.counts))
    holds(`${state} is counted`, (counted[state] ?? 0) === count)
}

/** Everything that can be given out now, each checked. */
const schedule = (plan: Plan, agents: ReadonlyArray<Agent>, now: number): ReadonlyArray<string> => {
  const given: Array<string> = []
  for (;;) {
    const decision = decide(plan, workersOf(agents))
    if (decision._tag !== "Assign") break
    const again = decide(plan, workersOf(agents))
    holds(
      "asked twice, it says the same",
      again._tag === "Assign" && again.task === decision.task && again.agent === decision.agent
    )
    const agent = agents.find(({ name }) => name === decision.agent)!
    holds("never an unready task", trulyReady(plan, decision.task))
    holds("never two owners", !plan.inFlight.has(decision.task.task.id))
    holds("never an agent that is not free", agent.online && agent.task === undefined && !agent.spent)
    holds("never one that is not able to", isAble(decision.task.task, agent))
    plan.assign(decision.task.task.id, { agent: agent.name, messageId: "m", base: null }, now)
    agent.task = decision.task
    agent.load++
    given.push(`${decision.task.task.id}→${agent.name}`)
  }
  for (const worker of workersOf(agents).filter(isFree)) {
    const idle = plan.nodes.find((node) => trulyReady(plan, node) && node.notBefore === 0 && isAble(node.task, worker))
    holds(`work-conserving: ${worker.name} idles beside ${idle?.task.id}`, idle === undefined)
  }
  return given
}

const happen = (plan: Plan, agents: ReadonlyArray<Agent>, luck: Luck, now: number): void => {
  const agent = agents[luck.below(agents.length)]!
  switch (luck.below(8)) {
    case 0:
      agent.online = !agent.online
      break
    case 1:
      agent.spent = !agent.spent
      break
    default: {
      const { task } = agent
      if (task === undefined) return
      agent.task = undefined
      const what = luck.below(6)
      if (what === 0) plan.fail(task.task.id, "no", now)
      else if (what === 1) plan.release(task.task.id, { error: "no", counts: true, until: now + luck.below(3) }, now)
      else if (what === 2) plan.cancel(task.task.id, now)
      else plan.complete(task.task.id, { eventId: now, branch: null, cwd: null, head: null }, now)
    }
  }
}

const run = (seed: number): ReadonlyArray<string> => {
  const luck = new Luck(seed)
  const plan = new Plan()
  const tasks = tasksOf(luck, 1 + luck.below(24))
  // In two pieces, as a long plan comes; the first may name what is in the second.
  const cut = luck.below(tasks.length + 1)
  plan.add(tasks.slice(cut), 0)
  plan.add(tasks.slice(0, cut), 0)
  const agents: ReadonlyArray<Agent> = [0, 1, 2].map((index) => ({
    name: `a${index}`,
    can: CAN.filter(() => luck.below(2) === 0),
    online: true,
    spent: false,
    load: 0,
    task: undefined
  }))
  const trail: Array<string> = []
  for (let now = 1; now < 60; now++) {
    plan.advance(now)
    trail.push(...schedule(plan, agents, now))
    consistent(plan)
    happen(plan, agents, luck, now)
    const failed = plan.nodes.find(({ state }) => state === "failed")
    if (failed !== undefined && luck.below(6) === 0) plan.reopen(failed.task.id, now)
    // what a review adds depends on tasks that have long ended, one way or the other
    if (now % 20 === 0) {
      const before = plan.nodes[luck.below(plan.size)]!.task.id
      plan.add([task(`u${now}`, { dependsOn: [before], needs: luck.below(2) === 0 ? ["rust"] : [] })], now)
    }
    consistent(plan)
  }
  // No starvation: with all agents there and nothing that fails, every task that can end does.
  for (const agent of agents) Object.assign(agent, { online: true, spent: false })
  for (let now = 100; now < 200; now++) {
    plan.advance(now)
    for (const agent of agents) {
      if (agent.task !== undefined) {
        plan.complete(agent.task.task.id, { eventId: now, branch: null, cwd: null, head: null }, now)
        agent.task = undefined
      }
    }
    trail.push(...schedule(plan, agents, now))
  }
  const left = plan.nodes.filter((node) => trulyReady(plan, node) && agents.some((agent) => isAble(node.task, agent)))
  assert.deepStrictEqual(
    left.map(({ task }) => task.id),
    [],
    "nothing starves"
  )
  return trail
}

describe("Scheduler", () => {
  it.effect.prop(
    "never an unready task, two owners, a spent agent; no able agent idles beside a ready task; nothing starves",
    [Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 30 })))],
    ([seed]) => Effect.sync(() => void run(seed)),
    { arbitrary: { runs: 200 } }
  )

  it("the same plan, agents and luck give the same assignments", () => {
    for (const seed of [1, 2, 3, 4, 5]) assert.deepStrictEqual(run(seed), run(seed))
  })
})
