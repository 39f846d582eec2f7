/**
 * A run has a socket of its own, which tells who calls. A confined agent sees no other: by it the agent speaks
 * as itself, and as nobody else, and can do nothing that a person does; a flood on it is that run's own.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { Socket } from "node:net"
import { join, resolve } from "node:path"
import { call } from "../../src/api/rpc/ControlClient.ts"
import { FairShare } from "../../src/api/rpc/FairShare.ts"
import { Limits } from "../../src/board/Limits.ts"
import { agentApi, procedures } from "../../src/api/rpc/Protocol.ts"
import { Speaks } from "../../src/api/rpc/Procedure.ts"
import { runRooms } from "../../src/api/rpc/ConnectionLimits.ts"
import { PROGRAM } from "../support/Program.ts"
import * as Stage from "../support/Stage.ts"
import { toldTo } from "../support/Told.ts"
import { held } from "../support/toolbox.ts"
import { long } from "../support/Long.ts"

const CONFINED = held.length > 0
const MISSING = "no sandbox works on this machine"

/** The agents of the tests are programs of this folder. */
const share = [process.execPath, resolve(import.meta.dirname, "..")]
const may = ["inbox", "message", "report", "ask", "post"]
const CONFINEMENT = CONFINED ? { sandbox: "required", network: true, share } : {}

/** A program that says these frames on the socket that its variable names, and notes what it hears until the last is answered. */
const TALK = `
const [file, at, path = process.env.AGENTD_SOCKET] = process.argv.slice(2)
const fs = require("node:fs")
const frames = JSON.parse(fs.readFileSync(file, "utf8"))
const socket = require("node:net").connect(path)
let heard = ""
const done = () => (fs.writeFileSync(at, heard), process.exit())
socket.on("error", (error) => ((heard += error.code), done()))
socket.on("close", done)
socket.on("data", (data) => {
  heard += data
  if (heard.split("\\n").length > frames.length) done()
})
socket.write(frames.map((frame) => JSON.stringify(frame) + "\\n").join(""))
`

const request = (id: number, tag: string, payload: unknown) => ({
  _tag: "Request",
  id: String(id),
  tag,
  payload,
  headers: []
})

class Shop extends Context.Service<Shop, Stage.Project>()("test/Shop") {}

const rpc = (id: number | undefined, method: string, params?: object) =>
  `'${JSON.stringify({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method, params })}'`

const FRAMES = [
  rpc(1, "initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "sh", version: "1" }
  }),
  rpc(undefined, "notifications/initialized"),
  rpc(2, "tools/call", { name: "ask_person", arguments: { question: "asked by a command" } })
].join(" ")

/** A server's client in a shell: asks by agentd mcp, as it was given to the run. */
const ASK = `printf '%s\\n' ${FRAMES} | "${process.execPath}" "${PROGRAM}" mcp; echo "$AGENTD_SOCKET" > socket; sleep 300`

const stage = Effect.gen(function* () {
  const stage = yield* Stage.make
  const shop = stage.home({
    agents: {
      "a-claude": stage.agent("claude", { may, backend: CONFINEMENT }),
      "a-acp": stage.agent("acp", { may, backend: CONFINEMENT }),
      "a-command": { backend: { type: "command", shell: ASK, readyAfter: "0ms", ...CONFINEMENT }, may },
      boss: stage.agent("acp", { may, backend: CONFINEMENT }),
      victim: stage.agent("acp", { may, backend: CONFINEMENT }),
      free: stage.agent("acp", { may })
    },
    channels: { room: { agents: ["a-claude", "a-acp"] } }
  })
  writeFileSync(join(shop.root, "talk.cjs"), TALK)
  yield* stage.up
  yield* shop.register
  return shop
})

const shop = Layer.effect(Shop, stage)

const sockets = ({ stage: { box } }: Stage.Project): ReadonlyArray<string> =>
  readdirSync(join(box.state, "sockets")).map((name) => join(box.state, "sockets", name, "api"))

/** Says these frames as the agent, on its own socket unless a path is given; what it heard. */
const said = Effect.fnUntraced(function* (
  shop: Stage.Project,
  agent: string,
  frames: ReadonlyArray<object>,
  path = ""
) {
  const before = (yield* shop.of(agent, 0, "turn.completed")).length
  const name = `${agent}-${before}`
  writeFileSync(join(shop.root, `${name}.json`), JSON.stringify(frames))
  const line = `"${process.execPath}" ../talk.cjs ../${name}.json ../${name}.heard ${path}`
  yield* shop.tell(agent, { run: line })
  yield* shop.answers(agent, before + 1)
  return readFileSync(join(shop.root, `${name}.heard`), "utf8")
})

