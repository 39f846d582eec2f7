/** channels: records channels under a real daemon, and rare events of seats, calls and workers. */
import { Effect } from "effect"
import * as Stage from "../Stage.ts"
import { toldTo } from "../Told.ts"
import { dies, shell } from "./parts.ts"
import type { Keep } from "./Recorder.ts"

const square = (stage: Stage.Stage) => {
  const seats = (name: string) => Stage.BACKENDS.map((on) => `${name}-${on}`)
  const agents = [
    ...["room", "cut", "wait", "held"].map((name) => stage.trio(name, { may: ["post"] })),
    {
      plain: shell("cat > /dev/null; echo I have said it"),
      quiet: shell("cat > /dev/null; echo me too"),
      tardy: shell("cat; sleep 0.2", { minRunInterval: "1 hour" }),
      lost: stage.agent("model")
    }
  ]
  return {
    conversation: { maxTurnErrors: 1000 },
    agents: Object.assign({}, ...agents),
    channels: {
      room: { agents: seats("room") },
      cut: { agents: seats("cut"), turnConfig: { humanInterruptMode: "interrupt" } },
      wait: { agents: seats("wait") },
      held: { agents: seats("held") },
      mute: { agents: ["plain", "quiet"], turnConfig: { autoDetectTurnEnd: true, autoDetectSilenceSeconds: 1 } },
      lost: { agents: ["lost"] },
      tardy: { agents: ["tardy"] },
      brief: { agents: ["plain"], turnConfig: { defaultTimeoutSeconds: 600 } }
    }
  }
}

export const channels = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const config = square(stage)
  const shop = stage.home(config)
  yield* stage.up
  yield* shop.register
  const call = stage.rpc.bind(stage)
  const post = (name: string, ...lines: ReadonlyArray<string>) =>
    call((client) => client.PostToChannel({ name, text: lines.join("\n"), caller: shop.caller }))
  const view = (name: string) => call((client) => client.Channel({ name, caller: shop.caller }))
  const silent = (name: string) =>
    shop.until(
      `${name} is silent`,
      view(name),
      ({ channel }) => channel.detail === "nobody has anything new to read" && channel.floor === null
    )
  const speaks = (name: string, agent: string, turns = 1) =>
    Effect.andThen(
      shop.until(`${agent} has the floor`, view(name), ({ channel }) => channel.floor === agent),
      shop.of(agent, turns, "turn.started")
    )

  yield* post(
    "room",
    "begin",
    toldTo("room-claude", { sleep: 700 }, { say: "one" }),
    toldTo("room-acp", { say: "two" })
  )
  yield* speaks("room", "room-claude")
  yield* post("room", "and you?", toldTo("room-claude", { say: "yes" }), toldTo("room-model", { say: "three" }))
  yield* silent("room")
  yield* post(
    "room",
    "through tools",
    toldTo("room-claude", { mcp: ["post", { text: "meanwhile" }] }, { mcp: ["turn_complete", {}] })
  )
  yield* silent("room")
  yield* post("cut", "begin", toldTo("cut-claude", { say: "half" }, { sleep: 900 }))
  yield* speaks("cut", "cut-claude")
  yield* post("cut", "stop that")
  yield* silent("cut")
  yield* post("cut", "again", toldTo("cut-acp", { say: "a part" }, { sleep: 800 }, { say: "the rest" }))
  yield* speaks("cut", "cut-acp", 2)
  yield* call((client) => client.SkipFloor({ name: "cut", caller: shop.caller }))
  yield* silent("cut")
  // its output until then is recorded, but not posted
  yield* post("lost", "begin", toldTo("lost", { hold: true }))
  yield* speaks("lost", "lost")
  yield* shop.of("lost", 1, "turn.assistant_delta")
  yield* call((client) => client.SkipFloor({ name: "lost", caller: shop.caller }))
  yield* shop.until("it is withheld", shop.log("channel.withheld"), (runes) => runes.length > 0)
  // a message that it has not received yet is withdrawn
  yield* shop.send("tardy", "begin")
  yield* shop.row("tardy", "is done", ({ inbox, sessionSeq }) => inbox === 0 && sessionSeq === 2)
  yield* post("tardy", "and now?")
  yield* shop.of("tardy", 2, "inbox.received")
  yield* call((client) => client.SkipFloor({ name: "tardy", caller: shop.caller }))
  yield* shop.until("it is taken back", shop.log("inbox.withdrawn"), (runes) => runes.length > 0)
  yield* post("mute", "say something")
  yield* shop.until("it gave no signal", shop.log("channel.unsignalled"), (runes) => runes.length > 0)
  yield* call((client) =>
    client.NewChannel({ name: "made", agents: ["room-acp"], order: "round-robin", topic: "x", caller: shop.caller })
  )
  yield* call((client) => client.AssignSeat({ name: "made", agent: "room-model", caller: shop.caller }))
  yield* call((client) =>
    client.OrderChannel({ name: "made", order: "manual", agents: ["room-model"], caller: shop.caller })
  )
  yield* call((client) => client.RemoveSeat({ name: "made", agent: "room-acp", caller: shop.caller }))
  yield* call((client) => client.PauseChannel({ name: "made", paused: true, caller: shop.caller }))
  yield* call((client) => client.PauseChannel({ name: "made", paused: false, caller: shop.caller }))
  yield* call((client) => client.GrantFloor({ name: "made", agent: "room-model", caller: shop.caller }))
  yield* call((client) => client.CloseChannel({ name: "made", caller: shop.caller }))
  shop.configure({ ...config, channels: { ...config.channels, room: { ...config.channels.room, topic: "all of it" } } })
  yield* shop.until("the topic is there", shop.log("channel.configured"), (runes) => runes.length > 0)
  yield* post("room", "once more", toldTo("room-claude", { sleep: 400 }, { say: "again" }))
  yield* speaks("room", "room-claude", 3)
  yield* dies(stage)
  yield* stage.up
  yield* silent("room")
  // seats that wait, a seat with the floor, one whose turn asks, a paused channel, and a seat whose agent is stopped
  yield* post(
    "wait",
    "wait",
    toldTo("wait-claude", { mcp: ["wait", { reason: "the build", until: "person" }] }),
    toldTo("wait-acp", { mcp: ["wait", { reason: "a while", seconds: 3600 }] })
  )
  yield* shop.until(
    "two wait",
    view("wait"),
    ({ channel }) => channel.seats.filter(({ state }) => state === "WAITING").length === 2
  )
  yield* call((client) => client.PauseChannel({ name: "brief", paused: true, caller: shop.caller }))
  yield* call((client) => client.Stop({ name: "quiet", caller: shop.caller }))
  yield* post("cut", "ask", toldTo("cut-claude", { ask: "echo may I > asked" }))
  yield* shop.asked("cut-claude")
  yield* post("held", "hold", toldTo("held-claude", { hold: true }))
  yield* speaks("held", "held-claude")
  yield* post("held", "and hear this")
  yield* keep("channels", stage, { shop: config })
})

