/** A receiver that says in its refusal what its address is, or a channel that says its key: nobody is told either. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type AlertChannel, AlertChannels } from "../../../src/alerts/AlertChannel.ts"
import { AlertContext } from "../../../src/alerts/AlertContext.ts"
import { setup } from "../../../src/alerts/SendError.ts"
import * as BatchSender from "../../../src/alerts/BatchSender.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { secretsOfAddress } from "../../../src/core/event-log/SecretValues.ts"
import * as HttpStand from "./HttpStand.ts"
import { folder, MESSAGE, secretIn, withChannel } from "./World.ts"

const KEY = "aB3dE5fG7hJ9kL1mN3pQ5rS7"

describe("a receiver that echoes its address", () => {
  const paths = {
    slack: `/services/T0/B0/${KEY}`,
    discord: `/api/webhooks/1234/${KEY}`,
    webhook: `/in/${KEY}?sig=${KEY}`,
    ntfy: "/swordfish"
  }
  /** The parts of addresses that nobody may read. */
  const secrets = [KEY, "swordfish"]

  for (const [type, path] of Object.entries(paths)) {
    for (const [how, echo] of [
      ["whole", (said: string) => `no hook at ${said}`],
      ["in parts", (said: string) => `unknown: ${said.split(/[/?=]/u).join(" ")}`],
      ["as JSON", (said: string) => JSON.stringify({ error: { path: said } })],
      ["escaped", (said: string) => `no ${encodeURIComponent(said)}`]
    ] as const) {
      it.live(`${type}, ${how}: neither the error nor what is said later of it holds the secret`, () =>
        Effect.gen(function* () {
          const { url } = yield* HttpStand.make(({ body, path }) => ({
            status: 404,
            // ntfy is told its topic in the body
            body: echo(type === "ntfy" ? `/${JSON.parse(body).topic}` : path)
          }))
          const place = secretIn(yield* folder, `${url}${path}`)
          yield* withChannel({ type, url: place }, (channel, config) =>
            Effect.gen(function* () {
              const error = yield* Effect.flip(channel.send(config, MESSAGE))
              assert.include(error.message, "answered 404: ")
              const { text } = yield* Redact
              const later = text(`POST ${path} has failed; ${path.split("/").at(-1)} is no hook`)
              for (const secret of secrets) {
                assert.notInclude(error.message, secret)
                assert.notInclude(later, secret)
              }
            })
          )
        }).pipe(Effect.scoped)
      )
    }
  }

  it.live("an address that the config says in plain words is not told in an error either", () =>
    Effect.gen(function* () {
      const { url } = yield* HttpStand.make(({ path }) => ({ status: 400, body: `bad ${path}` }))
      yield* withChannel({ type: "webhook", url: `${url}/hooks/${KEY}` }, (channel, config) =>
        Effect.gen(function* () {
          const { message } = yield* Effect.flip(channel.send(config, MESSAGE))
          assert.notInclude(message, KEY)
          // words of a path that is no secret stay words everywhere else
          assert.strictEqual((yield* Redact).text("a word such as webhooks"), "a word such as webhooks")
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("a secret that stands on the cut of a long refusal leaves no half behind", () =>
    Effect.gen(function* () {
      for (const before of [170, 180, 190, 199]) {
        const { url } = yield* HttpStand.make(({ path }) => ({
          status: 400,
          body: `${"x ".repeat(before / 2)}${path}`
        }))
        const place = secretIn(yield* folder, `${url}/${KEY}`)
        yield* withChannel({ type: "webhook", url: place }, (channel, config) =>
          Effect.map(Effect.flip(channel.send(config, MESSAGE)), ({ message }) =>
            assert.notInclude(message, KEY.slice(0, 6))
          )
        )
      }
    }).pipe(Effect.scoped)
  )
})

describe("what an address holds that is secret", () => {
  for (const [what, address, secrets] of [
    ["the token of Slack", `https://hooks.slack.com/services/T0/B0/${KEY}`, [`services/T0/B0/${KEY}`, KEY]],
    ["a parameter", `https://a.example/in?sig=${KEY}&v=1`, [`in?sig=${KEY}&v=1`, KEY]],
    ["what is escaped, as it is meant", "https://a.example/k%2F0123456789ab", ["k%2F0123456789ab", "k/0123456789ab"]],
    ["no word of a path", "https://a.example/hooks/incoming", []],
    ["no host", "https://0123456789abcdef.example/", []],
    ["nothing in what is no address", KEY, []]
  ] as const)
    it(what, () => assert.deepStrictEqual(secretsOfAddress(address), secrets))
})

describe("a channel that somebody has added", () => {
  const leaky: AlertChannel = {
    name: "leaky",
    send: () => Effect.fail(setup(`the key ${KEY} is wrong`, `Not ${KEY}.`)),
    check: () => Effect.succeed(`has the key ${KEY}`)
  }
  const leakyConfig = { type: "other", name: "leaky", settings: {} } as const
  const world = Layer.mergeAll(
    Redact.layer,
    AlertContext.layerTest(() => undefined),
    Layer.succeed(AlertChannels, [leaky])
  )

  it.effect("and that says a known secret: what it says is told without", () =>
    Effect.gen(function* () {
      yield* (yield* Redact).register([KEY])
      const error = yield* Effect.flip(
        BatchSender.bounded({ name: "leaky", config: leakyConfig }, leaky.send(leakyConfig, MESSAGE))
      )
      assert.strictEqual(error.message, "the key [redacted] is wrong")
      assert.strictEqual(error.remedy, "Not [redacted].")
    }).pipe(Effect.provide(world))
  )
})
