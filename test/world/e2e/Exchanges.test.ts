/**
 * Exchanges: what a command of an earlier agentd sends, the daemon answers as it did then. Each
 * protocol version has a file of recorded exchanges, as they went over the socket. A reply may
 * say more than was recorded, and nothing less.
 *
 * A procedure that is new is recorded with RECORD=1, which adds lines and changes none.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { createConnection } from "node:net"
import { userInfo } from "node:os"
import { join } from "node:path"
import { Control } from "../../../src/api/rpc/Protocol.ts"
import { PROTOCOL, OLDEST_PROTOCOL, VERSION } from "../../../src/api/rpc/Version.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { long } from "../../support/Long.ts"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** A request, and the frames that answered it. */
interface Exchange {
  readonly tag: string
  readonly payload: Json
  /** Values of a stream; none where the reply is one. */
  readonly chunks: ReadonlyArray<Json>
  readonly exit: Json
}

const fileOf = (protocol: number): string => join(import.meta.dirname, `../rpc/exchanges/protocol-${protocol}.jsonl`)
const recorded = (protocol: number): ReadonlyArray<Exchange> =>
  existsSync(fileOf(protocol))
    ? readFileSync(fileOf(protocol), "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Exchange)
    : []

const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The parts of the recorded value that its reader would miss in this one. */
const missing = (before: Json, now: Json | undefined, at: string): ReadonlyArray<string> => {
  if (now === undefined) return [`${at} is not there`]
  // what may be null is no promise of a value
  if (before === null || now === null) return []
  if (Array.isArray(before)) {
    if (!Array.isArray(now)) return [`${at} is no list`]
    return before.length === 0 || now.length === 0 ? [] : missing(before[0], now[0], `${at}[0]`)
  }
  if (isObject(before)) {
    if (!isObject(now)) return [`${at} is no object`]
    return Object.entries(before).flatMap(([key, value]) => missing(value, now[key], `${at}.${key}`))
  }
  if (typeof before !== typeof now) return [`${at} is a ${typeof now}, and was a ${typeof before}`]
  const isName = at.endsWith("._tag")
  return isName && before !== now ? [`${at} is ${String(now)}, and was ${before}`] : []
}

/** Asks over a connection of its own, as a client that knows no more than the recording. */
const ask = (socket: string, { payload, tag }: Pick<Exchange, "payload" | "tag">): Effect.Effect<Exchange> =>
  Effect.callback((resume) => {
    const connection = createConnection(socket)
    const chunks: Array<Json> = []
    let rest = ""
    const say = (frame: object) => connection.write(`${JSON.stringify(frame)}\n`)
    connection.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop()!
      for (const frame of lines.map((line) => JSON.parse(line))) {
        if (frame._tag === "Chunk") {
          chunks.push(...frame.values)
          say({ _tag: "Ack", requestId: frame.requestId })
        }
        if (frame._tag === "Exit") resume(Effect.succeed({ tag, payload, chunks, exit: frame.exit }))
        if (frame._tag === "Defect") resume(Effect.die(new Error(`${tag}: ${JSON.stringify(frame)}`)))
      }
    })
    connection.on("error", (error) => resume(Effect.die(error)))
    say({ _tag: "Request", id: "0", tag, payload, headers: [] })
    return Effect.sync(() => connection.destroy())
  })

/** A project in which something of everything goes on. */
const open = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  const command = (shell: string) => ({ backend: { type: "command", shell, readyAfter: "10ms" } })
  box.configure({
    agents: {
      worker: command("cat"),
      sleeper: { ...command("sleep 300"), may: ["spawn", "message", "post", "report", "ask", "inbox"] },
      third: command("cat")
    },
    goals: { planner: "sleeper" },
    channels: { review: { agents: ["worker", "third"], order: "manual" } }
  })
  writeFileSync(box.file("plan.json"), JSON.stringify({ tasks: [{ id: "a", title: "build it" }] }))
  yield* box.up()
  yield* box.cli("send", "sleeper", "sleep")
  const rows = yield* box.untilAgent("sleeper", "runs", ({ state }) => state === "Running")
  return { box, socket: join(box.state, "control.sock"), run: rows.runId! }
})

/** In place of what differs from one machine and run to the next. */
const masks = (box: Sandbox.Sandbox, run: string): ReadonlyArray<readonly [string, string]> => [
  [run, "{run}"],
  [box.folder, "{folder}"],
  [process.execPath, "{node}"],
  [userInfo().username, "{user}"]
]
const swapped = <A>(value: A, pairs: ReadonlyArray<readonly [string, string]>): A =>
  JSON.parse(pairs.reduce((text, [from, to]) => text.replaceAll(from, to), JSON.stringify(value))) as A

const me = { by: "ada", config: "{folder}/shop/agentd.jsonc" }
const of = (name: string, more: object = {}) => ({ name, caller: me, ...more })
const voice = (more: object = {}) => ({ runId: "{run}", ...more })

