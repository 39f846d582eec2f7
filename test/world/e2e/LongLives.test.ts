/** Runs that live long: what they write beyond the bound of unread output blocks none, and fills no disk; kills between. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

/** Bytes: of unread output, and of a file of it. */
const BOUND = 100_000
const SEGMENT = 25_000
/** Bytes that are kept of the output of a run that rests: files that are not full yet, and what came since the last point. */
const KEPT = 5 * SEGMENT

const staged = Effect.map(Stage.keeping, (stage) => {
  stage.box.environment["AGENTD_KEEPER_BOUND"] = `${BOUND}`
  stage.box.environment["AGENTD_KEEPER_SEGMENT"] = `${SEGMENT}`
  return stage
})

const runsIn = (stage: Stage.Stage): ReadonlyArray<string> => {
  const folder = join(stage.box.state, "keeper", "1", "runs")
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => !name.startsWith("slot-"))
    .map((name) => join(folder, name))
}

/** Bytes of the runs' output on the disk. */
const keptIn = (stage: Stage.Stage): number =>
  runsIn(stage)
    .flatMap((run) => readdirSync(run).map((name) => join(run, name)))
    .filter((file) => /\/(out|err)\.\d+$/.test(file))
    .reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0)

const keepsLittle = (stage: Stage.Stage) =>
  stage.box.until(
    "what is read is freed",
    Effect.sync(() => keptIn(stage)),
    (size) => size < KEPT
  )

describe("a run that lives long", () => {
  it.live(
    "a command that writes ten times the bound: each line is in the log once, over kills, and the disk holds little",
    () =>
      Effect.gen(function* () {
        const [parts, lines] = [3, 800]
        const stage = yield* staged
        // a part of a megabyte, then it waits to be told
        const shell = `cat > /dev/null; x=$(head -c 990 /dev/zero | tr '\\0' x); n=0
for part in 1 2 3; do i=0; while [ $i -lt ${lines} ]; do echo "line $n $x"; n=$((n+1)); i=$((i+1)); done
echo "note $part" >&2; while [ ! -e go$part ]; do sleep 0.02; done; done; echo done`
        const backend = { type: "command", shell, promptBy: "stdin", readyAfter: "50ms" }
        const shop = stage.home({ agents: { long: { backend, output: { maxBytesPerRun: 100_000_000 } } } })
        yield* stage.up
        yield* shop.register
        yield* shop.send("long", "go on")
        for (let part = 1; part <= parts; part++) {
          yield* shop.until(
            `part ${part} is told`,
            Effect.map(shop.log("run.output"), (runes) =>
              runes.some(({ payload }) => payload["text"] === `note ${part}`)
            ),
            (isTold) => isTold
          )
          yield* keepsLittle(stage)
          if (part % 2 === 0) yield* stage.box.kill9
          writeFileSync(join(shop.root, "long", `go${part}`), "")
          if (part % 2 === 0) yield* stage.up
        }
        yield* shop.of("long", 1, "turn.completed")
        const told = (yield* shop.log("run.output"))
          .filter(({ payload }) => payload["source"] === "stdout")
          .flatMap(({ payload }) => String(payload["text"]).split("\n"))
          .map((line) => line.replace(/ x+$/, ""))
        assert.deepStrictEqual(told, [...Array.from({ length: parts * lines }, (_, n) => `line ${n}`), "done"])
        const [ended] = yield* shop.log("turn.completed")
        assert.match(String(ended?.payload["final_output"]), /^line 0 x+\n[^]*\ndone\n?$/)
        assert.strictEqual(yield* shop.runs("long"), 1)
        assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
      })
  )

  for (const on of ["claude", "acp"] as const) {
    const live = on === "claude" ? it.live : long.live
    live(
      `${on}: turns that write several times the bound, kills between and in the midst of them: nothing is lost or done twice`,
      () =>
        Effect.gen(function* () {
          const stage = yield* staged
          const shop = stage.home({ agents: { ada: stage.agent(on) } })
          yield* stage.up
          yield* shop.register
          const word = "word ".repeat(12_000)
          const turns = 4
          for (let turn = 1; turn <= turns; turn++) {
            yield* shop.tell(
              "ada",
              { say: `${word}${turn}` },
              { ask: `echo ${turn} >> made` },
              { say: `${word}made ${turn}` }
            )
            yield* shop.asked("ada")
            if (turn % 3 === 0) {
              yield* stage.box.kill9
              yield* stage.up
              yield* shop.asked("ada")
            }
            yield* shop.answer("ada", "allow")
            const answers = yield* shop.answers("ada", turn)
            assert.match(String(answers[turn - 1]), new RegExp(`made ${turn}$`))
            yield* keepsLittle(stage)
            if (turn % 3 === 1) {
              yield* stage.box.kill9
              yield* stage.up
            }
          }
          assert.deepStrictEqual(
            shop.noted("ada", "made"),
            Array.from({ length: turns }, (_, n) => `${n + 1}`)
          )
          assert.strictEqual(yield* shop.runs("ada"), 1)
          const said = (yield* shop.log("turn.assistant_delta"))
            .map(({ payload }) => String(payload["content"]))
            .join("")
          assert.strictEqual(said.match(/word /g)?.length, turns * 2 * 12_000)
          assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
        })
    )
  }
})
