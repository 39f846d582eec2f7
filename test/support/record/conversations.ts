/**
 * conversations: records whole conversations under a real daemon: budgets, pauses, ends, sub-agents, agents' tools,
 * mail.
 */
import { Effect } from "effect"
import * as SmtpStand from "../../world/alerts/SmtpStand.ts"
import * as Stage from "../Stage.ts"
import { told } from "../Told.ts"
import { lenient, mail, repository, shell } from "./parts.ts"
import type { Keep } from "./Recorder.ts"

const town = {
  poor: (stage: Stage.Stage) => ({
    conversation: { budget: { tokens: 1000 } },
    agents: { a: stage.agent("acp"), b: stage.agent("claude") }
  }),
  thrifty: (stage: Stage.Stage, port: number) => ({
    mail: mail(port),
    agents: stage.trio("spender", { budget: { tokens: 1000 } })
  }),
  shaky: (stage: Stage.Stage, port: number) => ({
    mail: mail(port),
    conversation: { maxTurnErrors: 1 },
    agents: { a: stage.agent("acp") }
  }),
  calm: (stage: Stage.Stage) => ({ agents: { a: stage.agent("acp"), b: stage.agent("claude") } }),
  done: (stage: Stage.Stage) => ({
    agents: {
      keeper: stage.agent("model", { worktree: true, approvals: { mode: "full_access" } }),
      tidy: shell("cat; sleep 0.1", { worktree: true }),
      idler: stage.agent("acp"),
      talker: stage.agent("claude")
    },
    channels: { room: { agents: ["idler", "talker"] } }
  }),
  slow: () => ({
    agents: {
      stubborn: shell("trap '' TERM INT; cat; while :; do sleep 1; done", {
        interruptGrace: "10 minutes",
        backend: { killGrace: "10 minutes" }
      })
    }
  }),
  family: (stage: Stage.Stage) => ({
    agents: {
      boss: stage.agent("claude", { may: ["spawn", "report"], interruptGrace: "300ms" }),
      chief: stage.agent("model")
    }
  }),
  choir: (stage: Stage.Stage, port: number) => ({
    mail: mail(port),
    agents: {
      "v-claude": stage.agent("claude", { may: ["message"] }),
      "v-acp": stage.agent("acp", { may: ["report"] }),
      "v-model": stage.agent("model", { may: ["ask"] }),
      woken: stage.agent("acp")
    }
  })
}

/** Budgets, errors in a row, pauses, and the mails about them. */
const heldBack = Effect.fnUntraced(function* (
  stage: Stage.Stage,
  ports: { readonly good: number; readonly bad: number }
) {
  const thrifty = stage.project("thrifty", town.thrifty(stage, ports.good))
  yield* thrifty.register
  yield* thrifty.tell("spender-claude", { sleep: 200 }, { tokens: 2000 }, { hold: true })
  yield* thrifty.tell("spender-acp", { sleep: 200 }, { tokens: 2000 }, { say: "dear" })
  for (const on of ["claude", "acp"]) yield* thrifty.of(`spender-${on}`, 1, "agent.terminated")
  yield* thrifty.tell("spender-claude", { say: "anew" })
  yield* thrifty.start("spender-claude")
  yield* thrifty.of("spender-claude", 2, "turn.started")

  const poor = stage.project("poor", town.poor(stage))
  yield* poor.register
  yield* poor.tell("a", { hold: true }, { say: "cut" })
  yield* poor.of("a", 1, "turn.started")
  yield* poor.tell("b", { tokens: 2000 }, { hold: true }, { say: "cut, too" })
  yield* poor.until("it is suspended", poor.conversation, ({ state }) => state === "suspended")
  yield* stage.rpc((client) => client.Resume({ name: "", caller: poor.caller }))
  yield* poor.answers("a", 1)
  yield* poor.answers("b", 1)
  yield* poor.tell("b", { tokens: 2000 }, { hold: true })
  yield* poor.until("it is suspended again", poor.conversation, ({ state }) => state === "suspended")

  const shaky = stage.project("shaky", town.shaky(stage, ports.bad))
  yield* shaky.register
  yield* shaky.tell("a", { signal: "SIGKILL" }, { say: "up again" })
  yield* shaky.until("it is suspended", shaky.conversation, ({ state }) => state === "suspended")

  const calm = stage.project("calm", town.calm(stage))
  yield* calm.register
  yield* calm.tell("a", { sleep: 600 }, { say: "whole" })
  yield* calm.of("a", 1, "turn.started")
  yield* stage.rpc((client) => client.Pause({ name: "", inFlight: "complete", reason: "lunch", caller: calm.caller }))
  yield* calm.answers("a", 1)
  yield* stage.rpc((client) => client.Resume({ name: "", caller: calm.caller }))
  yield* calm.tell("b", { hold: true }, { say: "later" })
  yield* calm.of("b", 1, "turn.started")
  yield* stage.rpc((client) => client.Pause({ name: "", inFlight: "interrupt", reason: "", caller: calm.caller }))
  yield* calm.of("b", 1, "turn.interrupted")
})

