/** Notices of a real daemon to real receivers on loopback: once each over a kill, signed, and nothing of one held back by another. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as HttpStand from "../notify/HttpStand.ts"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

const FAILING = {
  backend: { type: "command", shell: "cat > /dev/null; echo the key is missing >&2; exit 3", readyAfter: "1 minute" },
  maxConsecutiveErrors: 1
}

const KEY = "a-key-that-signs-what-is-told"

interface Body {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly command: string
  readonly host: string
  readonly notices: ReadonlyArray<{ readonly id: string; readonly kind: string; readonly word: string }>
}

const bodyOf = ({ body }: HttpStand.Got): Body => JSON.parse(body)

/** A daemon whose user is told by these channels. */
const shop = Effect.fnUntraced(function* (
  notify: (folder: string) => object,
  agents: object = { one: FAILING, two: FAILING }
) {
  const stage = yield* Stage.make
  stage.box.setUser({
    orphanGrace: "0 seconds",
    notify: { digestWindow: "10ms", digestEvery: "10ms", ...notify(stage.box.folder) }
  })
  const project = stage.home({ agents: agents as never })
  yield* stage.up
  yield* project.register
  return { stage, project }
})

/** The notices that a receiver has, of a kind. */
const of = (receiver: HttpStand.Stand, kind: string): ReadonlyArray<Body> =>
  receiver.got.map(bodyOf).filter(({ notices }) => notices.some((notice) => notice.kind === kind))

describe("a webhook", () => {
  it.live(
    "is told once that an agent has stopped, signed, over a kill of the daemon; its receiver was away first",
    () =>
      Effect.gen(function* () {
        const receiver = yield* HttpStand.make((_, n) => ({ status: n === 1 ? 503 : 204 }))
        const { project, stage } = yield* shop((folder) => {
          writeFileSync(join(folder, "hook-key"), `${KEY}\n`)
          const ops = { type: "webhook", url: `${receiver.url}/hook`, secret: { file: join(folder, "hook-key") } }
          return { channels: { ops }, tell: { failed: ["ops"], others: [] } }
        })
        yield* project.send("one", "go")
        yield* project.until(
          "it is refused",
          Effect.sync(() => receiver.got.length),
          (count) => count === 1
        )
        // the daemon that comes next sends what this one could not
        yield* stage.box.kill9
        yield* stage.up
        yield* project.until(
          "it comes again",
          Effect.sync(() => receiver.got.length),
          (count) => count === 2
        )
        const [first, second] = receiver.got
        assert.deepInclude(second, { method: "POST", path: "/hook" })
        const body = bodyOf(second!)
        assert.deepStrictEqual(bodyOf(first!), body)
        assert.strictEqual(second!.headers["agentd-id"], body.id)
        const stamp = second!.headers["agentd-timestamp"]
        const expected = createHmac("sha256", KEY).update(`${stamp}.${second!.body}`).digest("hex")
        assert.strictEqual(second!.headers["agentd-signature"], `sha256=${expected}`)
        assert.strictEqual(body.title, "shop/one stopped permanently")
        assert.deepInclude(body.notices[0], { kind: "failed", word: "failed" })
        const rows = yield* project.until(
          "it is told to have been sent",
          stage.rpc((client) => client.Alerts({ count: 20, failed: false })),
          (all) => all.some(({ state }) => state === "sent")
        )
        assert.deepInclude(
          rows.find(({ state }) => state === "sent"),
          { to: ["ops"] }
        )
        // nothing is repeated by the next one
        yield* stage.box.kill9
        yield* stage.up
        yield* project.send("two", "go")
        yield* project.until(
          "the next notice comes",
          Effect.sync(() => receiver.got.length),
          (count) => count === 3
        )
        assert.strictEqual(bodyOf(receiver.got[2]!).title, "shop/two stopped permanently")
        // its command works as it stands, from any folder
        const words = bodyOf(receiver.got[2]!).command.split(" ").slice(3)
        assert.deepStrictEqual(words, ["start", "shop/two"])
        assert.strictEqual((yield* stage.box.cliIn("/", ...words)).code, 0)
        assert.notInclude(stage.box.output, KEY)
      }).pipe(Effect.scoped)
  )
})

describe("what needs a person", () => {
  it.live("is told with a command that works as it stands, from any folder", () =>
    Effect.gen(function* () {
      const receiver = yield* HttpStand.make()
      const stage = yield* Stage.make
      stage.box.setUser({
        orphanGrace: "0 seconds",
        notify: { digestWindow: "10ms", channels: { ops: { type: "webhook", url: receiver.url } } }
      })
      const ada = stage.agent("model", { approvals: { timeout: "10 minutes" } })
      const project = stage.home({ agents: { ada } })
      yield* stage.up
      yield* project.register
      yield* project.tell("ada", { ask: "touch made" })
      const [told] = yield* project.until(
        "it is told",
        Effect.sync(() => of(receiver, "needsYou")),
        (all) => all.length === 1
      )
      assert.strictEqual(told!.title, "shop/ada asks to run shell")
      assert.match(told!.body, /touch made[^]*It waits for another \d+ min; then the call is denied\./)
      const [, ...words] = told!.command.split(" ")
      assert.deepStrictEqual(words.slice(0, 3), ["--state", stage.box.state, "approve"])
      // without a terminal it shows the whole call, and the command that names what was shown
      const { stderr, stdout } = yield* stage.box.cliIn("/", ...words.slice(2))
      const shown = `${stdout}${stderr}`
      assert.include(shown, "touch made")
      const [, again = ""] = /agentd --state \S+ (approve \S+ \S+)/.exec(shown) ?? []
      const { code } = yield* stage.box.cliIn("/", ...again.split(" "))
      assert.strictEqual(code, 0, shown)
      assert.deepStrictEqual(yield* project.answers("ada", 1), ["done"])
    }).pipe(Effect.scoped)
  )
})

