/** Conversations as wholes under a real daemon: budgets, pauses, ends, sub-agents, voices. */
import { assert, layer } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { existsSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer, Stream } from "effect"
import * as SmtpStand from "../alerts/SmtpStand.ts"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"
import { told } from "../../support/Told.ts"

/** The pids of runs that work in one of these folders or below. */
const processesOf = (stage: Stage.Stage, folders: ReadonlyArray<string>) =>
  Effect.map(stage.box.processes, (pids) =>
    pids.filter((pid) => {
      try {
        const cwd = readlinkSync(`/proc/${pid}/cwd`)
        return folders.some((folder) => cwd.startsWith(folder))
      } catch {
        return false
      }
    })
  )

/** Mail to the stand at once. */
const mailTo = (port: number) => ({
  to: "ada@example.org",
  smtp: { host: "127.0.0.1", port, security: "none" },
  digestWindow: "0ms"
})

class Town extends Context.Service<Town, { readonly stage: Stage.Stage; readonly smtp: SmtpStand.Stand }>()(
  "test/Town"
) {}

/** A daemon for projects that end, or are held. */
const town = Layer.effect(
  Town,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const smtp = yield* SmtpStand.stand()
    stage.home({ agents: {} })
    yield* stage.up
    return { stage, smtp }
  })
)

const mailed = (project: Stage.Project, smtp: SmtpStand.Stand, words: RegExp) =>
  project.until(
    `a mail that says ${words}`,
    Effect.sync(() => smtp.taken.map(SmtpStand.body)),
    (bodies) => bodies.some((text) => words.test(text))
  )