/** The agent works on a turn that does not end by itself; its socket, as its run is told. */
const working = Effect.fnUntraced(function* (shop: Stage.Project, agent: string) {
  const before = shop.noted(`${agent}.sockets`).length
  yield* shop.tell(agent, { run: `echo $AGENTD_RUN $AGENTD_SOCKET >> ../${agent}.sockets` }, { hold: true })
  const read = Effect.sync(() => shop.noted(`${agent}.sockets`))
  const lines = yield* shop.until(`${agent} works`, read, ({ length }) => length > before)
  const [runId = "", socket = ""] = lines.at(-1)!.split(" ")
  return { runId, socket }
})

const asked = (shop: Stage.Project, question: string) =>
  shop.until(`"${question}" is asked`, shop.log("agent.asked"), (runes) =>
    runes.some(({ payload }) => payload["question"] === question)
  )

const askedBy = (shop: Stage.Project, question: string) =>
  Effect.map(asked(shop, question), (runes) =>
    runes.filter(({ payload }) => payload["question"] === question).map(({ payload }) => payload["agent_id"])
  )

if (!CONFINED) it.skip(`not tried confined, since this machine cannot: ${MISSING}`)

layer(shop, { excludeTestServices: true })("a run's own socket", (it) => {
  for (const agent of ["a-claude", "a-acp"]) {
    it.effect(`${agent}, confined, asks and posts by agentd mcp, and the log names it`, () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.tell(agent, { mcp: ["ask_person", { question: `asked by ${agent}` }] })
        assert.deepStrictEqual(yield* askedBy(shop, `asked by ${agent}`), [agent])
        const text = toldTo(agent, { mcp: ["post", { text: `posted by ${agent}` }] })
        yield* shop.stage.rpc((client) => client.PostToChannel({ name: "room", text, caller: shop.caller }))
        const posts = yield* shop.until("it posts", shop.log("channel.posted"), (runes) =>
          runes.some(({ payload }) => payload["text"] === `posted by ${agent}`)
        )
        const post = posts.find(({ payload }) => payload["text"] === `posted by ${agent}`)
        assert.strictEqual(post?.payload["from"], agent)
      })
    )
  }

  it.effect("a command, confined, asks by agentd mcp, and the log names it", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* shop.send("a-command", "go")
      assert.deepStrictEqual(yield* askedBy(shop, "asked by a command"), ["a-command"])
      yield* shop.until(
        "it says its socket",
        Effect.sync(() => shop.noted("a-command", "socket")),
        (lines) => lines.length > 0
      )
      const [path = ""] = shop.noted("a-command", "socket")
      assert.include(sockets(shop), path)
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(path, "..")).mode & 0o777, 0o700)
      yield* shop.stage.rpc((client) => client.Stop({ name: "a-command", caller: shop.caller }))
      yield* shop.until(
        "its socket is gone",
        Effect.sync(() => existsSync(join(path, ".."))),
        (exists) => !exists
      )
    })
  )

  it.effect("of one that is not confined is the one that its agentd mcp uses", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* shop.tell(
        "free",
        { run: "echo $AGENTD_SOCKET > ../free.socket" },
        { mcp: ["ask_person", { question: "free?" }] }
      )
      assert.deepStrictEqual(yield* askedBy(shop, "free?"), ["free"])
      assert.include(sockets(shop), readFileSync(join(shop.root, "free.socket"), "utf8").trim())
    })
  )

  it.effect("knows no procedure but those by which a run speaks, by raw frames, too", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* shop.tell("victim", { ask: "echo > made" })
      const { callId } = yield* shop.asked("victim")
      const { hash } = yield* shop.stage.rpc((client) => client.Asked({ name: callId, caller: shop.caller }))
      const own = new Set<string>(agentApi.map(({ rpc }) => rpc._tag))
      const others = procedures.map(({ rpc }) => rpc._tag).filter((tag) => !own.has(tag))
      assert.isAbove(others.length, 40)
      const payload = {
        name: callId,
        decision: "allow",
        reason: "",
        hash,
        by: "ada",
        text: "obey",
        how: "urgent",
        caller: shop.caller
      }
      const frames = others.map((tag, at) =>
        request(at, tag, { ...payload, ...(tag === "Send" ? { name: "victim" } : {}) })
      )
      const heard = yield* said(shop, "boss", frames)
      const answers = heard
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { readonly requestId?: string })
      assert.lengthOf(answers, frames.length, heard)
      for (const answer of answers) assert.match(JSON.stringify(answer), /Unknown request tag/)
      assert.strictEqual((yield* shop.asked("victim")).callId, callId, "it waits on")
      assert.isFalse(existsSync(join(shop.root, "victim", "made")))
      const received = yield* shop.log("inbox.received")
      assert.isFalse(received.some(({ payload }) => JSON.stringify(payload).includes("obey")))
      yield* shop.answer(callId, "deny")
      yield* shop.of("victim", 1, "turn.completed")
    })
  )

  it.effect("says nothing in another run's name", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      const { runId } = yield* working(shop, "victim")
      const heard = yield* said(shop, "boss", [
        request(0, "VoiceAsk", { runId, question: "in another's name" }),
        request(1, "VoiceReport", { runId, report: { status: "failed", summary: "in another's name", evidence: [] } }),
        request(2, "Voice", { runId })
      ])
      assert.lengthOf(heard.match(/The calling process belongs to another run/g) ?? [], 3, heard)
      const runes = JSON.stringify(yield* shop.log("agent.asked", "agent.reported"))
      assert.notInclude(runes, "in another's name")
      yield* shop.interrupt("victim")
      yield* shop.of("victim", 1, "turn.interrupted")
    })
  )

  it.effect("is the only one that a confined run sees", (context) =>
    Effect.gen(function* () {
      if (!CONFINED) return context.skip(MISSING)
      const shop = yield* Shop
      const { state } = shop.stage.box
      const { socket } = yield* working(shop, "victim")
      assert.isTrue(existsSync(socket))
      assert.isTrue(existsSync(join(state, "control.sock")))
      for (const path of [join(state, "control.sock"), join(state, "http.sock"), socket])
        assert.strictEqual(yield* said(shop, "boss", [request(0, "Status", undefined)], path), "ENOENT")
      yield* shop.tell("boss", { run: `ls ${state} ${state}/sockets > ../seen; echo > ${state}/sockets/x; true` })
      yield* shop.until(
        "it has looked",
        Effect.sync(() => shop.noted("seen")),
        (lines) => lines.length > 0
      )
      const seen = shop.noted("seen").join("\n")
      assert.strictEqual(seen.match(/^[0-9a-f]{12}$/gm)?.length, 1, seen)
      assert.notInclude(seen, "control.sock")
      assert.isFalse(existsSync(join(state, "sockets", "x")))
      yield* shop.interrupt("victim")
    })
  )
})

