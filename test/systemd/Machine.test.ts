/**
 * A machine of its own with a real systemd (test/support/Machine.ts): what no test on the machine at hand can do to it.
 * LONG=1, root and systemd-nspawn are needed.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import type { Rune } from "../../src/event-log/Rune.ts"
import * as Laws from "../support/Laws.ts"
import * as Machine from "../support/Machine.ts"

const isAsked = process.env["LONG"] === "1"
if (isAsked && Machine.missing.length > 0)
  console.warn(`SKIPPED: a machine of its own (no ${Machine.missing.join(", no ")})`)
else if (!isAsked) console.warn("SKIPPED: a machine of its own is booted with LONG=1 only")

/** Works on a message until there is a file of the name `go`, and says then what it was told. */
const SLOW = "text=$(cat); echo $$ >> begun; while [ ! -e go ]; do sleep 0.1; done; echo heard $text"

const AGENTS = ["ann", "ben", "cem"]
const TEXTS = ["one", "two", "three"]

/** A project of ada's with those agents. */
const shop = Effect.fnUntraced(function* (machine: Machine.Machine) {
  const agent = (cwd: string) => ({
    backend: { type: "command", shell: SLOW, promptBy: "stdin", readyAfter: "100ms", cwd },
    may: [],
    minRunInterval: "0ms",
    backoff: { base: "100ms", cap: "200ms" }
  })
  const config = JSON.stringify({ agents: Object.fromEntries(AGENTS.map((name) => [name, agent(name)])) })
  yield* machine.ada(
    `mkdir -p ${AGENTS.map((name) => `shop/${name}`).join(" ")}; printf %s '${config}' > shop/agentd.jsonc`
  )
})

const status = (machine: Machine.Machine) =>
  Effect.map(machine.agentd("--json service status"), (out) => JSON.parse(out) as Record<string, unknown>)

const log = (machine: Machine.Machine, ...kinds: ReadonlyArray<string>) =>
  Effect.map(machine.agentd(`--json log -n 10000 ${kinds.map((kind) => `--kind ${kind}`).join(" ")}`), (out) =>
    out
      .split("\n")
      .filter(Boolean)
      .map((line): Rune => JSON.parse(line))
  )

const begun = (machine: Machine.Machine) => machine.root(`cat /home/ada/shop/*/begun | wc -l`)

describe.skipIf(!isAsked || Machine.missing.length > 0)("a reboot", () => {
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
          // how they ended is not known, and no agent is to blame
          const errors = (yield* log(machine, "turn.error")).map(({ payload }) => payload["message"])
          assert.deepStrictEqual(
            new Set(errors),
            new Set([how === "cut" ? "the run ended: lost" : "killed by SIGTERM"])
          )
          const { agents } = JSON.parse(yield* machine.agentd("--json ps")) as {
            readonly agents: ReadonlyArray<{ readonly totalErrors: number }>
          }
          assert.deepStrictEqual(
            agents.map(({ totalErrors }) => totalErrors),
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
