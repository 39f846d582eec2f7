/**
 * CrashPoints: the real daemon, killed with SIGKILL at drawn boundaries: around a commit of its log, a write of
 * the index, a checkpoint, a spawn, a signal, a write to an agent, to a person, to the mail server, and each
 * change of a file while a conversation is archived. `ALL=1` draws 200 of them. `SEED=n` draws the same again.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import * as SmtpStand from "../alerts/SmtpStand.ts"
import { type Dice, dice } from "../../support/Dice.ts"
import { keptAll, person, workedOff } from "../../support/Person.ts"
import * as Stage from "../../support/Stage.ts"
import { sample, long } from "../../support/Long.ts"

const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)
const CRASH_AT = resolve(import.meta.dirname, "../../support/crashAt.ts")
/** Daemons one after the other on one store. */
const KILLS = sample(20, 2)
const STORES = sample(10, 1)
/** How long people work with a daemon; one that never comes to its boundary is killed then. */
const LIFE = "2 seconds"

/** An agent that crashes, so that a person is mailed, and who starts it again. */
const trouble = Effect.fnUntraced(function* (shop: Stage.Project) {
  for (;;) {
    yield* Effect.ignore(shop.tell("f", { signal: "SIGKILL" }))
    yield* Effect.sleep(500)
    yield* Effect.ignore(shop.start("f"))
    yield* shop.stage.rpc((client) => client.Status())
  }
})

/** A conversation after the other that is closed and archived. */
const closing = Effect.fnUntraced(function* (old: Stage.Project) {
  const { caller, name, stage } = old
  for (;;) {
    yield* Effect.ignore(stage.rpc((client) => client.NewConversation({ config: old.config, caller })))
    yield* Effect.ignore(old.send("o", "a word"))
    yield* Effect.ignore(stage.rpc((client) => client.Close({ name, reason: "enough", force: true, caller })))
    yield* Effect.ignore(stage.rpc((client) => client.Archive({ name, caller })))
    yield* Effect.sleep(100)
    yield* stage.rpc((client) => client.Status())
  }
})

const worldOf = Effect.fnUntraced(function* () {
  const stage = yield* Stage.make
  const stand = yield* SmtpStand.stand()
  const quick = { idleTimeout: "300ms", interruptGrace: "500ms" }
  const shop = stage.home({
    conversation: { maxTurnErrors: 1000, maxFatalStops: 1000 },
    mail: {
      to: "ada@example.org",
      from: "agentd@example.org",
      digestWindow: "10ms",
      maxPerHour: 1000,
      smtp: { host: "127.0.0.1", port: stand.port, security: "none" }
    },
    agents: { ...stage.trio("a", quick), f: stage.agent("acp", { ...quick, maxConsecutiveErrors: 1 }) }
  })
  const old = stage.project("old", { agents: { o: { backend: { type: "command", shell: "cat" } } } })
  return { stage, stand, shop, old }
})

type World = Effect.Success<ReturnType<typeof worldOf>>

/** A daemon, and people who work with it until it is gone or the time is up. */
const life = Effect.fnUntraced(function* ({ old, shop, stage }: World, die: Dice, acknowledged: Array<string>) {
  const working = Effect.gen(function* () {
    yield* Effect.ignore(shop.register)
    yield* Effect.ignore(old.register)
    // what is refused is said again in other words
    const speaking = Effect.forever(Effect.delay(Effect.ignore(person(shop, die, acknowledged)), "50 millis"))
    yield* Effect.all([speaking, trouble(shop), closing(old)], { concurrency: "unbounded" })
  })
  // it may be killed before it answers
  yield* Effect.exit(stage.up)
  const people = yield* Effect.forkChild(Effect.exit(working))
  yield* Effect.ignore(Effect.timeout(Fiber.await(people), LIFE))
  return people
})

/** How often a daemon that lives as long as people work with it comes to which boundary. */
const recorded = Effect.fnUntraced(function* (world: World, die: Dice, acknowledged: Array<string>) {
  const { box } = world.stage
  const file = join(box.folder, "counts")
  box.environment["NODE_OPTIONS"] = `--import ${CRASH_AT}`
  box.environment["AGENTD_CRASH_COUNTS"] = file
  const people = yield* life(world, die, acknowledged)
  const mails = Effect.sync(() => world.stand.taken.length)
  yield* box.until("a mail is taken", mails, (count) => count > 0)
  yield* box.terminate
  yield* Fiber.await(people)
  const counts = new Map<string, number>()
  for (let thread = 0; thread < 20; thread++) {
    if (!existsSync(`${file}.${thread}`)) continue
    const ofThread = JSON.parse(readFileSync(`${file}.${thread}`, "utf8")) as { readonly [boundary: string]: number }
    for (const [boundary, count] of Object.entries(ofThread))
      counts.set(boundary, Math.max(count, counts.get(boundary) ?? 0))
  }
  delete box.environment["AGENTD_CRASH_COUNTS"]
  return counts
})

