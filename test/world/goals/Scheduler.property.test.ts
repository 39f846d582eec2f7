/**
 * Random plans, worked off by random agents with random luck, and held against
 * what a plain look over all tasks says.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"

import type { Task } from "../../../src/domain/GoalMessages.ts"
import { isReady, type Node, Plan, type Row } from "../../../src/goals/Plan.ts"
import { decide, type Decision, type Worker } from "../../../src/goals/Scheduler.ts"
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
  /** The id of the task that it has. */
  task: string | undefined
}

const workersOf = (agents: ReadonlyArray<Agent>): ReadonlyArray<Worker> =>
  agents.map((agent) => ({ ...agent, busy: agent.task !== undefined }))

/** As a plain look over all tasks says it. */
const trulyReady = (plan: Plan, node: Node): boolean =>
  node.state === "pending" && node.task.dependsOn.every((id) => plan.find(id)!.state === "completed")

const trulyBlocked = (plan: Plan, node: Node): boolean =>
  node.task.dependsOn.some((id) => ["failed", "cancelled", "blocked"].includes(plan.find(id)!.state))

const trulyAble = ({ task: { needs, owner } }: Node, { can, name }: Agent): boolean =>
  owner === null ? needs.every((need) => can.includes(need)) : owner === name

const trulyFree = ({ online, spent, task }: Agent): boolean => online && !spent && task === undefined

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
    holds(`${id} is ready or not`, isReady(node) === trulyReady(plan, node))
  }
  for (const [state, count] of Object.entries(plan.counts))
    holds(`${state} is counted`, (counted[state] ?? 0) === count)
}

/** A plan, those who work on it, and all that was done to it, as the log keeps it. */
class World {
  plan = Plan.empty
  readonly agents: ReadonlyArray<Agent>
  private readonly log: Array<(plan: Plan) => Plan> = []
  /** Tasks that are not to be given out before. */
  private readonly notBefore = new Map<string, number>()

  constructor(agents: ReadonlyArray<Agent>) {
    this.agents = agents
  }

  do(change: (plan: Plan) => Plan): void {
    const before = this.plan
    // now and then: it costs more than all the rest
    const said = this.log.push(change) % 16 === 0 ? JSON.stringify(before.rows()) : undefined
    this.plan = change(before)
    holds("a plan never changes", said === undefined || JSON.stringify(before.rows()) === said)
  }

  release(id: string, until: number, now: number): void {
    this.notBefore.set(id, until)
    this.do((plan) => plan.release(id, { error: "no", counts: true, until }, now))
  }

  /** As a daemon that was lost finds it. */
  get refolded(): World {
    const other = new World(this.agents.map((agent) => ({ ...agent })))
    for (const change of this.log) other.do(change)
    for (const [id, until] of this.notBefore) other.notBefore.set(id, until)
    return other
  }

  /** As a daemon finds it that begins with a snapshot. */
  get restored(): World {
    const other = this.refolded
    other.plan = Plan.of(JSON.parse(JSON.stringify(this.plan.rows())) as ReadonlyArray<Row>)
    return other
  }

  /** Ready, and its wait is over. */
  waits(node: Node, now: number): boolean {
    return trulyReady(this.plan, node) && (this.notBefore.get(node.task.id) ?? 0) <= now
  }
}

/** Why nothing is given out: what it waits for comes, and it gives up only where nothing does. */
const rightly = (decision: Decision, world: World, now: number): void => {
  const { agents, plan } = world
  const open = plan.nodes.filter(({ state }) => !["completed", "failed", "cancelled"].includes(state))
  const ready = open.filter((node) => trulyReady(plan, node))
  const later = ready.some((node) => !world.waits(node, now))
  const ables = ready.map((node) => agents.filter((agent) => trulyAble(node, agent)))
  const busy = agents.some(({ task }) => task !== undefined)
  const moves = busy || later || ables.flat().some(({ online, spent }) => online && !spent)
  holds("done: nothing is open", (decision._tag === "Done") === (open.length === 0))
  if (decision._tag === "Done") return
  holds("it waits for what comes, and for nothing else", (decision._tag === "Wait") === moves)
  const spent = ready.length > 0 && ables.every((able) => able.length > 0 && able.every((agent) => agent.spent))
  holds("exhausted: all that could go on are spent", moves || (decision._tag === "Exhausted") === spent)
}

/** Whether a task goes to the right one. */
const checked = (node: Node, agent: Agent, world: World, now: number): void => {
  const { agents, plan } = world
  holds("never an unready task", trulyReady(plan, node))
  holds(
    "never two owners",
    agents.every(({ task }) => task !== node.task.id)
  )
  holds("never before its wait is over", world.waits(node, now))
  holds("never an agent that is not free", trulyFree(agent))
  holds("never one that is not able to", trulyAble(node, agent))
  const first = plan.nodes
    .filter((other) => world.waits(other, now) && agents.some((one) => trulyFree(one) && trulyAble(other, one)))
    .toSorted((a, b) => b.task.priority - a.task.priority || a.index - b.index)[0]
  holds("the highest priority first, then the oldest", first?.task.id === node.task.id)
  holds(
    "the work is spread",
    agents.every((one) => !trulyFree(one) || !trulyAble(node, one) || one.load >= agent.load)
  )
}

