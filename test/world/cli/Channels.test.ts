/** The channel verbs, through the real socket, on real channels. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { list, postLines } from "../../../src/cli/channels/ChannelTable.ts"
import { parse } from "../../../src/cli/channels/ChannelInput.ts"
import { freshLines, statusLine } from "../../../src/cli/channels/ChannelJoin.ts"
import type { ChannelInfo, ChannelView, SeatInfo } from "../../../src/domain/ChannelMessages.ts"
import { runLive, until, type World } from "../channels/World.ts"
import * as Control from "../rpc/World.ts"
import { inProcess, launch } from "./Child.ts"

type Agentd = (...args: ReadonlyArray<string>) => ReturnType<typeof inProcess>

const withCli = (body: (agentd: Agentd, world: World, state: string) => Effect.Effect<void, unknown, Scope.Scope>) =>
  runLive((world) =>
    Effect.gen(function* () {
      const state = yield* Control.folder
      // The log is memoized with its layer: the server reads the one that the channels write.
      yield* Layer.build(Control.layer(Control.makeWorld(), `${state}/control.sock`, { channels: world.channels }))
      yield* body((...args) => inProcess(["--state", state, ...args]), world, state)
    })
  )

describe("agentd channel", () => {
  it.live("ls, show, post, order, grant, skip, pause, assign, remove: what is done is done, and said", () =>
    withCli((agentd, world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm", "dev"], order: "manual", topic: "#42" } })
        yield* world.come("pm", "dev", "qa")
        yield* world.quiet
        const said = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
          const { code, err, out } = yield* agentd(
            ...(args[0] === "log" ? ["log", "--channel"] : ["channel"]),
            ...args.filter((word) => word !== "log")
          )
          assert.deepStrictEqual([code, err], [0, ""], args.join(" "))
          return out
        })
        assert.match(yield* said("post", "reviews", "Look at #42"), /Posted in #reviews/)
        assert.include(yield* said("grant", "web/reviews", "pm"), "pm has the floor of #reviews.")
        yield* world.speaking("pm")
        assert.match(yield* said("ls"), /web\/reviews +working +pm +manual +2 +1 +pm has the floor, for \d+[sm] more/)
        assert.include(yield* said("skip", "reviews"), "pm has lost the floor")
        yield* said("pause", "reviews")
        yield* said("order", "reviews", "round-robin", "dev")
        yield* said("assign", "reviews", "qa")
        yield* said("remove", "reviews", "pm")
        const shown = yield* said("show", "reviews")
        assert.include(shown, "#reviews of web: paused: nobody gets the floor")
        assert.match(shown, /1 +dev +(waiting|idle)/)
        assert.match(shown, /2 +qa +(waiting|idle)/)
        assert.match(shown, /- +pm +idle/)
        assert.include(shown, "  Look at #42")
        yield* said("resume", "reviews")
        yield* world.speaking("dev")
        const json = JSON.parse(yield* said("show", "reviews", "--json")) as ChannelView
        assert.strictEqual(json.channel.floor, "dev")
        assert.match(yield* said("log", "reviews", "-n", "1"), /^\S+Z dev QUEUED → ACTIVE: TurnGranted\n$/)
        const moves = (yield* said("log", "reviews", "--json")).trim().split("\n")
        assert.deepInclude(JSON.parse(moves[0]!), {
          event: "state_transition",
          agentId: "pm",
          from: "OFFLINE",
          to: "IDLE",
          trigger: "AgentStarted",
          channel: "reviews"
        })
      })
    )
  )

  it.live("what cannot be done is said, with what to do instead", () =>
    withCli((agentd, world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        for (const [line, says, remedy] of [
          ["show review", 'There is no channel "review".', "There are: "],
          ["skip reviews", "Nobody has the floor of #reviews.", "channel show reviews"],
          ["assign reviews Bob", '"Bob" cannot be an agent\'s name.', "lower-case"],
          ["remove reviews dev", "dev is not in #reviews.", "channel show reviews"],
          ["close reviews", "#reviews is in the project's agentd.jsonc.", "Remove it from that file"],
          ["new lounge pm", "There is no project here.", "agentd.jsonc"]
        ] as const) {
          const { code, err } = yield* agentd("channel", ...line.split(" "))
          assert.strictEqual(code, 1, line)
          assert.include(err, says)
          assert.include(err, remedy)
        }
        const long = yield* agentd("channel", "post", "reviews", "x".repeat(70_000))
        assert.include(long.err, "text has 70000 bytes and may have 65536.")
        const wrong = yield* agentd("channel", "order", "reviews", "backwards")
        assert.strictEqual(wrong.code, 2)
      })
    )
  )

  it.live("requeue ends a wait; waiting names a channel that rests, with what to do; resume lets it go on", () =>
    withCli((agentd, world, state) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm", "dev"], turnConfig: { restAfterPosts: 2 } } })
        yield* world.come("pm", "dev")
        assert.strictEqual((yield* agentd("waiting")).out, "Nothing waits for you.\n")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "WAIT: for ada, until person")
        const requeued = yield* agentd("channel", "requeue", "reviews", "pm")
        assert.strictEqual(requeued.out, "pm no longer waits: it is in the queue of #reviews again.\n")
        const refused = yield* agentd("channel", "requeue", "reviews", "pm")
        assert.deepInclude(refused, { code: 1, out: "" })
        assert.include(refused.err, "pm neither waits in #reviews nor has its floor.")
        for (const agent of ["dev", "pm"]) yield* world.turn(agent, `${agent} has a word.\nTURN_COMPLETE`)
        const { code, out } = yield* agentd("waiting")
        assert.strictEqual(code, 0)
        assert.include(out, "#reviews of web: rests after 2 posts without a person")
        assert.include(out, `agentd --state ${state} channel resume web/reviews`)
        assert.lengthOf(JSON.parse((yield* agentd("waiting", "--json")).out).rows, 1)
        assert.include((yield* agentd("channel", "resume", "web/reviews")).out, "#reviews continues.")
        yield* world.speaking("dev")
        assert.strictEqual((yield* agentd("waiting")).out, "Nothing waits for you.\n")
        assert.match((yield* agentd("channel", "--help")).out, /requeue +End an agent's wait/)
      })
    )
  )

  it.live("join, off a terminal: each line typed is posted, and all that is said is shown once", () =>
    withCli((_, world, state) =>
      Effect.gen(function* () {
        world.crew.auto = (agent, { text }) =>
          text.includes("> Hello") && agent === "pm" ? "Hello, ada.\nTURN_COMPLETE" : "TURN_COMPLETE"
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Before")
        const joined = yield* launch(["--state", state, "channel", "join", "web/reviews"], { input: null })
        joined.child.stdin.write("Hello\n\n")
        yield* until("it is answered", Effect.sync(joined.out), (out) => out.includes("Hello, ada."))
        const lines = joined.out().split("\n")
        for (const line of ["  Before", "  Hello", "  Hello, ada."]) {
          assert.lengthOf(
            lines.filter((one) => one === line),
            1,
            line
          )
        }
      })
    )
  )
})

const now = 100_000
const seat = (agent: string, state: SeatInfo["state"], more: Partial<SeatInfo> = {}): SeatInfo => ({
  agent,
  word: "working",
  state,
  since: now,
  restsOn: 1,
  position: 1,
  unread: 0,
  until: null,
  detail: "",
  ...more
})
const channel = (seats: ReadonlyArray<SeatInfo>, more: Partial<ChannelInfo> = {}): ChannelInfo => ({
  conversation: "web-1",
  project: "web",
  name: "reviews",
  word: "idle",
  topic: "",
  order: "round-robin",
  paused: false,
  closed: false,
  floor: null,
  seats,
  posts: 0,
  detail: "nobody has anything new to read",
  waits: null,
  restsOn: 1,
  ...more
})

describe("how a channel looks", () => {
  it("the status line: who has the floor and for how long, who is next, who waits", () => {
    const seats = [
      seat("pm", "ACTIVE", { until: now + 42_000 }),
      seat("dev", "WAITING", { until: now + 130_000 }),
      seat("qa", "QUEUED", { unread: 2 }),
      seat("ux", "QUEUED")
    ]
    assert.strictEqual(
      statusLine(channel(seats, { floor: "pm" }), now),
      "pm has the floor (42s left) · next: qa · waiting: dev (2m left)"
    )
    assert.strictEqual(statusLine(channel(seats.slice(3)), now), "nobody has anything new to read")
  })

  it("nothing that was said reaches the terminal as a control sequence; a post is shown once", () => {
    const post = {
      seq: 1,
      eventId: 1,
      at: now,
      kind: "agent",
      from: "pm\u001b[2J",
      text: "a\u001b[2Jb\r\n\u202ec"
    } as const
    const lines = postLines(post, now).map(({ text }) => text)
    assert.deepStrictEqual(lines.slice(1), ["  a·[2Jb", "  ·c"])
    assert.notInclude(lines.join(""), "\u001b")
    const view = { channel: channel([]), turnConfig: {} as never, posts: [post, { ...post, seq: 2 }] }
    assert.lengthOf(freshLines(view, 1, now), 3)
  })

  it.each([
    ["hello", { _tag: "Post", text: "hello" }],
    [" //etc is full", { _tag: "Post", text: "/etc is full" }],
    ["/grant  pm now", { _tag: "Grant", agent: "pm" }],
    ["/grant", { _tag: "Wrong" }],
    ["/requeue dev", { _tag: "Requeue", agent: "dev" }],
    ["/requeue", { _tag: "Wrong" }],
    ["/skip", { _tag: "Skip" }],
    ["/pause", { _tag: "Pause", paused: true }],
    ["/resume", { _tag: "Pause", paused: false }],
    ["/?", { _tag: "Help" }],
    ["/quit ", { _tag: "Quit" }],
    ["/quti", { _tag: "Wrong" }],
    ["  ", { _tag: "Nothing" }]
  ] as const)("%j typed in a channel; a slip of a command is said to nobody", (line, asked) =>
    assert.deepInclude(parse(line), asked)
  )

  it("without channels it says how to make one", () =>
    assert.include(list([], now, { colour: false, columns: null })[0], "agentd channel new"))
})