/** The hash of a file's content. */
const NOTE = "edb465624291e4053c6c5ea4b7eb320dec773e10a57d26b95dcf0564f8e310f8"

/** The requests that are recorded for this protocol: every procedure, in an order in which most are carried out. */
const SCRIPT: ReadonlyArray<readonly [tag: string, payload?: object]> = [
  ["Hello", { protocol: PROTOCOL, version: VERSION }],
  ["Status"],
  ["Register", { config: me.config, caller: me }],
  ["ConfigChange", of("")],
  ["ConfigKeep", of("")],
  ["Projects"],
  ["Agents"],
  ["Accounts"],
  ["Costs", { by: ["project", "day"], since: "" }],
  ["Costs", { by: ["agent", "hour"], since: "" }],
  ["Limits"],
  ["Agent", of("worker")],
  ["Agent", of("nobody")],
  ["Send", of("worker", { text: "hello", how: "queue" })],
  ["Send", of("worker", { text: " ", how: "queue" })],
  ["AddFile", { sha256: NOTE, size: 4, at: 0, data: "bm90ZQ==", caller: me }],
  ["AddFile", { sha256: NOTE, size: 9_999_999, at: 0, data: "", caller: me }],
  ["Send", of("worker", { text: "look", how: "queue", files: [{ filename: "note.txt", sha256: NOTE }] })],
  ["Why", of("worker")],
  ["Start", of("worker")],
  ["Voice", voice()],
  ["VoiceInbox", voice()],
  ["VoiceMessage", voice({ agent: "worker", text: "hello" })],
  ["VoiceChannel", voice({ channel: "review", utterance: { _tag: "Post", text: "hello" } })],
  ["VoiceReport", voice({ report: { status: "done", summary: "all is well", evidence: [], nextSteps: [] } })],
  ["VoiceAsk", voice({ question: "which?" })],
  ["VoiceSpawn", voice({ request: { name: "helper", task: "help" } })],
  ["Spawn", of("sleeper", { request: { name: "scout", task: "look" } })],
  ["Calls"],
  ["Asked", of("none")],
  ["Answer", of("none", { decision: "allow", reason: "" })],
  ["AnswerPreview", of("none", { lasting: { scope: "run", offer: 1 } })],
  ["Set", of("sleeper", { model: null, mode: null, reset: true })],
  ["Offers", of("sleeper")],
  ["Diff", of("nobody")],
  ["Accesses"],
  // what they make is told once, and differs each time: they are refused here
  ["Grant", { right: "view", label: "x".repeat(101), caller: me }],
  ["Invite", { right: "view", label: "x".repeat(101), caller: me }],
  ["Revoke", of("none")],
  ["Interrupt", of("sleeper")],
  ["Waiting"],
  ["Board", { all: true }],
  ["BoardNews", { follow: false }],
  ["Retry", of("worker")],
  ["Dismiss", of("worker", { held: false })],
  ["Stop", of("third")],
  ["Restart", of("third")],
  ["Plates", { all: true }],
  ["Plate", { name: "none" }],
  ["ForgetPlate", of("none")],
  ["Kinds"],
  ["Log", { follow: false, kinds: ["project.registered"], caller: me }],
  ["Erasable", { eventId: 1 }],
  ["Erasable", { eventId: 999_999 }],
  ["Erase", { eventId: 999_999, caller: me }],
  ["Verify"],
  ["AlertTest"],
  ["NotifyList"],
  ["NotifyTest", { name: "phone" }],
  ["Alerts", { count: 20, failed: false }],
  ["Explain", of("g1")],
  ["Explain", of("worker")],
  ["Timeline", { n: 5, caller: me }],
  ["Timeline", { n: 5, agent: "worker", kinds: ["worker."], from: 0, caller: me }],
  ["Causes", { eventId: 3 }],
  ["Doctor"],
  ["Reach"],
  ["Tree", { name: null }],
  ["Tree", { name: "worker" }],
  ["Tree", { name: "nobody" }],
  ["NewChannel", of("lobby", { agents: ["worker"], order: "manual", topic: "" })],
  ["AssignSeat", of("lobby", { agent: "third" })],
  ["PostToChannel", of("lobby", { text: "hello" })],
  ["OrderChannel", of("lobby", { order: "round-robin", agents: ["worker"] })],
  ["GrantFloor", of("lobby", { agent: "third" })],
  ["RequeueSeat", of("lobby", { agent: "third" })],
  ["SkipFloor", of("lobby")],
  ["PauseChannel", of("lobby", { paused: true })],
  ["Channels"],
  ["Channel", of("lobby")],
  ["RemoveSeat", of("lobby", { agent: "third" })],
  ["CloseChannel", of("lobby")],
  ["GoalSubmit", { request: { goal: "build it", plan: null }, caller: me }],
  ["GoalSubmit", { request: { goal: "build it", plan: "{folder}/shop/plan.json", autoStart: false }, caller: me }],
  ["GoalSubmit", { request: { goal: "build that", plan: "{folder}/shop/plan.json", autoStart: false }, caller: me }],
  ["Goals", { all: true, caller: me }],
  ["Goal", of("g1", { from: 0 })],
  ["GoalPlan", of("g1", { path: "{folder}/shop/plan.json" })],
  ["GoalReject", of("g1", { reason: "other words" })],
  ["GoalAsked", of("g2", { from: 0 })],
  ["GoalApprove", of("g2")],
  ["GoalRetry", of("g1", { task: null })],
  ["GoalMerge", of("g1", { into: null, unreviewed: false, all: false })],
  ["GoalCancel", of("g2", { reason: "enough" })],
  [
    "ScheduleAdd",
    {
      due: 4_102_444_800_000,
      timeZone: "Europe/Berlin",
      work: { send: { agent: "worker", text: "a new century" } },
      catchUp: "once",
      caller: me
    }
  ],
  ["ScheduleAdd", { due: 1, timeZone: "UTC", work: { goal: { text: "build it" } }, catchUp: "none", caller: me }],
  ["Schedules", { all: true, caller: me }],
  ["SchedulePause", of("at-1")],
  ["ScheduleResume", of("at-1")],
  ["ScheduleRun", of("nothing")],
  ["ScheduleRemove", of("at-1")],
  ["Conversations"],
  ["Conversation", of("")],
  ["StopProject", of("nothing")],
  ["StopProject", of("")],
  ["StartProject", of("")],
  ["Pause", of("", { inFlight: "interrupt", reason: "a pause" })],
  ["Resume", of("")],
  ["Close", of("", { reason: "enough", force: true })],
  ["Archive", of("none")],
  ["NewConversation", { config: me.config, caller: me }],
  ["Shutdown", { reason: "asked to stop", by: "ada" }]
]