/**
 * A conversation that is closed and archived, its successor, and one that is being closed when the daemon is killed.
 */
const ended = Effect.fnUntraced(function* (stage: Stage.Stage) {
  const done = stage.project("done", town.done(stage))
  repository(done.root)
  yield* done.register
  const { conversation } = yield* done.conversation
  yield* done.tell("keeper", { run: "echo work > work.txt" }, { say: "kept" })
  yield* done.answers("keeper", 1)
  yield* done.send("tidy", "nothing")
  yield* done.of("tidy", 1, "turn.completed")
  yield* done.tell("talker", { ask: "touch asked" })
  yield* done.asked("talker")
  yield* done.tell("idler", { hold: true })
  yield* done.of("idler", 1, "turn.started")
  yield* stage.rpc((client) => client.Close({ name: "", reason: "over", force: true, caller: done.caller }))
  yield* stage.rpc((client) => client.Archive({ name: conversation, caller: done.caller }))
  yield* stage.rpc((client) => client.NewConversation({ config: done.config, caller: done.caller }))
  yield* done.tell("keeper", { say: "anew" })
  yield* done.answers("keeper", 1)
  const shut = stage.project("shut", town.calm(stage))
  yield* shut.register
  yield* shut.tell("a", { say: "short" })
  yield* shut.answers("a", 1)
  yield* stage.rpc((client) => client.Close({ name: "", reason: "", force: true, caller: shut.caller }))
  const slow = stage.project("slow", town.slow())
  yield* slow.register
  yield* slow.send("stubborn", "for ever")
  yield* slow.row("stubborn", "runs", ({ state }) => state === "Running")
  yield* Effect.forkScoped(
    lenient(stage.rpc((client) => client.Close({ name: "", reason: "", force: false, caller: slow.caller })))
  )
  yield* slow.until("it is being closed", slow.conversation, ({ state }) => state === "closing")
})

/** Sub-agents, including those that wait for a free slot, and the calls that agents make to agentd's tools. */
const spoken = Effect.fnUntraced(function* (stage: Stage.Stage, port: number) {
  const family = stage.project("family", town.family(stage))
  yield* family.register
  const report = { status: "done", summary: "the tests pass", evidence: ["npm test"] }
  yield* family.tell("boss", { mcp: ["spawn", { name: "child", task: told({ mcp: ["report", report] }) }] })
  yield* family.answers("child", 1)
  yield* family.of("boss", 2, "turn.started")
  yield* family.cli("spawn", "boss", "other", told({ say: "an answer" }))
  yield* family.answers("other", 1)
  yield* stage.rpc((client) => client.Stop({ name: "other", caller: family.caller }))
  for (let n = 0; n < 12; n++) {
    const request = { name: `sub-${n}`, task: told({ hold: true }) }
    yield* stage.rpc((client) => client.Spawn({ name: "chief", request, caller: family.caller }))
  }
  yield* family.of("sub-8", 1, "turn.started")

  const choir = stage.project("choir", town.choir(stage, port))
  yield* choir.register
  yield* choir.tell("v-claude", { mcp: ["message", { agent: "woken", text: told({ say: "I am up" }) }] })
  yield* choir.tell("v-acp", { mcp: ["report", { status: "done", summary: "all green", evidence: ["npm test"] }] })
  yield* choir.tell("v-model", { mcp: ["ask_person", { question: "Tabs or spaces?" }] })
  yield* choir.answers("woken", 1)
  yield* choir.of("v-acp", 1, "agent.reported")
  yield* choir.of("v-model", 1, "agent.asked")
})

export const conversations = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const good = yield* SmtpStand.stand()
  const bad = yield* SmtpStand.stand({ answer: (n) => ({ code: n === 1 ? 451 : 550, text: "no such mailbox" }) })
  stage.home({ agents: {} })
  yield* stage.up
  yield* heldBack(stage, { good: good.port, bad: bad.port })
  yield* ended(stage)
  yield* spoken(stage, good.port)
  // some mails are still being sent
  yield* Effect.sleep(3000)
  yield* keep("conversations", stage, {
    poor: town.poor(stage),
    thrifty: town.thrifty(stage, good.port),
    shaky: town.shaky(stage, bad.port),
    calm: town.calm(stage),
    done: town.done(stage),
    shut: town.calm(stage),
    slow: town.slow(),
    family: town.family(stage),
    choir: town.choir(stage, good.port)
  })
})
