/** Errors in all come near their limit: people are warned before the agent stops for good. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { why, actorsOf } from "../../../src/projects/service/Why.ts"
import { newsOf } from "../../../src/alerts/AlertPolicy.ts"
import * as Mail from "../../../src/alerts/Mail.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import { render } from "../../../src/cli/sessions/Board.ts"
import { boardOf } from "../../world/rpc/World.ts"
import * as World from "../../world/agents/World.ts"

const fails = { turns: [{ error: { errorType: "agent", message: "no", retry: false } }] }
const WARNING = "15 of 20 errors in total: at 20 it stops permanently"

describe("an agent with 15 of 20 errors", () => {
  it.live("is warned of by ps, by why and by one mail; with 14 by none of them", () =>
    Effect.gen(function* () {
      const w = yield* World.make(ScriptedBackend.make([fails]))
      const settings = { maxConsecutiveErrors: 100, backoff: { base: "1ms", cap: "1ms" } }
      w.configure({ name: "shop", agents: { a: World.command({ interruptGrace: "200ms", ...settings }) } })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      const runes = Effect.map(Stream.runCollect(w.log.read({})), (all) => [...all])
      const mails = Effect.map(runes, (all) =>
        all.flatMap((rune) => newsOf(rune)?.mail ?? []).filter(({ kind }) => kind === "agent.nearing_limit")
      )
      const failed = (count: number) =>
        World.untilAgent(fleet, "a", ({ state, totalErrors }) => totalErrors === count && state === "BuildingPrompt")
      const said = Effect.fnUntraced(function* (count: number) {
        const row = yield* failed(count)
        const ps = render(boardOf({ agents: [row] }), row.since, { colour: false, columns: null }).join(" ")
        const its = (yield* runes).filter(({ actor }) => actorsOf("a").includes(actor))
        return { ps, why: why(its, row).lines.map(({ text }) => text), mails: yield* mails }
      })
      for (let count = 1; count <= 16; count++) {
        yield* fleet.send("a", { text: "work", how: "queue" }, w.caller)
        yield* failed(count)
        if (count === 14) {
          const { mails, ps, why } = yield* said(14)
          assert.deepStrictEqual([mails, ps.includes("stops permanently"), why.includes(WARNING)], [[], false, false])
        }
        if (count === 15) {
          const { ps, why } = yield* said(15)
          assert.include(ps, WARNING)
          assert.include(why, WARNING)
        }
      }
      const [mail, ...more] = yield* mails
      assert.deepStrictEqual(more, [])
      const told = [{ alert: mail!, project: "shop", why: [], output: [] }]
      const { subject, text } = Mail.render({ told, more: 0, host: "lab", redact: (words) => words })
      assert.strictEqual(subject, "[agentd] a has 15 of 20 errors")
      assert.include(text, "agent shop/a")
      assert.include(text, "15 in total")
      assert.include(text, WARNING)
      assert.match(text, /agentd why .*\/a/)
      assert.notInclude(text, "Start it again")
    }).pipe(Effect.scoped)
  )
})
