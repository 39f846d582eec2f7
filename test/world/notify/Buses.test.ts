/** Connections to the buses of desktops: none is left behind, none is made twice, and no bus holds up or answers for another. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Message } from "../../../src/alerts/AlertChannel.ts"
import * as DesktopStand from "./DesktopStand.ts"
import { failing, MESSAGE, until, withChannel } from "./World.ts"

const desktop = (bus: string) => ({ type: "desktop", bus })

describe("an attempt that fails", () => {
  for (const [what, manners] of [
    ["is not greeted", { refused: new Set(["Hello"]) }],
    ["may not listen", { refused: new Set(["AddMatch"]) }],
    ["is not told what the desktop can", { refused: new Set(["GetCapabilities"]) }]
  ] as const)
    it.live(`where it ${what} leaves no connection behind`, () =>
      Effect.gen(function* () {
        const { address, sockets } = yield* DesktopStand.playing(manners)
        yield* withChannel(desktop(address), (channel, config) =>
          Effect.gen(function* () {
            for (let time = 0; time < 3; time++) yield* Effect.flip(channel.send(config, MESSAGE))
            assert.strictEqual(sockets().all, 3)
            yield* until("all have ended", () => sockets().open === 0)
          })
        )
      }).pipe(Effect.scoped)
    )

  for (const call of ["Hello", "GetCapabilities"])
    it.live(`where it is given up while ${call} is not answered leaves no connection behind`, () =>
      Effect.gen(function* () {
        const { address, sockets } = yield* DesktopStand.playing({ unanswered: new Set([call]) })
        yield* withChannel(desktop(address), (channel, config) =>
          Effect.gen(function* () {
            const sent = yield* Effect.forkChild(channel.send(config, MESSAGE))
            yield* until("it has connected", () => sockets().open === 1)
            yield* Fiber.interrupt(sent)
            yield* until("it has ended", () => sockets().open === 0)
          })
        )
      }).pipe(Effect.scoped)
    )
})

describe("messages to one bus", () => {
  it.live("at once go by one connection, which is kept; one that has ended is made anew", () =>
    Effect.gen(function* () {
      const { address, shown, sockets } = yield* DesktopStand.played
      yield* withChannel(desktop(address), (channel, config) =>
        Effect.gen(function* () {
          yield* Effect.all(
            Array.from({ length: 5 }, () => channel.send(config, MESSAGE)),
            { concurrency: 5 }
          )
          yield* channel.send(config, MESSAGE)
          assert.lengthOf(shown, 6)
          assert.deepStrictEqual(sockets(), { open: 1, all: 1 })
        })
      )
      yield* until("it ends with the channel", () => sockets().open === 0)
    }).pipe(Effect.scoped)
  )
})

describe("two buses", () => {
  it.live("have a connection each, which neither takes from the other", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* DesktopStand.played, yield* DesktopStand.played]
      yield* withChannel(desktop(one.address), (channel, config) =>
        Effect.gen(function* () {
          for (let time = 0; time < 2; time++) {
            yield* channel.send(config, MESSAGE)
            yield* channel.send({ ...config, bus: two.address } as never, MESSAGE)
          }
          assert.deepStrictEqual([one.sockets().all, two.sockets().all], [1, 1])
          assert.deepStrictEqual([one.shown.length, two.shown.length], [2, 2])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("one that does not answer holds up no other", () =>
    Effect.gen(function* () {
      const deaf = yield* DesktopStand.playing({ unanswered: new Set(["Hello"]) })
      const able = yield* DesktopStand.played
      yield* withChannel(desktop(deaf.address), (channel, config) =>
        Effect.gen(function* () {
          const hanging = yield* Effect.forkChild(channel.send(config, MESSAGE))
          yield* until("it hangs", () => deaf.sockets().open === 1)
          yield* channel.send({ ...config, bus: able.address } as never, MESSAGE)
          assert.lengthOf(able.shown, 1)
          assert.isUndefined(hanging.pollUnsafe())
          yield* Fiber.interrupt(hanging)
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("a click on one says nothing of what has the same number on the other; Later gives the message itself", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* DesktopStand.played, yield* DesktopStand.played]
      const second: Message = { ...MESSAGE, id: "second" }
      yield* withChannel(desktop(one.address), (channel, config) =>
        Effect.gen(function* () {
          yield* channel.send(config, MESSAGE)
          yield* channel.send({ ...config, bus: two.address } as never, second)
          two.act(1, "later")
          assert.strictEqual((yield* channel.later!).id, "second")
          // what was clicked is shown no more: another click on it is heard by nobody
          two.act(1, "later")
          one.act(1, "later")
          assert.strictEqual((yield* channel.later!).id, MESSAGE.id)
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("a test message, which tells nothing, offers no Later", () =>
    Effect.gen(function* () {
      const { address, shown } = yield* DesktopStand.played
      yield* withChannel(desktop(address), (channel, config) => channel.send(config, { ...MESSAGE, notices: [] }))
      assert.deepStrictEqual(shown[0]!.actions, ["look", "Look"])
    }).pipe(Effect.scoped)
  )

  it.live("of a bus that is not there nothing is kept", () =>
    Effect.map(failing(desktop("unix:path=/nowhere/bus")), ({ class: sort }) => assert.strictEqual(sort, "transient"))
  )
})
