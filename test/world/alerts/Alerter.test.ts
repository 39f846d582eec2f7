/** The alerter over a real log and a real SMTP server; time is the test's, sockets are the machine's. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { type Duration, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { AlertContext } from "../../../src/alerts/AlertContext.ts"
import { LiveOutbox } from "../../../src/alerts/LiveOutbox.ts"
import * as Alerter from "../../../src/alerts/Alerter.ts"
import * as Outbox from "../../../src/alerts/Outbox.ts"
import { MailConfig } from "../../../src/config/Config.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { body, closedPort, header, type Script, stand } from "./SmtpStand.ts"
import { PATIENCE } from "../../support/Patience.ts"

const decodeMail = Schema.decodeUnknownSync(MailConfig)
const mailTo = (port: number, rest: object = {}): MailConfig =>
  decodeMail({ to: "ada@example.org", smtp: { host: "127.0.0.1", port, security: "none" }, ...rest })

/** The mail section in force; a test may change it. */
const desk = (initial: MailConfig | undefined) => {
  const current = { mail: initial }
  return { current, layer: AlertContext.layerTest(() => current.mail) }
}

const withLog = Effect.provide(Layer.mergeAll(layerMemory, NodeFileSystem.layer, Redact.layer))

const options: Alerter.Options = {
  host: "lab",
  // The test's clock runs ahead of the sockets: only they may end an attempt.
  timeouts: { greeting: "2 seconds", silence: "2 seconds", whole: "7 days" }
}

/** An alerter that lives until the scope ends or somebody kills it. */
const alerter = (at: Layer.Layer<AlertContext>) =>
  Effect.forkScoped(Effect.provide(Alerter.run(options), Layer.mergeAll(at, LiveOutbox.layer)))

/** A little real time for the sockets, without the test's clock moving. */
const breathe = Effect.promise(() => new Promise<void>((resume) => setTimeout(resume, 10)))

/** Lets both clocks run until something is so. */
const until = <E, R>(what: string, holds: Effect.Effect<boolean, E, R>, step: Duration.Input = "200 millis") =>
  Effect.gen(function* () {
    for (let round = 0; round < PATIENCE / 10; round++) {
      if (yield* holds) return
      yield* breathe
      yield* TestClock.adjust(step)
    }
    assert.fail(`never came: ${what}`)
  })

/** Long enough that what should not happen would have. */
const quiet = Effect.gen(function* () {
  for (let round = 0; round < 40; round++) {
    yield* breathe
    yield* TestClock.adjust("30 seconds")
  }
})

const worker = (
  agent: string,
  move: object,
  event: { readonly _tag: string; readonly [field: string]: unknown }
): RuneDraft => ({
  stream: "demo-00000000",
  kind: "worker.moved",
  actor: `worker/${agent}`,
  ...move,
  payload: {
    event,
    consecutiveErrors: 5,
    totalErrors: 7,
    fatal:
      event._tag === "OperatorStop" ? null : { message: "5 errors in a row; the last: exit code 1", remedy: "Mend it." }
  }
})

/** A run that begins and fails, and is the last. */
const stopped = (agent: string): ReadonlyArray<RuneDraft> => [
  worker(
    agent,
    { from: "BuildingPrompt", to: "Spawning", trigger: "PromptReady" },
    { _tag: "PromptReady", prompt: "go", runId: "r5", messageIds: [], at: 0 }
  ),
  worker(
    agent,
    { from: "Spawning", to: "Stopped", trigger: "SessionExited" },
    { _tag: "SessionExited", runId: "r5", outcome: { _tag: "Error", detail: "exit code 1" } }
  )
]

const append = (...drafts: ReadonlyArray<RuneDraft | ReadonlyArray<RuneDraft>>) =>
  Effect.flatMap(EventLog, (log) => log.append(drafts.flat() as ReadonlyArray<RuneDraft>))
const alertRunes = (kind: string) => Effect.flatMap(EventLog, (log) => log.tail({ kinds: [kind] }, 1000))
const recorded = (kind: string, least = 1) => Effect.map(alertRunes(kind), (runes) => runes.length >= least)
const summary = Effect.map(Outbox.load, Outbox.summary)
const served = (script: Script = {}) => stand(script)

