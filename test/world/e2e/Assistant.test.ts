/**
 * Tests of `agentd mcp` as a person's assistant has it: over real pipes with a real daemon, which it asks what the agents
 * do, and has one of them do something; nothing by which it could decide for the person.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { launch } from "../cli/Child.ts"
import * as Sandbox from "../../support/Sandbox.ts"

interface Answer {
  readonly error?: object
  readonly result?: {
    readonly tools?: ReadonlyArray<{ readonly name: string }>
    readonly content?: ReadonlyArray<{ readonly text: string }>
    readonly isError?: boolean
    readonly instructions?: string
  }
}

const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

/** An assistant's server, as Claude Code starts it in a project's folder. */
const session = Effect.fnUntraced(function* (box: Sandbox.Sandbox, cwd = box.project) {
  const { child, out } = yield* launch(["--state", box.state, "mcp"], {
    input: null,
    cwd,
    env: { HOME: box.folder, AGENTD_PATIENCE: "500" }
  })
  let read = 0
  const ask = Effect.fnUntraced(function* (method: string, params: object = {}) {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: read, method, params })}\n`)
    yield* eventually(() => out().split("\n").length - 1 > read)
    return JSON.parse(out().split("\n")[read++]!) as Answer
  })
  const tool = (name: string, args: object = {}) =>
    Effect.map(ask("tools/call", { name, arguments: args }), ({ result }) => ({
      text: result?.content?.[0]?.text ?? "",
      isError: result?.isError
    }))
  const hello = yield* ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "assistant", version: "1" }
  })
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`)
  return { hello, ask, tool }
})

describe("agentd mcp for a person's assistant", () => {
  it.live("what are my agents doing? send the builder a message, wait until it is done, read its answer", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const command = (shell: string) => ({ backend: { type: "command", shell, readyAfter: "10ms" } })
      box.configure({
        agents: { builder: command("cat > got; sleep 0.3; echo 'All 12 tests pass.'"), sleeper: command("sleep 300") }
      })
      yield* box.up()
      const { ask, hello, tool } = yield* session(box)
      assert.include(hello.result?.instructions ?? "", "You cannot approve anything")
      const names = (yield* ask("tools/list")).result?.tools?.map(({ name }) => name) ?? []
      assert.includeMembers(names, [
        "agents",
        "conversation",
        "output",
        "why",
        "send",
        "spawn",
        "goals",
        "goal",
        "wait"
      ])
      for (const name of names) assert.notMatch(name, /approve|deny|answer|trust|decide|register/)

      assert.match((yield* tool("agents")).text, /^agent shop\/builder: .*idle/m)
      const sent = yield* tool("send", { agent: "builder", text: "Make the tests pass." })
      const since = Number(/rune (\d+)/.exec(sent.text)?.[1])
      assert.match((yield* tool("wait", { names: ["builder"], since })).text, /^agent shop\/builder: .*idle/m)
      const said = (yield* tool("conversation", { agent: "builder" })).text
      assert.match(said, /from the assistant of [^]*Make the tests pass\.[^]*the agent answered[^]*All 12 tests pass\./)
      assert.include((yield* tool("output", { agent: "shop/builder" })).text, "All 12 tests pass.")
      assert.match((yield* tool("why", { agent: "builder" })).text, /^shop\/builder .*\(rune \d+\)/)

      yield* tool("send", { agent: "sleeper", text: "sleep" })
      assert.match(
        (yield* tool("wait", { names: ["sleeper"], seconds: 1 })).text,
        /^The status was not reached within 1 s\./
      )
      assert.include((yield* tool("spawn", { parent: "sleeper", name: "helper", task: "help" })).text, "helper")
      assert.strictEqual((yield* tool("goals")).text, "There are no goals.")
      // whoever is spoken to is not told that a person speaks
      const got = readFileSync(box.file("got"), "utf8")
      assert.match(got, /from the assistant of \S+, a program\n/)
      // what it did is in the log as made through it
      const [received] = yield* box.runes("inbox.received")
      assert.match(JSON.stringify(received?.payload), /"from":"[^"]+ \(assistant\)"/)
    })
  )

  it.live("what it cannot do it is told in words; it ends nothing", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { builder: { backend: { type: "command", shell: "cat" } } } })
      yield* box.up()
      const { ask, tool } = yield* session(box)
      assert.match((yield* tool("send", { agent: "nobody", text: "x" })).text, /There is no agent "nobody"[^]*→/)
      assert.match((yield* tool("wait", { names: ["nobody"] })).text, /Nothing is called "nobody"/)
      assert.match((yield* tool("wait", { names: [] })).text, /arguments of wait are invalid/)
      assert.isDefined((yield* ask("tools/call", { name: "approve", arguments: {} })).error)
      yield* box.terminate
      assert.isTrue((yield* tool("agents")).isError)
    })
  )
})
