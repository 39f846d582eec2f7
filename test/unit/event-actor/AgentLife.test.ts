/**
 * AgentLife: runes and appends of one send, and a crash of the daemon at every append of
 * a scripted life, on the daemon's own tables: each machine with runes of its own, and
 * siblings that join the runes of the turn.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Committed } from "../../../src/core/event-actor/ActorHandle.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import {
  agentScope,
  conversationScope,
  type Folded,
  foldOf,
  type GiveInput,
  tellAgain
} from "../../world/event-actor/AgentLife.ts"
import { HeldLog, lab, quiet, Restarter } from "../../world/event-actor/Lab.ts"

const message = (n: number) => ({
  _tag: "Received" as const,
  message: { messageId: `m${n}`, from: "ann", text: `do ${n}`, urgent: false, at: n }
})

/** A world from where a log says that it stands. */
const world = (before: ReadonlyArray<Rune>, isJoined: boolean) => {
  const log = new HeldLog()
  log.resume(before)
  const { system } = lab(log)
  const heard: Array<GiveInput & { readonly appends: number; readonly runes: number }> = []
  const supervisor = new Restarter()
  const from = foldOf(before, "b")
  const { conversation, scope } = conversationScope(system, from.conversation)
  const around = {
    agent: "b",
    isJoined,
    conversation,
    give: (input: GiveInput) => void heard.push({ ...input, appends: log.appends.length, runes: log.kept.length })
  }
  const agent = agentScope(system, around, from)
  supervisor.startChild(scope)
  supervisor.startChild(agent.scope)
  tellAgain(before, "b", conversation)
  return { log, heard, conversation, agent, from }
}
type World = ReturnType<typeof world>

/** Each append becomes durable by itself, and what follows from it happens. */
const landAll = async ({ log }: World): Promise<void> => {
  await quiet()
  while (log.waiting > 0) {
    log.land(1)
    await quiet()
  }
}

const born = async (one: World): Promise<void> => {
  one.conversation.tellNow({ _tag: "create_requested", conversationId: "c", rootAgentId: "b", config: {} })
  one.conversation.tellNow({ _tag: "agent_ready", agentId: "b" })
  one.agent.agent.tellNow({ _tag: "spawn_requested", agentId: "b", role: "builder", model: null, parentId: null })
  one.agent.agent.tellNow({ _tag: "init_complete" })
  await landAll(one)
}

/** Checks the invariants after an append. */
const whole = ({ agent, conversation, inbox, turn }: Folded, at: string, isSettled = false): void => {
  const active = turn.state === "streaming" || turn.state === "tool_executing"
  assert.strictEqual(active, agent.state === "running_turn", `${at}: turn ${turn.state}, agent ${agent.state}`)
  if (active) {
    assert.strictEqual(agent.data.turnId, turn.data.turnId, at)
    assert.strictEqual(inbox.data.runId, turn.data.turnId, at)
    assert.deepStrictEqual(
      inbox.data.carried.map(({ messageId }) => messageId),
      turn.data.messageIds,
      at
    )
  } else if (turn.state === "idle" && agent.state === "idle") {
    // nobody waits unheard while nothing is under way
    assert.deepStrictEqual(inbox.data.waiting, [], at)
  }
  if (isSettled) assert.deepStrictEqual(conversation.data.turnIds, active ? [turn.data.turnId!] : [], at)
}

/** Two messages, one turn after the other, one error that is offered again. */
const script = async (one: World): Promise<void> => {
  const last = () => one.heard.at(-1)!.turnId
  one.agent.inbox.tellNow(message(1))
  await landAll(one)
  one.agent.inbox.tellNow(message(2))
  await landAll(one)
  one.agent.turn.tellNow({ _tag: "stream_error", turnId: last(), errorType: "crash", message: "lost", retry: true })
  await landAll(one)
  one.agent.turn.tellNow({ _tag: "tool_calls_received", turnId: last(), callIds: ["t1"] })
  one.agent.turn.tellNow({ _tag: "tools_finished", turnId: last(), results: [], continue: true })
  await landAll(one)
  one.agent.turn.tellNow({ _tag: "response_done", turnId: last(), finalOutput: "both", usage: null })
  await landAll(one)
}

