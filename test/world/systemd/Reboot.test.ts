/**
 * A reboot of a machine of its own with a real systemd (test/support/Machine.ts), in order and by a cut of its power.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import * as Laws from "../../support/Laws.ts"
import * as Machine from "../../support/Machine.ts"
import { AGENTS, begun, isAble, log, shop, status } from "./Shop.ts"

const TEXTS = ["one", "two", "three"]

describe.skipIf(!isAble)("a reboot", () => {
  for (const how of ["in order", "cut"] as const) {
    it.live(
      `${how}, in the midst of work: the daemon is up again by itself, and every message is carried to its end`,
      () =>
        Effect.gen(function* () {
          const machine = yield* Machine.make
          yield* shop(machine)
          yield* machine.agentd("service install --linger")
          yield* machine.ada(`cd shop && ${Machine.AGENTD} start`)
          for (const name of AGENTS) {
            for (const text of ["one", "two", "three"])
              yield* machine.ada(`cd shop && ${Machine.AGENTD} send ${name} ${name}-${text}`)
          }
          yield* machine.until("all are at work", begun(machine), (count) => Number(count) === 3)
          yield* machine.reboot(how)
          yield* machine.until("they work again", begun(machine), (count) => Number(count) === 6)
          const after = yield* status(machine)
          assert.deepInclude(after, { state: "active", enabled: true, lingers: true, listens: true })
          yield* machine.root("for name in ann ben cem; do touch /home/ada/shop/$name/go; done")
          yield* machine.until(
            "all is done",
            Effect.map(log(machine, "turn.completed"), ({ length }) => `${length}`),
            (count) => count === "3"
          )
          // how they ended is not known, unless its keeper saw a program end before it was told to end itself
          const errors = new Set((yield* log(machine, "turn.error")).map(({ payload }) => payload["message"]))
          if (how === "in order") errors.delete("killed by SIGTERM")
          assert.isTrue(errors.size > 0 || how === "in order")
          assert.isEmpty([...errors].filter((message) => message !== "the run ended: lost"))
          // no agent is to blame
          const { rows } = JSON.parse(yield* machine.agentd("--json ps")) as {
            readonly rows: ReadonlyArray<{ readonly errors: { readonly total: number } }>
          }
          assert.deepStrictEqual(
            rows.map(({ errors: { total } }) => total),
            [0, 0, 0]
          )
          for (const { actor, payload } of yield* log(machine, "turn.completed")) {
            for (const text of TEXTS) assert.include(payload["final_output"], `${actor.slice("turn/".length)}-${text}`)
          }
          assert.deepStrictEqual(Laws.broken(yield* log(machine)), [])
          yield* machine.agentd("verify")
        }).pipe(Effect.scoped),
      180_000
    )
  }
})