/** Each thing that stopped for good was mailed, and what is called sent was taken. */
const mailed = Effect.fnUntraced(function* ({ shop, stage, stand }: World) {
  const alerts = stage.rpc((client) =>
    Stream.runCollect(
      client.Log({ stream: "daemon", kinds: ["alert.queued", "alert.sent"], follow: false, caller: shop.caller })
    )
  )
  const idsOf = (runes: ReadonlyArray<Rune>, kind: string, field: string) =>
    runes
      .filter((rune) => rune.kind === kind)
      .flatMap(({ payload }) => payload[field] as string | ReadonlyArray<string>)
  const isFatal = ({ kind, payload, to }: Rune) =>
    kind === "worker.moved" && to === "Stopped" && payload["fatal"] != null
  const runes = yield* shop.until(
    "what stopped for good is mailed",
    Effect.all([alerts, shop.log("worker.moved")]),
    ([all, moves]) => {
      const causes = all
        .filter(({ kind }) => kind === "alert.queued")
        .map(({ payload }) => (payload["alert"] as { cause: number }).cause)
      const sent = idsOf(all, "alert.sent", "batch")
      return (
        moves.filter(isFatal).every(({ eventId }) => causes.some((cause) => cause >= eventId)) &&
        idsOf(all, "alert.queued", "batch").every((batch) => sent.includes(batch))
      )
    }
  )
  const taken = stand.taken.map((mail) => SmtpStand.header(mail, "Message-ID"))
  for (const id of idsOf(runes[0], "alert.sent", "messageId")) assert.include(taken, id)
})

const store = Effect.fnUntraced(function* (die: Dice, killed: Map<string, number>) {
  const world = yield* worldOf()
  const { shop, stage } = world
  const { box } = stage
  const acknowledged: Array<string> = []
  const counts = yield* recorded(world, die, acknowledged)
  const kinds = [...counts.keys()].toSorted()
  assert.includeMembers(kinds, ["commit: before", "spawn: after", "signal: before", "answer: after", "tcp: before"])
  for (let kills = 0; kills < KILLS;) {
    const boundary = kinds[die(kinds.length)]!
    // counted anew in each daemon: a low number is come to while it recovers
    const point = `${boundary} ${1 + die(Math.ceil(counts.get(boundary)! / 2))}`
    box.environment["AGENTD_CRASH_AT"] = point
    const people = yield* life(world, die, acknowledged)
    const isCut = box.daemon?.signalCode === "SIGKILL"
    if (isCut) kills += 1
    const what = isCut ? boundary : "never come to"
    killed.set(what, (killed.get(what) ?? 0) + 1)
    assert.isAtMost(killed.get("never come to") ?? 0, 10 * KILLS)
    yield* box.kill9
    yield* Fiber.await(people)
    yield* box.until(`${point}: every run has been ended`, box.processes, (pids) => pids.length === 0)
  }
  delete box.environment["NODE_OPTIONS"]
  yield* stage.up
  yield* shop.register
  yield* Effect.ignore(shop.start("f"))
  yield* workedOff(shop)
  yield* keptAll(shop, acknowledged)
  yield* mailed(world)
})

describe("crash points", sample({ timeout: 1_800_000 }, {}), () => {
  long.live(
    `kill -9 at drawn boundaries: nothing acknowledged is lost, all is done once, no mail is missing [SEED=${seed}]`,
    () =>
      Effect.gen(function* () {
        const die = dice(seed)
        const killed = new Map<string, number>()
        for (let stores = 0; stores < STORES; stores++) {
          yield* Effect.scoped(store(die, killed))
          const told = [...killed].toSorted().map(([boundary, count]) => `${count} × ${boundary}`)
          yield* Effect.logInfo(`daemons killed so far: ${told.join(", ")}`)
        }
        assert.isAbove(killed.size, 0)
      })
  )
})