const forms = [
  {
    form: "runes of their own",
    isJoined: false,
    starts: ["turn.started", "inbox.delivered", "agent.busy"],
    ends: ["turn.completed", "agent.idle"]
  },
  {
    form: "one rune for one fact",
    isJoined: true,
    starts: ["turn.started"],
    ends: ["turn.completed"]
  }
]
for (const { ends, form, isJoined, starts } of forms) {
  describe(form, () => {
    it("one send: the process hears after one append; the end is one append", async () => {
      const one = world([], isJoined)
      await born(one)
      const [runes, appends] = [one.log.kept.length, one.log.appends.length]
      const sent = Effect.runPromise(one.agent.inbox.ask<Committed<unknown>>(message(1)))
      assert.strictEqual(one.log.waiting, 1)
      assert.strictEqual(one.heard.length, 0)
      one.log.land(1)
      assert.strictEqual((await sent).eventId, runes + 1)
      assert.deepStrictEqual(one.heard, [
        {
          _tag: "GiveInput",
          turnId: `turn-${runes + 1}`,
          text: "do 1",
          appends: appends + 1,
          runes: runes + 1 + starts.length
        }
      ])
      assert.deepStrictEqual(
        one.log.kept.slice(runes).map(({ kind }) => kind),
        ["inbox.received", ...starts]
      )
      await landAll(one)
      one.agent.turn.tellNow({ _tag: "response_done", turnId: one.heard[0]!.turnId, finalOutput: "done", usage: null })
      await landAll(one)
      assert.deepStrictEqual(
        one.log.appends.slice(appends).map((all) => all.map(({ kind }) => kind)),
        [["inbox.received", ...starts], ["session.moved"], ends, ["session.moved"]]
      )
    })

    it("what waits is begun in the append that ends the turn before", async () => {
      const one = world([], isJoined)
      await born(one)
      one.agent.inbox.tellNow(message(1))
      await landAll(one)
      one.agent.inbox.tellNow(message(2))
      await landAll(one)
      const before = one.log.appends.length
      one.agent.turn.tellNow({ _tag: "response_done", turnId: one.heard[0]!.turnId, finalOutput: "", usage: null })
      await landAll(one)
      assert.deepStrictEqual(
        one.log.appends[before]!.map(({ kind }) => kind),
        [...ends, ...starts]
      )
      assert.deepStrictEqual(
        one.heard.map(({ text }) => text),
        ["do 1", "do 2"]
      )
    })

    it("a crash of the daemon at every append: no half state, and the life goes on", async () => {
      const whole1 = world([], isJoined)
      await born(whole1)
      const born1 = whole1.log.appends.length
      await script(whole1)
      const { appends } = whole1.log
      assert.deepStrictEqual(
        whole1.heard.map(({ text }) => text),
        ["do 1", "do 1\ndo 2"]
      )
      for (let count = born1; count <= appends.length; count++) {
        const runes = appends.slice(0, count).flat()
        whole(foldOf(runes, "b"), `after append ${count}`)
        // the next daemon: the process is gone, the turn that it had is lost and offered again
        const next = world(runes, isJoined)
        const { turn } = next.from
        if (turn.state !== "idle") {
          next.agent.turn.tellNow(
            turn.state === "tool_executing"
              ? { _tag: "tool_crash", turnId: turn.data.turnId!, callId: null, message: "lost", retry: true }
              : { _tag: "stream_error", turnId: turn.data.turnId!, errorType: "lost", message: "lost", retry: true }
          )
        }
        await landAll(next)
        whole(foldOf(next.log.kept, "b"), `recovered from append ${count}`, true)
        const known = new Set(
          runes
            .filter(({ kind }) => kind === "inbox.received")
            .map(({ payload }) => (payload["event"] as { message: { messageId: string } }).message.messageId)
        )
        const isDone = runes.some(({ kind }) => kind === "turn.completed")
        const offered = new Set(foldOf(next.log.kept, "b").turn.data.messageIds ?? [])
        if (!isDone) for (const id of known) assert.isTrue(offered.has(id), `append ${count}: ${id} is offered`)
      }
    })

    it("the live states are the fold of the log", async () => {
      const one = world([], isJoined)
      await born(one)
      await script(one)
      const { agent, conversation, inbox, turn } = foldOf(one.log.kept, "b")
      assert.deepStrictEqual(one.agent.inbox.state, inbox)
      assert.deepStrictEqual(one.agent.turn.state, turn)
      assert.deepStrictEqual(one.agent.agent.state, agent)
      assert.deepStrictEqual(one.conversation.state, conversation)
    })
  })
}
