import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { call } from "../../../src/api/rpc/ControlClient.ts"
import type { CallInfo } from "../../../src/domain/Messages.ts"
import { meant } from "../../../src/board/AnswerTarget.ts"
import * as PlatesDouble from "../http/PlatesDouble.ts"
import { askedOf, callInfo, draft, makeWorld, serve, type World } from "./World.ts"

const me = { by: "ada", config: null }
const { plateInfo } = PlatesDouble

const asking = callInfo({ callId: "01k9aaaa1" })
const other = callInfo({ callId: "01k9aaab2", tool: "write" })
const running = callInfo({ callId: "01k9zzzz3", state: "executing" })
const session = plateInfo({ plateId: "01k9bbbb4", status: "AwaitingApproval", approval: "01k9req5" })
const quiet = plateInfo({ plateId: "01k9cccc6", approval: null })

it.each([
  ["a call by its whole id", "01k9aaaa1", { _tag: "Call", callId: "01k9aaaa1" }],
  ["a call by a beginning", "01k9aaaa", { _tag: "Call", callId: "01k9aaaa1" }],
  ["a session by its plate", "01k9bbbb4", { _tag: "Session", name: "01k9bbbb4" }],
  ["a session by a beginning of its plate", "01k9bb", { _tag: "Session", name: "01k9bbbb4" }],
  ["a session by a beginning of its request", "01k9re", { _tag: "Session", name: "01k9req5" }],
  ["a call that asks no more, to say so", "01k9zz", { _tag: "Call", callId: "01k9zzzz3" }],
  ["nothing that does not ask", "01k9cc", { _tag: "None" }],
  ["nothing at all", "nope", { _tag: "None" }]
])("an answer means %s", (_, name, is) => {
  expect(meant(name, [asking, other, running], [session, quiet])).toEqual(is)
})

it("a beginning that fits several that ask means none of them, whatever they are", () => {
  expect(meant("01k9aaa", [asking, other], [])).toMatchObject({ _tag: "Several", which: { length: 2 } })
  expect(meant("01k9", [asking], [session])).toMatchObject({ _tag: "Several", which: { length: 2 } })
})

it("an agent's name means its one call that asks; where several do, their ids are told", () => {
  const elsewhere = callInfo({ callId: "02aaaa7", agent: "reviewer" })
  const calls = [asking, elsewhere, callInfo({ callId: "03", agent: "reviewer", state: "executing" })]
  expect(meant("reviewer", calls, [])).toEqual({ _tag: "Call", callId: "02aaaa7" })
  expect(meant("web/reviewer", calls, [])).toEqual({ _tag: "Call", callId: "02aaaa7" })
  expect(meant("shop/reviewer", calls, [])).toEqual({ _tag: "None" })
  expect(meant("builder", [asking, other, elsewhere], [])).toMatchObject({
    _tag: "Several",
    which: [expect.stringContaining("01k9aaaa1"), expect.stringContaining("01k9aaab2")]
  })
})

const answer = (socket: string, name: string, decision: "allow" | "deny" = "allow") =>
  call(socket, (client) =>
    Effect.gen(function* () {
      // whoever approves has looked; what cannot be seen is answered all the same
      const seen = decision === "deny" ? undefined : yield* Effect.option(client.Asked({ name, caller: me }))
      const hash = seen === undefined || seen._tag === "None" ? {} : { hash: seen.value.hash }
      return yield* client.Answer({ name, decision, reason: "because", caller: me, ...hash })
    })
  )

const withWorld = Effect.fnUntraced(function* (over: Partial<World>) {
  const world = makeWorld(over)
  return { world, ...(yield* serve(world)) }
})

it.live("an answer reaches the call with who gave it and why; a second one is told what became of it", () =>
  Effect.gen(function* () {
    const { socket, world } = yield* withWorld({ calls: [asking] })
    expect((yield* answer(socket, "01k9aa", "deny")).message).toBe("shell: deny")
    expect(world.commands).toEqual([["answerCall", "01k9aaaa1", { behavior: "deny", reason: "because", by: "ada" }]])
    const again = yield* Effect.flip(answer(socket, "01k9aa"))
    expect(again).toMatchObject({ _tag: "CommandRefused", message: "01k9aaaa1 was approved already." })
    expect(world.commands).toHaveLength(1)
  })
)

