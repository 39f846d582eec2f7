/** The fields of a notify section that cannot be held are refused, each in its place, with what helps. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import { ApprovalPolicy } from "../../../src/config/AgentConfig.ts"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"
import * as Zone from "../../../src/config/Zone.ts"
import * as CronTimes from "../../../src/config/CronTimes.ts"
import { toldTooLate } from "../../../src/cli/setup/DoctorChecks.ts"
import { isQuiet } from "../../../src/alerts/Route.ts"

const parse = (user: object) => ConfigFile.parseUser(JSON.stringify(user), "/home/ada/config.jsonc")
const command = (timeLimit: unknown) => ({ channels: { pager: { type: "command", argv: ["/bin/true"], timeLimit } } })
const mail = { to: "ada@example.org", smtp: { host: "mail.example.org" } }

describe("refused", () => {
  const channels = { desk: { type: "desktop" } }
  for (const [what, user, path, message] of [
    [
      "a time limit longer than a channel is waited for",
      { notify: command("11 minutes") },
      "notify.channels.pager.timeLimit",
      /from 100ms to 10 minutes/
    ],
    ["a time limit in which nothing runs", { notify: command(0) }, "notify.channels.pager.timeLimit", /from 100ms/],
    [
      "a mail channel without a mail section",
      { notify: { channels: { post: { type: "mail" } } } },
      "notify.channels.post.type",
      /"mail" section, which is missing: add it/
    ],
    [
      "a mail channel to nobody",
      { mail, notify: { channels: { post: { type: "mail", to: [] } } } },
      "notify.channels.post.to",
      /from 1 to 100 addresses/
    ],
    [
      "a mail channel to what is no address",
      { mail, notify: { channels: { post: { type: "mail", to: ["dana"] } } } },
      "notify.channels.post.to[0]",
      /one mail address/
    ],
    ["telling nobody on", { notify: { channels, escalate: { to: [] } } }, "notify.escalate.to", /must name a channel/],
    [
      "a zone that one of its readers does not know",
      { notify: { channels, quietHours: { from: "22:00", to: "07:00", timeZone: "GMT+03:00" } } },
      "notify.quietHours.timeZone",
      /time zone/
    ]
  ] as const)
    it.effect(what, () =>
      Effect.map(Effect.flip(parse(user)), ({ problems }) => {
        assert.lengthOf(problems, 1)
        assert.strictEqual(problems[0]!.field, path)
        assert.match(problems[0]!.message, message)
      })
    )
})

describe("taken", () => {
  it.effect("a time limit of minutes", () =>
    Effect.map(parse({ notify: command("10 minutes") }), ({ notify }) => {
      const { pager } = notify!.channels
      assert.isTrue(pager!.type === "command" && Duration.toMillis(pager!.timeLimit) === 600_000)
    })
  )

  it.effect("a mail channel beside a mail section", () =>
    Effect.asVoid(parse({ mail, notify: { channels: { post: { type: "mail", to: ["dana@example.org"] } } } }))
  )
})

describe("a zone", () => {
  for (const name of ["UTC", "Europe/Berlin", "europe/berlin", "+03:00", "-0330", "Etc/GMT+3", "US/Eastern"])
    it(`${name} is one, for times of the day and for cron`, () => {
      assert.isTrue(Zone.isZone(name))
      assert.isFalse(isQuiet({ from: "00:00", to: "00:00", timeZone: name }, 0))
      assert.isNumber(CronTimes.of("0 3 * * *", name).next(0))
    })
  for (const name of ["", "Mars", "local", "+3:00", "GMT+03:00", "+25:00", "Z"])
    it(`${name === "" ? "an empty text" : name} is none`, () => assert.isFalse(Zone.isZone(name)))
})

describe("an escalation", () => {
  const late = (after: string, timeout: string) =>
    Effect.map(
      parse({ notify: { channels: { mine: { type: "desktop" } }, escalate: { after, to: ["mine"] } } }),
      ({ notify }) =>
        toldTooLate(notify!, {
          calm: { approvals: Schema.decodeUnknownSync(ApprovalPolicy)({}) },
          hasty: { approvals: Schema.decodeUnknownSync(ApprovalPolicy)({ timeout }) }
        })
    )

  it.effect("that comes after calls have expired is said, and refuses nothing", () =>
    Effect.gen(function* () {
      assert.match(
        (yield* late("20 minutes", "10 minutes"))!,
        /after 20 min,? .* expire earlier \(approvals\.timeout\): hasty$/
      )
      assert.isUndefined(yield* late("5 minutes", "10 minutes"))
      assert.isUndefined(yield* late("20 minutes", "off"))
    })
  )
})
