/**
 * A daemon that is stopped in the midst of work, each part by itself: its main loop, the thread that writes its log,
 * its keeper. Who watches each hears nothing more and starts another, and the turn that was under way goes on.
 *
 * The manager is played: it hears what `systemd-notify` is given, and does what systemd does with a unit like agentd's.
 * `ALL=1` has the keeper, too, whose watch looks each 30 seconds.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { Effect } from "effect"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"
import { all } from "../../support/Long.ts"

/** The unit's WatchdogSec, ms. */
const PERIOD = 2_000

/** The manager of a stage's daemon. */
class Manager {
  readonly stage: Stage.Stage
  private readonly told: string

  constructor(stage: Stage.Stage) {
    this.stage = stage
    const bin = join(stage.box.folder, "bin")
    this.told = join(stage.box.folder, "told")
    mkdirSync(bin)
    writeFileSync(join(bin, "systemd-notify"), `#!/bin/sh\necho "$*" >> '${this.told}'\n`)
    chmodSync(join(bin, "systemd-notify"), 0o755)
    stage.box.environment["PATH"] = `${bin}${delimiter}${process.env["PATH"]}`
    stage.box.environment["NOTIFY_SOCKET"] = join(stage.box.folder, "notify")
    stage.box.environment["WATCHDOG_USEC"] = `${PERIOD * 1_000}`
  }

  /** How often the daemon has said that it is well. */
  get signs(): number {
    return existsSync(this.told) ? readFileSync(this.told, "utf8").split("WATCHDOG=1").length : 0
  }

  /** Until it has said so again. */
  readonly sign = Effect.suspend(() => {
    const before = this.signs
    return this.stage.box.until(
      "a sign of life",
      Effect.sync(() => this.signs),
      (signs) => signs > before
    )
  })

  /** Ends a daemon that has said nothing for the whole of its time, and starts another. */
  restart(meanwhile: Effect.Effect<void> = Effect.void) {
    const look = Effect.suspend(() => {
      const before = this.signs
      return Effect.map(Effect.sleep(PERIOD), () => this.signs > before)
    })
    const { box, up } = this.stage
    return box
      .until("it is silent for its time", look, (hasSigned) => !hasSigned)
      .pipe(Effect.andThen(box.kill9), Effect.andThen(meanwhile), Effect.andThen(up))
  }
}

/** An agent that has asked, in a turn that outlives the daemon; `frozen` stops a part and goes on with another. */
const inTheMidst = <E, R>(
  frozen: (stage: Stage.Stage, manager: Manager, shop: Stage.Project) => Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function* () {
    const stage = yield* Stage.keeping
    const manager = new Manager(stage)
    const fifo = join(stage.box.folder, "stuck")
    stage.box.environment["STUCK_DISK"] = fifo
    stage.box.environment["NODE_OPTIONS"] = `--require ${resolve(import.meta.dirname, "../../fixtures/stuck-disk.cjs")}`
    const shop = stage.home({ agents: { ada: stage.agent("claude") } })
    yield* stage.up
    yield* shop.register
    yield* shop.tell("ada", { ask: "echo 1 >> made" }, { say: "made" })
    yield* shop.asked("ada")
    yield* manager.sign
    yield* frozen(stage, manager, shop)
    yield* shop.asked("ada")
    yield* shop.answer("ada", "allow")
    assert.deepStrictEqual(yield* shop.answers("ada", 1), ["made"])
    assert.deepStrictEqual(shop.noted("ada", "made"), ["1"])
    assert.strictEqual(yield* shop.runs("ada"), 1)
    assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
  })

describe.concurrent("stopped in the midst of a turn, it is noticed, and the turn goes on", () => {
  it.live("the daemon's main loop", () =>
    inTheMidst(({ box }, manager) =>
      Effect.suspend(() => {
        box.daemon!.kill("SIGSTOP")
        return manager.restart()
      })
    )
  )

  it.live("the thread that writes the log, once there is something to write", () =>
    inTheMidst((stage, manager, shop) =>
      Effect.gen(function* () {
        const fifo = stage.box.environment["STUCK_DISK"]!
        assert.strictEqual(spawnSync("mkfifo", [fifo]).status, 0)
        // it has nothing to write, and is well
        yield* manager.sign
        yield* Effect.forkChild(Effect.exit(shop.send("ada", "more")))
        yield* manager.restart(Effect.sync(() => rmSync(fifo)))
      })
    )
  )

  all.live("the keeper", () =>
    inTheMidst((stage) =>
      Effect.gen(function* () {
        const [pid] = stage.keepers
        process.kill(pid!, "SIGSTOP")
        yield* stage.box.until(
          "another keeper is there",
          Effect.sync(() => stage.keepers),
          (pids) => pids.length === 1 && pids[0] !== pid
        )
      })
    )
  )
})
