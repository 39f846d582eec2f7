/** Rules under a real daemon: a call names the rule that it waits for, `ls` knows when, and `rm` says who waits. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { PROGRAM } from "../../support/Program.ts"
import * as Stage from "../../support/Stage.ts"

interface Listed {
  readonly effect: string
  readonly words: string
  readonly lastUsed: number | null
  readonly unused: boolean
}

describe("rules", () => {
  it.live(
    "a call waits for a rule that asks: it is named, listed as used, and removed with a word about the call",
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.make
        const shop = stage.home({
          name: "shop",
          approvals: { rules: [{ allow: "touch made" }, { deny: "rm made" }, { ask: "touch later" }] },
          agents: { a: stage.agent("claude"), b: stage.agent("claude") }
        })
        yield* stage.up
        const { unseen } = yield* shop.register
        const hooks = /: No rule sees a call that a PermissionRequest hook/
        assert.lengthOf(unseen?.filter((sentence) => hooks.test(sentence)) ?? [], 2, "both agents: a rule denies")
        yield* shop.tell("a", { ask: "touch made" }, { say: "made" })
        assert.deepStrictEqual(yield* shop.answers("a", 1), ["made"])
        yield* shop.tell("b", { ask: "touch later" }, { say: "later" })
        const { callId } = yield* shop.asked("b")
        const [asked] = yield* shop.log("tool.approval_requested")
        assert.match(String(asked?.payload["policy_reason"]), /^ask "touch later" \(agentd\.jsonc:\d+\)$/)

        const { stdout } = yield* shop.cli("--json", "approvals", "ls")
        const listed = (JSON.parse(stdout) as { readonly rules: ReadonlyArray<Listed> }).rules
        assert.deepStrictEqual(
          listed.map(({ effect, lastUsed, unused, words }) => [`${effect} ${words}`, lastUsed !== null, unused]),
          [
            ["allow touch made", true, false],
            ["deny rm made", false, false],
            ["ask touch later", true, false]
          ]
        )

        const removed = yield* shop.cli("--json", "approvals", "rm", "touch later", "--yes")
        assert.deepInclude(JSON.parse(removed.stdout), { waiting: [callId] })
        assert.notInclude(readFileSync(join(shop.root, "agentd.jsonc"), "utf8"), "touch later")
        const [project] = yield* stage.rpc((client) => client.Projects())
        assert.isUndefined(project?.waits, "the change is in force")
        yield* shop.answer(callId, "deny")
      })
  )

  it.live("`ls` lists the rules that a person gave for a run, with the agent", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({ name: "shop", agents: { a: stage.agent("claude") } })
      yield* stage.up
      yield* shop.register
      yield* shop.tell("a", { ask: "touch made" }, { ask: "touch later" }, { say: "done" })
      const { callId } = yield* shop.asked("a")
      const { stdout } = yield* shop.cli("--json", "approve", callId, "--for", "run")
      const { preview } = JSON.parse(stdout) as { readonly preview: { readonly hash: string } }
      yield* shop.cli("approve", callId, preview.hash, "--for", "run")
      const next = yield* shop.asked("a")
      const listed = JSON.parse((yield* shop.cli("--json", "approvals", "ls")).stdout)
      assert.deepInclude(listed.runs, { effect: "allow", words: "touch made", scope: "run", agent: "shop/a" })
      assert.match((yield* shop.cli("approvals", "ls")).stdout, /one run of shop\/a.*touch made/)
      yield* shop.answer(next.callId, "deny")
    })
  )

  it.live("an agent's process removes no rule, also without its run's variable", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({
        name: "shop",
        approvals: { rules: [{ deny: "rm made" }] },
        agents: { a: stage.agent("claude") }
      })
      yield* stage.up
      yield* shop.register
      const words = ["--state", stage.box.state, "approvals", "rm", "'rm made'", "--yes"].join(" ")
      const command = `env -u AGENTD_RUN ${process.execPath} ${PROGRAM} ${words} 2>> said; echo $? >> said`
      yield* shop.tell("a", { ask: command }, { say: "done" })
      yield* shop.answer((yield* shop.asked("a")).callId, "allow")
      yield* shop.answers("a", 1)
      const said = shop.noted("a", "said")
      assert.include(said[0], "inside an agent")
      assert.notStrictEqual(said.at(-1), "0")
      assert.include(readFileSync(shop.config, "utf8"), "rm made")
    })
  )

  it.live("no rule is removed while another change of the file waits for trust", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const a = stage.agent("claude")
      const config = { name: "shop", approvals: { rules: [{ deny: "rm made" }] }, agents: { a } }
      const shop = stage.home(config)
      yield* stage.up
      yield* shop.register
      shop.configure({ ...config, agents: { a, evil: a } })
      yield* shop.until(
        "the change waits",
        stage.rpc((client) => client.Projects()),
        ([project]) => project?.waits !== undefined
      )
      const { code, stderr } = yield* shop.cli("approvals", "rm", "rm made", "--yes")
      assert.notStrictEqual(code, 0)
      assert.include(stderr, "changes that are not in force, so nothing was removed")
      assert.include(readFileSync(shop.config, "utf8"), "rm made")
    })
  )

  const bad = [
    ["would never match", { allow: "timeout 5 npm test" }, "it would never match"],
    ["has a star before the subcommand", { allow: "git * status" }, "no star can stand for them"],
    ["has a star for a tool without an entry", { allow: "mytool **" }, "agentd does not know"],
    ["contradicts another one", { allow: "git push" }, 'says ask "git push", and ask goes before allow']
  ] as const
  it.live(
    "a rule file with a mistake is refused by the daemon and by the command, with its line and what is wrong",
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.make
        const agents = { a: stage.agent("claude") }
        const shop = stage.home({ name: "shop", agents })
        yield* stage.up
        for (const [, rule, says] of bad) {
          shop.configure({ name: "shop", approvals: { rules: [{ ask: "git push" }, rule] }, agents })
          const before = readFileSync(shop.config, "utf8").split('"allow": ')[0]!
          // two rules that contradict each other are a mistake of the whole rule, which begins a line before
          const line = before.split("\n").length - (rule.allow === "git push" ? 1 : 0)
          const { problems } = yield* shop.register
          assert.include(problems.join("\n"), says)
          assert.include(problems.join("\n"), `${shop.config}:${line}`)
          for (const command of [["start"], ["approvals", "ls"], ["approvals", "test", "ls"]]) {
            const { code, stderr, stdout } = yield* shop.cli(...command)
            assert.notStrictEqual(code, 0, command.join(" "))
            assert.include(stdout + stderr, says)
            assert.include(stdout + stderr, `${shop.config}:${line}`)
          }
        }
        shop.configure({ name: "shop", agents })
        stage.box.setUser({ approvals: { everywhere: [{ allow: "npm test" }] } })
        const { stderr } = yield* shop.cli("approvals", "ls")
        assert.include(stderr, "approvals.everywhere: is not a field that agentd knows")
      })
  )

  it.live("an answer with a rule is refused if the file changed since it was shown, or if the call is gone", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({ name: "shop", agents: { a: stage.agent("claude") } })
      yield* stage.up
      yield* shop.register
      yield* shop.tell("a", { ask: "npm test" }, { say: "done" })
      const { callId: name } = yield* shop.asked("a")
      const lasting = { scope: "everyone", offer: 1 } as const
      const { caller } = shop
      const { hash } = yield* stage.rpc((client) => client.AnswerPreview({ name, lasting, caller }))
      const text = readFileSync(shop.config, "utf8")
      const answer = stage.rpc((client) =>
        client.Answer({ name, decision: "allow", reason: "", hash, lasting, caller })
      )
      const keep = ["approve", name, hash.slice(0, 32), "--for", "everyone"]
      writeFileSync(shop.config, `${text}// more\n`)
      yield* shop.register
      assert.include((yield* Effect.flip(answer)).message, "have changed since they were shown")
      assert.include((yield* shop.cli(...keep)).stderr, "have changed since they were shown")
      assert.strictEqual(readFileSync(shop.config, "utf8"), `${text}// more\n`)
      yield* shop.answer(name, "deny")
      yield* shop.answers("a", 1)
      assert.match((yield* Effect.flip(answer)).message, /no longer waits/)
      const { code, stderr } = yield* shop.cli(...keep)
      assert.strictEqual(code, 1)
      assert.match(stderr, /no longer waits/)
      assert.strictEqual(readFileSync(shop.config, "utf8"), `${text}// more\n`)
    })
  )
})
