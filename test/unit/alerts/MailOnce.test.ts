/** A mail channel beside a mail section: nobody has two mails of one thing, and nobody who was to have one has none. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { MailConfig } from "../../../src/config/Config.ts"
import { NotifyConfig } from "../../../src/config/NotifyConfig.ts"
import {
  answered,
  append,
  asked,
  died,
  living,
  passing,
  type Played,
  played,
  withLog
} from "../../world/alerts/PlayedChannels.ts"

const ADA = "ada@example.org"
const DANA = "dana@example.org"

const section = (to: string | ReadonlyArray<string>) =>
  Schema.decodeUnknownSync(MailConfig)({ to, smtp: { host: "127.0.0.1" }, digestWindow: "1 second" })
const post = (to?: ReadonlyArray<string>, more: object = {}) =>
  Schema.decodeUnknownSync(NotifyConfig)({
    channels: { post: { type: "mail", ...(to === undefined ? {} : { to }) } },
    digestWindow: "1 second",
    ...more
  })

/** The addresses of all mails, as often as each had one. */
const addresses = ({ mails, told }: Played, own: MailConfig) =>
  [...mails.flatMap(({ to }) => to), ...told.flatMap(({ to }) => to ?? own.to)].toSorted()

const story = (
  mail: MailConfig,
  notify: NotifyConfig,
  what: Effect.Effect<unknown, unknown, never | Effect.Services<ReturnType<typeof append>>>
) =>
  Effect.gen(function* () {
    const play = played("mail")
    yield* living(play, notify, { mail })
    yield* what
    yield* passing("20 seconds")
    return play
  })

describe("a fatal stop", () => {
  for (const [who, mail, notify, mails, told] of [
    ["the same address", section(ADA), post(), 1, 0],
    ["the same in other letters", section(ADA), post(["Ada@Example.org"]), 1, 0],
    ["one of the section's", section([ADA, DANA]), post([DANA]), 1, 0],
    ["another besides", section(ADA), post([ADA, DANA]), 1, 1],
    ["another", section(ADA), post([DANA]), 1, 1]
  ] as const)
    it.effect(`is mailed once to each where the channel mails to ${who}`, () =>
      Effect.gen(function* () {
        const play = yield* story(mail, notify, append(died("one")))
        assert.strictEqual(play.mails.length, mails)
        assert.strictEqual(play.told.length, told)
        const all = addresses(play, mail).map((address) => address.toLowerCase())
        assert.deepStrictEqual(all, [...new Set(all)])
      }).pipe(Effect.scoped, withLog)
    )

  it.effect("of two agents goes to the other address as one message", () =>
    Effect.gen(function* () {
      const play = yield* story(section(ADA), post([ADA, DANA]), append(died("one"), died("two")))
      assert.deepStrictEqual(
        play.told.map(({ notices, to }) => [to, notices.length]),
        [[[DANA], 2]]
      )
    }).pipe(Effect.scoped, withLog)
  )
})

describe("a question", () => {
  it.effect("is mailed by the channel alone, which takes it back", () =>
    Effect.gen(function* () {
      const play = yield* story(section(ADA), post(), append(asked("one")))
      assert.lengthOf(play.mails, 0)
      assert.lengthOf(play.told, 1)
      yield* append(answered("one"))
      yield* passing("10 seconds")
      assert.lengthOf(play.back, 1)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is mailed by the section where the channel does not mail all of its addresses", () =>
    Effect.gen(function* () {
      const play = yield* story(section([ADA, DANA]), post([DANA]), append(asked("one")))
      assert.deepStrictEqual([...new Set(addresses(play, section(ADA)))], [ADA, DANA])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is mailed by the section while quiet hours hold the channel", () =>
    Effect.gen(function* () {
      const quiet = { quietHours: { from: "00:00", to: "07:00", timeZone: "UTC" } }
      const play = yield* story(section(ADA), post(undefined, quiet), append(asked("one")))
      assert.lengthOf(play.mails, 1)
      assert.lengthOf(play.told, 0)
    }).pipe(Effect.scoped, withLog)
  )
})
