/** Mails of a real daemon about its providers: when an outage is told, and what a person sees where a mail cannot be sent. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SmtpStand from "../alerts/SmtpStand.ts"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"

const OVERLOADED: ModelStand.Reply = {
  status: 529,
  body: JSON.stringify({ error: { type: "overloaded_error", message: "Overloaded" } })
}

const shop = Effect.fnUntraced(function* (port: number, outageAfter: string) {
  const stage = yield* Stage.make
  const at = { isUp: false }
  const { url } = yield* ModelStand.provider("anthropic", () => (at.isUp ? { text: ["done"] } : OVERLOADED))
  const mail = {
    to: "you@example.org",
    from: "agentd@example.org",
    digestWindow: "10ms",
    outageAfter,
    smtp: { host: "127.0.0.1", port, security: "none" }
  }
  const agent = stage.agent("model", { backend: { baseUrl: url, retries: 0 } })
  const ghost = stage.agent("acp", { backend: { argv: ["/nowhere/acp"] }, autostart: false })
  const project = stage.home({ mail, agents: { ann: agent, ghost } })
  yield* stage.up
  yield* project.register
  const rows = (kind: string) =>
    Effect.map(
      stage.rpc((client) => client.Waiting()),
      (waiting) => waiting.rows.filter((row) => row.kind === kind)
    )
  const outages = Effect.map(
    stage.rpc((client) => client.Board({ all: false })),
    (board) => board.rows.filter(({ id }) => id.startsWith("provider/"))
  )
  return { at, outages, project, rows, stage }
})

describe("an outage", () => {
  it.live(
    "is mailed once it has lasted as long as the file says, is a row until it is over, and its end is mailed",
    () =>
      Effect.gen(function* () {
        const { port, taken } = yield* SmtpStand.stand()
        const { at, outages, project, rows, stage } = yield* shop(port, "1 second")
        yield* project.send("ann", "hello")
        yield* project.until(
          "it is mailed",
          Effect.sync(() => taken.length),
          (count) => count === 1
        )
        assert.match(SmtpStand.header(taken[0], "Subject")!, /is unavailable/)
        assert.include(SmtpStand.body(taken[0]), "529")
        const [row] = yield* project.until("it is a row", outages, (all) => all.length === 1)
        assert.match(row!.says, /is unavailable: .*529/)
        assert.strictEqual(row!.word, "waiting")
        assert.deepStrictEqual(yield* rows("provider"), [], "it asks no person for anything")
        assert.isAbove(row!.until!, row!.since)
        for (const { command } of row!.commands)
          assert.strictEqual((yield* project.cli(...command.split(" ").slice(1))).code, 0, command)
        // the next daemon knows it, and mails it no second time
        yield* stage.box.kill9
        yield* stage.up
        const again = yield* project.until("it is a row still", outages, (all) => all.length === 1)
        assert.strictEqual(again[0]!.id, row!.id)
        at.isUp = true
        assert.deepStrictEqual(yield* project.answers("ann", 1), ["done"])
        yield* project.until("it is no row", outages, (all) => all.length === 0)
        yield* project.until(
          "its end is mailed",
          Effect.sync(() => taken.length),
          (count) => count === 2
        )
        assert.match(SmtpStand.header(taken[1], "Subject")!, /answers again/)
      }).pipe(Effect.scoped)
  )

  it.live("that is over before is mailed to nobody", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* SmtpStand.stand()
      const { at, outages, project } = yield* shop(port, "15 minutes")
      yield* project.send("ann", "hello")
      yield* project.row("ann", "waits", ({ detail }) => detail.includes("is unavailable"))
      assert.deepStrictEqual(yield* outages, [])
      at.isUp = true
      yield* project.answers("ann", 1)
      assert.lengthOf(taken, 0)
    }).pipe(Effect.scoped)
  )
})

describe("a mail that cannot be sent", () => {
  it.live("is a row with the server's words and a command that tries it; it goes when the mail goes", () =>
    Effect.gen(function* () {
      let isFull = true
      const stand = yield* SmtpStand.stand({
        answer: () => (isFull ? { code: 452, text: "no room for you" } : undefined)
      })
      const { project, rows } = yield* shop(stand.port, "15 minutes")
      yield* project.start("ghost")
      yield* project.send("ghost", "Wake up.")
      const [row] = yield* project.until("it is a row", rows("mail"), (all) => all.length === 1)
      assert.match(row!.text, /1 mail cannot be sent for now: .*no room for you/)
      const [test] = row!.commands
      assert.strictEqual(test!.command, "agentd alert test")
      const refused = yield* project.cli("alert", "test")
      assert.notStrictEqual(refused.code, 0)
      assert.include(refused.stderr, "no room for you")
      isFull = false
      assert.strictEqual((yield* project.cli("alert", "test")).code, 0)
      yield* project.until("the mail has gone", rows("mail"), (all) => all.length === 0)
      assert.isTrue(stand.taken.some((mail) => SmtpStand.body(mail).includes("ghost")))
    }).pipe(Effect.scoped)
  )

  it.live("holds back no other; each says what went wrong last, and its commands work as they are typed", () =>
    Effect.gen(function* () {
      const refuses = { code: 550, text: "this one never" }
      const { port, taken } = yield* SmtpStand.stand({ answer: (n) => (n === 1 ? refuses : undefined) })
      const stage = yield* Stage.make
      const flood = "cat > /dev/null; seq 1 500; sleep 1; echo the key is missing >&2; exit 3"
      const failing = { backend: { type: "command", shell: flood, readyAfter: "1 minute" }, maxConsecutiveErrors: 1 }
      const project = stage.home({
        mail: {
          to: "you@example.org",
          digestWindow: "10ms",
          smtp: { host: "127.0.0.1", port, security: "none" }
        },
        agents: { one: failing, two: failing }
      })
      yield* stage.up
      yield* project.register
      yield* project.send("one", "go")
      yield* project.until(
        "it is refused",
        project.stage.rpc((client) => client.Waiting()),
        ({ rows }) => rows.some(({ text }) => text.includes("this one never"))
      )
      yield* project.send("two", "go")
      yield* project.until(
        "the next one is mailed",
        Effect.sync(() => taken.length),
        (count) => count === 1
      )
      const text = SmtpStand.body(taken[0])
      assert.match(SmtpStand.header(taken[0], "Subject")!, /two has failed/)
      assert.match(text, /Its last lines:[^]*\| 500[^]*\| the key is missing/)
      const commands = text.split("\r\n").flatMap((line) => /^ +(?:.*: )?(agentd .*)$/.exec(line)?.[1] ?? [])
      assert.isNotEmpty(commands)
      for (const command of commands) {
        const [, state, ...args] = /^agentd --state (\S+) (.*)$/
          .exec(command)!
          .flatMap((part, at) => (at === 2 ? part.split(" ") : [part]))
        assert.strictEqual(state, stage.box.state)
        assert.notInclude(args, "--state")
        assert.strictEqual((yield* stage.box.cliIn("/", ...args)).code, 0, command)
      }
    }).pipe(Effect.scoped)
  )
})
