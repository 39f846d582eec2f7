/** The list of what needs a person, under a real daemon: each matter with a command that works as it stands. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { WaitingRow } from "../../../src/board/WaitingMessages.ts"
import { type Step, told } from "../../support/Told.ts"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

const plan = { tasks: [{ id: "one", title: "Do it" }] }

const rowsOf = (stage: Stage.Stage) =>
  Effect.map(
    stage.rpc((client) => client.Waiting()),
    ({ rows }) => rows
  )

/** Rows of a kind, once there are so many. */
const seen = (project: Stage.Project, kind: WaitingRow["kind"], count: number, who = "") =>
  Effect.map(
    project.until(`${count} × ${kind} of ${who}`, rowsOf(project.stage), (rows) => {
      return rows.filter((row) => row.kind === kind && row.who.startsWith(who)).length === count
    }),
    (rows) => rows.filter((row) => row.kind === kind && row.who.startsWith(who))
  )

/** The words of a command, after the program's name. */
const wordsOf = (command: string): ReadonlyArray<string> =>
  [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!).slice(1)

describe("what needs a person", () => {
  it.live("is one list, that survives kill -9, and whose commands all work as they stand", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({
        name: "shop",
        channels: { lobby: { agents: ["worker"] } },
        agents: {
          worker: stage.agent("acp"),
          halver: stage.agent("model"),
          asker: stage.agent("acp", { may: ["ask"] }),
          approver: stage.agent("acp"),
          sleeper: stage.agent("acp", { autostart: false }),
          ghost: stage.agent("acp", { backend: { argv: ["/nowhere/acp"] } })
        }
      })
      const web = stage.project("web", { name: "twin", agents: { worker: stage.agent("acp") } })
      const third = stage.project("third", { name: "twin-2", agents: { worker: stage.agent("acp") } })
      yield* stage.up
      for (const project of [shop, web, third]) yield* project.register
      assert.deepStrictEqual(
        (yield* rowsOf(stage)).filter(({ kind }) => kind !== "agent"),
        []
      )

      // work that comes to no answer, of agents whose names are there three times
      for (const project of [shop, web, third]) yield* project.tell("worker", { say: "I" }, { end: "refusal" })
      yield* seen(shop, "dropped", 3)
      yield* shop.tell("halver", { say: "The first half" }, { end: "max_tokens" })
      const [half] = yield* seen(shop, "dropped", 1, "shop/halver")
      assert.include(half!.text, "1 message ended without an answer: max_tokens")
      assert.include((yield* shop.cli("why", "halver")).stdout, "the incomplete answer is stored")
      const [cut] = yield* shop.of("halver", 1, "turn.error")
      assert.strictEqual(cut!.payload["partial_output"], "The first half")

      yield* shop.tell("asker", { mcp: ["ask_person", { question: "Which branch?" }] })
      yield* shop.tell("approver", { ask: "touch hi" })
      for (const agent of ["sleeper", "ghost"]) yield* shop.send(agent, "Wake up.")
      const { conversation } = yield* third.conversation
      yield* stage.rpc((client) =>
        client.Pause({ name: conversation, inFlight: "complete", reason: "lunch", caller: third.caller })
      )
      yield* third.stage.rpc((client) => client.Channels())
      yield* stage.rpc((client) => client.PauseChannel({ name: "lobby", paused: true, caller: shop.caller }))
      writeFileSync(join(shop.root, "plan.json"), JSON.stringify(plan))
      const request = { goal: "Build it", plan: join(shop.root, "plan.json"), autoStart: false }
      yield* stage.rpc((client) => client.GoalSubmit({ request, caller: shop.caller }))
      yield* seen(shop, "question", 1, "shop/asker")
      yield* seen(shop, "approval", 1, "shop/approver")
      yield* seen(shop, "held", 1, "shop/sleeper")
      yield* seen(shop, "agent", 1, "shop/ghost")
      yield* seen(shop, "conversation", 1)
      yield* seen(shop, "channel", 1)
      yield* seen(shop, "goal", 1)
      for (const role of ["one", "two"]) {
        const config = JSON.parse(readFileSync(shop.config, "utf8"))
        config.agents.worker.role = role
        writeFileSync(shop.config, JSON.stringify(config))
        yield* shop.until("the change is seen", rowsOf(stage), (rows) =>
          rows.some(({ kind, text }) => kind === "config" && (role === "one" || text.includes("changed 2 times")))
        )
      }

      // a run that asks is lost with the daemon: it asks anew, as another call
      const nameOf = ({ id, kind, who }: WaitingRow) => (kind === "approval" ? `${kind} ${who}` : id)
      const asked = yield* rowsOf(stage)
      const before = asked.map(nameOf)
      assert.strictEqual(new Set(before).size, before.length)
      yield* stage.box.kill9
      yield* stage.up
      yield* shop.until("the same list", rowsOf(stage), (rows) => {
        const now = new Set(rows.map(nameOf))
        const isAnew = (row: WaitingRow) => row.kind !== "approval" || asked.every(({ id }) => id !== row.id)
        return before.every((id) => now.has(id)) && rows.every(isAnew)
      })

      // the same on every screen
      const all = yield* stage.box.cli("waiting")
      const board = yield* stage.box.cli("ps")
      for (const row of yield* rowsOf(stage)) {
        assert.include(all.stdout, row.who)
        // messages that an agent holds which has stopped are its row's
        const command = row.commands[0]!.command.replace(/^agentd /, "")
        if (row.kind !== "held") assert.include(board.stdout, command)
      }
      assert.lengthOf(JSON.parse((yield* stage.box.cli("waiting", "--json")).stdout).rows, before.length)

      // agents of two projects have one name: commands name them beyond doubt
      const dropped = [
        ...(yield* seen(shop, "dropped", 1, "twin/worker")),
        ...(yield* seen(shop, "dropped", 1, "twin-2/worker"))
      ]
      assert.strictEqual(new Set(dropped.map(({ commands }) => commands[0]!.command)).size, 2)

      const elsewhere = join(stage.box.folder, "elsewhere")
      mkdirSync(elsewhere)
      const failed: Array<string> = []
      for (const { commands, kind } of yield* rowsOf(stage)) {
        if (kind === "goal" || kind === "config" || kind === "agent" || kind === "conversation") continue
        for (const { command } of commands) {
          const { code, stderr } = yield* stage.box.cliIn(elsewhere, ...wordsOf(command))
          // 5: shown, and there is no terminal to ask on; 1: the command before it was enough
          const isDone =
            code === 0 ||
            code === 5 ||
            /nothing that came|unanswered message|no queued|has already started|not paused|was (approved|denied)/.test(
              stderr
            )
          if (!isDone) failed.push(`${command}: ${code} ${stderr}`)
        }
      }
      for (const { commands, kind } of yield* rowsOf(stage)) {
        if (kind !== "goal" && kind !== "config" && kind !== "agent" && kind !== "conversation") continue
        const { code, stderr } = yield* stage.box.cliIn(elsewhere, ...wordsOf(commands[0]!.command))
        // on a terminal it asks
        const asks = stderr.includes("This is not a terminal")
        if (code !== 0 && code !== 5 && !asks) failed.push(`${commands[0]!.command}: ${code} ${stderr}`)
      }
      assert.deepStrictEqual(failed, [])
      assert.deepStrictEqual(yield* seen(shop, "question", 0), [])
    }).pipe(Effect.scoped)
  )

  it.live("a branch that was left with work is a row; a lock that a killed git left is told by why", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const commits = "cat > /dev/null; touch -d '1 hour ago' .git/index.lock; echo ok"
      const shop = stage.home({
        agents: {
          ada: { worktree: true, backend: { type: "command", shell: commits }, minRunInterval: "0ms" }
        }
      })
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-C", shop.root, "-c", "user.name=a", "-c", "user.email=a@b", ...args], { stdio: "pipe" })
      git("init", "--quiet")
      git("commit", "--quiet", "--allow-empty", "--message", "first")
      git("switch", "--quiet", "-c", "agentd/ada")
      git("commit", "--quiet", "--allow-empty", "--message", "left")
      git("switch", "--quiet", "-")
      yield* stage.up
      yield* shop.register
      const [row] = yield* seen(shop, "bound", 1)
      assert.match(row!.text, /^it starts at [0-9a-f]{12}, because the branch agentd\/ada has work/)
      assert.include((yield* shop.cli("ps")).stdout, "because the branch agentd/ada has work")
      assert.strictEqual((yield* shop.cli("dismiss", "shop/ada")).code, 0)
      yield* seen(shop, "bound", 0)
      yield* shop.send("ada", "go")
      yield* shop.answers("ada", 1)
      yield* shop.of("ada", 1, "run.notice")
      const why = (yield* shop.cli("why", "ada")).stdout
      assert.include(why, "agentd removed")
      assert.include(why, "index.lock")
      assert.include(why, "it starts at")
    }).pipe(Effect.scoped)
  )

  long.live("agents that message each other in a circle rest, through kill -9, until a person lets them go on", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({
        conversation: { restAfterRelays: 2 },
        agents: {
          ping: stage.agent("acp", { may: ["message"] }),
          pong: stage.agent("acp", { may: ["message"] })
        }
      })
      yield* stage.up
      yield* shop.register
      const say = (agent: string, text: string): Step => ({ mcp: ["message", { agent, text }] })
      yield* shop.tell("ping", say("pong", told(say("ping", told(say("pong", "and so on"))))))
      const [row] = yield* seen(shop, "bound", 1)
      assert.include(row!.text, "2 agent messages, each caused by the one before, without a message from a person")
      const answers = yield* shop.answers("ping", 2)
      assert.include(String(answers[1]), "until a person lets it through")
      yield* stage.box.kill9
      yield* stage.up
      const [again] = yield* seen(shop, "bound", 1)
      assert.deepStrictEqual(again, row)
      assert.strictEqual(again!.commands[0]!.command, "agentd retry shop/pong")
      assert.include((yield* shop.cli("why", "pong")).stdout, "a message from agent:ping is withheld")
      assert.strictEqual((yield* shop.cli("retry", "pong")).code, 0)
      yield* shop.answers("pong", 2)
      yield* seen(shop, "bound", 0)
    }).pipe(Effect.scoped)
  )
})