/** Procedures whose answer depends on an agent that works meanwhile: each may be refused, or not, in the same form. */
const RACES: ReadonlySet<string> = new Set(["GoalCancel", "GrantFloor", "Interrupt", "RequeueSeat", "SkipFloor"])

/** The error with which a request was refused; undefined for one that was carried out. */
const refusedWith = (exit: Json): string | undefined => {
  const { cause = [] } = exit as { readonly cause?: ReadonlyArray<{ readonly error?: { readonly _tag: string } }> }
  return cause[0]?.error?._tag
}

const known = Control.requests.keys().toArray()

const play = Effect.fnUntraced(function* (exchanges: ReadonlyArray<Pick<Exchange, "payload" | "tag">>) {
  const { box, run, socket } = yield* open
  const out = masks(box, run)
  const back = out.map(([from, to]) => [to, from] as const)
  return yield* Effect.forEach(exchanges, ({ payload, tag }) =>
    Effect.map(ask(socket, swapped({ payload, tag }, back)), (answer) => ({ ...swapped(answer, out), payload, tag }))
  )
})

describe("recorded exchanges", () => {
  it.live.runIf(process.env["RECORD"] === "1")("those that are new are written down", () =>
    Effect.gen(function* () {
      const before = new Set(recorded(PROTOCOL).map(({ payload, tag }) => JSON.stringify([tag, payload])))
      const all = SCRIPT.map(([tag, payload = null]) => ({ tag, payload: payload as Json }))
      for (const exchange of yield* play(all))
        if (!before.has(JSON.stringify([exchange.tag, exchange.payload])))
          appendFileSync(fileOf(PROTOCOL), `${JSON.stringify(exchange)}\n`)
    })
  )

  it("of this protocol there is one for each procedure", () => {
    assert.deepStrictEqual([...new Set(recorded(PROTOCOL).map(({ tag }) => tag))].toSorted(), known.toSorted())
  })

  for (let protocol = OLDEST_PROTOCOL; protocol <= PROTOCOL; protocol++) {
    const live = protocol === PROTOCOL ? it.live : long.live
    live(`those of protocol ${protocol} are answered as they were`, () =>
      Effect.gen(function* () {
        // what was recorded later stands behind it, and the daemon ends with it
        const isLast = ({ tag }: Exchange): boolean => tag === "Shutdown"
        const all = recorded(protocol)
        const before = [...all.filter((one) => !isLast(one)), ...all.filter(isLast)]
        const now = yield* play(before)
        const lost = before.flatMap(({ chunks, exit, tag }, index) => {
          const answer = now[index]!
          if (RACES.has(tag) && [exit, answer.exit].some((one) => refusedWith(one) === "CommandRefused")) return []
          return [
            ...missing(exit, answer.exit, `${index} ${tag}`),
            ...missing([...chunks], [...answer.chunks], `${index} ${tag} chunk`)
          ]
        })
        assert.deepStrictEqual(lost, [])
      })
    )
  }
})
