import { assert, describe, it } from "@effect/vitest"
import * as Inbox from "../../../src/agents/machines/Inbox.ts"
import { step } from "../../../src/core/event-actor/StateMachine.ts"

const message = (messageId: string, text = messageId): Inbox.Message => ({
  messageId,
  from: "ada",
  text,
  urgent: false,
  at: 1
})

const after = (...events: ReadonlyArray<Inbox.Event>): Inbox.Data => {
  let data = Inbox.initial
  for (const event of events) {
    const result = step(Inbox.Inbox, "Open", data, event)
    if (result._tag === "Moved") data = result.data
  }
  return data
}
const received = (id: string): Inbox.Event => ({ _tag: "Received", message: message(id) })
const delivered = (runId: string, ...messageIds: ReadonlyArray<string>): Inbox.Event => ({
  _tag: "Delivered",
  runId,
  messageIds
})
const ids = (messages: ReadonlyArray<Inbox.Message>) => messages.map((message) => message.messageId)

describe("Inbox", () => {
  it("keeps messages in the order of arrival until a run carries them", () => {
    const data = after(received("a"), received("b"), received("c"), delivered("r1", "a", "b"))
    assert.deepStrictEqual(ids(data.waiting), ["c"])
    assert.deepStrictEqual(ids(data.carried), ["a", "b"])
  })

  it("receives the same message id once, waiting or carried", () => {
    const data = after(received("a"), received("a"), delivered("r1", "a"), received("a"))
    assert.deepStrictEqual(ids(data.waiting), [])
    assert.deepStrictEqual(ids(data.carried), ["a"])
  })

  it("hears of a delivery twice and moves once", () => {
    const data = after(received("a"), delivered("r1", "a"))
    assert.strictEqual(step(Inbox.Inbox, "Open", data, delivered("r1", "a"))._tag, "Refused")
  })

  it("keeps what an unfinished run carried when the next run carries it again", () => {
    const data = after(received("a"), delivered("r1", "a"), received("b"), delivered("r2", "a", "b"))
    assert.deepStrictEqual(ids(data.carried), ["a", "b"])
    assert.deepStrictEqual(ids(data.waiting), [])
  })

  it("forgets what was carried once a later run carries other things", () => {
    assert.deepStrictEqual(ids(after(received("a"), delivered("r1", "a"), delivered("r2")).carried), [])
  })

  it("a question to a person is answered by a person's word, and by no agent's, no assistant's and not agentd's", () => {
    const asked = Inbox.asking(after(), { eventId: 7, question: "May I?", at: 1 })
    const open = (from: string): number => {
      const moved = step(Inbox.Inbox, "Open", asked, { _tag: "Received", message: { ...message("m"), from } })
      return moved._tag === "Moved" ? (moved.data.questions?.length ?? 0) : -1
    }
    assert.deepStrictEqual(
      ["ada", "ada (phone)", "ada (assistant)", "agent:tester", "agentd"].map(open),
      [0, 0, 1, 1, 1]
    )
  })
})