const corner = (stage: Stage.Stage) => ({
  conversation: { maxTurnErrors: 1000, maxFatalStops: 1000 },
  agents: {
    hasty: stage.agent("model", { toolTimeout: "300ms", maxToolTimeout: "300ms" }),
    cut: stage.agent("model"),
    unheard: stage.agent("model", { approvals: { timeout: "300ms" } }),
    starting: shell("cat; exec sleep 300", { backend: { readyAfter: "10 minutes" } }),
    stubborn: shell("trap '' TERM INT; cat; while :; do sleep 1; done", { interruptGrace: "3 seconds" }),
    cooler: shell("exit 1", { mode: "loop", prompt: "x", backoff: { base: "1 hour", cap: "1 hour" } }),
    ...Object.fromEntries(
      ["late", "waits", "called", "given", "away", "gone", "dies", "rests", "joins"].map((name) => [
        name,
        stage.agent("claude", { may: ["post"] })
      ])
    )
  },
  channels: {
    late: { agents: ["late"], turnConfig: { defaultTimeoutSeconds: 1 } },
    waits: { agents: ["waits"], turnConfig: { waitTimeoutSeconds: 1 } },
    called: { agents: ["called", "joins"] },
    given: { agents: ["given"] },
    away: { agents: ["away"] },
    gone: { agents: ["gone"] },
    dies: { agents: ["dies"] },
    rests: { agents: ["rests"] }
  }
})