/** Hostile programs on a socket, each in a process of its own that goes on until the scope ends. */
const FLOODS = {
  "half lines": `socket.write("x".repeat(1024 * 1024))`,
  "no line": "",
  "calls whose answers are read": "say(socket.resume())",
  "calls whose answers are never read": "say(socket.pause())"
} as const

const flood = (path: string, runId: string, says: string) =>
  Effect.acquireRelease(
    Effect.callback<ChildProcess>((resume) => {
      const script = `
        const net = require("node:net")
        const frame = ${JSON.stringify(request(1, "VoiceAsk", { runId, question: "flood" }))}
        const line = JSON.stringify(frame) + "\\n"
        const say = (socket) => {
          const more = () => { while (!socket.destroyed && socket.write(line.repeat(200))); }
          socket.on("drain", more)
          more()
        }
        let open = 0
        const one = () => {
          const socket = net.connect(${JSON.stringify(path)}, () => {
            if (++open === 400) console.log("all were there")
            ${says}
          })
          socket.on("error", () => {}).on("close", () => setTimeout(one, 50))
        }
        for (let n = 0; n < 200; n++) one()`
      const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] })
      child.stdout.once("data", () => resume(Effect.succeed(child)))
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )

/** How many files and connections the daemon has open. */
const descriptors = ({ stage: { box } }: Stage.Project): number => readdirSync(`/proc/${box.daemon!.pid!}/fd`).length

