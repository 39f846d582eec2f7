/** The demo's goal, with its own scripts run by their own shell, in real worktrees. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import * as Demo from "../../../scripts/demo/Goal.ts"
import { inProcess } from "../cli/Child.ts"
import * as Control from "../rpc/World.ts"
import { run, type World } from "./World.ts"

/** The prompt on standard input, as a command gets it. */
const shell = (world: World, agent: string, text: string, place: { readonly cwd: string; readonly branch?: string }) =>
  world.crew.add(
    agent,
    (message) =>
      Effect.sync(() => {
        try {
          const env = { ...process.env, DEMO_FOLDER: world.folder }
          const output = execFileSync("sh", ["-c", text], { cwd: place.cwd, env, input: message.text, stdio: "pipe" })
          return { output: output.toString() }
        } catch (error) {
          return { outcome: "error" as const, output: String((error as { stderr?: unknown }).stderr) }
        }
      }),
    place
  )

describe("the demo's goal", () => {
  it.live("one task fails once, the critic sends one back; it is met, and merged", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          const scripts = Demo.agents((text) => ({ text })) as { readonly [name: string]: { readonly text: string } }
          for (const agent of ["ann", "ben"]) shell(world, agent, scripts[agent]!.text, world.worktree(agent))
          shell(world, "critic", scripts["critic"]!.text, { cwd: world.root })
          const state = yield* Control.folder
          yield* Layer.build(Control.layer(Control.makeWorld(), `${state}/control.sock`, { goals: world.goals }))
          const claims: Array<string> = []
          yield* Demo.part({
            project: world.root,
            title: () => {},
            claim: (words, holds) => {
              claims.push(words)
              assert.isTrue(holds, words)
            },
            agentd: (...args) => Effect.orDie(Effect.map(inProcess(["--state", state, ...args]), ({ out }) => out))
          })
          assert.lengthOf(claims, 4)
          assert.isTrue(existsSync(`${world.root}/fix-1-1.txt`))
        }).pipe(Effect.scoped),
      { goals: Demo.goals }
    )
  )
})
