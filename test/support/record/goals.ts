/** goals: records goals under a real daemon, in every state and with every end. */
import { Effect, Fiber } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Stage from "../Stage.ts"
import { dies, lenient, repository, shell } from "./parts.ts"
import type { Keep } from "./Recorder.ts"

const planOf = (...tasks: ReadonlyArray<readonly [id: string, ...dependsOn: ReadonlyArray<string>]>) => ({
  tasks: tasks.map(([id, ...dependsOn]) => ({ id, title: id, dependsOn }))
})

/** A task `bad…` fails, `once…` fails until its prompt mentions the failure, and `slow…` never ends. */
const WORKER = `p=$(cat); id=$(printf '%s\\n' "$p" | sed -n 's/.*Task \\([a-z0-9-]*\\): .*/\\1/p' | head -n 1); sleep 0.1
case $id in bad*) [ -e "$SANDBOX/$id" ] || { echo "it is broken" >&2; exit 3; };; slow*) sleep 600;;
once*) case $p in *"The last try ended"*) ;; *) exit 3;; esac;; esac
echo "$id" > "$id.txt"; git add -A
git diff --cached --quiet || git -c user.name=w -c user.email=w@example.org commit -qm "$id"; echo "made $id.txt"`

const PLANNER = `p=$(cat); case $p in
*"Hang"*) sleep 600;;
*"plan must change"*) echo '${JSON.stringify(planOf(["d"]))}';;
*"could not be used"*) echo '${JSON.stringify(planOf(["a"], ["once", "a"], ["c", "a"]))}';;
*) echo "I would {begin";; esac`

const CRITIC = `p=$(cat); case $p in
*"Look for ever"*) sleep 600;;
*"## d: "*) echo '{"findings":[]}';;
*fix-1-1*) echo '{"findings":[{"severity":"error","message":"there is no door","needsReplan":true}]}';;
*) echo '{"findings":[{"severity":"error","task":"once","message":"too short","fix":"make it longer"}]}';; esac`

const workshop = {
  agents: {
    pm: shell(PLANNER),
    pn: shell(PLANNER),
    ann: shell(WORKER, { worktree: true }),
    ben: shell(WORKER, { worktree: true }),
    cat: shell(WORKER, { worktree: true }),
    critic: shell(CRITIC),
    critter: shell(CRITIC)
  },
  goals: { workers: ["ann", "ben", "cat"], backoff: { base: "300ms", cap: "1 second" }, rounds: 4, maxTaskErrors: 2 }
}

type Request = { readonly goal: string } & { readonly [field: string]: unknown }

const giver = (stage: Stage.Stage, shop: Stage.Project) => ({
  give: (request: Request) =>
    stage.rpc((client) =>
      client.GoalSubmit({
        request: { plan: null, ...request } as Parameters<typeof client.GoalSubmit>[0]["request"],
        caller: shop.caller
      })
    ),
  page: (name: string) => stage.rpc((client) => client.Goal({ name, from: 0, caller: shop.caller })),
  is: (name: string, state: string) =>
    shop.until(
      `${name} is ${state}`,
      stage.rpc((client) => client.Goal({ name, from: 0, caller: shop.caller })),
      ({ goal }) => goal.state === state
    )
})

/** A goal in each state that it can be in when the daemon is killed. */
const goalsAreLeft = Effect.fnUntraced(function* (stage: Stage.Stage, shop: Stage.Project) {
  const { give, is, page } = giver(stage, shop)
  const file = (name: string, ...tasks: ReadonlyArray<object>) => {
    writeFileSync(join(shop.root, name), JSON.stringify({ tasks }))
    return join(shop.root, name)
  }
  const bad = file("bad.json", { id: "bad", title: "x", owner: "ann" }, { id: "after", title: "x", dependsOn: ["bad"] })
  yield* give({ goal: "It breaks", plan: bad, autoStart: true })
  yield* is("g2", "blocked")
  writeFileSync(join(stage.box.folder, "bad"), "")
  yield* stage.rpc((client) => client.GoalRetry({ name: "g2", task: "bad", caller: shop.caller }))
  yield* is("g2", "goal_met")
  const slow = file(
    "slow.json",
    { id: "slow", title: "x", owner: "ben" },
    { id: "next", title: "x", dependsOn: ["slow"] }
  )
  yield* give({ goal: "It takes long", plan: slow, autoStart: true })
  yield* shop.until("it runs", page("g3"), ({ tasks }) => tasks.some(({ state }) => state === "running"))
  yield* stage.rpc((client) => client.GoalCancel({ name: "g3", reason: "enough", caller: shop.caller }))
  yield* is("g3", "stopped")
  const worse = file(
    "worse.json",
    { id: "badly", title: "x", owner: "ann" },
    { id: "then", title: "x", dependsOn: ["badly"] }
  )
  yield* give({ goal: "It breaks for good", plan: worse, autoStart: true })
  yield* is("g4", "blocked")
  const plain = file("plain.json", { id: "plain", title: "x", owner: "ann" })
  yield* give({ goal: "To be looked at", plan: plain, autoStart: false })
  yield* is("g5", "planning")
  yield* give({ goal: "To be sent back", planner: "pm", plan: null, autoStart: false })
  yield* is("g6", "planning")
  yield* stage.rpc((client) => client.GoalReject({ name: "g6", reason: "smaller, please", caller: shop.caller }))
  yield* is("g6", "planning")
  yield* give({ goal: "To look at", plan: plain, critic: "critter", checks: ["sleep 300"], autoStart: true })
  yield* is("g7", "reviewing")
  yield* give({ goal: "Hang on it", planner: "pn", plan: null })
  yield* is("g8", "goal_received")
  yield* give({
    goal: "It goes on",
    plan: file(
      "on.json",
      { id: "slow-2", title: "x", owner: "cat" },
      { id: "wait", title: "x", dependsOn: ["slow-2"] }
    ),
    autoStart: true
  })
  yield* shop.until("it runs", page("g9"), ({ tasks }) => tasks.some(({ state }) => state === "running"))
})

