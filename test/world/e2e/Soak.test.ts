/** A long day: fifty agents, twenty turns each, people who interrupt, and a kill -9 in the midst of it. ALL=1 only. */
import { assert, it } from "@effect/vitest"
import { Effect, Schedule, Stream } from "effect"
import { type Dice, dice } from "../../support/Dice.ts"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"
import { all } from "../../support/Long.ts"

const TURNS = 20
/** Each process of a fake has some 45 MB. */
const CAST = { claude: 10, acp: 10, model: 30 }
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

const names = Stage.BACKENDS.flatMap((on) => [...Array(CAST[on]).keys()].map((n) => ({ on, name: `${on}-${n}` })))

/** How many turns of each agent have ended, as the log tells it; goes on after a kill. */
const follow = (shop: Stage.Project, ended: Map<string, number>) => {
  let after = 0
  const kinds = ["turn.completed", "turn.interrupted", "turn.error"]
  return shop.stage
    .rpc((client) =>
      Stream.runForEach(client.Log({ after, kinds, follow: true, caller: shop.caller }), ({ actor, eventId }) =>
        Effect.sync(() => {
          after = eventId
          ended.set(actor, (ended.get(actor) ?? 0) + 1)
        })
      )
    )
    .pipe(Effect.retry(Schedule.spaced("50 millis")), Effect.repeat(Schedule.spaced("50 millis")))
}

/** Twenty turns of one agent; what fails for want of a daemon is said again. */
const work = Effect.fnUntraced(function* (
  shop: Stage.Project,
  name: string,
  die: Dice,
  { ended, progress }: { readonly ended: Map<string, number>; readonly progress: { turns: number } }
) {
  const count = () => ended.get(`turn/${name}`) ?? 0
  for (let turn = 0; turn < TURNS; turn++) {
    const before = count()
    const text = `${name} ${turn}`
    yield* Effect.retry(shop.tell(name, { sleep: die(80) }, { say: text }), Schedule.spaced("100 millis"))
    if (die(8) === 0) yield* Effect.ignore(shop.interrupt(name))
    for (let tries = 0; count() === before; tries++) {
      if (tries > 3000) return yield* Effect.die(new Error(`${text} has never ended`))
      yield* Effect.sleep(20)
    }
    progress.turns++
  }
})

all.describe("a long day", { timeout: 900_000 }, () => {
  it.live(
    `fifty agents, twenty turns each, interrupts and a kill -9 in a heap of 128 MB: all is done once [SEED=${seed}]`,
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.make
        const shop = stage.home({
          conversation: { maxTurnErrors: 1000 },
          agents: Object.fromEntries(names.map(({ name, on }) => [name, stage.agent(on)]))
        })
        // what leaks runs out of it: that ends the daemon, and nothing answers any more
        stage.box.environment["NODE_OPTIONS"] = "--max-old-space-size=128"
        const die = dice(seed)
        yield* stage.up
        yield* shop.register
        const [ended, progress] = [new Map<string, number>(), { turns: 0 }]
        yield* Effect.forkScoped(follow(shop, ended))
        const kill = Effect.gen(function* () {
          yield* Effect.repeat(Effect.sleep(50), { until: () => progress.turns > (names.length * TURNS) / 2 })
          yield* stage.box.kill9
          yield* stage.box.until("the reaper has ended every run", stage.box.processes, (pids) => pids.length === 0)
          yield* stage.up
        })
        const all = names.map(({ name }) => work(shop, name, die, { ended, progress }))
        yield* Effect.all([kill, ...all], { concurrency: "unbounded" })
        yield* shop.until("nothing waits", shop.agents, (rows) => rows.every(({ inbox }) => inbox === 0))
        yield* shop.until("every law holds", shop.log(), (log) => Laws.broken(log).length === 0)
        assert.isNull(stage.box.daemon!.exitCode)
        const verdict = yield* shop.cli("verify")
        assert.strictEqual(verdict.code, 0, verdict.stdout)
      })
  )
})
