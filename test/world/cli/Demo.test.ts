/** `agentd demo` for real: a daemon of its own with all that there is to touch, which ends and leaves nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import * as DemoShop from "../../../src/cli/setup/DemoShop.ts"
import { parse } from "../../../src/config/ConfigFile.ts"
import { folder } from "../rpc/World.ts"
import { agentd } from "./Child.ts"

const hasGit = spawnSync("git", ["--version"]).status === 0
if (!hasGit) console.warn("SKIPPED: the demo (no git on this machine)")

/** Processes whose environment has that variable. */
const marked = (variable: string): ReadonlyArray<string> =>
  fs.readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && fs.readFileSync(`/proc/${pid}/environ`, "utf8").includes(`${variable}\0`)
    } catch {
      return false
    }
  })

describe("the demo", () => {
  it.effect("has a valid config", () =>
    Effect.gen(function* () {
      const config = JSON.stringify(DemoShop.configOf("/bin/node", "/demo/agent.mjs"))
      const { agents, channels, goals } = yield* parse(config, "/demo/shop/agentd.jsonc")
      for (const name of [...goals.workers!, goals.critic!, ...channels["counter"]!.agents])
        assert.property(agents, name)
    })
  )

  it.live.skipIf(!hasGit)(
    "runs, can be touched, is the same one when it is asked for again, and leaves nothing",
    () =>
      Effect.gen(function* () {
        const home = fs.realpathSync(yield* folder)
        const env = { HOME: home, TMPDIR: home }
        // settings of the person's own, by which no commit of the demo's could be made
        fs.writeFileSync(join(home, ".gitconfig"), "[commit]\n  gpgsign = true\n[gpg]\n  program = /nowhere/gpg\n")
        const demo = (...args: ReadonlyArray<string>) => agentd(["demo", ...args], { env })
        assert.include((yield* demo("--stop")).out, "No demo is running. Start one: agentd demo")

        yield* Effect.addFinalizer(() => demo("--stop"))
        // of two at once one begins it, and the other leaves it alone
        const both = yield* Effect.all([demo("--json"), demo("--json")], { concurrency: 2 })
        const begun = both.filter(({ code, out }) => code === 0 && JSON.parse(out).begun)
        assert.lengthOf(begun, 1, JSON.stringify(both))
        for (const { code, err } of both) if (code !== 0) assert.match(err, /is starting or ending.*Nothing was done/)
        const at = JSON.parse(begun[0]!.out)
        assert.isTrue(at.running)
        const inside = (...args: ReadonlyArray<string>) =>
          agentd(["--state", at.state, ...args], { env, cwd: at.project })
        const until = (holds: Effect.Effect<boolean>) =>
          Effect.repeat(holds, { until: (is) => is, schedule: Schedule.spaced("500 millis") })
        const waits = Effect.map(inside("approve", "--json"), ({ out }) => /"id":"call\/([^"]+)"/.exec(out)?.[1])
        yield* until(Effect.map(waits, (call) => call !== undefined))
        const asked = JSON.parse((yield* inside("approve", (yield* waits)!, "--json")).out)
        assert.strictEqual((yield* inside("approve", asked.id, asked.hash)).code, 0)
        yield* until(Effect.map(inside("diff", "builder"), ({ out }) => out.includes("page0.html")))
        yield* until(Effect.map(inside("why", "doomed"), ({ out }) => out.includes("stopped permanently")))
        assert.include((yield* inside("goal", "show", "g1")).out, "Open a shop")

        const second = yield* demo()
        assert.match(second.out, /^The demo is already running: /)
        for (const line of second.out.split("\n").filter((one) => one.startsWith("  agentd ")))
          assert.include(line, `--state ${at.state}`)

        const over = yield* demo("--stop")
        assert.strictEqual(over.code, 0, over.err)
        assert.deepStrictEqual(
          fs.readdirSync(home).filter((name) => name.startsWith("agentd-demo")),
          []
        )
        // its clock looks each 5 seconds, and ends
        yield* until(Effect.sync(() => marked(`DEMO_FOLDER=${at.folder}`).length === 0))
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("touches no folder that is not a demo's", () =>
    Effect.gen(function* () {
      const home = fs.realpathSync(yield* folder)
      const mine = join(home, `agentd-demo-${process.getuid!()}`)
      fs.mkdirSync(mine, { mode: 0o700 })
      fs.writeFileSync(join(mine, "letter.txt"), "dear")
      for (const args of [["demo"], ["demo", "--stop"]]) {
        const said = yield* agentd(args, { env: { HOME: home, TMPDIR: home } })
        assert.strictEqual(said.code, 1)
        assert.match(said.err, /already exists, but is not a demo of yours/)
      }
      assert.deepStrictEqual(fs.readdirSync(mine), ["letter.txt"])
    }).pipe(Effect.scoped)
  )
})
