/** Work that came to no answer is kept until a person asks it again or lets it go. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Backlog from "../../../src/projects/service/Backlog.ts"
import * as UnansweredMessages from "../../../src/agents/machines/UnansweredMessages.ts"
import * as Inbox from "../../../src/agents/machines/Inbox.ts"
import type { TurnScript } from "../../../src/runs/ScriptedTurns.ts"
import { MARK } from "../../../src/domain/TruncatedAnswer.ts"
import { type AgentWorld, caller, make } from "../../world/agents/AgentWorld.ts"
import { until } from "../../world/agents/World.ts"

const ending = (errorType: string, said: string = ""): TurnScript => ({
  steps: said === "" ? [] : [{ say: said }],
  error: { errorType, message: `it ended with ${errorType}`, retry: false }
})
const answer: TurnScript = { steps: [{ say: "Done." }] }

const quick = { backoff: { base: "1ms", cap: "1ms" }, maxConsecutiveErrors: 100, maxTotalErrors: 100 }

const kept = (world: AgentWorld) => Inbox.droppedOf(world.tree.inbox().data)
const isKept = (world: AgentWorld, count: number) =>
  until(
    Effect.sync(() => kept(world)),
    ({ dropped }) => dropped.length === count
  )
const asked = (world: AgentWorld, text: string) => world.inputs.filter((input) => input.includes(text)).length

describe("work that came to no answer", () => {
  for (const errorType of ["refusal", "max_tokens", "max_turns", "max_turn_requests", "overflow"]) {
    it.live(`${errorType} drops no message in silence`, () =>
      Effect.gen(function* () {
        const world = yield* make([ending(errorType)])
        yield* world.tree.send("Build it.", "queue", caller)
        yield* isKept(world, 1)
        const [{ dropped }] = [Backlog.of(world.tree)!]
        assert.deepStrictEqual(
          dropped.map(({ errorType, from, reason, text }) => ({ errorType, from, reason, text })),
          [{ errorType, from: "ada", reason: `it ended with ${errorType}`, text: "Build it." }]
        )
      }).pipe(Effect.scoped)
    )
  }

  it.live("a turn that an agent ends by itself is kept, and what a person interrupts is not", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ say: "…" }], hang: true }, answer])
      yield* world.tree.send("Build it.", "queue", caller)
      yield* world.kind("turn.assistant_delta")
      yield* world.tree.interrupt(caller)
      yield* world.kind("turn.interrupted")
      yield* world.tree.send("Another.", "queue", caller)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(kept(world), UnansweredMessages.none)
    }).pipe(Effect.scoped)
  )

  it.live("kill -9 and a restart: it is kept, asked again under a new id, and answered", () =>
    Effect.gen(function* () {
      const world = yield* make([ending("refusal")], quick)
      yield* world.tree.send("Build it.", "queue", caller)
      yield* isKept(world, 1)
      yield* world.lose
      world.play([answer])
      yield* world.open
      const [before] = kept(world).dropped
      assert.strictEqual(before!.message.text, "Build it.")
      const done = yield* Backlog.retry(world.tree, undefined, caller)
      assert.match(done.message, /^1 message is queued again for shop\/builder/)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(kept(world), UnansweredMessages.none)
      yield* world.lose
      yield* world.open
      assert.deepStrictEqual(kept(world), UnansweredMessages.none)
      const [again] = yield* world.kind("inbox.asked_again")
      assert.notStrictEqual(
        (again!.payload["event"] as { messages: ReadonlyArray<{ as: string }> }).messages[0]!.as,
        before!.message.messageId
      )
    }).pipe(Effect.scoped)
  )

  it.live("asked again twice at once is asked once", () =>
    Effect.gen(function* () {
      const world = yield* make([ending("refusal")], quick)
      yield* world.tree.send("Build it.", "queue", caller)
      yield* isKept(world, 1)
      world.play([answer])
      const both = yield* Effect.all(
        [1, 2, 3].map(() => Effect.result(Backlog.retry(world.tree, undefined, caller))),
        { concurrency: 3 }
      )
      assert.strictEqual(both.filter(({ _tag }) => _tag === "Success").length, 1)
      yield* world.kind("turn.completed")
      assert.strictEqual(asked(world, "Build it."), 1)
      assert.strictEqual((yield* world.runes).filter(({ kind }) => kind === "inbox.asked_again").length, 1)
    }).pipe(Effect.scoped)
  )

  it.live("one is asked again by its id, another is let go, and what is gone is refused", () =>
    Effect.gen(function* () {
      const world = yield* make([ending("refusal")], quick)
      yield* world.tree.send("First.", "queue", caller)
      yield* isKept(world, 1)
      yield* world.tree.send("Second.", "queue", caller)
      const [first, second] = (yield* isKept(world, 2)).dropped.map(({ message }) => message.messageId)
      yield* Backlog.dismiss(world.tree, { which: first, held: false }, caller)
      for (const which of [first, "no such thing"]) {
        const refused = yield* Effect.flip(Backlog.dismiss(world.tree, { which, held: false }, caller))
        assert.include(refused.message, "already queued again or discarded")
        assert.include(refused.remedy, "agentd waiting")
        yield* Effect.flip(Backlog.retry(world.tree, which, caller))
      }
      world.play([answer])
      yield* Backlog.retry(world.tree, second, caller)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual([asked(world, "First."), asked(world, "Second.")], [0, 1])
      yield* Effect.flip(Backlog.dismiss(world.tree, { which: undefined, held: false }, caller))
    }).pipe(Effect.scoped)
  )

  it.live("it is dropped again where it ends so again", () =>
    Effect.gen(function* () {
      const world = yield* make([ending("refusal")], quick)
      yield* world.tree.send("Build it.", "queue", caller)
      yield* isKept(world, 1)
      world.play([ending("max_turns")])
      yield* Backlog.retry(world.tree, undefined, caller)
      const { dropped } = yield* until(
        Effect.sync(() => kept(world)),
        (now) => now.dropped[0]?.errorType === "max_turns"
      )
      assert.strictEqual(dropped.length, 1)
      assert.notStrictEqual(dropped[0]!.message.first, undefined)
    }).pipe(Effect.scoped)
  )

  it.live("half an answer is said to be half", () =>
    Effect.gen(function* () {
      const world = yield* make([ending("max_tokens", "The first part of")])
      yield* world.tree.send("Tell me.", "queue", caller)
      yield* isKept(world, 1)
      const [cut] = yield* world.kind("turn.error")
      assert.strictEqual(cut!.payload["partial_output"], "The first part of")
      const ended = yield* until(
        Effect.sync(() => world.reports.find(({ _tag }) => _tag === "TurnEnded")),
        (report) => report !== undefined
      )
      assert.strictEqual(ended?._tag === "TurnEnded" ? ended.output : "", `The first part of\n${MARK}`)
    }).pipe(Effect.scoped)
  )

  it("10,000 dropped messages stay bounded, and say how many more there were", () => {
    const end = { turnId: "t", errorType: "refusal", reason: "no", at: 1 }
    const message = (n: number, text = "Build it.") => ({ messageId: `m${n}`, from: "ada", text, urgent: false, at: n })
    let all = UnansweredMessages.none
    for (let n = 1; n <= 10_000; n++) all = UnansweredMessages.add(all, [message(n)], end)
    assert.strictEqual(all.dropped.length, UnansweredMessages.MAX_DROPPED)
    assert.strictEqual(all.more, 10_000 - UnansweredMessages.MAX_DROPPED)
    assert.strictEqual(all.dropped.at(-1)!.message.messageId, "m10000")
    const large = "x".repeat(512 * 1024)
    for (let n = 1; n <= 20; n++) all = UnansweredMessages.add(all, [message(n, large)], end)
    assert.isAtMost(all.dropped.length, 4)
    assert.strictEqual(all.dropped.length + all.more, 10_020)
    // the newest is kept, whatever its size
    all = UnansweredMessages.add(all, [message(1, "x".repeat(5_000_000))], end)
    assert.strictEqual(all.dropped.length, 1)
  })
})
