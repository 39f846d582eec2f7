/** agents: records agents under real daemons, each of which is killed with SIGKILL while they work. */
import { Effect } from "effect"
import * as Stage from "../Stage.ts"
import { told } from "../Told.ts"
import { dies, lenient, shell } from "./parts.ts"
import type { Keep } from "./Recorder.ts"

const crewConfig = (stage: Stage.Stage) => ({
  conversation: { maxTurnErrors: 1000, maxFatalStops: 1000 },
  agents: {
    ...stage.trio("a"),
    ...stage.trio("b"),
    ...stage.trio("c", { interruptGrace: "1 minute" }),
    looper: shell("echo broken >&2; exit 3", { mode: "loop", prompt: "work", maxConsecutiveErrors: 3 }),
    cooler: shell("exit 1", { mode: "loop", prompt: "x", backoff: { base: "1 hour", cap: "1 hour" } }),
    eager: shell("echo done", { mode: "loop", prompt: "x", maxRunsPerHour: 2 }),
    stopped: shell("cat; exec sleep 300"),
    late: shell("cat", { autostart: false }),
    starting: shell("cat; exec sleep 300", { backend: { readyAfter: "10 minutes" } }),
    stubborn: shell("trap '' TERM INT; cat; while :; do sleep 1; done", {
      interruptGrace: "10 minutes",
      backend: { killGrace: "10 minutes" }
    }),
    ghost: stage.agent("claude", { backend: { binary: "/nowhere/claude" } }),
    homeless: shell("cat", { worktree: true, mode: "loop", prompt: "x" }),
    limited: stage.agent("model", { backend: { keyFile: stage.key("limited"), retries: 0 } })
  }
})

/** Turns and calls of every kind. */
const crewWorks = Effect.fnUntraced(function* (shop: Stage.Project) {
  yield* Stage.onEach((on) =>
    Effect.gen(function* () {
      const agent = `a-${on}`
      yield* shop.tell(agent, { ask: "echo one > asked" }, { say: "made" })
      yield* shop.answer((yield* shop.asked(agent)).callId, "allow")
      yield* shop.answers(agent, 1)
      yield* shop.tell(agent, { ask: "echo two > asked" }, { say: "on" })
      yield* shop.answer((yield* shop.asked(agent)).callId, "deny", "not that one")
      yield* shop.answers(agent, 2)
      yield* shop.tell(agent, { hold: true })
      yield* shop.of(agent, 3, "turn.started")
      yield* shop.interrupt(agent)
      yield* shop.of(agent, 1, "turn.interrupted")
      yield* shop.tell(agent, { hold: true })
      yield* shop.of(agent, 4, "turn.started")
      yield* shop.send(agent, told({ say: "that way" }), "steer")
      yield* shop.answers(agent, 3)
      yield* shop.tell(agent, { hold: true }, { say: "thought" })
      yield* shop.of(agent, 6, "turn.started")
      yield* shop.send(agent, told({ say: "at once" }), "urgent")
      yield* shop.answers(agent, 4)
    })
  )
  yield* shop.tell("a-claude", { noise: ["what?", '{"half":'] }, { say: "well" })
  yield* shop.of("a-claude", 1, "run.notice")
  yield* shop.tell("b-model", { ask: "for i in 1 2 3; do echo line $i; sleep 0.4; done" }, { say: "listed" })
  yield* shop.answer((yield* shop.asked("b-model")).callId, "allow")
  yield* shop.answers("b-model", 1)
  yield* shop.tell("b-acp", { signal: "SIGKILL" }, { say: "up again" })
  yield* shop.answers("b-acp", 1)
  yield* lenient(shop.tell("ghost", { say: "never" }))
  yield* shop.row("ghost", "stops", ({ state }) => state === "Stopped")
  yield* shop.tell("limited", { say: "at last" })
  yield* shop.answers("limited", 1)
  yield* shop.row("looper", "stops", ({ state }) => state === "Stopped")
  yield* shop.row("homeless", "stops", ({ state }) => state === "Stopped")
  yield* lenient(shop.start("looper"))
})