layer(town, { excludeTestServices: true })("a conversation under the daemon", (it) => {
  it.effect("an agent that has spent its budget is interrupted at once and mailed; its start begins anew", () =>
    Effect.gen(function* () {
      const { smtp, stage } = yield* Town
      const shop = stage.project("thrifty", {
        mail: mailTo(smtp.port),
        agents: stage.trio("spender", { budget: { tokens: 1000 } })
      })
      yield* shop.register
      yield* Stage.onEach((on) =>
        Effect.gen(function* () {
          const agent = `spender-${on}`
          // only Claude Code tells what it spends before the turn is over
          yield* on === "claude"
            ? shop.tell(agent, { sleep: 200 }, { tokens: 2000 }, { hold: true })
            : shop.tell(agent, { sleep: 200 }, { tokens: 2000 }, { say: "dear" })
          yield* shop.of(agent, 1, "agent.terminated")
          yield* shop.of(agent, 1, on === "claude" ? "turn.interrupted" : "turn.completed")
          yield* mailed(shop, smtp, new RegExp(`${agent}[^]*budget`))
          const kept = yield* shop.tell(agent, { say: "anew" })
          assert.match(kept.message, /stopped/)
          yield* shop.start(agent)
          const [, begun] = yield* shop.of(agent, 2, "turn.started")
          assert.lengthOf(Laws.messagesOf(begun!), on === "claude" ? 2 : 1, "work cut short is offered again")
        })
      )
    })
  )

  it.effect(
    "a conversation that has spent its budget is suspended and mailed; agentd project resume goes on with what waits",
    () =>
      Effect.gen(function* () {
        const { smtp, stage } = yield* Town
        const shop = stage.project("poor", {
          mail: mailTo(smtp.port),
          conversation: { budget: { tokens: 1000 } },
          agents: stage.trio("a")
        })
        yield* shop.register
        yield* shop.tell("a-acp", { hold: true }, { say: "cut" })
        yield* shop.of("a-acp", 1, "turn.started")
        yield* shop.tell("a-claude", { tokens: 2000 }, { hold: true }, { say: "cut, too" })
        yield* shop.until("it is suspended", shop.conversation, ({ state }) => state === "suspended")
        yield* shop.of("a-acp", 1, "turn.interrupted")
        yield* mailed(shop, smtp, /poor[^]*needs you/)
        const refused = yield* shop.cli("send", "a-model", "no")
        assert.strictEqual(refused.code, 1)
        assert.match(refused.stderr, /suspended[^]*agentd .*resume/)
        const resumed = yield* shop.cli("project", "resume")
        assert.strictEqual(resumed.code, 0, resumed.stderr)
        assert.deepStrictEqual(yield* shop.answers("a-acp", 1), ["cut"])
        assert.deepStrictEqual(yield* shop.answers("a-claude", 1), ["cut, too"])
        assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
      })
  )

  it.effect("errors in a row suspend it, and only a person lets it go on", () =>
    Effect.gen(function* () {
      const { smtp, stage } = yield* Town
      const shop = stage.project("shaky", {
        mail: mailTo(smtp.port),
        conversation: { maxTurnErrors: 1 },
        agents: { a: stage.agent("acp"), b: stage.agent("claude") }
      })
      yield* shop.register
      yield* shop.tell("a", { signal: "SIGKILL" }, { say: "up again" })
      yield* shop.until("it is suspended", shop.conversation, ({ state }) => state === "suspended")
      yield* mailed(shop, smtp, /shaky[^]*1 turns? in a row/)
      yield* stage.rpc((client) => client.Resume({ name: "", caller: shop.caller }))
      assert.deepStrictEqual(yield* shop.answers("a", 1), ["up again"])
    })
  )

  it.effect("pause --complete lets turns end, pause interrupts them; what was cut short goes on after resume", () =>
    Effect.gen(function* () {
      const { stage } = yield* Town
      const shop = stage.project("calm", { agents: stage.trio("a") })
      yield* shop.register
      yield* Stage.onEach((on) => shop.tell(`a-${on}`, { sleep: 600 }, { say: "whole" }))
      yield* Stage.onEach((on) => shop.of(`a-${on}`, 1, "turn.started"))
      const paused = yield* shop.cli("project", "pause", "--complete", "--reason", "lunch")
      assert.strictEqual(paused.code, 0, paused.stderr)
      yield* Stage.onEach((on) => shop.answers(`a-${on}`, 1))
      const refused = yield* Effect.flip(shop.tell("a-acp", { say: "no" }))
      assert.match(refused.message, /paused/)
      yield* stage.rpc((client) => client.Resume({ name: "", caller: shop.caller }))
      yield* Stage.onEach((on) => shop.tell(`a-${on}`, { hold: true }, { say: "later" }))
      yield* Stage.onEach((on) => shop.of(`a-${on}`, 2, "turn.started"))
      yield* stage.rpc((client) => client.Pause({ name: "", inFlight: "interrupt", reason: "", caller: shop.caller }))
      yield* Stage.onEach((on) => shop.of(`a-${on}`, 1, "turn.interrupted"))
      assert.deepStrictEqual((yield* shop.log("turn.started")).length, 6, "nothing starts while it is paused")
      yield* stage.rpc((client) => client.Resume({ name: "", caller: shop.caller }))
      yield* Stage.onEach((on) =>
        Effect.map(shop.answers(`a-${on}`, 2), (answers) => assert.deepStrictEqual(answers, ["whole", "later"]))
      )
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )

  it.effect("close ends every agent and keeps work, seals the log; archive; a new conversation begins empty", () =>
    Effect.gen(function* () {
      const { stage } = yield* Town
      const shop = stage.project("done", {
        agents: {
          keeper: stage.agent("model", { worktree: true, approvals: { mode: "full_access" } }),
          idler: stage.agent("acp"),
          talker: stage.agent("claude")
        }
      })
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-C", shop.root, ...args], { encoding: "utf8" })
      git("init", "-q", "-b", "main")
      git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "first")
      yield* shop.register
      const { conversation } = yield* shop.conversation
      yield* shop.tell("keeper", { run: "echo work > work.txt" }, { say: "kept" })
      yield* shop.answers("keeper", 1)
      const { cwd } = yield* shop.row("keeper", "has a place", ({ cwd }) => cwd !== null)
      yield* shop.tell("talker", { ask: "touch hi" })
      yield* shop.asked("talker")
      yield* shop.tell("idler", { hold: true })
      yield* shop.of("idler", 1, "turn.started")
      const closed = yield* shop.cli("project", "close", "--yes", "--force")
      assert.strictEqual(closed.code, 0, closed.stderr)
      assert.isTrue(existsSync(join(cwd!, "work.txt")), "cleanup destroys no work")
      const left = yield* processesOf(stage, [shop.root, cwd!])
      assert.deepStrictEqual(left, [], "when close has answered nothing is left")
      const log = yield* stage.rpc((client) =>
        Stream.runCollect(client.Log({ stream: conversation, follow: false, caller: shop.caller }))
      )
      assert.strictEqual(log.at(-1)?.kind, "session.closed")
      // what a person had asked of a turn that was cut by the close is not done, and never will be
      assert.deepStrictEqual(
        Laws.broken(log).filter((line) => !line.startsWith("message")),
        []
      )
      const late = yield* Effect.flip(shop.tell("idler", { say: "late" }))
      assert.match(late.message, /closed|no agent/)
      yield* stage.rpc((client) => client.Archive({ name: conversation, caller: shop.caller }))
      const verdict = yield* shop.cli("verify")
      assert.strictEqual(verdict.code, 0, verdict.stdout)
      yield* stage.rpc((client) => client.NewConversation({ config: shop.config, caller: shop.caller }))
      yield* shop.tell("keeper", { say: "anew" })
      assert.deepStrictEqual(yield* shop.answers("keeper", 1), ["anew"])
      assert.notStrictEqual((yield* shop.conversation).conversation, conversation)
    })
  )

  it.effect("a sub-agent is spawned by an agent and by a person, reports, and ends with its parent", () =>
    Effect.gen(function* () {
      const { stage } = yield* Town
      const may = ["spawn", "report"]
      const shop = stage.project("family", {
        agents: { boss: stage.agent("claude", { may, interruptGrace: "300ms" }) }
      })
      yield* shop.register
      const report = { status: "done", summary: "the tests pass", evidence: [] }
      yield* shop.tell("boss", { mcp: ["spawn", { name: "child", task: told({ mcp: ["report", report] }) }] })
      assert.deepStrictEqual(yield* shop.answers("child", 1), ["Reported to boss."])
      const [, heard] = yield* shop.of("boss", 2, "turn.started")
      assert.match(String(heard!.payload["input"]), /from the agent child\nReport of .*child: done\.\nthe tests pass/)
      const spawned = yield* shop.cli("spawn", "boss", "other", told({ hold: true }))
      assert.strictEqual(spawned.code, 0, spawned.stderr)
      yield* shop.of("other", 1, "turn.started")
      yield* stage.rpc((client) => client.Stop({ name: "boss", caller: shop.caller }))
      for (const agent of ["child", "other", "boss"]) yield* shop.of(agent, 1, "agent.terminated")
      assert.deepStrictEqual(yield* processesOf(stage, [shop.root]), [], "no process of any of them is left")
      const received = (yield* shop.log("inbox.received")).filter(({ actor }) => actor === "inbox/boss")
      assert.lengthOf(received, 2, "its task, and the report: an end of its own doing is no news")
    })
  )

  it.effect("ten sub-agents run, ten more wait for a place, and the next one is refused", () =>
    Effect.gen(function* () {
      const { stage } = yield* Town
      const shop = stage.project("clan", { agents: { boss: stage.agent("model") } })
      yield* shop.register
      const spawn = (name: string) =>
        stage.rpc((client) =>
          client.Spawn({ name: "boss", request: { name, task: told({ hold: true }) }, caller: shop.caller })
        )
      yield* Effect.forEach([...Array(20).keys()], (n) => spawn(`sub-${n}`))
      const refused = yield* Effect.flip(spawn("sub-20"))
      assert.match(refused.message, /the limit is 20/)
      yield* shop.until("ten run", shop.log("turn.started"), (runes) => runes.length === 10)
      yield* stage.rpc((client) => client.Stop({ name: "sub-3", caller: shop.caller }))
      yield* shop.of("sub-10", 1, "turn.started")
      yield* stage.rpc((client) => client.Close({ name: "", reason: "", force: true, caller: shop.caller }))
      assert.deepStrictEqual(yield* processesOf(stage, [shop.root]), [])
    })
  )

  it.effect("its voice: a message wakes another agent, a report is kept, a question is mailed, and may refuses", () =>
    Effect.gen(function* () {
      const { smtp, stage } = yield* Town
      const shop = stage.project("choir", {
        mail: mailTo(smtp.port),
        agents: {
          "v-claude": stage.agent("claude", { may: ["message"] }),
          "v-acp": stage.agent("acp", { may: ["report"] }),
          "v-model": stage.agent("model", { may: ["ask"] }),
          woken: stage.agent("acp")
        }
      })
      yield* shop.register
      yield* shop.tell("v-claude", { mcp: ["message", { agent: "woken", text: told({ say: "I am up" }) }] })
      yield* shop.tell(
        "v-acp",
        { mcp: ["report", { status: "done", summary: "all green", evidence: ["npm test"] }] },
        { mcp: ["message", { agent: "woken", text: "not for me" }] }
      )
      yield* shop.tell("v-model", { mcp: ["ask_person", { question: "Tabs or spaces?" }] })
      assert.deepStrictEqual(yield* shop.answers("woken", 1), ["I am up"])
      const [said] = yield* shop.answers("v-acp", 1)
      assert.match(String(said), /Reported[^]*(may not|"message" is not in|no tool)/i)
      assert.strictEqual((yield* shop.of("v-acp", 1, "agent.reported"))[0]?.payload["summary"], "all green")
      yield* mailed(shop, smtp, /v-model[^]*Tabs or spaces/)
      yield* shop.answers("v-model", 1)
      const [, received] = (yield* shop.log("inbox.received")).filter(({ actor }) => actor === "inbox/woken")
      assert.isUndefined(received, "what it may not say reaches nobody")
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )
})
