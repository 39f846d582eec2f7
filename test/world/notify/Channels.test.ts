/** Each channel to a real receiver on loopback: what it gets, that it takes it back, and what an error says. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Message } from "../../../src/alerts/AlertChannel.ts"
import * as BatchSender from "../../../src/alerts/BatchSender.ts"
import { MailConfig } from "../../../src/config/Config.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import * as SmtpStand from "../alerts/SmtpStand.ts"
import * as DesktopStand from "./DesktopStand.ts"
import * as HttpStand from "./HttpStand.ts"
import { failing, folder, MESSAGE, secretIn, send, until, withChannel } from "./World.ts"

describe("ntfy", () => {
  it.live("pushes with a priority, a click and a token, and takes back what was answered", () =>
    Effect.gen(function* () {
      const { got, url } = yield* HttpStand.make()
      const token = secretIn(yield* folder, "tk_0123456789")
      const config = { type: "ntfy", url: `${url}/my-topic`, token, click: "https://box.example.net/" }
      yield* withChannel(config, (channel, decoded) =>
        Effect.gen(function* () {
          const { handle } = yield* channel.send(decoded, MESSAGE)
          yield* channel.withdraw!(
            decoded,
            { id: "x", of: MESSAGE.id, handle: handle!, title: "t" },
            "answered by dana"
          )
        })
      )
      assert.deepInclude(got[0], { method: "POST", path: "/" })
      assert.strictEqual(got[0]!.headers.authorization, "Bearer tk_0123456789")
      assert.deepStrictEqual(JSON.parse(got[0]!.body), {
        topic: "my-topic",
        title: MESSAGE.title,
        message: `${MESSAGE.body}\n\n${MESSAGE.command}`,
        priority: 4,
        sequence_id: MESSAGE.id,
        click: "https://box.example.net/"
      })
      assert.deepInclude(got[1], { method: "DELETE", path: `/my-topic/${MESSAGE.id}` })
    }).pipe(Effect.scoped)
  )

  it.live("says that an address names no topic", () =>
    Effect.map(failing({ type: "ntfy", url: "https://ntfy.sh" }), ({ class: sort, message }) => {
      assert.strictEqual(sort, "setup")
      assert.match(message, /contains no topic/)
    })
  )
})

describe("what a receiver answers", () => {
  for (const [what, body, endless] of [
    ["never ends", "x".repeat(64 * 1024), 0],
    ["comes a byte at a time, for ever", "x", 100]
  ] as const) {
    it.live(`an answer that ${what} is not waited for: its status counts`, () =>
      Effect.gen(function* () {
        const { got, url } = yield* HttpStand.make(() => ({ status: 200, body, endless }))
        yield* send({ type: "webhook", url })
        assert.lengthOf(got, 1)
      }).pipe(Effect.scoped)
    )
  }

  for (const [status, sort] of [
    [503, "transient"],
    [429, "transient"],
    [404, "setup"],
    [401, "setup"],
    [302, "setup"],
    [400, "permanent"]
  ] as const) {
    it.live(`${status}: ${sort}; the error names the host and not the address, which may be a secret`, () =>
      Effect.gen(function* () {
        const elsewhere = yield* HttpStand.make()
        const { got, url } = yield* HttpStand.make(() => ({
          status,
          body: "no",
          headers: { location: elsewhere.url }
        }))
        const error = yield* failing({ type: "webhook", url: `${url}/T0PSECRET` })
        assert.strictEqual(error.class, sort)
        assert.include(error.message, `${new URL(url).host} answered ${status}: no`)
        assert.notInclude(error.message, "T0PSECRET")
        assert.lengthOf(got, 1)
        assert.lengthOf(elsewhere.got, 0)
      }).pipe(Effect.scoped)
    )
  }

  it.live("nothing: nobody listens there", () =>
    Effect.gen(function* () {
      const port = yield* SmtpStand.closedPort
      const error = yield* failing({ type: "webhook", url: `http://127.0.0.1:${port}/T0PSECRET` })
      assert.strictEqual(error.class, "transient")
      assert.match(error.message, /^127\.0\.0\.1:\d+ cannot be reached: ECONNREFUSED$/)
    })
  )
})

describe("Slack and Discord", () => {
  const fence = "```"
  const evil: Message = {
    ...MESSAGE,
    title: "a *b* <!channel> [x](http://y)",
    body: `${fence}\n@everyone <!here> &amp; ${fence}js\nrm`,
    command: "agentd ps"
  }

  it.live("get the text in blocks of code that it cannot end, and call nobody", () =>
    Effect.gen(function* () {
      const { got, url } = yield* HttpStand.make()
      const place = secretIn(yield* folder, `${url}/services/T0/B0/xyz`)
      yield* send({ type: "slack", url: place }, evil)
      yield* send({ type: "discord", url: place }, evil)
      const [slack, discord] = got.map(({ body }) => JSON.parse(body))
      assert.strictEqual(got[0]!.path, "/services/T0/B0/xyz")
      assert.include(slack.text, "&lt;!here&gt;")
      assert.notInclude(slack.text, "<!")
      assert.deepStrictEqual(discord.allowed_mentions, { parse: [] })
      for (const text of [slack.text as string, discord.content as string]) {
        // two blocks, begun and ended by us alone
        assert.lengthOf(text.split(fence), 5)
        assert.isAtMost(text.length, 2_000)
      }
    }).pipe(Effect.scoped)
  )

  it.live("a secret that is not there is said without it", () =>
    Effect.map(failing({ type: "slack", url: { env: "NO_SUCH" } }), ({ class: sort, message, remedy }) => {
      assert.strictEqual(sort, "setup")
      assert.match(message, /NO_SUCH is not set/)
      assert.match(remedy, /Set it where agentd is started/)
    })
  )
})

describe("a command", () => {
  const script = (path: string, text: string) => {
    const file = join(path, "tell.sh")
    writeFileSync(file, `#!/bin/sh\n${text}\n`)
    chmodSync(file, 0o755)
    return file
  }

  it.live("gets the JSON on its stdin, and a small environment", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const file = script(path, `cat > ${path}/in; env > ${path}/env; pwd > ${path}/cwd`)
      const environment = { MINE: "yes", ANTHROPIC_API_KEY: "sk-secret" }
      yield* send({ type: "command", argv: [file, "a b"], passEnv: ["MINE"] }, MESSAGE, { environment })
      assert.deepStrictEqual(JSON.parse(readFileSync(join(path, "in"), "utf8")), { version: 1, ...MESSAGE })
      const env = readFileSync(join(path, "env"), "utf8")
      assert.include(env, "MINE=yes\n")
      assert.include(env, `AGENTD_NOTICE=${MESSAGE.id}\n`)
      assert.notInclude(env, "sk-secret")
      assert.strictEqual(readFileSync(join(path, "cwd"), "utf8"), "/\n")
    }).pipe(Effect.scoped)
  )

  it.live("that reads nothing and leaves a child behind has taken it; the child is ended", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const file = script(path, `sleep 1000 & echo $! > ${path}/pid; exit 0`)
      yield* send({ type: "command", argv: [file] }, { ...MESSAGE, body: "x".repeat(1_900) })
      const pid = readFileSync(join(path, "pid"), "utf8").trim()
      yield* until(
        "the child is ended",
        () => !existsSync(`/proc/${pid}`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
      )
    }).pipe(Effect.scoped)
  )

  it.effect("that does not end is ended with all that it started", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const file = script(path, `sleep 1000 & echo $! $$ > ${path}/pid; wait`)
      const sent = yield* Effect.forkChild(failing({ type: "command", argv: [file], timeLimit: "90 seconds" }))
      yield* until(
        "it runs",
        () => existsSync(join(path, "pid")) && readFileSync(join(path, "pid"), "utf8").includes("\n")
      )
      yield* TestClock.adjust("90 seconds")
      const error = yield* Fiber.join(sent)
      assert.match(error.message, /did not end within 1m 30s, and was killed/)
      for (const pid of readFileSync(join(path, "pid"), "utf8").trim().split(" "))
        yield* until(
          "it is ended",
          () => !existsSync(`/proc/${pid}`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
        )
    }).pipe(Effect.scoped)
  )

  it.effect("with five minutes has them, and a sending by another channel has two", () =>
    Effect.gen(function* () {
      const command = { type: "command", argv: ["/bin/true"], timeLimit: Duration.minutes(5), passEnv: [] } as const
      const other = { type: "other", name: "pager", settings: {} } as const
      const [slow, quick] = yield* Effect.forEach([command, other], (config) =>
        Effect.forkChild(BatchSender.bounded({ name: "c", config }, Effect.never))
      )
      yield* TestClock.adjust("121 seconds")
      assert.isDefined(quick!.pollUnsafe())
      yield* TestClock.adjust("179 seconds")
      assert.isUndefined(slow!.pollUnsafe())
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(slow!.pollUnsafe())
    }).pipe(Effect.provide(Redact.layer))
  )

  for (const [code, sort] of [
    [75, "transient"],
    [1, "setup"]
  ] as const) {
    it.live(`that ends with ${code} is ${sort}, with its words`, () =>
      Effect.gen(function* () {
        const file = script(yield* folder, `echo the line is dead >&2; exit ${code}`)
        const error = yield* failing({ type: "command", argv: [file] })
        assert.strictEqual(error.class, sort)
        assert.match(error.message, new RegExp(`exit code ${code}: the line is dead`))
      }).pipe(Effect.scoped)
    )
  }

  it.live("that is not there says so", () =>
    Effect.map(failing({ type: "command", argv: ["/nowhere/tell"] }), ({ message, remedy }) => {
      assert.match(message, /\/nowhere\/tell could not be run/)
      assert.match(remedy, /argv/)
    })
  )
})

describe("mail", () => {
  it.live("goes by the user's own section, as a thread, and says in it who answered", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* SmtpStand.stand()
      const mail = Schema.decodeUnknownSync(MailConfig)({
        to: "ada@example.org",
        smtp: { host: "127.0.0.1", port, security: "none" }
      })
      yield* withChannel(
        { type: "mail", to: ["dana@example.org"] },
        (channel, config) =>
          Effect.gen(function* () {
            const { handle } = yield* channel.send(config, MESSAGE)
            yield* channel.send(config, { ...MESSAGE, id: "second", earlier: MESSAGE.id })
            yield* channel.withdraw!(
              config,
              { id: "last", of: MESSAGE.id, handle: handle!, title: MESSAGE.title },
              "answered by dana at 15:31"
            )
          }),
        { mail }
      )
      assert.deepStrictEqual(taken[0]!.to, ["dana@example.org"])
      assert.strictEqual(SmtpStand.header(taken[0], "Subject"), `[agentd] ${MESSAGE.title}`)
      const first = SmtpStand.header(taken[0], "Message-ID")
      assert.strictEqual(first, `<${MESSAGE.id}@example.org>`)
      assert.strictEqual(SmtpStand.header(taken[1], "References"), first)
      assert.strictEqual(SmtpStand.header(taken[2], "References"), first)
      assert.include(SmtpStand.body(taken[0]), MESSAGE.command)
      assert.include(SmtpStand.body(taken[2]), "answered by dana at 15:31")
    }).pipe(Effect.scoped)
  )

  it.live("without a mail section says so", () =>
    Effect.map(failing({ type: "mail" }), ({ message }) => assert.match(message, /no mail section/))
  )
})

describe("a desktop", () => {
  for (const [what, stand, isHere] of [
    ["behind a real dbus-daemon", DesktopStand.real, DesktopStand.hasBus],
    ["that is played", DesktopStand.played, true]
  ] as const) {
    it.live.skipIf(!isHere)(`${what} shows it as it is, with Look and Later, and takes it back`, () =>
      Effect.gen(function* () {
        const { act, address, closed, shown } = yield* stand
        const path = yield* folder
        const opened = join(path, "opened")
        const program = join(path, "open.sh")
        writeFileSync(program, `#!/bin/sh\necho "$@" > ${opened}\n`, { mode: 0o755 })
        yield* withChannel(
          { type: "desktop" },
          (channel, config) =>
            Effect.gen(function* () {
              const { handle } = yield* channel.send(config, MESSAGE)
              assert.strictEqual(handle, "1")
              assert.deepStrictEqual(shown[0], {
                id: 1,
                title: MESSAGE.title,
                body: `${MESSAGE.body.replace("<next>", "&lt;next&gt;").replace("&&", "&amp;&amp;")}\n\n${MESSAGE.command}`,
                actions: ["look", "Look", "later", "Later"],
                urgency: 2
              })
              yield* channel.withdraw!(config, { id: "x", of: MESSAGE.id, handle: handle!, title: "t" }, "answered")
              assert.deepStrictEqual(closed, [1])
              const second = yield* channel.send(config, { ...MESSAGE, urgency: "digest" })
              assert.strictEqual(shown[1]!.urgency, 0)
              const third = yield* channel.send(config, MESSAGE)
              // a desktop may send any key: none but these two does something
              act(Number(third.handle), "approve")
              act(Number(second.handle), "look")
              yield* until("the page is opened", () => existsSync(opened) && readFileSync(opened, "utf8") !== "")
              assert.strictEqual(readFileSync(opened, "utf8"), "--state /nowhere open\n")
            }),
          { environment: { DBUS_SESSION_BUS_ADDRESS: address }, command: [program] }
        )
      }).pipe(Effect.scoped)
    )
  }

  it.live("that is not there is tried again; a daemon that knows of none says how", () =>
    Effect.gen(function* () {
      const away = yield* failing({ type: "desktop", bus: "unix:path=/nowhere/bus" })
      assert.strictEqual(away.class, "transient")
      assert.match(away.message, /no session bus: ENOENT/)
      const none = yield* failing({ type: "desktop" })
      assert.strictEqual(none.class, "setup")
      assert.match(none.remedy, /Start the daemon in your session/)
    })
  )
})
