/** Channels under a real daemon: three agents on three backends, with people in between. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { dice } from "../../support/Dice.ts"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"
import { type Step, toldTo } from "../../support/Told.ts"
import { sample, long } from "../../support/Long.ts"

/** A failing one is printed; `SEED=n` plays it again. */
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

/** Answers of the agent that was spoken to in its turn, by the way in which the person broke in. */
const ANSWERS = {
  queue: ["one", "yes"],
  interrupt: ["one, yes"],
  // it has read what it is steered away from, and a fake remembers nothing
  inject: ["yes"],
  parallel: ["yes"]
} as const

const MODES = ["queue", "interrupt", "inject", "parallel"] as const

/** A project with a channel for each way in which a person may break in, and three agents for each. */
const open = Effect.fnUntraced(function* (names: ReadonlyArray<string>, more: Stage.More = {}) {
  const stage = yield* Stage.make
  const shop = stage.home({
    conversation: { maxTurnErrors: 1000 },
    agents: Object.assign({}, ...names.map((name) => stage.trio(name, more))),
    channels: Object.fromEntries(
      names.map((name) => [
        name,
        {
          agents: Stage.BACKENDS.map((on) => `${name}-${on}`),
          turnConfig: { humanInterruptMode: MODES.find((mode) => mode === name) ?? "inject" }
        }
      ])
    )
  })
  yield* stage.up
  yield* shop.register
  const view = (name: string) => stage.rpc((client) => client.Channel({ name, caller: shop.caller }))
  /** Without what it tells the agents to do. */
  const line = ({ from, text }: { readonly from: string; readonly text: string }) =>
    `${from}: ${text.replaceAll(/\ndo .*/g, "").replaceAll("\n", ", ")}`
  return {
    stage,
    shop,
    view,
    post: (name: string, text: string) =>
      stage.rpc((client) => client.PostToChannel({ name, text, caller: shop.caller })),
    /** Posts from the log, which keeps all of them. */
    texts: (name: string) =>
      Effect.map(shop.log("channel.posted"), (runes) =>
        runes
          .filter(({ actor }) => actor === `channel/${name}`)
          .map(({ payload }) => line({ from: String(payload["from"]), text: String(payload["text"]) }))
      ),
    silent: (name: string) =>
      shop.until(
        `${name} is silent`,
        view(name),
        ({ channel }) => channel.detail === "nobody has anything new to read" && channel.floor === null
      ),
    /** Once it has the floor, and is at work on it. */
    speaking: (name: string, agent: string) =>
      Effect.andThen(
        shop.until(`${agent} has the floor`, view(name), ({ channel }) => channel.floor === agent),
        shop.of(agent, 1, "turn.started")
      )
  }
})

const say = (agent: string, ...steps: ReadonlyArray<Step>) => toldTo(agent, ...steps)

describe("channels under the daemon", () => {
  it.live(
    "three agents on three backends take turns; a person breaks in, in each of the four ways; then all is silent",
    () =>
      Effect.gen(function* () {
        const { post, shop, silent, speaking, stage, texts } = yield* open(MODES)
        yield* Effect.forEach(
          MODES,
          (mode) =>
            Effect.gen(function* () {
              const [first, second, third] = Stage.BACKENDS.map((on) => `${mode}-${on}`)
              const broken = join(stage.box.folder, mode)
              yield* post(
                mode,
                ["begin", say(first!, { until: broken }, { say: "one" }), say(second!, { say: "two" })].join("\n")
              )
              yield* speaking(mode, first!)
              yield* post(mode, ["and you?", say(first!, { say: "yes" }), say(third!, { say: "three" })].join("\n"))
              // who is not broken in upon works on until it has said what it has to say
              if (mode === "queue" || mode === "interrupt") writeFileSync(broken, "")
              yield* silent(mode)
              const all = yield* texts(mode)
              assert.sameMembers(
                [...all],
                [
                  "ada: begin",
                  "ada: and you?",
                  ...ANSWERS[mode].map((text) => `${first}: ${text}`),
                  `${second}: two`,
                  `${third}: three`
                ],
                mode
              )
            }),
          { concurrency: "unbounded" }
        )
        const log = yield* shop.log()
        assert.deepStrictEqual(Laws.broken(log), [])
        const cut = log.filter(({ kind }) => kind === "turn.interrupted").map(({ actor }) => actor)
        assert.includeMembers(cut, ["turn/interrupt-claude"])
        assert.notInclude(cut, "turn/queue-claude")
        assert.strictEqual((yield* shop.cli("verify")).code, 0)
      })
  )

  long.live(
    `kill -9 in the middle of turns: no post twice, none lost, never two that have the floor [SEED=${seed}]`,
    () =>
      Effect.gen(function* () {
        const die = dice(seed)
        const { post, shop, silent, stage, texts } = yield* open(["room"])
        const agents = Stage.BACKENDS.map((on) => `room-${on}`)
        const expected: Array<string> = []
        for (let round = 0; round < sample(30, 2); round++) {
          const lines = agents.map((agent) => {
            const text = `${agent} in ${round}`
            expected.push(`${agent}: ${text}`)
            return say(agent, { sleep: die(150) }, { say: text })
          })
          yield* post("room", [`round ${round}`, ...lines].join("\n"))
          expected.push(`ada: round ${round}`)
          yield* Effect.sleep(die(700))
          yield* stage.box.kill9
          yield* stage.box.until("the reaper has ended every run", stage.box.processes, (pids) => pids.length === 0)
          yield* stage.up
          yield* silent("room")
        }
        const log = yield* shop.log()
        assert.deepStrictEqual(
          Laws.broken(log).filter((line) => !line.startsWith("message")),
          []
        )
        const all = yield* texts("room")
        assert.sameMembers([...all], expected)
        assert.strictEqual(all.length, expected.length, "none twice")
        assert.strictEqual((yield* shop.cli("verify")).code, 0)
      })
  )
})