it.live("a call that has its result is found in the log, and never taken for a session that waits", () =>
  Effect.gen(function* () {
    const board = PlatesDouble.makeBoard({ plates: [session] })
    const { append, socket, world } = yield* withWorld({ board })
    const asked = (kind: string, event: object) =>
      draft({ kind, actor: "tool/builder/01k9gone77", payload: { event, call_id: "01k9gone77" } })
    yield* append(
      asked("tool.call", {
        _tag: "call_requested",
        callId: "01k9gone77",
        turnId: "t",
        toolName: "shell",
        arguments: {}
      }),
      asked("tool.approval_requested", { _tag: "requires_approval", callId: "01k9gone77", policyReason: "effects" })
    )
    expect(yield* Effect.flip(answer(socket, "01k9gone"))).toMatchObject({
      message: "01k9gone77 has its result already."
    })
    expect(world.board.got).toEqual([])
  })
)

it.live("the id of a call that is over does not stand for a call whose id begins with it", () =>
  Effect.gen(function* () {
    const { append, socket, world } = yield* withWorld({ calls: [callInfo({ callId: "2syt2py0-12" })] })
    yield* append(
      ...["call", "approval_requested"].map((kind) =>
        draft({
          kind: `tool.${kind}`,
          actor: "tool/builder/2syt2py0-1",
          payload: {
            event:
              kind === "call"
                ? { _tag: "call_requested", callId: "2syt2py0-1", turnId: "t", toolName: "shell", arguments: {} }
                : { _tag: "requires_approval", callId: "2syt2py0-1", policyReason: "effects" },
            call_id: "2syt2py0-1"
          }
        })
      )
    )
    expect(yield* Effect.flip(answer(socket, "2syt2py0-1"))).toMatchObject({
      message: "2syt2py0-1 has its result already."
    })
    expect(world.commands).toEqual([])
    expect((yield* answer(socket, "2syt2py0-12")).message).toBe("shell: allow")
  })
)

it.live("an unknown id and an empty one are refused with where to look", () =>
  Effect.gen(function* () {
    const { socket } = yield* withWorld({})
    expect(yield* Effect.flip(answer(socket, "nope"))).toMatchObject({ message: "Nothing waits under nope." })
    expect(yield* Effect.flip(answer(socket, " "))).toMatchObject({ remedy: "See what waits: agentd approve" })
  })
)

it.live("several calls are approved together, each by its hash; if one has changed or is gone, none is", () =>
  Effect.gen(function* () {
    const [one, two] = ["01k9aaaa1", "01k9bbbb2"].map((callId) => callInfo({ callId })) as [CallInfo, CallInfo]
    const { socket, world } = yield* withWorld({ calls: [one, two] })
    const all = (over: object) =>
      call(socket, (client) =>
        client.Answer({
          name: one.callId,
          decision: "allow",
          reason: "",
          hash: askedOf(one).hash,
          also: [{ name: two.callId, hash: askedOf(two).hash }],
          caller: me,
          ...over
        })
      )
    const changed = yield* Effect.flip(all({ also: [{ name: two.callId, hash: askedOf(one).hash }] }))
    expect(changed).toMatchObject({
      message: expect.stringMatching(/^None of the 2 calls was approved: .*01k9bbbb2/),
      remedy: "See the calls that wait now: agentd approve --all"
    })
    expect((yield* Effect.flip(all({ also: [{ name: "gone", hash: "0".repeat(64) }] }))).message).toContain(
      "None of the 2 calls was approved: Nothing waits under gone."
    )
    for (const over of [{ decision: "deny" }, { answers: ["1"] }, { lasting: { scope: "run", offer: 1 } }])
      expect((yield* Effect.flip(all(over))).message).toContain("can only be approved once, each by its hash")
    expect(world.commands).toEqual([])
    expect(yield* all({})).toMatchObject({ message: "2 calls are approved." })
    expect(world.commands.map(([, id]) => id)).toEqual([one.callId, two.callId])
    expect((yield* Effect.flip(all({}))).message).toContain("None of the 2 calls was approved")
  })
)
