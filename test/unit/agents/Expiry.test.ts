/** Texts whose time is over go, a batch at a time, however many of them the log refuses to erase. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as MessageFiles from "../../../src/agents/prompt/MessageFiles.ts"
import * as Expiry from "../../../src/projects/Expiry.ts"
import { RuneRefused } from "../../../src/core/event-log/EventLog.ts"

const STREAM = "web-1a2b3c4d"

describe("keepPrompts", () => {
  it.effect("what the log refuses to erase holds up nothing behind it", () =>
    Effect.gen(function* () {
      const count = 2 * Expiry.BATCH + 50
      const runes = Array.from({ length: count }, (_, at) => ({
        eventId: at + 1,
        at,
        kind: "run.output",
        stream: STREAM,
        // one in the midst waits: its place is kept, and all before it is looked at again
        payload: { text: "a text", event: at === 1 ? { message: { messageId: "waits" } } : {} }
      }))
      const gone: Array<number> = []
      const log = {
        read: ({ after = 0 }: { readonly after?: number }) =>
          Stream.fromIterable(runes.filter(({ eventId }) => eventId > after && !gone.includes(eventId))),
        erase: (eventId: number) =>
          eventId <= Expiry.BATCH + 10
            ? Effect.fail(new RuneRefused({ kind: "run.output", rule: "erase", message: "part of a state" }))
            : Effect.sync(() => void gone.push(eventId))
      }
      const inbox = { data: { waiting: [{ messageId: "waits" }], carried: [] } }
      const agentScope = {
        inbox: () => inbox,
        turn: () => ({ state: "idle", data: { unfinished: [], startedAt: null } }),
        worker: () => undefined,
        calls: () => []
      }
      const project = {
        config: { keepPrompts: Duration.minutes(1) },
        isOver: undefined,
        members: new Map([["ann", { agentScope }]]),
        record: { agents: new Map() }
      }
      const projects = { living: new Map([[STREAM, project]]), notLiving: [], configOf: () => undefined }
      const expire = Expiry.make(projects as never, log as never, MessageFiles.memory())
      yield* TestClock.setTime(10_000_000)
      for (let looks = 0; looks < 10; looks++) if ((yield* expire(undefined)) === 0) break
      assert.deepStrictEqual(
        gone,
        Array.from({ length: count - Expiry.BATCH - 10 }, (_, at) => Expiry.BATCH + 11 + at)
      )
      assert.strictEqual(yield* expire(undefined), 0, "and then it rests")
    })
  )
})