export const goals = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const shop = stage.home({ agents: {} })
  repository(shop.root)
  stage.box.configure(workshop)
  const { give, is, page } = giver(stage, shop)
  yield* stage.up
  yield* shop.register
  yield* give({ goal: "Open a shop", planner: "pm", critic: "critic", checks: ["ls c.txt"] })
  // revised plans wait for a person's approval too
  const approving = yield* Effect.forkChild(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(300),
        lenient(
          stage.rpc((client) =>
            Effect.flatMap(client.GoalAsked({ name: "g1", from: 0, caller: shop.caller }), ({ hash }) =>
              client.GoalApprove({ name: "g1", hash, caller: shop.caller })
            )
          )
        )
      )
    )
  )
  yield* shop.until("a task runs", page("g1"), ({ tasks }) => tasks.some(({ state }) => state === "running"))
  yield* dies(stage)
  yield* stage.up
  yield* is("g1", "goal_met")
  yield* Fiber.interrupt(approving)
  yield* stage.rpc((client) =>
    client.GoalMerge({ name: "g1", into: null, unreviewed: false, all: true, caller: shop.caller })
  )
  yield* goalsAreLeft(stage, shop)
  yield* keep("goals", stage, { shop: workshop })
})

/** Goals that a person cancels in different states, and one that a budget ends. */
export const cancelled = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const config = {
    agents: {
      ...workshop.agents,
      ann: shell(WORKER, { worktree: true, budget: { wallTime: "100ms" } })
    },
    goals: { ...workshop.goals, maxTaskErrors: 1 }
  }
  const shop = stage.home({ agents: {} })
  repository(shop.root)
  stage.box.configure(config)
  const { give, is } = giver(stage, shop)
  const file = (name: string, ...tasks: ReadonlyArray<object>) => {
    writeFileSync(join(shop.root, name), JSON.stringify({ tasks }))
    return join(shop.root, name)
  }
  const cancel = (name: string) =>
    Effect.andThen(
      stage.rpc((client) => client.GoalCancel({ name, reason: "enough", caller: shop.caller })),
      is(name, "stopped")
    )
  yield* stage.up
  yield* shop.register
  const one = (id: string, owner: string) => ({ id, title: "x", owner })
  yield* give({ goal: "Hang on it", planner: "pn", plan: null })
  yield* is("g1", "goal_received")
  yield* cancel("g1")
  yield* give({ goal: "To be looked at", plan: file("1.json", one("plain", "ben")), autoStart: false })
  yield* is("g2", "planning")
  yield* cancel("g2")
  yield* give({ goal: "To look at", plan: file("2.json", one("other", "ben")), checks: ["sleep 300"], autoStart: true })
  yield* is("g3", "reviewing")
  yield* cancel("g3")
  const after = { id: "after", title: "x", dependsOn: ["bad"] }
  yield* give({ goal: "It breaks", plan: file("3.json", one("bad", "ben"), after), autoStart: true })
  yield* is("g4", "blocked")
  yield* cancel("g4")
  const two = { ...one("two", "ann"), dependsOn: ["one"] }
  yield* give({ goal: "It costs", plan: file("4.json", one("one", "ann"), two), autoStart: true })
  yield* is("g5", "stopped")
  yield* keep("cancelled", stage, { shop: config })
})
