/** An agent that is not confined and calls agentd is itself in the log, and decides nothing that waits for a person. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PeerProcess from "../../src/runs/process/PeerProcess.ts"
import * as ProcessTable from "../../src/runs/process/ProcessTable.ts"
import { PROTOCOL, VERSION } from "../../src/api/rpc/Version.ts"
import { PROGRAM } from "../support/Program.ts"
import * as Stage from "../support/Stage.ts"
import { freePort } from "../world/web/Browser.ts"

const SS = ["/usr/bin/ss", "/bin/ss", "/usr/sbin/ss", "/sbin/ss"].some((file) => existsSync(file))
const MISSING = "no `ss` is installed: nothing on this machine tells who calls"

class Shop extends Context.Service<Shop, Stage.Project>()("test/Shop") {}

const shop = Layer.effect(
  Shop,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const project = stage.home({
      agents: Object.fromEntries(["boss", "victim", "sly", "later"].map((name) => [name, stage.agent("acp")]))
    })
    stage.box.setUser({ http: { port: yield* freePort }, orphanGrace: "0 seconds" })
    yield* stage.up
    yield* project.register
    return project
  })
)

/** A command line of agentd's for a shell of an agent's; how it ends is the daemon's to tell. */
const agentd = ({ stage }: Stage.Project, ...args: ReadonlyArray<string>): string =>
  `(${process.execPath} ${PROGRAM} --state ${stage.box.state} ${args.join(" ")} || true)`

const isOpen = (shop: Stage.Project, callId: string) =>
  Effect.map(
    shop.stage.rpc((client) => client.Calls()),
    (calls) => calls.some((call) => call.callId === callId && call.state === "awaiting_approval")
  )

/** The hash by which a call is approved, as whoever looks at it is shown. */
const hashOf = (shop: Stage.Project, callId: string) =>
  Effect.map(
    shop.stage.rpc((client) => client.Asked({ name: callId, caller: { by: "ada", config: null } })),
    ({ hash }) => hash
  )

const refusals = (shop: Stage.Project, count: number) =>
  shop.until(`${count} refusals`, shop.log("caller.refused"), (runes) => runes.length >= count)

