/** Schedules over a clock that is set: each time runs at most once, and none is lost but as catchUp says. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { DAY } from "../../support/SteppedClock.ts"
import { caller, CONVERSATION, run, type World } from "./World.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const send = { agent: "bob", text: "good night" }
const nightly = (more: object = {}) => ({ nightly: { cron: "30 2 * * *", timeZone: "Europe/Berlin", send, ...more } })
const hourly = (more: object = {}) => ({ hourly: { cron: "0 * * * *", timeZone: "UTC", send, ...more } })
const SLEPT = "the schedule could not run at that time"
const UNDER_WAY = "the previous run is still in progress"

const runs = Effect.fnUntraced(function* (world: World, ...expected: ReadonlyArray<string>) {
  assert.deepStrictEqual(yield* world.runs, expected)
})
const skips = Effect.fnUntraced(function* (world: World, ...expected: ReadonlyArray<string>) {
  assert.deepStrictEqual(yield* world.skips, expected)
})

describe("a schedule", () => {
  it.effect("runs at its time, each day, and not before", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        yield* world.pass(29 * MINUTE)
        yield* runs(world)
        yield* world.pass(MINUTE)
        yield* runs(world, "nightly@2026-06-01T00:30")
        yield* world.pass(DAY)
        yield* runs(world, "nightly@2026-06-01T00:30", "nightly@2026-06-02T00:30")
      })
    )
  )

  it.effect("submits a goal in the same rune", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure({ weekly: { cron: "0 9 * * 1", timeZone: "UTC", goal: { text: "tidy up" } } })
        yield* world.pass(9 * HOUR)
        yield* runs(world, "weekly@2026-06-01T09:00")
        assert.deepInclude((yield* world.row("weekly"))?.last, { goalId: "g1", messageId: null })
      })
    )
  )

  it.effect.each([
    // there is no 2:30 in Berlin on 29 March, and there are two on 25 October; Sydney has the same on other days
    ["Europe/Berlin", "2026-03-28T00:00Z", ["03-28T01:30", "03-29T01:30", "03-30T00:30"]],
    ["Europe/Berlin", "2026-10-23T23:00Z", ["10-24T00:30", "10-25T00:30", "10-26T01:30"]],
    ["Australia/Sydney", "2026-10-02T12:00Z", ["10-02T16:30", "10-03T16:30", "10-04T15:30"]],
    ["Australia/Sydney", "2026-04-03T12:00Z", ["04-03T15:30", "04-04T15:30", "04-05T16:30"]]
  ] as const)("runs once a day in %s, whatever its clock does after %s", ([timeZone, from, all]) =>
    run(from, (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly({ timeZone }))
        yield* world.pass(3 * DAY)
        yield* runs(world, ...all.map((at) => `nightly@2026-${at}`))
        yield* skips(world)
      })
    )
  )

  it.effect("of a file's change only new times count", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        yield* world.configure({ nightly: { cron: "0 11 * * *", timeZone: "UTC", send } })
        yield* world.pass(HOUR)
        yield* runs(world)
        yield* world.configure({})
        yield* world.pass(DAY)
        yield* runs(world)
        assert.isUndefined(yield* world.row("nightly"))
        // what has come back begins anew
        yield* world.configure({ nightly: { cron: "0 11 * * *", timeZone: "UTC", send } })
        yield* world.pass(DAY)
        yield* runs(world, "nightly@2026-06-03T11:00")
      })
    )
  )
})

describe("a machine that slept", () => {
  it.effect("once: the last time runs, and the others are named", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        yield* world.sleep(3 * DAY)
        yield* runs(world, "nightly@2026-06-04T00:30")
        yield* skips(world, `nightly@2026-06-03T00:30 2 ${SLEPT}`)
        yield* world.sleep(HOUR)
        yield* runs(world, "nightly@2026-06-04T00:30")
      })
    )
  )

  it.effect("all: each time runs, one after the other", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        world.isQuick = false
        yield* world.configure(nightly({ catchUp: "all" }))
        yield* world.sleep(3 * DAY)
        yield* runs(world, "nightly@2026-06-02T00:30")
        yield* world.finish
        yield* world.settled
        yield* runs(world, "nightly@2026-06-02T00:30", "nightly@2026-06-03T00:30")
        yield* world.restart
        yield* world.finish
        yield* world.settled
        yield* runs(world, "nightly@2026-06-02T00:30", "nightly@2026-06-03T00:30", "nightly@2026-06-04T00:30")
        yield* skips(world)
      })
    )
  )

  it.effect("none: no time that has passed runs", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly({ catchUp: "none" }))
        yield* world.sleep(3 * DAY)
        yield* runs(world)
        assert.deepInclude((yield* world.row("nightly"))?.skipped, { count: 3, reason: SLEPT })
        yield* world.pass(DAY)
        yield* runs(world, "nightly@2026-06-05T00:30")
      })
    )
  )

  it.effect("a daemon that was down catches up as one that slept", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        yield* world.stop
        yield* world.step(2 * DAY)
        yield* world.start
        yield* runs(world, "nightly@2026-06-03T00:30")
        yield* world.restart
        yield* runs(world, "nightly@2026-06-03T00:30")
      })
    )
  )

  it.effect("a daemon that comes back in another zone has forgotten no time that passed", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure({ daily: { cron: "30 2 * * *", send } })
        yield* world.stop
        // as it was set there
        const payload = { name: "daily", cron: "30 2 * * *", time_zone: "Pacific/Kiritimati", from: 0 }
        const actor = "project/schedules"
        yield* Effect.orDie(world.log.append([{ stream: CONVERSATION, kind: "schedule.set", actor, payload }]))
        yield* world.step(DAY)
        yield* world.start
        yield* world.pass(MINUTE)
        assert.strictEqual((yield* world.runs).length, 1)
      })
    )
  )

  it.effect("over a change of the clock it is the last night's time that runs", () =>
    run("2026-03-27T12:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        yield* world.sleep(2 * DAY)
        yield* runs(world, "nightly@2026-03-29T01:30")
        yield* skips(world, `nightly@2026-03-28T01:30 1 ${SLEPT}`)
      })
    )
  )
})

describe("a daemon that is killed", () => {
  it.effect.each(["before", "after"] as const)("%s what is sent is written: the time runs once", (death) =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        world.death = death
        yield* world.pass(31 * MINUTE)
        yield* runs(world, ...(death === "before" ? [] : ["nightly@2026-06-01T00:30"]))
        yield* world.restart
        yield* runs(world, "nightly@2026-06-01T00:30")
        yield* world.pass(DAY)
        yield* runs(world, "nightly@2026-06-01T00:30", "nightly@2026-06-02T00:30")
      })
    )
  )
})

describe("a clock that is set", () => {
  it.effect("back by a day runs nothing twice, also over a restart", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(hourly())
        yield* world.pass(2 * HOUR)
        const all = ["hourly@2026-06-01T01:00", "hourly@2026-06-01T02:00"]
        yield* runs(world, ...all)
        yield* world.step(-DAY)
        yield* world.pass(12 * HOUR)
        yield* world.ask((schedules) => schedules.run("hourly", caller))
        yield* world.restart
        yield* world.pass(12 * HOUR)
        const asked = "hourly@2026-05-31T14:00/asked"
        yield* runs(world, ...all, asked)
        yield* world.pass(HOUR)
        yield* runs(world, ...all, asked, "hourly@2026-06-01T03:00")
      })
    )
  )

  it.effect("ahead by a day runs once, and once it is right again goes on", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(hourly())
        yield* world.sleep(DAY)
        yield* runs(world, "hourly@2026-06-02T00:00")
        yield* world.step(-DAY)
        yield* world.pass(24 * HOUR)
        yield* runs(world, "hourly@2026-06-02T00:00")
        yield* world.pass(HOUR)
        yield* runs(world, "hourly@2026-06-02T00:00", "hourly@2026-06-02T01:00")
      })
    )
  )

  it.effect.each([
    ["while the daemon is there", false],
    ["over a restart", true]
  ] as const)("ahead by a year and back goes on at once, and that is in the log: %s", ([, isOver]) =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(hourly())
        yield* world.sleep(365 * DAY)
        yield* runs(world, "hourly@2027-06-01T00:00")
        if (isOver) yield* world.stop
        yield* world.step(-365 * DAY)
        if (isOver) yield* world.start
        yield* world.pass(2 * HOUR)
        const all = ["hourly@2027-06-01T00:00", "hourly@2026-06-01T01:00", "hourly@2026-06-01T02:00"]
        yield* runs(world, ...all)
        yield* skips(world, ...(yield* world.skips).slice(0, 1))
        yield* world.restart
        yield* world.pass(HOUR)
        yield* runs(world, ...all, "hourly@2026-06-01T03:00")
        const said = yield* Stream.runCollect(world.log.read({ stream: CONVERSATION, kinds: ["schedule.set"] }))
        assert.deepStrictEqual(
          said.map(({ trigger }) => trigger),
          ["config", "clock"]
        )
      })
    )
  )

  it.effect("ahead by a month for ten seconds: the schedule of every minute runs on", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure({ often: { cron: "* * * * *", timeZone: "UTC", send } })
        yield* world.pass(2 * MINUTE)
        yield* world.step(30 * DAY)
        yield* world.pass(MINUTE)
        yield* world.step(-30 * DAY)
        const before = (yield* world.runs).length
        yield* world.pass(10 * MINUTE)
        assert.isAtLeast((yield* world.runs).length, before + 9)
        assert.isBelow((yield* world.row("often"))!.next!, Date.UTC(2026, 5, 1, 1))
      })
    )
  )

  it.effect("paused by a person meanwhile, it goes on when it is resumed", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(hourly())
        yield* world.sleep(30 * DAY)
        yield* world.ask(({ pause }) => pause("hourly", caller))
        yield* world.step(-30 * DAY)
        yield* world.pass(2 * HOUR)
        yield* runs(world, "hourly@2026-07-01T00:00")
        yield* world.ask(({ resume }) => resume("hourly", caller))
        yield* world.pass(HOUR)
        yield* runs(world, "hourly@2026-07-01T00:00", "hourly@2026-06-01T03:00")
      })
    )
  )
})

describe("a run that is under way", () => {
  it.effect.each(["message", "goal"] as const)("keeps the next one away, and that is said: a %s", (what) =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        world.isQuick = false
        yield* world.configure(
          what === "goal" ? { hourly: { cron: "0 * * * *", timeZone: "UTC", goal: { text: "tidy up" } } } : hourly()
        )
        yield* world.pass(3 * HOUR)
        yield* runs(world, "hourly@2026-06-01T01:00")
        yield* skips(world, `hourly@2026-06-01T02:00 1 ${UNDER_WAY}`, `hourly@2026-06-01T03:00 1 ${UNDER_WAY}`)
        const row = yield* world.row("hourly")
        assert.deepInclude(row?.skipped, { count: 2, reason: UNDER_WAY })
        assert.isTrue(row?.last?.underWay)
        yield* world.finish
        yield* world.pass(HOUR)
        yield* runs(world, "hourly@2026-06-01T01:00", "hourly@2026-06-01T04:00")
        assert.isNull((yield* world.row("hourly"))?.skipped)
      })
    )
  )

  it.effect("is known after a restart only once the goals are: until then nothing is due", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        world.isQuick = false
        yield* world.configure({ hourly: { cron: "0 * * * *", timeZone: "UTC", goal: { text: "tidy up" } } })
        yield* world.pass(HOUR)
        yield* world.stop
        world.goalsAre.closeUnsafe()
        yield* world.step(HOUR)
        yield* world.start
        yield* world.pass(MINUTE)
        yield* world.goalsAre.open
        yield* world.pass(MINUTE)
        yield* runs(world, "hourly@2026-06-01T01:00")
        yield* skips(world, `hourly@2026-06-01T02:00 1 ${UNDER_WAY}`)
      })
    )
  )

  it.effect("with an end that no rune tells of lets the next one go within a minute", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        world.isQuick = false
        yield* world.configure(nightly({ catchUp: "all" }))
        yield* world.sleep(2 * DAY)
        yield* runs(world, "nightly@2026-06-02T00:30")
        world.open.clear()
        yield* world.pass(MINUTE)
        yield* runs(world, "nightly@2026-06-02T00:30", "nightly@2026-06-03T00:30")
      })
    )
  )

  it.effect("is not begun again where the disk fails just after it was written", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure({ hourly: { cron: "0 * * * *", timeZone: "UTC", goal: { text: "tidy up" } } })
        world.unreadable = 1
        yield* world.pass(HOUR + 3 * MINUTE)
        yield* runs(world, "hourly@2026-06-01T01:00")
        yield* skips(world)
      })
    )
  )

  it.effect("is not asked for, either", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        world.isQuick = false
        yield* world.configure(hourly())
        yield* world.ask((schedules) => schedules.run("hourly", caller))
        assert.include((yield* Effect.flip(world.ask((s) => s.run("hourly", caller)))).message, "still in progress")
        assert.strictEqual((yield* world.runs).length, 1)
        // one that was asked for is none of the times
        yield* world.finish
        yield* world.pass(HOUR)
        assert.strictEqual((yield* world.runs)[1], "hourly@2026-06-01T01:00")
      })
    )
  )

  it.effect("what is refused is said, and the next time is tried", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(hourly())
        world.refused = "bob has 1000 messages waiting already."
        yield* world.pass(HOUR)
        yield* skips(world, "hourly@2026-06-01T01:00 1 bob has 1000 messages waiting already. Wait.")
        world.refused = undefined
        yield* world.pass(HOUR)
        yield* runs(world, "hourly@2026-06-01T02:00")
      })
    )
  )
})

describe("a project that takes no work", () => {
  it.effect("is left alone, and catches up", () =>
    run("2026-06-01T00:30Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(hourly())
        yield* world.stands("resting")
        yield* world.pass(5 * HOUR)
        yield* runs(world)
        assert.strictEqual((yield* world.row("hourly"))?.state, "held")
        yield* world.stands("working")
        yield* runs(world, "hourly@2026-06-01T05:00")
        yield* world.stands("sealed")
        yield* world.pass(5 * HOUR)
        yield* runs(world, "hourly@2026-06-01T05:00")
      })
    )
  )
})

describe("a person", () => {
  const add = (world: World, due: string, more: object = {}) =>
    world.ask(({ add }) =>
      add({ due: Date.parse(due), timeZone: "UTC", work: { send }, catchUp: "once", ...more }, caller)
    )

  it.effect("asks for one time: it runs once, late if need be, and is over", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        assert.strictEqual((yield* add(world, "2026-06-01T00:10Z")).name, "at-1")
        assert.strictEqual((yield* add(world, "2026-06-01T01:00Z")).name, "at-2")
        assert.strictEqual((yield* add(world, "2026-06-01T02:00Z", { catchUp: "none" })).name, "at-3")
        yield* world.pass(10 * MINUTE)
        yield* runs(world, "at-1@2026-06-01T00:10")
        yield* world.stop
        yield* world.step(DAY)
        yield* world.start
        yield* runs(world, "at-1@2026-06-01T00:10", "at-2@2026-06-01T01:00")
        yield* skips(world, `at-3@2026-06-01T02:00 1 ${SLEPT}`)
        for (const name of ["at-1", "at-2", "at-3"]) assert.strictEqual((yield* world.row(name))?.state, "done")
        yield* world.step(-2 * DAY)
        yield* world.restart
        yield* world.pass(4 * DAY)
        assert.strictEqual((yield* world.runs).length, 2)
      })
    )
  )

  it.effect("takes it back, pauses it, lets it go on, and has it run now", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* add(world, "2026-06-01T01:00Z")
        yield* world.ask(({ remove }) => remove("at-1", caller))
        yield* add(world, "2026-06-01T02:00Z")
        yield* world.ask(({ pause }) => pause("at-2", caller))
        yield* world.pass(3 * HOUR)
        yield* runs(world)
        yield* world.restart
        assert.strictEqual((yield* world.row("at-2"))?.pausedBy, "ada")
        yield* world.ask(({ resume }) => resume("web/at-2", caller))
        yield* runs(world, "at-2@2026-06-01T02:00")
        yield* add(world, "2026-06-02T00:00Z")
        yield* world.ask((schedules) => schedules.run("at-3", caller))
        yield* world.pass(2 * DAY)
        assert.strictEqual((yield* world.runs).length, 2)
      })
    )
  )

  it.effect("is told what is wrong", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        const why = <A, E extends { readonly message: string }>(effect: Effect.Effect<A, E>) =>
          Effect.map(Effect.flip(effect), ({ message }) => message)
        assert.strictEqual(yield* why(add(world, "2026-05-31T00:00Z")), "That time is past.")
        assert.include(
          yield* why(add(world, "2026-06-02T00:00Z", { work: { send: { agent: "eve", text: "x" } } })),
          "eve"
        )
        assert.include(yield* why(add(world, "2026-06-02T00:00Z", { timeZone: "Mars/Base" })), "Mars/Base")
        assert.include(yield* why(world.ask(({ remove }) => remove("nightly", caller))), "/web/agentd.jsonc")
        assert.include(yield* why(world.ask(({ resume }) => resume("nightly", caller))), "not paused")
        assert.include(yield* why(world.ask(({ pause }) => pause("monthly", caller))), 'no schedule "monthly"')
      })
    )
  )
})

describe("who waits for nothing", () => {
  it.effect("wakes never: without a schedule, and with one that is paused", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.pass(DAY)
        assert.strictEqual(world.sleeps, 0)
        yield* world.configure(nightly())
        yield* world.pass(20 * MINUTE)
        assert.isAtMost(world.sleeps, 21)
        yield* world.ask(({ pause }) => pause("nightly", caller))
        const before = world.sleeps
        yield* world.pass(DAY)
        assert.strictEqual(world.sleeps, before)
        yield* runs(world)
      })
    )
  )
})
