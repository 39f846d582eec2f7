/** The model agent behind the protocol has the same events as its engine, whatever happens in a turn. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as ModelWire from "../../support/ModelWire.ts"
import * as Stand from "./ModelStand.ts"

const { call, done, tool } = Stand

const echo = tool("echo", (input) => Effect.succeed(done(JSON.stringify(input))))
const loud = tool("loud", (_, { progress }) => Effect.as(progress("stderr", "half\n"), done("whole")), {
  parallel: true,
  readOnly: true
})
const forever = tool("forever", () => Effect.never, { asksAlways: "nothing holds it" })
const cut = tool("cut", () => Effect.succeed({ status: "sandbox_violation", output: "outside" }))
const tools = [echo, loud, forever, cut]

interface Story {
  readonly name: string
  readonly replies: ReadonlyArray<Stand.Reply>
  readonly setting?: Stand.Setting
  readonly react?: ReadonlyArray<Stand.React>
}

const deny: Stand.React = (event, run) =>
  event._tag === "ApprovalRequested"
    ? run.answer(event.callId, { behavior: "deny", message: "not now", words: true })
    : Effect.void
const stop: Stand.React = (event, run) =>
  event._tag === "ApprovalRequested"
    ? run.answer(event.callId, { behavior: "deny", message: "stop", interrupt: true })
    : Effect.void

const stories: ReadonlyArray<Story> = [
  { name: "an answer", replies: [{ text: ["Hel", "lo."] }], setting: { config: { price: { input: 1, output: 2 } } } },
  {
    name: "calls",
    replies: [
      {
        text: ["Now."],
        calls: [call("a", "echo", { n: 1 }), call("b", "loud"), call("c", "loud"), call("d", "cut", { x: "" })]
      },
      { text: ["Done."] }
    ]
  },
  {
    name: "invalid calls",
    replies: [
      { calls: [{ id: "a", name: "echo", arguments: '{"n":' }, call("b", "none"), call("c", "echo", {})] },
      { text: ["On."] }
    ]
  },
  {
    name: "ids that come twice",
    replies: [{ calls: [call("a", "echo")] }, { calls: [call("a", "echo")] }, { text: ["On."] }]
  },
  {
    name: "a denial",
    replies: [{ calls: [call("a", "echo"), call("b", "forever")] }, { text: ["On."] }],
    react: [deny]
  },
  { name: "a denial that ends the turn", replies: [{ text: ["Well."], calls: [call("a", "echo")] }], react: [stop] },
  {
    name: "an interrupt within an answer",
    replies: [{ text: ["I am "], hang: true }],
    react: [(event, run) => (event._tag === "Delta" ? run.interruptTurn : Effect.void)]
  },
  {
    name: "an interrupt within a call",
    replies: [{ text: ["Wait."], calls: [call("a", "forever"), call("b", "echo")] }],
    react: [Stand.allow, (event, run) => (event._tag === "ToolStarted" ? run.interruptTurn : Effect.void)]
  },
  {
    name: "a call that is cancelled alone",
    replies: [{ calls: [call("a", "forever")] }, { text: ["On."] }],
    react: [Stand.allow, (event, run) => (event._tag === "ToolStarted" ? run.cancelCall(event.callId) : Effect.void)]
  },
  { name: "an answer that breaks off and starts over", replies: [{ text: ["One "], cut: true }, { text: ["Two."] }] },
  { name: "an answer that is cut off", replies: [{ text: ["Half"], stop: "length" }] },
  { name: "a pause", replies: [{ text: ["One."], stop: "pause" }, { text: ["Two."] }] },
  { name: "a refusal", replies: [{ text: ["No."], stop: "refusal" }] },
  {
    name: "too many rounds",
    replies: [{ calls: [call("a", "echo")] }, { calls: [call("b", "echo")] }],
    setting: { config: { maxRounds: 2 } }
  },
  {
    name: "a key that is refused",
    replies: [{ status: 401, body: '{"error":{"type":"authentication_error","message":"invalid x-api-key"}}' }]
  },
  {
    name: "an account without credit",
    replies: [{ status: 402, body: '{"error":{"type":"billing_error","message":"credit balance is too low"}}' }]
  },
  { name: "an overloaded provider", replies: [529, 529, 529].map((status) => ({ status, body: "{}" })) },
  {
    name: "a request that is wrong",
    replies: [{ status: 400, body: '{"error":{"type":"invalid_request_error","message":"no"}}' }]
  },
  {
    name: "a conversation that is too long",
    replies: [
      {
        status: 400,
        body: '{"error":{"type":"invalid_request_error","message":"prompt is too long: 200251 tokens > 200000 maximum"}}'
      }
    ]
  },
  {
    name: "no answer at all",
    replies: [{ status: 200, body: "<html>no</html>", headers: { "content-type": "text/html" } }],
    setting: { config: { retries: 0 } }
  },
  {
    name: "windows of the account",
    replies: [
      {
        text: ["Ok."],
        headers: {
          "anthropic-ratelimit-requests-limit": "50",
          "anthropic-ratelimit-requests-remaining": "10",
          "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:00Z"
        }
      }
    ]
  }
]

type Start = typeof Stand.start

const told = Effect.fnUntraced(function* (
  start: Start | typeof ModelWire.start,
  { react = [Stand.allow], replies, setting }: Story
) {
  const { url } = yield* Stand.provider("anthropic", replies)
  const run = yield* start("anthropic", url, { tools, sessions: yield* Stand.folder, ...setting })
  const all = yield* Stand.watch(run, ...react, Stand.endAfterTurn)
  return all.map((event): unknown => {
    const { place: _place, ...rest } = event
    return JSON.parse(JSON.stringify("pid" in rest ? { ...rest, pid: undefined } : rest).replaceAll(url, "URL"))
  })
})

layer(Stand.layer, { excludeTestServices: true })("the model agent behind the protocol", (it) => {
  it.effect.each(stories)("$name", (story) =>
    Effect.gen(function* () {
      const engine: ReadonlyArray<unknown> = yield* told(Stand.start, story)
      assert.deepStrictEqual(yield* told(ModelWire.start, story), engine)
    })
  )
})