describe("what somebody has answered", () => {
  it.live("is taken back from a phone, over a kill of the daemon; notify ls and test say how it stands", () =>
    Effect.gen(function* () {
      const phone = yield* HttpStand.make()
      const stage = yield* Stage.make
      stage.box.setUser({
        orphanGrace: "0 seconds",
        notify: {
          digestWindow: "10ms",
          channels: {
            phone: { type: "ntfy", url: `${phone.url}/my-topic` },
            team: { type: "slack", url: { env: "NO_SUCH_HOOK" } }
          },
          tell: { question: ["phone"], others: [] }
        }
      })
      const project = stage.home({ agents: { ada: stage.agent("model", { may: ["ask"] }) } })
      yield* stage.up
      yield* project.register
      const listed = yield* project.cli("alert", "channels", "--json")
      const rows = JSON.parse(listed.stdout) as ReadonlyArray<{ readonly name: string; readonly ok: boolean }>
      assert.deepStrictEqual(
        rows.map(({ name, ok }) => [name, ok]),
        [
          ["phone", true],
          ["team", false]
        ]
      )
      const tested = yield* project.cli("alert", "test", "phone")
      assert.strictEqual(tested.code, 0, tested.stderr)
      assert.match(tested.stdout, /phone accepted it: 127\.0\.0\.1:\d+ answered 200/)
      assert.match(JSON.parse(phone.got[0]!.body).title, /^A test from agentd on /)
      const refused = yield* project.cli("alert", "test", "team")
      assert.notStrictEqual(refused.code, 0)
      assert.match(refused.stderr, /NO_SUCH_HOOK is not set[^]*Set it where agentd is started/)
      const unknown = yield* project.cli("alert", "test", "fone")
      assert.match(unknown.stderr, /no channel "fone"; there are phone, team[^]*agentd --state \S+ alert channels/)
      const doctor = yield* project.cli("doctor")
      assert.match(doctor.stdout, /ok +notify phone +pushes through 127/)
      assert.match(doctor.stdout, /fail +notify team +it notifies nobody/)

      yield* project.tell("ada", { mcp: ["ask_person", { question: "Which region?" }] })
      yield* project.until(
        "it is told",
        Effect.sync(() => phone.got.length),
        (count) => count === 2
      )
      const asked = JSON.parse(phone.got[1]!.body)
      assert.strictEqual(asked.title, "shop/ada asks: Which region?")
      yield* project.until(
        "it is told to have been sent",
        stage.rpc((client) => client.Alerts({ count: 20, failed: false })),
        (all) => all.some(({ state }) => state === "sent")
      )
      yield* stage.box.kill9
      yield* stage.up
      yield* project.send("ada", "eu-central")
      yield* project.until(
        "it is taken back",
        Effect.sync(() => phone.got.length),
        (count) => count === 3
      )
      assert.deepInclude(phone.got[2], { method: "DELETE", path: `/my-topic/${asked.sequence_id}` })
    }).pipe(Effect.scoped)
  )
})

describe("done", () => {
  long.live("is told when nothing of the agent works on: not while a command of it goes on in the background", () =>
    Effect.gen(function* () {
      const receiver = yield* HttpStand.make()
      const stage = yield* Stage.make
      stage.box.setUser({
        orphanGrace: "0 seconds",
        notify: {
          digestWindow: "10ms",
          channels: { ops: { type: "webhook", url: receiver.url } },
          tell: { done: ["ops"] }
        }
      })
      const project = stage.home({ agents: { ada: stage.agent("claude"), bob: stage.agent("model") } })
      yield* stage.up
      yield* project.register
      yield* project.tell("ada", { later: ["go", { say: "the rest" }] })
      yield* project.answers("ada", 1)
      // who begins later, and is done, is told of; ada is not
      yield* project.tell("bob", { say: "hello" })
      yield* project.until(
        "bob is done",
        Effect.sync(() => of(receiver, "done")),
        (all) => all.some(({ title }) => title === "shop/bob is done")
      )
      assert.lengthOf(of(receiver, "done"), 1)
      writeFileSync(join(project.root, "ada", "go"), "")
      yield* project.answers("ada", 2)
      yield* project.until(
        "ada is done",
        Effect.sync(() => of(receiver, "done")),
        (all) => all.some(({ title }) => title === "shop/ada is done")
      )
      const told = of(receiver, "done").map(({ title }) => title)
      assert.strictEqual(told.filter((title) => title === "shop/bob is done").length, 1)
      // between the command's end and the turn that it wakes there may be a moment in which nothing works: it is told, too
      assert.isAtMost(told.length, 3)
    }).pipe(Effect.scoped)
  )
})