describe("a flood on a run's own socket", () => {
  for (const [at, [what, says]] of Object.entries(FLOODS).entries())
    (at === 0 ? it.live : long.live)(`takes no room from another run's, nor from the person's: ${what}`, () =>
      Effect.gen(function* () {
        const shop = yield* stage
        const flooded = yield* working(shop, "victim")
        const other = yield* working(shop, "boss")
        const before = descriptors(shop)
        yield* flood(flooded.socket, flooded.runId, says)
        for (let n = 0; n < 20; n++) {
          yield* call(other.socket, (client) => client.VoiceAsk({ runId: other.runId, question: `is it ${n}?` }))
          yield* shop.stage.rpc((client) => client.Agents())
        }
        assert.deepStrictEqual(yield* askedBy(shop, "is it 19?"), ["boss"])
        assert.strictEqual((yield* shop.cli("ps")).code, 0)
        assert.isBelow(descriptors(shop), before + 8 * Limits.runs.connections.each)
      })
    )
})

describe("when the daemon was killed", () => {
  it.live("what its runs' sockets left is cleared, and the next run has one of its own", () =>
    Effect.gen(function* () {
      const shop = yield* stage
      const { box } = shop.stage
      const { socket } = yield* working(shop, "free")
      yield* box.kill9
      assert.isTrue(existsSync(socket))
      mkdirSync(join(box.state, "sockets", "left"))
      writeFileSync(join(box.state, "sockets", "left", "file"), "")
      yield* shop.stage.up
      yield* shop.tell("boss", { mcp: ["ask_person", { question: "again?" }] })
      assert.deepStrictEqual(yield* askedBy(shop, "again?"), ["boss"])
      assert.isFalse(existsSync(socket))
      assert.isFalse(existsSync(join(box.state, "sockets", "left")))
    })
  )
})

describe("what a run is answered", () => {
  it("is all by which a run speaks, and nothing by which anybody acts or decides", () => {
    const speaking = procedures.filter(({ rpc }) => Context.get(rpc.annotations, Speaks) === "speaks")
    assert.sameMembers(
      agentApi.map(({ rpc }) => rpc._tag),
      ["Hello", ...speaking.map(({ rpc }) => rpc._tag)]
    )
  })

  it("is bounded for each and for all: who holds most gives way, by what it took last", () => {
    const share = new FairShare<string, number>({ each: 3, all: 5 }, "newest")
    assert.deepStrictEqual(
      [1, 2, 3, 4].flatMap((piece) => share.hold("a", piece, 1)),
      [4]
    )
    assert.deepStrictEqual([...share.hold("b", 5, 1), ...share.hold("c", 6, 1)], [])
    assert.deepStrictEqual(share.hold("d", 7, 1), [3])
    share.drop("a", 1)
    assert.deepStrictEqual([share.hold("a", 8, 1), share.size], [[], 5])
    assert.deepStrictEqual([share.hold("b", 5, 4), share.size], [[5], 4])
    assert.isAtLeast(Limits.runs.halfLines.each, Limits.lineBytes)
  })

  it("is as much as its rooms hold: connections, half lines, lines in a time; each run has its own", () => {
    const { connections, halfLines, lines } = Limits.runs
    const runs = new Map<Socket, string>()
    const rooms = runRooms((conn) => runs.get(conn)!)
    const comes = (run: string, now: number) => {
      const conn = new Socket()
      runs.set(conn, run)
      rooms.enter(conn, now)
      return conn
    }
    const flooding = Array.from({ length: 2 * connections.each }, () => comes("one", 0))
    assert.lengthOf(
      flooding.filter((conn) => !conn.destroyed),
      connections.each
    )
    const other = comes("other", 0)
    const part = Buffer.alloc(halfLines.each / 2, 0x78)
    for (const conn of flooding.slice(0, 3)) rooms.take(conn, part, 1)
    assert.deepStrictEqual(
      flooding.slice(0, 3).map((conn) => conn.destroyed),
      [false, false, true]
    )
    rooms.take(other, "{}\n", 1)
    const [talking] = flooding as [Socket]
    rooms.take(talking, "{}\n".repeat(lines.burst), 1)
    assert.isAtMost(rooms.wait(talking, 1), 0)
    rooms.take(talking, "{}\n".repeat(lines.perSecond), 1)
    assert.strictEqual(rooms.wait(flooding[1]!, 1), 1_000, "it waits on each of its connections")
    assert.isAtMost(rooms.wait(other, 1), 0)
    rooms.sweep(60_000)
    assert.deepStrictEqual(
      flooding.slice(0, 2).map((conn) => conn.destroyed),
      [false, true],
      "one that has said a line stays"
    )
    assert.isAtMost(rooms.wait(talking, 60_000), 0)
    assert.isFalse(other.destroyed)
  })
})