/** Seats that lose their turn, or end their wait, in every possible way. */
const seatsEnd = Effect.fnUntraced(function* (stage: Stage.Stage, shop: Stage.Project) {
  const call = stage.rpc.bind(stage)
  const post = (name: string, ...lines: ReadonlyArray<string>) =>
    call((client) => client.PostToChannel({ name, text: lines.join("\n"), caller: shop.caller }))
  const moved = (agent: string, trigger: string) =>
    shop.until(`${agent}: ${trigger}`, shop.log("seat.moved"), (runes) =>
      runes.some((rune) => rune.actor.endsWith(`/${agent}`) && rune.trigger === trigger)
    )
  yield* post("late", "begin", toldTo("late", { hold: true }))
  yield* moved("late", "TurnTimedOut")
  const wait = (name: string, until: object) =>
    Effect.andThen(
      post(name, "wait", toldTo(name, { mcp: ["wait", { reason: "news", ...until }] })),
      moved(name, "WaitRequested")
    )
  yield* wait("waits", { until: "person" })
  yield* moved("waits", "WaitTimedOut")
  yield* wait("called", { until: "message" })
  yield* post("called", "here I am", toldTo("joins", { hold: true }))
  yield* moved("called", "WaitResolved")
  yield* wait("given", { until: "person" })
  yield* call((client) => client.GrantFloor({ name: "given", agent: "given", caller: shop.caller }))
  yield* moved("given", "HumanOverride")
  yield* wait("away", { until: "person" })
  yield* call((client) => client.RemoveSeat({ name: "away", agent: "away", caller: shop.caller }))
  yield* wait("gone", { until: "person" })
  yield* call((client) => client.Stop({ name: "gone", caller: shop.caller }))
  yield* moved("gone", "AgentLeft")
  yield* post("dies", "begin", toldTo("dies", { hold: true }))
  yield* shop.of("dies", 1, "turn.started")
  yield* shop.interrupt("dies")
  yield* moved("dies", "TurnFailed")
  yield* post("rests", "begin", toldTo("rests", { say: "hello" }))
  yield* moved("rests", "TURN_COMPLETE")
  yield* post("rests", "again", toldTo("rests", { say: "hello" }))
  yield* moved("rests", "MessageArrived")
})

/** Calls that time out, workers that are stopped in different states, and conversations that are closed in them. */
export const corners = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const shop = stage.home(corner(stage))
  yield* stage.up
  yield* shop.register
  yield* shop.tell("hasty", { ask: "sh -c 'sleep 60' asked" }, { say: "so be it" })
  yield* shop.answer((yield* shop.asked("hasty")).callId, "allow")
  yield* shop.of("hasty", 1, "tool.result")
  yield* shop.tell("unheard", { ask: "touch asked" }, { say: "so be it" })
  yield* shop.of("unheard", 1, "tool.result")
  yield* shop.tell("cut", { ask: "sh -c 'sleep 60' asked" })
  yield* shop.answer((yield* shop.asked("cut")).callId, "allow")
  yield* shop.of("cut", 1, "tool.approved")
  yield* shop.interrupt("cut")
  yield* shop.of("cut", 1, "tool.result")
  yield* shop.send("starting", "begin")
  yield* shop.row("starting", "starts", ({ state }) => state === "Spawning")
  yield* shop.send("stubborn", "work for ever")
  yield* shop.row("stubborn", "runs", ({ state }) => state === "Running")
  yield* shop.send("stubborn", "at once", "urgent")
  yield* shop.row("stubborn", "is interrupted", ({ state }) => state === "Interrupting")
  yield* shop.row("cooler", "cools down", ({ state }) => state === "CoolingDown")
  for (const name of ["starting", "stubborn", "cooler"])
    yield* stage.rpc((client) => client.Stop({ name, caller: shop.caller }))
  yield* seatsEnd(stage, shop)
  const close = (project: Stage.Project) =>
    stage.rpc((client) => client.Close({ name: "", reason: "", force: true, caller: project.caller }))
  const config = { conversation: { budget: { tokens: 1000 } }, agents: { a: stage.agent("claude") } }
  const [fresh, held, spent] = ["fresh", "held", "spent"].map((name) =>
    stage.project(name, name === "fresh" ? { agents: {} } : config)
  )
  yield* fresh!.register
  yield* close(fresh!)
  for (const project of [held!, spent!]) yield* project.register
  yield* held!.tell("a", { say: "hello" })
  yield* held!.answers("a", 1)
  yield* stage.rpc((client) => client.Pause({ name: "", inFlight: "complete", reason: "", caller: held!.caller }))
  yield* close(held!)
  yield* spent!.tell("a", { tokens: 2000 }, { hold: true })
  yield* spent!.until("it is suspended", spent!.conversation, ({ state }) => state === "suspended")
  yield* close(spent!)
  yield* keep("corners", stage, { shop: corner(stage), fresh: {}, held: {}, spent: {} })
})
