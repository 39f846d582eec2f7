/** `agentd approve` with the parts of a call, the rules that can be kept, and what each would change. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ApprovalView from "../../../src/cli/agents/ApprovalView.ts"
import type { AskedCall } from "../../../src/domain/Messages.ts"
import { askedOf, callInfo, makeWorld, previewHash, serve, type World } from "../rpc/World.ts"
import { inProcess } from "./Child.ts"

const call = callInfo({ arguments: '{"command":"cd a && npm test"}' })
const decided: World["decided"] = {
  parts: [
    { text: "cd a", verdict: "run", reason: "it reads" },
    { text: "npm test", verdict: "ask", reason: "runs the project's code" }
  ],
  offers: [
    { words: "npm test", rules: ["npm test"] },
    { words: "any plain npm test \u202e…", rules: ["npm test **"] }
  ],
  scopes: ["run", "agent", "project", "everyone"]
}

const withWorld = Effect.fnUntraced(function* (over: Partial<World["decided"]> = {}) {
  const world = makeWorld({ calls: [call], decided: { ...decided, ...over } })
  const { state } = yield* serve(world)
  return { world, state, run: (...args: ReadonlyArray<string>) => inProcess(["--state", state, ...args]) }
})

describe("a call is shown", () => {
  const asked: AskedCall = { ...askedOf(call), ...decided }

  it("with its parts, of which the one that lacks leave stands out, and with what can be kept", () => {
    expect([...ApprovalView.lines(asked, null).slice(-6), ...ApprovalView.offers(asked)]).toEqual([
      "├ why",
      "│ it has side effects",
      "├ parts",
      "│ ✓ cd a: it reads",
      "│ ? npm test: runs the project's code ← lacks leave",
      `└ ${asked.hash.slice(0, 32)}`,
      "It can be approved once, or for this run (--for run), for this agent (--for agent), always in this project (--for project), for everyone here (--for everyone):",
      "  1  npm test",
      "  2  any plain npm test \\u{202e}…",
      "  With --for SCOPE --rule N, the command first shows what it would change."
    ])
    const [bold] = ApprovalView.lines(asked, null, true).filter((line) => line.includes("lacks leave"))
    expect(bold).toContain("\u001b[1m")
  })

  it("a part lays out no row of its own", () => {
    const parts = [{ text: "x\n└ 0000", verdict: "ask", reason: "r" }] as const
    const rows = ApprovalView.lines({ ...asked, parts }, 40)
    expect(rows.filter((row) => row.startsWith("└"))).toHaveLength(1)
    expect(rows.join("\n")).toContain("x\\u{a}└ 0000")
  })

  it("says why it cannot be kept for longer", () => {
    const rows = ApprovalView.offers({ ...asked, scopes: ["run"], onlyHere: "a change waits: agentd trust shop" })
    expect(rows.join("\n")).toContain("once, or for this run (--for run):")
    expect(rows.at(-2)).toBe("  No longer than that: a change waits: agentd trust shop")
  })
})

it.live("without a terminal, nothing is approved, and the whole next command is printed", () =>
  Effect.gen(function* () {
    const { run, state, world } = yield* withWorld()
    const first = yield* run("approve", "01call")
    expect(first.code).not.toBe(0)
    expect(first.out).toContain("lacks leave")
    expect(first.out).toContain("for everyone here (--for everyone)")
    const shown = yield* run("approve", "01call", "--for", "everyone", "--rule", "2")
    expect(shown.code).not.toBe(0)
    expect(shown.out).toContain("It would be kept for everyone here, in /srv/web/agentd.jsonc:")
    expect(shown.out).toContain('  │ +    "rules": [{ "allow": "npm test **" }]')
    const hash = previewHash(call, "everyone").slice(0, 32)
    expect(shown.err).toContain(`agentd --state ${state} approve ${call.callId} ${hash} --for everyone --rule 2`)
    expect(world.commands).toEqual([])
    const done = yield* run("approve", call.callId, hash, "--for", "everyone", "--rule", "2")
    expect(done).toMatchObject({ code: 0, out: "shell: allow\n" })
    expect(world.commands).toMatchObject([
      ["answerCall", call.callId, { behavior: "allow", lasting: { scope: "everyone", offer: 2 } }]
    ])
  })
)

it.live("a rule for the run changes no file; --json has the parts, the offers and the preview", () =>
  Effect.gen(function* () {
    const { run } = yield* withWorld()
    const asked = JSON.parse((yield* run("approve", "01call", "--json")).out)
    expect(asked).toMatchObject({ parts: decided.parts, offers: [{ rules: ["npm test"] }, {}], scopes: decided.scopes })
    const { preview } = JSON.parse((yield* run("approve", "01call", "--for", "run", "--json")).out)
    expect(preview).toMatchObject({ scope: "run", file: null, diff: [], hash: previewHash(call, "run") })
    expect((yield* run("approve", "01call", "--for", "run")).out).toContain(
      "It would be kept for this run, in its state: npm test\n"
    )
  })
)

it.live("the hash of the call alone keeps no rule, and what does not fit together is refused with the remedy", () =>
  Effect.gen(function* () {
    const { run, world } = yield* withWorld()
    const changed = yield* run("approve", call.callId, askedOf(call).hash, "--for", "run")
    expect(changed.err).toContain("has changed since it was shown")
    expect(yield* run("approve", "01call", "--rule", "1")).toMatchObject({
      code: 2,
      err: expect.stringContaining("approve 01call --for run --rule 1")
    })
    expect((yield* run("approve", "--for", "run")).err).toContain("none is named")
    expect((yield* run("approve", "01call", "--for", "ever")).err).toContain("everyone")
    expect((yield* run("approve", "01call", "--for", "run", "--rule", "3")).err).toContain("There is no offer 3")
    expect(world.commands).toEqual([])
  })
)

const twoCalls = Effect.fnUntraced(function* () {
  const calls = [call, callInfo({ ...call, callId: "02call", agent: "tester", since: call.since + 1 })]
  const world = makeWorld({ calls, decided: { ...decided, offers: [{ words: "npm test", rules: ["npm test **"] }] } })
  const { state } = yield* serve(world)
  return { world, state, run: (...args: ReadonlyArray<string>) => inProcess(["--state", state, ...args]) }
})

it.live("calls of one kind are approved together, by the hash of the list; a later one still waits", () =>
  Effect.gen(function* () {
    const { run, world } = yield* twoCalls()
    const shown = yield* run("approve", "--all")
    expect(shown.code).not.toBe(0)
    expect(shown.out).toContain("2 calls: npm test … (web/builder, web/tester): ")
    const hash = /tester\): ([0-9a-f]{32})/.exec(shown.out)![1]!
    expect(shown.err).toContain(`approve --all ${hash}`)
    world.calls.push(callInfo({ ...call, callId: "03call", since: call.since + 2 }))
    const other = yield* run("approve", "--all", "0".repeat(32))
    expect(other.err).toContain("No calls with this hash wait")
    expect(other.out).toContain("3 calls: npm test … (web/builder, web/tester): ")
    expect(world.commands).toEqual([])
    expect(yield* run("approve", "--all", hash)).toMatchObject({ code: 0, out: "2 calls are approved.\n" })
    expect(world.commands.map(([verb, name]) => [verb, name])).toEqual([
      ["answerCall", call.callId],
      ["answerCall", "02call"]
    ])
    expect((yield* run("approve", "--all", "--for", "run")).err).toContain("each call once")
  })
)

it.live("the title of a batch lays out no line of its own, and hides nothing", () =>
  Effect.gen(function* () {
    const offers = [{ words: "", rules: ["npm run x\u202e\n└ 0000 **"] }]
    const calls = [call, callInfo({ ...call, callId: "02call" })]
    const { state } = yield* serve(makeWorld({ calls, decided: { ...decided, offers } }))
    for (const args of [["waiting"], ["approve", "--all"]]) {
      const { out } = yield* inProcess(["--state", state, ...args])
      expect(out.split("\n")[0]).toContain("2 calls: npm run x\\u{202e}\\u{a}└ 0000 … (web/builder)")
    }
  })
)

it.live("calls of one kind are one group of the list, and each can be answered by itself", () =>
  Effect.gen(function* () {
    const { run, state, world } = yield* twoCalls()
    for (const verb of ["approve", "waiting"]) {
      const { out } = yield* run(verb)
      expect(out.split("\n").map((line) => line.replace(/ \(for .*\)$/, ""))).toEqual([
        "2 calls: npm test … (web/builder, web/tester)",
        "    web/builder: cd a && npm test",
        `      → agentd --state ${state} approve 01call000000`,
        "    web/tester: cd a && npm test",
        `      → agentd --state ${state} approve 02call`,
        `    → agentd --state ${state} approve --all   see all of them in full, and approve them together`,
        ""
      ])
    }
    expect(JSON.parse((yield* run("waiting", "--json")).out).batches).toMatchObject([
      { words: "npm test …", calls: [{ id: call.callId }, { id: "02call" }] }
    ])
    expect(yield* run("approve", "02call", askedOf(world.calls[1]!).hash)).toMatchObject({ code: 0 })
    expect((yield* run("waiting")).out).not.toContain("2 calls")
  })
)
