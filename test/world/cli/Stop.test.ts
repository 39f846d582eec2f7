/** Tests of `agentd stop` without a name: the daemon or the project of this folder, as a person or a script says. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { folder, makeWorld, serve, type World } from "../rpc/World.ts"
import { PROGRAM } from "../../support/Program.ts"
import { agentd } from "./Child.ts"

/** A daemon that knows the project of a folder, and the folder. */
const here = Effect.gen(function* () {
  const cwd = yield* folder
  const config = `${cwd}/agentd.jsonc`
  writeFileSync(config, '{ "agents": {} }')
  const made = makeWorld()
  const world: World = {
    ...made,
    projects: [
      { ...made.projects[0]!, config },
      { ...made.projects[0]!, name: "shop", conversation: "shop-1a2b3c4d" }
    ]
  }
  const { state } = yield* serve(world)
  return { cwd, state, world }
})

it.live("a script in a project's folder has to say which, and both commands are named", () =>
  Effect.gen(function* () {
    const { cwd, state, world } = yield* here
    const { code, err, out } = yield* agentd(["--state", state, "stop"], { cwd })
    assert.deepStrictEqual([code, out], [2, ""])
    assert.match(err, /the daemon with all 2 projects, or only the project web\? Nothing was stopped\./)
    assert.include(err, `Stop the daemon: agentd --state ${state} stop --daemon.`)
    assert.include(err, `Stop only the project: agentd --state ${state} project stop web`)
    assert.deepStrictEqual([world.commands.length, world.shutdowns.length], [0, 0])
    const both = yield* agentd(["--state", state, "stop", "builder", "--daemon"], { cwd })
    assert.strictEqual(both.code, 2)
    assert.deepStrictEqual([world.commands.length, world.shutdowns.length], [0, 0])
  })
)

describe("a person on a terminal", () => {
  const DOWN = "\u001b[B"
  /** Types the keys once the question is there. */
  const answer = (state: string, cwd: string, keys: string) =>
    Effect.promise(
      () =>
        new Promise<{ readonly code: number | null; readonly out: string }>((resolve) => {
          const line = `'${process.execPath}' '${PROGRAM}' --state '${state}' stop`
          const child = spawn("script", ["-qec", line, "/dev/null"], { cwd, stdio: ["pipe", "pipe", "ignore"] })
          let [out, typed] = ["", false]
          child.stdout.setEncoding("utf8").on("data", (text: string) => {
            out += text
            if (typed || !out.includes("nothing")) return
            typed = true
            child.stdin.write(keys)
          })
          child.on("close", (code) => resolve({ code, out }))
        })
    )

  it.live.skipIf(spawnSync("script", ["--version"]).status !== 0)("chooses the project, or nothing", () =>
    Effect.gen(function* () {
      const { cwd, state, world } = yield* here
      const chosen = yield* answer(state, cwd, "\r")
      assert.strictEqual(chosen.code, 0)
      assert.match(chosen.out, /What do you want to stop\?[^]*only the project web[^]*the daemon, with all 2 projects/)
      assert.deepStrictEqual(
        world.commands.map(([verb, name]) => `${verb} ${name}`),
        ["stopProject web-1a2b3c4d"]
      )
      const none = yield* answer(state, cwd, `${DOWN}${DOWN}\r`)
      assert.strictEqual(none.code, 1)
      assert.match(none.out, /Nothing was stopped/)
      assert.deepStrictEqual([world.commands.length, world.shutdowns.length], [1, 0])
    })
  )
})
