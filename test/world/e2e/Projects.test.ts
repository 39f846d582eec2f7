/** A real daemon's projects as wholes: a name that is taken, a rename, a rolling restart, a stop that outlasts the daemon, an end. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"

const stays = { backend: { type: "command", shell: "exec sleep 300", readyAfter: "10ms" }, mode: "loop", prompt: "x" }
const breaks = { ...stays, backend: { ...stays.backend, shell: "exit 3" } }

it.live("a project has a name of its own, keeps its history under another, is restarted, stopped and removed", () =>
  Effect.gen(function* () {
    const box = yield* Sandbox.make()
    box.configure({ agents: { a: stays, b: stays } })
    yield* box.up()
    const ends = Effect.fnUntraced(function* (code: number, ...args: ReadonlyArray<string>) {
      const answer = yield* box.cli(...args)
      assert.strictEqual(answer.code, code, `${args.join(" ")}: ${answer.stderr}`)
      return `${answer.stdout}${answer.stderr}`
    })

    const other = join(box.folder, "other", "shop")
    mkdirSync(other, { recursive: true })
    writeFileSync(join(other, "agentd.jsonc"), JSON.stringify({ agents: { a: { ...stays, autostart: false } } }))
    const taken = yield* box.cliIn(other, "start")
    assert.strictEqual(taken.code, 1)
    const [, command] = /: agentd (.*start --name \S+)/.exec(taken.stderr)!
    const named = yield* box.cliIn(other, "start", ...command!.split("start ")[1]!.trim().split(" "))
    assert.strictEqual(named.code, 0, named.stderr)
    assert.match(named.stdout, /Project other-shop: a\./)

    const [before] = yield* box.rows
    yield* ends(0, "project", "rename", "shop", "store")
    assert.match(readFileSync(join(box.project, "agentd.jsonc"), "utf8"), /"name": "store"/)
    const [after] = yield* box.rows
    assert.deepStrictEqual([after!.conversation, after!.runId], [before!.conversation, before!.runId])
    assert.strictEqual(after!.project, "store")
    assert.match(yield* ends(1, "project", "rename", "other-shop", "store"), /is already called store/)

    assert.match(
      yield* ends(0, "project", "restart", "store", "--rolling", "--yes"),
      /store\/a was restarted[^]*store\/b was restarted/
    )
    box.configure({ name: "store", agents: { a: breaks, b: stays } })
    yield* box.agree
    const lost = yield* ends(1, "project", "restart", "store", "--rolling", "--yes")
    assert.match(
      lost,
      /store\/a is retrying: .*0 of 2 agents were restarted; not restarted: store\/b\.\n.*why store\/a/
    )

    assert.match(yield* ends(0, "project", "stop", "store", "--yes"), /store is stopped/)
    assert.deepStrictEqual(yield* box.processes, [])
    yield* box.terminate
    yield* box.up()
    const listed = JSON.parse(yield* ends(0, "project", "ls", "--json")) as ReadonlyArray<{
      readonly project: string
      readonly word: string
      readonly says: string
    }>
    assert.deepInclude(
      listed.find(({ project }) => project === "store"),
      { word: "stopped" }
    )
    assert.deepStrictEqual(yield* box.processes, [])
    assert.match(yield* ends(0, "project", "start", "store"), /begun: a, b\./)
    yield* box.untilAgent("b", "runs", ({ project, state }) => project === "store" && state === "Running")

    assert.match(yield* ends(0, "project", "remove", "store", "--yes", "--force"), /project store was removed/)
    assert.deepStrictEqual(yield* box.processes, [])
    assert.isTrue(existsSync(join(box.project, "agentd.jsonc")))
    assert.notInclude(yield* ends(0, "project", "ls"), "store")
    assert.include(yield* ends(0, "log", "--stream", before!.conversation, "--json"), '"project.stopped"')
  })
)
