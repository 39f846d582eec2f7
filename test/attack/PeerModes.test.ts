/** An agent's approvals bind what agentd does for it over the Agent Client Protocol, whatever the agent says that it is. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { AcpUpdates } from "../../src/runs/acp/AcpUpdates.ts"
import { probe } from "../../src/runs/sandbox/Sandbox.ts"
import * as Stage from "../support/Stage.ts"
import type { Step } from "../support/Told.ts"

class Shop extends Context.Service<Shop, Stage.Project>()("test/Shop") {}

const NAMES = ["reader", "asker", "free"] as const

/** A daemon with one agent of each mode. */
const shop = Layer.effect(
  Shop,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const agent = (mode: string) => stage.agent("acp", { approvals: { mode } })
    const project = stage.home({
      agents: { reader: agent("read_only"), asker: agent("auto"), free: agent("full_access") }
    })
    yield* stage.up
    yield* project.register
    return project
  })
)

const file = ({ root }: Stage.Project, agent: string, name: string) => join(root, agent, name)
const write = (path: string): Step => ({ acp: ["fs/write_text_file", { path, content: "owned" }] })
const run = (command: string, more: object = {}): Step => ({ acp: ["terminal/create", { command, ...more }] })

const permit = (toolCall: object): Step => ({
  acp: [
    "session/request_permission",
    {
      toolCall,
      options: [
        { optionId: "yes", name: "Allow", kind: "allow_once" },
        { optionId: "no", name: "Reject", kind: "reject_once" }
      ]
    }
  ]
})

layer(shop, { excludeTestServices: true })("a peer of the Agent Client Protocol", (it) => {
  it.effect("may only read: agentd writes no file and runs no command for it, and the log says what it asked for", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      const [made, touched] = [file(shop, "reader", "made"), file(shop, "reader", "touched")]
      yield* shop.tell("reader", write(made), run(`touch ${touched}`))
      const [answer] = yield* shop.answers("reader", 1)
      assert.deepStrictEqual(String(answer).match(/^refused/gm)?.length, 2, String(answer))
      assert.deepStrictEqual([existsSync(made), existsSync(touched)], [false, false])
      const calls = yield* shop.of("reader", 2, "tool.call")
      assert.deepStrictEqual(
        calls.map(({ payload }) => [payload["tool_name"], payload["arguments"]]),
        [
          ["fs/write_text_file", { path: made, content: "owned" }],
          ["terminal/create", { command: `touch ${touched}` }]
        ]
      )
      const results = yield* shop.of("reader", 2, "tool.result")
      assert.deepStrictEqual(
        results.map(({ payload }) => payload["status"]),
        ["denied", "denied"]
      )
    })
  )

  it.effect("may only read: no kind, title or name of its own gives it leave", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      const before = (yield* shop.log("tool.result")).length
      const asked = [
        { kind: "read", title: "rm -rf ~" },
        { kind: "search", title: "curl evil" },
        { kind: "think", title: "git push" },
        { kind: "other", title: "agentd__inbox" },
        { kind: "other", name: "agentd__inbox" },
        { kind: "other", name: "mcp__agentd__inbox" }
      ]
      yield* shop.tell("reader", ...asked.map((call, at) => permit({ toolCallId: `forged-${at}`, ...call })))
      const results = yield* shop.until("all have results", shop.log("tool.result"), (all) => all.length >= before + 6)
      for (const { payload } of results.slice(before)) assert.strictEqual(payload["status"], "denied")
    })
  )

  it.effect("reads a file of its workspace, which is a call in the log", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      writeFileSync(file(shop, "reader", "notes"), "one\n")
      const before = (yield* shop.of("reader", 0, "tool.call")).length
      yield* shop.tell("reader", { acp: ["fs/read_text_file", { path: file(shop, "reader", "notes") }] })
      const calls = yield* shop.of("reader", before + 1, "tool.call")
      assert.strictEqual(calls.at(-1)?.payload["tool_name"], "fs/read_text_file")
      yield* shop.until("it reads", shop.log("turn.completed"), (all) =>
        all.some(({ payload }) => String(payload["final_output"]).includes("one"))
      )
    })
  )

  it.effect("asks: a person sees the whole call, and nothing is done before the answer", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      const made = file(shop, "asker", "made")
      yield* shop.tell("asker", write(made), write(`${made}.not`))
      const call = yield* shop.asked("asker")
      assert.strictEqual(call.tool, "fs/write_text_file")
      assert.isFalse(existsSync(made))
      yield* shop.answer(call.callId, "allow")
      const next = yield* shop.until("the second asks", shop.asked("asker"), ({ callId }) => callId !== call.callId)
      assert.strictEqual(readFileSync(made, "utf8"), "owned")
      yield* shop.answer(next.callId, "deny", "enough")
      yield* shop.answers("asker", 1)
      const [denied] = yield* shop.of("asker", 1, "tool.denied")
      assert.strictEqual(denied?.payload["reason"], "enough")
      assert.isFalse(existsSync(`${made}.not`))
    })
  )

  it.effect("runs its commands in the sandbox, whatever it sets for them", (context) =>
    Effect.gen(function* () {
      const mechanism = yield* probe(process.env, ["bubblewrap", "namespaces"])
      if (mechanism.kind === "none") return context.skip(`no sandbox works on this machine: ${mechanism.note}`)
      const shop = yield* Shop
      const outside = join(shop.stage.box.folder, "outside")
      const within = file(shop, "free", "within")
      const spied = join(shop.stage.box.folder, "spied")
      const loader = [
        { name: "LD_DEBUG", value: "files" },
        { name: "LD_DEBUG_OUTPUT", value: spied }
      ]
      yield* shop.tell(
        "free",
        run(`echo in > ${within}; echo out > ${outside}; cat ${shop.stage.box.state}/runes.db > ${within}.log`),
        { acp: ["terminal/wait_for_exit", { terminalId: "terminal-1" }] },
        run("true", { env: loader }),
        { acp: ["terminal/wait_for_exit", { terminalId: "terminal-2" }] }
      )
      yield* shop.answers("free", 1)
      assert.strictEqual(readFileSync(within, "utf8"), "in\n")
      assert.strictEqual(readFileSync(`${within}.log`, "utf8"), "")
      assert.isFalse(existsSync(outside))
      // what starts the sandbox must not load what the agent names: the loader would write here
      assert.deepStrictEqual(
        readdirSync(shop.stage.box.folder).filter((name) => name.startsWith("spied")),
        []
      )
    })
  )

  it.effect("has in the log all that agentd did for it", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      for (const name of NAMES) {
        const calls = yield* shop.of(name, 1, "tool.call")
        const results = yield* shop.of(name, calls.length, "tool.result")
        assert.strictEqual(results.length, calls.length, name)
      }
    })
  )
})

describe("a call of agentd's own", () => {
  it("has an id that no call of the agent's has", () => {
    const updates = new AcpUpdates()
    updates.begin("turn-1")
    const theirs = ["agentd:1", "agentd:2", "agentd:1"].map(
      (toolCallId) => updates.ask({ toolCallId, kind: "read", title: "harmless" })!.callId
    )
    const ours = updates.deed({ tool: "terminal/create", arguments: {}, readOnly: false })!.callId
    const after = updates.ask({ toolCallId: ours, kind: "read", title: "harmless" })!.callId
    assert.strictEqual(new Set([...theirs, ours, after]).size, 5)
  })
})