describe("Alerter", () => {
  it.effect("a fatal stop is mailed within a minute, with who, why, the last lines and the way back", () =>
    Effect.gen(function* () {
      const server = yield* served()
      yield* alerter(desk(mailTo(server.port)).layer)
      const [, stop] = yield* append(stopped("builder"), {
        stream: "demo-00000000",
        kind: "run.output",
        actor: "worker/builder",
        payload: { runId: "r5", source: "stderr", text: "line one\ncannot find module" }
      })
      yield* until("a mail", recorded("alert.sent"))
      const [done] = yield* alertRunes("alert.sent")
      assert.isBelow(done!.at - stop!.at, 60_000)
      const [mail] = server.taken
      assert.strictEqual(header(mail, "Subject"), "[agentd] builder has failed: 5 errors in a row")
      for (const part of [
        "demo/builder",
        "exit code 1",
        "| cannot find module",
        "agentd start demo/builder",
        "on lab"
      ]) {
        assert.include(body(mail), part)
      }
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a changed config that waits is mailed, with what was said of it and the command that helps", () =>
    Effect.gen(function* () {
      const server = yield* served()
      yield* alerter(desk(mailTo(server.port)).layer)
      const waits = (state: "broken" | "missing" | "untrusted", problem: string | null): RuneDraft => ({
        stream: "demo-00000000",
        kind: "config.waits",
        actor: "project",
        payload: { config: "/shop/agentd.jsonc", name: "demo", state, hash: null, problem, since: 0 }
      })
      yield* append(waits("untrusted", null))
      yield* until("a mail", recorded("alert.sent"))
      const [mail] = server.taken
      assert.strictEqual(header(mail, "Subject"), "[agentd] demo: agentd.jsonc has changed and waits for you")
      for (const part of ["/shop/agentd.jsonc", "nobody has approved", "stays in force", "agentd trust demo-00000000"])
        assert.include(body(mail), part)
      yield* append(
        { ...waits("broken", "/shop/agentd.jsonc:1:3: is no JSON"), stream: "web-00000000" },
        waits("missing", null)
      )
      yield* until(
        "the others are mailed",
        Effect.sync(() => server.taken.length > 1)
      )
      const others = server.taken.slice(1).map(body).join("\n")
      for (const part of ["agentd.jsonc:1:3: is no JSON", "agentd.jsonc is gone", "agentd project close demo-00000000"])
        assert.include(others, part)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("an operator's stop and a warning are nobody's mail", () =>
    Effect.gen(function* () {
      const server = yield* served()
      yield* alerter(desk(mailTo(server.port)).layer)
      const violation = { rule: "INV-AGENT-BUDGET", severity: "WARN", kind: "x", actor: "y", stream: "z", message: "m" }
      yield* append(
        worker(
          "builder",
          { from: "Running", to: "Stopped", trigger: "OperatorStop" },
          { _tag: "OperatorStop", by: "ada" }
        ),
        { stream: "daemon", kind: "invariant.violated", actor: "log", payload: violation }
      )
      yield* quiet
      assert.deepStrictEqual([yield* alertRunes("alert.queued"), server.taken.length], [[], 0])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("killed between queued and sent, it is mailed once after the restart", () =>
    Effect.gen(function* () {
      const at = desk(mailTo(yield* closedPort))
      const first = yield* alerter(at.layer)
      yield* append(stopped("builder"))
      yield* until("alert.failed", recorded("alert.failed"))
      yield* Fiber.interrupt(first)
      const server = yield* served()
      at.current.mail = mailTo(server.port)
      yield* alerter(at.layer)
      yield* until(
        "a mail",
        Effect.sync(() => server.taken.length > 0)
      )
      yield* quiet
      assert.strictEqual(server.taken.length, 1)
      assert.strictEqual((yield* alertRunes("alert.queued")).length, 1)
      assert.strictEqual((yield* alertRunes("alert.sent")).length, 1)
      const [failure] = yield* alertRunes("alert.failed")
      assert.strictEqual(header(server.taken[0], "Message-ID"), failure?.payload["messageId"])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("what happened while it was not running is mailed when it is back, and nothing twice", () =>
    Effect.gen(function* () {
      const server = yield* served()
      const at = desk(mailTo(server.port))
      const first = yield* alerter(at.layer)
      yield* append(stopped("builder"))
      yield* until("the first mail", recorded("alert.sent"))
      yield* Fiber.interrupt(first)
      yield* append(stopped("tester"))
      yield* alerter(at.layer)
      yield* until("the second mail", recorded("alert.sent", 2))
      yield* quiet
      assert.deepStrictEqual(
        server.taken.map((mail) => header(mail, "Subject")),
        ["builder", "tester"].map((name) => `[agentd] ${name} has failed: 5 errors in a row`)
      )
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a server that is down and comes back gets the mail, with one Message-ID for all attempts", () =>
    Effect.gen(function* () {
      const port = yield* closedPort
      yield* alerter(desk(mailTo(port)).layer)
      yield* append(stopped("builder"))
      yield* until("two failures", recorded("alert.failed", 2))
      assert.include((yield* summary).lastError, "ECONNREFUSED")
      const server = yield* served({ port })
      yield* until("a mail", recorded("alert.sent"))
      const ids = [...(yield* alertRunes("alert.failed")), ...(yield* alertRunes("alert.sent"))].map(
        (rune) => rune.payload["messageId"]
      )
      assert.strictEqual(new Set(ids).size, 1)
      assert.strictEqual(header(server.taken[0], "Message-ID"), ids[0])
      assert.deepInclude(yield* summary, { waiting: 0, failed: 0, lastError: null })
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("451, then 250: tried again and mailed once", () =>
    Effect.gen(function* () {
      const server = yield* served({ answer: (n) => (n === 1 ? { code: 451, text: "greylisted" } : undefined) })
      yield* alerter(desk(mailTo(server.port)).layer)
      yield* append(stopped("builder"))
      yield* until("a mail", recorded("alert.sent"))
      const [failure] = yield* alertRunes("alert.failed")
      assert.deepInclude(failure?.payload, { class: "transient", permanent: false, attempt: 1 })
      assert.strictEqual(server.taken.length, 1)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a connection that dies in the middle of DATA is tried again", () =>
    Effect.gen(function* () {
      const server = yield* served({ dropsIn: (n) => n === 1 })
      yield* alerter(desk(mailTo(server.port)).layer)
      yield* append(stopped("builder"))
      yield* until("a mail", recorded("alert.sent"))
      assert.strictEqual((yield* alertRunes("alert.failed")).length, 1)
      assert.strictEqual(server.taken.length, 1)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a recipient that is refused for good is given up loudly after five attempts", () =>
    Effect.gen(function* () {
      const server = yield* served({
        onRcptTo: (_, __, done) => done(Object.assign(new Error("no such person"), { responseCode: 550 }))
      })
      yield* alerter(desk(mailTo(server.port)).layer)
      yield* append(stopped("builder"))
      const failures = alertRunes("alert.failed")
      yield* until(
        "five failures",
        Effect.map(failures, (runes) => runes.length === 5),
        "30 seconds"
      )
      yield* quiet
      const all = yield* failures
      assert.deepStrictEqual(
        all.map(({ payload }) => [payload["attempt"], payload["permanent"], payload["nextAt"] === null]),
        [1, 2, 3, 4, 5].map((attempt) => [attempt, true, attempt === 5])
      )
      assert.deepInclude(yield* summary, { waiting: 0, failed: 1 })
      assert.include((yield* summary).lastError, "no such person")
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("of three recipients the one that is refused for now is tried again, alone; nobody gets a mail twice", () =>
    Effect.gen(function* () {
      let tries = 0
      const asked: Array<string> = []
      const server = yield* served({
        onRcptTo: ({ address }, _, done) => {
          asked.push(address)
          const code = address.startsWith("bob") ? 550 : address.startsWith("grey") && ++tries < 3 ? 451 : undefined
          return code === undefined ? done() : done(Object.assign(new Error("no"), { responseCode: code }))
        }
      })
      const to = ["ada@example.org", "bob@example.org", "grey@example.org"]
      yield* alerter(desk(mailTo(server.port, { to })).layer)
      yield* append(stopped("builder"))
      yield* until(
        "two mails",
        Effect.sync(() => server.taken.length === 2),
        "30 seconds"
      )
      yield* quiet
      assert.deepStrictEqual(
        server.taken.map((mail) => mail.to),
        [["ada@example.org"], ["grey@example.org"]]
      )
      assert.deepStrictEqual(asked, [...to, "grey@example.org", "grey@example.org"])
      const [first, second] = server.taken
      assert.strictEqual(header(first, "Message-ID"), header(second, "Message-ID"))
      assert.strictEqual(header(first, "From"), header(second, "From"))
      const sent = yield* alertRunes("alert.sent")
      assert.deepInclude(sent[0]!.payload, {
        to: ["ada@example.org"],
        rejected: ["bob@example.org"],
        refused: [
          { to: "bob@example.org", code: 550 },
          { to: "grey@example.org", code: 451 }
        ]
      })
      assert.deepInclude(sent[1]!.payload, { to: ["grey@example.org"], rejected: [] })
      assert.deepInclude(yield* summary, { waiting: 0, failed: 0 })
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a wrong password is tried every 15 minutes, and at once when the config was mended", () =>
    Effect.gen(function* () {
      const server = yield* served({
        authOptional: false,
        onAuth: (_, __, done) => done(Object.assign(new Error("who are you"), { responseCode: 535 }))
      })
      const open = yield* served()
      const at = desk(
        mailTo(0, {
          smtp: { host: "127.0.0.1", port: server.port, security: "none", user: "ada", passwordEnv: "PATH" }
        })
      )
      yield* alerter(at.layer)
      yield* append(stopped("builder"))
      yield* until("a failure", recorded("alert.failed"))
      const [failure] = yield* alertRunes("alert.failed")
      assert.strictEqual(failure?.payload["class"], "setup")
      const nextAt = failure?.payload["nextAt"] as number
      assert.isAbove(nextAt - failure!.at, 14 * 60_000)
      at.current.mail = mailTo(open.port)
      yield* until("a mail", recorded("alert.sent"), "1 second")
      const [done] = yield* alertRunes("alert.sent")
      assert.isBelow(done!.at, nextAt)
      assert.strictEqual(open.taken.length, 1)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a flood becomes one digest: equal alerts are counted, none is lost", () =>
    Effect.gen(function* () {
      const server = yield* served()
      yield* alerter(desk(mailTo(server.port)).layer)
      yield* append(...Array.from({ length: 40 }, (_, n) => stopped(`agent${n % 20}`)))
      yield* until("a mail", recorded("alert.sent"))
      yield* quiet
      assert.strictEqual(server.taken.length, 1)
      assert.match(header(server.taken[0], "Subject")!, /^\[agentd\] 20 alerts: agent0 has failed, /)
      for (let n = 0; n < 20; n++) assert.include(body(server.taken[0]), `demo: agent${n} has failed`)
      assert.include(body(server.taken[0]), "(2 times)")
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("what comes within the digest window after a mail waits and comes as one", () =>
    Effect.gen(function* () {
      const server = yield* served()
      yield* alerter(desk(mailTo(server.port)).layer)
      yield* append(stopped("builder"))
      yield* until("the first mail", recorded("alert.sent"))
      for (const name of ["a", "b", "c"]) {
        yield* append(stopped(name))
        yield* TestClock.adjust("2 seconds")
        yield* breathe
      }
      assert.strictEqual(server.taken.length, 1)
      yield* until("the digest", recorded("alert.sent", 2))
      assert.match(header(server.taken[1], "Subject")!, /3 alerts: a has failed, b has failed, c has failed/)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("not more mails an hour than allowed; the rest comes as one, later", () =>
    Effect.gen(function* () {
      const server = yield* served()
      yield* alerter(desk(mailTo(server.port, { maxPerHour: 2 })).layer)
      for (const [index, name] of ["a", "b"].entries()) {
        yield* append(stopped(name))
        yield* until("a mail", recorded("alert.sent", index + 1))
      }
      for (const name of ["c", "d"]) {
        yield* append(stopped(name))
        for (let round = 0; round < 10; round++) {
          yield* breathe
          yield* TestClock.adjust("1 minute")
        }
      }
      assert.strictEqual(server.taken.length, 2)
      assert.strictEqual((yield* summary).waiting, 2)
      yield* until("the rest", recorded("alert.sent", 3), "2 minutes")
      assert.match(header(server.taken[2], "Subject")!, /2 alerts: c has failed, d has failed/)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("without a mail section alerts wait without a try, and go out once there is one", () =>
    Effect.gen(function* () {
      const at = desk(undefined)
      yield* alerter(at.layer)
      yield* append(stopped("a"), stopped("b"))
      yield* quiet
      assert.deepStrictEqual([yield* alertRunes("alert.failed"), (yield* summary).waiting], [[], 2])
      const server = yield* served()
      at.current.mail = mailTo(server.port)
      yield* until("a mail", recorded("alert.sent"), "5 seconds")
      assert.include(header(server.taken[0], "Subject"), "2 alerts")
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a server that hangs holds up no mail to another", () =>
    Effect.gen(function* () {
      const slow = yield* served({ onConnect: () => {} })
      const quick = yield* served()
      const at = Layer.succeed(AlertContext, {
        typed: (text) => text,
        mailFor: (stream) => Effect.succeed(mailTo(stream === "demo-00000000" ? slow.port : quick.port)),
        notify: Effect.undefined,
        projectName: () => Effect.succeed("demo"),
        facts: () => Effect.succeed({ project: "demo", host: "lab", now: 0 }),
        why: () => Effect.succeed([])
      })
      yield* alerter(at)
      yield* append(
        stopped("builder"),
        stopped("tester").map((draft) => ({ ...draft, stream: "other-00000000" }))
      )
      yield* until(
        "a mail",
        Effect.sync(() => quick.taken.length === 1)
      )
      assert.strictEqual(slow.taken.length, 0)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("the test mail answers with the server's words, or with what to do", () =>
    Effect.gen(function* () {
      const server = yield* served()
      const receipt = yield* Alerter.sendTest(mailTo(server.port), options)
      assert.include(receipt.response, "taken as number 1")
      assert.strictEqual(header(server.taken[0], "Subject"), "[agentd] test mail from lab")
      const error = yield* Effect.flip(Alerter.sendTest(mailTo(yield* closedPort), options))
      assert.include(error.remedy, "server is up")
    }).pipe(Effect.scoped, withLog)
  )
})