/** Starts work that does not end before the daemon is killed. */
const crewIsBusy = Effect.fnUntraced(function* (shop: Stage.Project, from: string) {
  const before = yield* shop.log("turn.started")
  const turnsOf = (agent: string) => before.filter(({ actor }) => actor === `turn/${agent}`).length
  yield* shop.tell(`${from}-claude`, { hold: true }, { say: "held" })
  yield* shop.tell(`${from}-acp`, { ask: "echo late > asked" }, { say: "asked" })
  yield* shop.asked(`${from}-acp`)
  yield* shop.tell(`${from}-model`, { stuck: true }, { say: "stuck" })
  yield* shop.answer((yield* shop.asked(`${from}-model`)).callId, "allow")
  yield* Effect.forEach(Stage.BACKENDS, (on) => shop.of(`${from}-${on}`, turnsOf(`${from}-${on}`) + 1, "turn.started"))
  yield* shop.of(`${from}-model`, 1, "tool.approved", "tool.started")
})

export const crew = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const shop = stage.home(crewConfig(stage))
  yield* stage.up
  yield* shop.register
  yield* crewWorks(shop)
  yield* crewIsBusy(shop, "c")
  yield* dies(stage)
  yield* stage.up
  // the call that asked asks again, and the stuck turn is retried without its stuck step
  yield* shop.answer((yield* shop.asked("c-acp")).callId, "allow")
  yield* shop.answers("c-model", 1)
  yield* shop.answers("c-claude", 1)
  yield* shop.answers("c-acp", 1)
  shop.configure({ ...crewConfig(stage), name: "store" })
  yield* shop.until("it is called store", shop.log("project.config_changed"), (runes) => runes.length > 0).pipe(lenient)
  shop.configure(crewConfig(stage))
  yield* shop.until("it is the shop", shop.log("project.config_changed"), (runes) => runes.length > 1).pipe(lenient)
  yield* crewIsBusy(shop, "b")
  yield* shop.send("stopped", "work")
  yield* shop.row("stopped", "runs", ({ state }) => state === "Running")
  yield* stage.rpc((client) => client.Stop({ name: "stopped", caller: shop.caller }))
  yield* shop.send("late", "keep me")
  yield* shop.send("starting", "begin")
  yield* shop.send("stubborn", "work for ever")
  yield* shop.row("stubborn", "runs", ({ state }) => state === "Running")
  yield* shop.send("stubborn", "at once", "urgent")
  yield* shop.row("stubborn", "is interrupted", ({ state }) => state === "Interrupting")
  yield* shop.row("starting", "starts", ({ state }) => state === "Spawning")
  yield* shop.tell("a-acp", { hold: true })
  yield* shop.of("a-acp", 8, "turn.started")
  yield* shop.send("a-acp", "waits behind it")
  yield* keep("crew", stage, { shop: crewConfig(stage) })
})

/** Calls that are answered after their run has ended: one project resumes with its answers, the other still waits. */
export const grants = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const config = { agents: stage.trio("a") }
  const shop = stage.home(config)
  const other = stage.project("other", config)
  yield* stage.up
  for (const project of [shop, other]) {
    yield* project.register
    yield* Stage.onEach((on) => project.tell(`a-${on}`, { ask: `echo ${on}` }, { say: "made" }))
    yield* Effect.forEach(Stage.BACKENDS, (on) => project.asked(`a-${on}`))
    yield* stage.rpc((client) => client.Pause({ name: "", inFlight: "complete", reason: "", caller: project.caller }))
  }
  yield* dies(stage)
  yield* stage.up
  for (const project of [shop, other]) {
    for (const on of Stage.BACKENDS) yield* project.answer((yield* project.asked(`a-${on}`)).callId, "allow")
  }
  yield* stage.rpc((client) => client.Resume({ name: "", caller: shop.caller }))
  yield* Stage.onEach((on) => shop.answers(`a-${on}`, 1))
  yield* keep("grants", stage, { shop: config, other: config })
})

/** A daemon that ends in order. */
export const stopped = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const config = { agents: { a: shell("exec sleep 300", { mode: "loop", prompt: "x" }), b: shell("cat") } }
  const shop = stage.home(config)
  yield* stage.up
  yield* shop.register
  yield* shop.row("a", "runs", ({ state }) => state === "Running")
  yield* stage.box.terminate
  yield* stage.up
  yield* shop.row("a", "runs", ({ state }) => state === "Running")
  yield* shop.send("b", "hello")
  yield* shop.of("b", 1, "turn.completed")
  yield* stage.box.terminate
  yield* keep("stopped", stage, { shop: config })
})