/** Everything that can be given out now, each checked. */
const schedule = (world: World, now: number): ReadonlyArray<string> => {
  const { agents } = world
  const given: Array<string> = []
  for (;;) {
    const plan = world.plan.advance(now)
    const decision = decide(plan, workersOf(agents))
    if (decision._tag !== "Assign") {
      rightly(decision, world, now)
      break
    }
    const again = decide(plan, workersOf(agents))
    holds(
      "asked twice, it says the same",
      again._tag === "Assign" && again.task === decision.task && again.agent === decision.agent
    )
    const agent = agents.find(({ name }) => name === decision.agent)!
    checked(decision.task, agent, world, now)
    const { id } = decision.task.task
    world.do((each) => each.assign(id, { agent: agent.name, messageId: "m", base: null }, now))
    agent.task = id
    agent.load++
    given.push(`${id}→${agent.name}`)
  }
  for (const agent of agents.filter(trulyFree)) {
    const [idle] = world.plan.nodes.filter((node) => world.waits(node, now) && trulyAble(node, agent))
    holds(`work-conserving: ${agent.name} idles beside ${idle?.task.id}`, idle === undefined)
  }
  return given
}

const done = (now: number) => ({ eventId: now, branch: null, cwd: null, head: null })

const happen = (world: World, luck: Luck, now: number): void => {
  const { agents, plan } = world
  const agent = agents[luck.below(agents.length)]!
  switch (luck.below(8)) {
    case 0:
      agent.online = !agent.online
      return
    case 1:
      agent.spent = !agent.spent
      return
    case 2: {
      // a person tries again what failed; of what did not fail it changes nothing
      const { id } = plan.nodes[luck.below(plan.size)]!.task
      return world.do((each) => each.reopen(id, now))
    }
    default: {
      const id = agent.task
      if (id === undefined) return
      const what = luck.below(8)
      if (what > 6) return world.do((each) => each.start(id, null, now))
      agent.task = undefined
      if (what === 0) world.do((each) => each.fail(id, "no", now))
      else if (what === 1) world.release(id, now + luck.below(9), now)
      else if (what === 2) world.do((each) => each.cancel(id, now))
      else world.do((each) => each.complete(id, done(now), now))
    }
  }
}

const run = (seed: number): ReadonlyArray<string> => {
  const luck = new Luck(seed)
  const world = new World(
    [0, 1, 2].map((index) => ({
      name: `a${index}`,
      can: CAN.filter(() => luck.below(2) === 0),
      online: true,
      spent: false,
      load: 0,
      task: undefined
    }))
  )
  const { agents } = world
  const tasks = tasksOf(luck, 1 + luck.below(24))
  // In two pieces, as a long plan comes; the first may name what is in the second.
  const cut = luck.below(tasks.length + 1)
  world.do((each) => each.add(tasks.slice(cut), 0))
  world.do((each) => each.add(tasks.slice(0, cut), 0))
  const trail: Array<string> = []
  for (let now = 1; now < 60; now++) {
    const other = now % 6 === 0 ? world.refolded : now % 6 === 3 ? world.restored : undefined
    const given = schedule(world, now)
    if (other !== undefined) {
      consistent(other.plan)
      holds("found again, it goes on as before", String(schedule(other, now)) === String(given))
      holds("found again, it is the same", JSON.stringify(other.plan.rows()) === JSON.stringify(world.plan.rows()))
    }
    trail.push(...given)
    consistent(world.plan)
    happen(world, luck, now)
    // what nobody has yet is taken out of the plan
    if (luck.below(30) === 0) {
      const open = world.plan.nodes.filter(({ state }) => state === "pending")[0]?.task.id
      if (open !== undefined) world.do((each) => each.cancel(open, now))
    }
    // what a review adds depends on tasks that have long ended, one way or the other
    if (now % 20 === 0) {
      const before = world.plan.nodes[luck.below(world.plan.size)]!.task.id
      const more = task(`u${now}`, { dependsOn: [before], needs: luck.below(2) === 0 ? ["rust"] : [] })
      world.do((each) => each.add([more], now))
    }
    consistent(world.plan)
  }
  // No starvation: with all agents there and nothing that fails, every task that can end does.
  for (const agent of agents) Object.assign(agent, { online: true, spent: false })
  for (let now = 100; now < 200; now++) {
    for (const agent of agents) {
      const id = agent.task
      agent.task = undefined
      if (id !== undefined) world.do((each) => each.complete(id, done(now), now))
    }
    trail.push(...schedule(world, now))
  }
  const { plan } = world
  const left = plan.nodes.filter((node) => trulyReady(plan, node) && agents.some((agent) => trulyAble(node, agent)))
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