layer(shop, { excludeTestServices: true })("an unconfined agent calls agentd", (it) => {
  it.effect("to approve another's call: refused, in the log, and the call waits on for a person", (context) =>
    Effect.gen(function* () {
      if (!SS) return context.skip(MISSING)
      const shop = yield* Shop
      yield* shop.tell("victim", { ask: "echo > made" })
      const call = yield* shop.asked("victim")
      const hash = yield* hashOf(shop, call.callId)
      const approve = agentd(shop, "approve", call.callId, hash)
      yield* shop.tell("boss", { run: approve }, { run: `env -u AGENTD_RUN -u AGENTD_STORE sh -c '${approve}; true'` })
      yield* shop.answers("boss", 1)
      assert.isTrue(yield* isOpen(shop, call.callId), "it waits on")
      const [refused] = yield* refusals(shop, 1)
      assert.deepInclude(refused?.payload, { by: "agent:boss", what: "Answer" })
      assert.isFalse(existsSync(join(shop.root, "victim", "made")))
      const person = yield* shop.cli("approve", call.callId, hash)
      assert.strictEqual(person.code, 0, person.stderr)
      yield* shop.answers("victim", 1)
      assert.isTrue(existsSync(join(shop.root, "victim", "made")))
    })
  )

  it.effect("to have something sent later, as nobody's word: refused", (context) =>
    Effect.gen(function* () {
      if (!SS) return context.skip(MISSING)
      const shop = yield* Shop
      yield* shop.tell("later", { run: agentd(shop, "at", "--in", "1h", "send", "victim", "hello") })
      yield* shop.answers("later", 1)
      yield* shop.until("it is refused", shop.log("caller.refused"), (runes) =>
        runes.some(({ payload }) => payload["by"] === "agent:later" && payload["what"] === "ScheduleAdd")
      )
      assert.deepStrictEqual(
        yield* shop.stage.rpc((client) => client.Schedules({ all: true, caller: shop.caller })),
        []
      )
    })
  )

  it.effect("to approve its own call, by a process that it has left behind: refused", (context) =>
    Effect.gen(function* () {
      if (!SS) return context.skip(MISSING)
      const shop = yield* Shop
      const go = join(shop.root, "go")
      const wait = `until test -s ${go}; do sleep 0.1; done`
      yield* shop.tell(
        "sly",
        { run: `setsid sh -c '${wait}; ${agentd(shop, "approve", "sly", `$(cat ${go})`)}' >/dev/null 2>&1 & true` },
        { ask: "echo > made" }
      )
      const call = yield* shop.asked("sly")
      writeFileSync(go, yield* hashOf(shop, call.callId))
      yield* shop.until("sly is refused", shop.log("caller.refused"), (runes) =>
        runes.some(({ payload }) => payload["by"] === "agent:sly")
      )
      assert.strictEqual((yield* shop.asked("sly")).callId, call.callId)
      yield* shop.answer(call.callId, "deny")
    })
  )

  it.effect("over HTTP, by a token of the person's: it is itself there, too, and decides nothing", (context) =>
    Effect.gen(function* () {
      if (!SS) return context.skip(MISSING)
      const shop = yield* Shop
      yield* shop.tell("victim", { ask: "echo > taken" })
      const { callId } = yield* shop.asked("victim")
      const before = (yield* shop.of("boss", 0, "turn.completed")).length
      const ask = join(shop.root, "ask.mjs")
      writeFileSync(
        ask,
        `import { request } from "node:http"
         const [url, token, verb, body] = process.argv.slice(2)
         const headers = { "content-type": "application/json", authorization: "Bearer " + token }
         request(url + "/v1/" + verb, { method: "POST", headers }, (answer) => answer.resume()).end(body)`
      )
      const label = { label: "script", right: "act", caller: shop.caller } as const
      const { address, token } = yield* shop.stage.rpc((client) => client.Grant(label))
      const over = (verb: string, body: object) =>
        `${process.execPath} ${ask} ${address} ${token} ${verb} '${JSON.stringify(body)}'`
      const allow = { name: callId, decision: "allow", reason: "", hash: yield* hashOf(shop, callId) }
      const word = { name: "victim", text: "by HTTP", how: "queue", caller: { config: shop.config } }
      yield* shop.tell("boss", { run: over("Answer", allow) }, { run: over("Send", word) })
      yield* shop.answers("boss", before + 1)
      assert.isTrue(yield* isOpen(shop, callId), "it waits on")
      const received = yield* shop.log("inbox.received")
      const of = ({ payload }: (typeof received)[number]) =>
        (payload["event"] as { message: { from: string; text: string } }).message
      assert.strictEqual(received.map(of).find(({ text }) => text === "by HTTP")?.from, "agent:boss")
      yield* shop.answer(callId, "deny")
    })
  )

  it.effect("to erase what it was told: refused, and nothing is gone", (context) =>
    Effect.gen(function* () {
      if (!SS) return context.skip(MISSING)
      const shop = yield* Shop
      const earlier = (yield* shop.of("boss", 0, "turn.completed")).length
      yield* shop.tell("boss", { run: "true" })
      yield* shop.answers("boss", earlier + 1)
      const [told] = yield* shop.log("inbox.received")
      yield* shop.tell("boss", { run: agentd(shop, "erase", String(told!.eventId), "--yes") })
      yield* shop.answers("boss", earlier + 2)
      yield* shop.until("boss is refused", shop.log("caller.refused"), (runes) =>
        runes.some(({ payload }) => payload["by"] === "agent:boss" && payload["what"] === "Erase")
      )
      const [now] = yield* shop.log("inbox.received")
      assert.deepStrictEqual(now?.payload, told!.payload)
      assert.deepStrictEqual(yield* shop.log("rune.erasing"), [])
    })
  )

  it.effect("to send and to stop: the log names the agent, and so does the message", (context) =>
    Effect.gen(function* () {
      if (!SS) return context.skip(MISSING)
      const shop = yield* Shop
      const before = (yield* shop.of("boss", 0, "turn.completed")).length
      yield* shop.tell("boss", { run: agentd(shop, "send", "victim", "hello") }, { run: agentd(shop, "stop", "sly") })
      yield* shop.answers("boss", before + 1)
      const received = yield* shop.log("inbox.received")
      const froms = received.map(({ payload }) => (payload["event"] as { message: { from: string } }).message.from)
      assert.include(froms, "agent:boss")
      const ended = yield* shop.until("sly is stopped", shop.log(), (runes) =>
        runes.some(({ actor, payload }) => actor.includes("sly") && JSON.stringify(payload).includes("agent:boss"))
      )
      assert.isNotEmpty(ended)
    })
  )

  for (const [how, hello] of [
    ["says nothing of itself", undefined],
    ["says that it is a process that is not", { protocol: PROTOCOL, version: VERSION, pid: 2 ** 31 - 1 }]
  ] as const) {
    it.effect(`to send by a program that ${how}: it is searched for, and the log names the agent`, (context) =>
      Effect.gen(function* () {
        if (!SS) return context.skip(MISSING)
        const shop = yield* Shop
        const text = `by a program that ${how}`
        const frame = (id: number, tag: string, payload: object) =>
          `${JSON.stringify({ _tag: "Request", id: String(id), tag, payload, headers: [] })}\n`
        const caller = { by: "ada", config: shop.config }
        const script = join(shop.root, `raw-${hello === undefined ? 1 : 2}.cjs`)
        const frames = [
          ...(hello === undefined ? [] : [frame(0, "Hello", hello)]),
          frame(1, "Send", { name: "victim", text, how: "queue", caller })
        ]
        writeFileSync(
          script,
          `const s=require("net").connect(${JSON.stringify(join(shop.stage.box.state, "control.sock"))});
           s.write(${JSON.stringify(frames.join(""))});
           s.on("data",(d)=>{if(String(d).includes('"1"'))process.exit()})`
        )
        yield* shop.tell("boss", { run: `${process.execPath} ${script}` })
        const received = yield* shop.until("it is received", shop.log("inbox.received"), (runes) =>
          runes.some(({ payload }) => JSON.stringify(payload).includes(text))
        )
        const { payload } = received.find((rune) => JSON.stringify(rune.payload).includes(text))!
        assert.strictEqual((payload["event"] as { message: { from: string } }).message.from, "agent:boss")
      })
    )
  }

  it.effect("to speak as another's run: refused", (context) =>
    Effect.gen(function* () {
      if (!SS) return context.skip(MISSING)
      const shop = yield* Shop
      yield* shop.tell("victim", { hold: true })
      const { runId } = yield* shop.row("victim", "runs", ({ runId }) => runId !== null)
      const at = join(shop.root, "said")
      const request = JSON.stringify({
        _tag: "Request",
        id: "0",
        tag: "VoiceAsk",
        payload: { runId, question: "May I?" },
        headers: []
      })
      writeFileSync(
        join(shop.root, "forge.cjs"),
        `const s=require("net").connect(${JSON.stringify(join(shop.stage.box.state, "control.sock"))});
         s.write(${JSON.stringify(`${request}\n`)});
         s.once("data",(d)=>{require("fs").writeFileSync(${JSON.stringify(at)},d);process.exit()})`
      )
      const before = (yield* shop.of("boss", 0, "turn.completed")).length
      yield* shop.tell("boss", { run: `${process.execPath} ${join(shop.root, "forge.cjs")}` })
      yield* shop.answers("boss", before + 1)
      assert.include(readFileSync(at, "utf8"), "another run")
      assert.deepStrictEqual(yield* shop.log("agent.asked"), [])
      yield* shop.interrupt("victim")
    })
  )

  it.effect("a caller that calls itself an agent is refused", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      for (const by of ["agentd", "agent:boss", "plan:g1"]) {
        const send = shop.stage.rpc((client) =>
          client.Send({ name: "victim", text: "hi", how: "queue", caller: { by, config: shop.config } })
        )
        const refused = yield* Effect.flip(send)
        assert.include(refused.message, "is not a user's name")
      }
    })
  )
})

