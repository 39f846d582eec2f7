/** Commands that agentd runs for an ACP agent (`terminal/create`), over kills and restarts of the daemon. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { dice } from "../../support/Dice.ts"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"
import type { Step } from "../../support/Told.ts"
import { sample, long } from "../../support/Long.ts"

const KILLS = sample(40, 2)
/** A failing one is printed; `SEED=n` plays it again. */
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

const create = (command: string): Step => ({ acp: ["terminal/create", { command }] })
const ask = (what: string, terminal: number): Step => ({
  acp: [`terminal/${what}`, { terminalId: `terminal-${terminal}` }]
})

const whole = Effect.gen(function* () {
  const stage = yield* Stage.keeping
  const shop = stage.home({ agents: { ada: stage.agent("acp", { approvals: { mode: "full_access" } }) } })
  yield* stage.up
  yield* shop.register
  const touch = (name: string) => Effect.sync(() => writeFileSync(join(shop.root, "ada", name), ""))
  const noted = (count: number) =>
    shop.until(
      `${count} commands run`,
      Effect.sync(() => shop.noted("ada", "pids")),
      (pids) => pids.length >= count
    )
  const died = Effect.andThen(stage.box.kill9, stage.box.gone)
  const restart = Effect.andThen(
    stage.rpc((client) => client.Shutdown({ reason: "agentd restart", by: "ada", keep: true })),
    stage.box.gone
  )
  return { stage, shop, touch, noted, died, restart }
})

const text = (value: unknown): string => (typeof value === "string" ? value : "")

describe("commands that agentd runs for an agent outlive the daemon", () => {
  it.live("they work on; their output, their end, kill and release are answered by the next one; each runs once", () =>
    Effect.gen(function* () {
      const { died, noted, restart, shop, stage, touch } = yield* whole
      const wait = (file: string) => `while [ ! -e ${file} ]; do sleep 0.05; done`
      yield* shop.tell(
        "ada",
        create(`echo $$ >> pids; ${wait("go1")}; echo one; ${wait("go2")}; echo two; exit 3`),
        ask("wait_for_exit", 1),
        ask("output", 1),
        ask("release", 1),
        create("echo $$ >> pids; exec sleep 1000"),
        { until: join(shop.root, "ada", "kill") },
        ask("output", 2),
        ask("kill", 2),
        ask("wait_for_exit", 2),
        ask("release", 2),
        ask("output", 2)
      )
      yield* noted(1)
      yield* died
      yield* touch("go1")
      yield* stage.up
      yield* shop.of("ada", 1, "tool.progress")
      yield* restart
      yield* stage.up
      yield* died
      yield* touch("go2")
      yield* stage.up
      yield* noted(2)
      yield* died
      yield* touch("kill")
      yield* stage.up
      const [answer] = yield* shop.answers("ada", 1)
      const lines = text(answer).trim().split("\n")
      // a sandbox tells of a signal by a code
      assert.match(lines[7]!, /"exitCode":143|"signal":"SIGTERM"/)
      assert.deepStrictEqual(lines, [
        `{"terminalId":"terminal-1"}`,
        `{"exitCode":3,"signal":null}`,
        `{"output":"one\\ntwo\\n","truncated":false,"exitStatus":{"exitCode":3,"signal":null}}`,
        `{}`,
        `{"terminalId":"terminal-2"}`,
        `{"output":"","truncated":false,"exitStatus":null}`,
        `{}`,
        lines[7]!,
        `{}`,
        `refused: there is no terminal terminal-2`
      ])
      assert.lengthOf(shop.noted("ada", "pids"), 2)
      const progress = (yield* shop.log("tool.progress")).filter(({ payload }) => payload["stream"] === "stdout")
      assert.strictEqual(progress.map(({ payload }) => text(payload["chunk"])).join(""), "one\ntwo\n")
      const results = yield* shop.log("tool.result")
      assert.deepStrictEqual(
        results.map(({ payload }) => payload["status"]),
        ["error", "error"]
      )
      assert.match(JSON.stringify(results[0]!.payload), /two.*exit code 3/)
      assert.strictEqual(yield* shop.runs("ada"), 1)
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )

  long.live(`${KILLS} kills at any moment: each command runs once, and has one result [SEED=${seed}]`, () =>
    Effect.gen(function* () {
      const { died, shop, stage } = yield* whole
      const die = dice(seed)
      const count = KILLS * 3
      const steps = Array.from({ length: count }, (_, at) => [
        create(`echo ${at} >> made; echo out ${at}`),
        ask("wait_for_exit", at + 1),
        ask("output", at + 1),
        ask("release", at + 1)
      ])
      yield* shop.tell("ada", ...steps.flat())
      for (let kills = 0; kills < KILLS; kills++) {
        yield* Effect.sleep(50 + die(600))
        yield* died
        yield* stage.up
      }
      const [answer] = yield* shop.answers("ada", 1)
      const made = shop.noted("ada", "made")
      assert.deepStrictEqual(
        made,
        steps.map((_, at) => `${at}`)
      )
      for (const at of made) assert.include(text(answer), `out ${at}\\n`)
      assert.strictEqual(yield* shop.runs("ada"), 1)
      assert.lengthOf(yield* shop.log("tool.result"), count)
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )
})
