import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Ask, Envelope, Mailbox } from "../../src/event-actor/Mailbox.ts"

const mail = (n: number) => new Envelope(n, undefined)
const contents = (mailbox: Mailbox<number>) =>
  Array.from({ length: mailbox.ready }, (_, index) => mailbox.at(index).message)

describe("Mailbox", () => {
  it("is first in, first out", () => {
    const mailbox = new Mailbox<number>(10)
    for (const n of [1, 2, 3]) assert.isTrue(mailbox.push(mail(n)))
    mailbox.settle(1)
    assert.isTrue(mailbox.push(mail(4)))
    assert.deepStrictEqual(contents(mailbox), [2, 3, 4])
  })

  it("refuses what is beyond its capacity", () => {
    const mailbox = new Mailbox<number>(2)
    assert.deepStrictEqual(
      [1, 2, 3].map((n) => mailbox.push(mail(n))),
      [true, true, false]
    )
  })

  it("keeps its order over many turns of many messages", () => {
    const mailbox = new Mailbox<number>(5_000)
    const seen: Array<number> = []
    let next = 0
    for (let turn = 0; turn < 50; turn++) {
      while (mailbox.push(mail(next))) next++
      const count = Math.min(mailbox.ready, 1_000 + turn * 37)
      seen.push(...contents(mailbox).slice(0, count))
      mailbox.settle(count)
    }
    assert.deepStrictEqual(
      seen,
      Array.from(seen, (_, index) => index)
    )
    assert.isAbove(seen.length, 50_000)
  })

  it("counts postponed messages against its capacity", () => {
    const mailbox = new Mailbox<number>(3)
    for (const n of [1, 2]) mailbox.push(mail(n))
    mailbox.settle(2, [mailbox.at(0), mailbox.at(1)])
    assert.deepStrictEqual([mailbox.ready, mailbox.postponed], [0, 2])
    assert.deepStrictEqual(
      [3, 4].map((n) => mailbox.push(mail(n))),
      [true, false]
    )
  })

  it("gives postponed messages back in front of new mail, oldest first", () => {
    const mailbox = new Mailbox<number>(10)
    for (const n of [1, 2, 3, 4]) mailbox.push(mail(n))
    mailbox.settle(1, [mailbox.at(0)])
    mailbox.settle(2, [mailbox.at(1)])
    mailbox.push(mail(5))
    mailbox.retry()
    assert.deepStrictEqual(contents(mailbox), [1, 3, 4, 5])
    assert.strictEqual(mailbox.postponed, 0)
  })

  it.effect("whoever waits for room gets in, in order, and before those who come later", () =>
    Effect.gen(function* () {
      const mailbox = new Mailbox<number>(2)
      for (const n of [1, 2]) mailbox.push(mail(n))
      const third = yield* Effect.forkChild(mailbox.wait(mail(3)), { startImmediately: true })
      const fourth = yield* Effect.forkChild(mailbox.wait(mail(4)), { startImmediately: true })
      mailbox.settle(1)
      assert.isTrue(yield* Fiber.join(third))
      assert.isUndefined(fourth.pollUnsafe())
      assert.isFalse(mailbox.push(mail(5)))
      mailbox.settle(2)
      assert.isTrue(yield* Fiber.join(fourth))
      assert.deepStrictEqual(contents(mailbox), [4])
    })
  )

  it.effect("a teller that gives up waiting leaves no message", () =>
    Effect.gen(function* () {
      const mailbox = new Mailbox<number>(1)
      mailbox.push(mail(1))
      const waiting = yield* Effect.forkChild(mailbox.wait(mail(2)), { startImmediately: true })
      yield* Fiber.interrupt(waiting)
      mailbox.settle(1)
      assert.strictEqual(mailbox.ready, 0)
      assert.isTrue(mailbox.push(mail(3)))
    })
  )

  it.effect("closing it answers what was left and releases those who wait", () =>
    Effect.gen(function* () {
      const mailbox = new Mailbox<number>(2)
      for (const n of [1, 2]) mailbox.push(mail(n))
      mailbox.settle(1, [mailbox.at(0)])
      mailbox.push(mail(3))
      const waiting = yield* Effect.forkChild(mailbox.wait(mail(4)), { startImmediately: true })
      assert.deepStrictEqual(
        mailbox.close().map((item) => (item as Envelope<number>).message),
        [1, 2]
      )
      assert.isFalse(yield* Fiber.join(waiting))
      assert.isFalse(mailbox.push(mail(5)))
    })
  )

  it.effect("an ask that is given up is void", () =>
    Effect.gen(function* () {
      const ask = new Ask<number>(1, undefined)
      const asking = yield* Effect.forkChild(ask.answer(), { startImmediately: true })
      assert.isFalse(ask.isVoid)
      yield* Fiber.interrupt(asking)
      assert.isTrue(ask.isVoid)
    })
  )

  it.effect("an ask is settled once", () =>
    Effect.gen(function* () {
      const ask = new Ask<string, number, string>("?", undefined)
      ask.settle(Exit.succeed(1))
      ask.settle(Exit.fail("late"))
      assert.strictEqual(yield* ask.answer(), 1)
    })
  )
})