describe("the other end of a connection", () => {
  /** The peer that is found of a program that connects and does this, once it has. */
  const found = (script: string, env: Record<string, string>, isGone: boolean) =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "agentd-peer-"))
      const path = join(folder, "s")
      const accepted = Promise.withResolvers<Socket>()
      const server = createServer((socket) => accepted.resolve(socket.on("error", () => {}))).listen(path)
      yield* Effect.promise(() => new Promise((resolve) => server.once("listening", resolve)))
      const child = spawn(
        process.execPath,
        ["-e", `const s=require("net").connect(${JSON.stringify(path)});${script}`],
        {
          env,
          stdio: "ignore"
        }
      )
      const ended = new Promise((resolve) => child.once("exit", resolve))
      const socket = yield* Effect.promise(() => accepted.promise)
      if (isGone) yield* Effect.promise(() => ended)
      const peer = yield* PeerProcess.make("store-1").search(socket)
      child.kill("SIGKILL")
      yield* Effect.promise(() => ended)
      socket.destroy()
      server.close()
      rmSync(folder, { recursive: true })
      return peer
    })
  const mark = { AGENTD_STORE: "store-1", AGENTD_RUN: "run-7+shell-1" }

  it.live.skipIf(!SS)("a run's, a person's, another store's; one that is gone is unknown", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* found("", mark, false), { _tag: "Run", runId: "run-7" })
      assert.deepStrictEqual(yield* found("", { PATH: "/usr/bin" }, false), { _tag: "Person" })
      assert.deepStrictEqual(yield* found("", { ...mark, AGENTD_STORE: "other" }, false), { _tag: "Person" })
      const gone = yield* found(`s.on("connect",()=>{s.write("approve");process.exit()})`, mark, true)
      assert.strictEqual(gone._tag, "Unknown")
    })
  )

  it.live.skipIf(!ProcessTable.isAvailable())("is asked for its mark once, however often it calls", () =>
    Effect.gen(function* () {
      const children = [mark, { PATH: "/usr/bin" }].map((env) =>
        spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { env, stdio: "ignore" })
      )
      const asked: Array<number> = []
      const peers = PeerProcess.make("store-1", (pid) => {
        asked.push(pid)
        return ProcessTable.environment(pid)
      })
      const [run, person] = children.map(({ pid }) => pid!) as [number, number]
      for (let time = 0; time < 3; time++) {
        assert.deepStrictEqual(yield* peers.believe(run), { _tag: "Run", runId: "run-7" })
        assert.deepStrictEqual(yield* peers.believe(person), { _tag: "Person" })
      }
      assert.deepStrictEqual(asked, [run, person])
      for (const child of children) child.kill("SIGKILL")
    })
  )

  it("a line that is made to look like another's adds processes and takes none away", () => {
    const lines = [
      `u_str ESTAB 0 0 /tmp/a 5 * 7 1 * 2 users:(("x",pid=666,fd=3))`,
      `u_str ESTAB 0 0 * 8 * 7 users:(("a",pid=1,fd",pid=42,fd=9))`,
      `u_str ESTAB 0 0 * 9 * 77 users:(("b",pid=5,fd=9))`
    ].join("\n")
    assert.deepStrictEqual(PeerProcess.holdersIn(lines, "7"), [666, 1, 42])
  })
})
