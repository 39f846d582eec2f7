/**
 * Findings: the daemon's own git runs a filter of an agent's repository in a goal's review; a
 * goal's checks, which are an agent's code, run with the daemon's keys and the person's rights.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { probe } from "../../src/runs/sandbox/Sandbox.ts"
import { caller, commit, git, run, type World } from "../world/goals/World.ts"
import { long } from "../support/Long.ts"

const mechanism = await Effect.runPromise(probe({ PATH: process.env["PATH"] }, ["bubblewrap", "namespaces"]))

const KEY = "sk-ant-canary-0123456789abcdef"

/** An agent that does its task and plants on the way. */
const planter = (world: World, plant: (cwd: string) => void) => {
  const place = world.worktree("eve")
  world.crew.add(
    "eve",
    () =>
      Effect.sync(() => {
        commit(place.cwd, "work", { "work.txt": "done\n" })
        plant(place.cwd)
        return { output: "done" }
      }),
    place
  )
}

describe("a goal's review runs nothing of an agent's but its checks, and those are held", () => {
  it.live("a gitlink whose repository has a filter: git status does not enter it", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        const canary = join(world.folder, "canary")
        planter(world, (cwd) => {
          const sub = join(cwd, "sub")
          git(cwd, "init", "--quiet", sub)
          commit(sub, "in it", { f: "1\n" })
          git(cwd, "add", "sub")
          git(cwd, "commit", "--quiet", "-m", "gitlink")
          git(sub, "config", "filter.x.clean", `sh -c 'touch ${canary}; cat'`)
          mkdirSync(join(sub, ".git/info"), { recursive: true })
          writeFileSync(join(sub, ".git/info/attributes"), "* filter=x\n")
          writeFileSync(join(sub, "f"), "2\n")
        })
        yield* world.submit({ plan: world.file({ id: "a", title: "a", owner: "eve" }), checks: ["true"] })
        yield* world.state("g1", "goal_met")
        yield* world.merge("g1")
        assert.isFalse(existsSync(canary), "the filter of the embedded repository has run")
        assert.strictEqual(git(world.root, "show", "main:work.txt"), "done")
        // it would have: the person's own git is told by it
        git(join(world.folder, "eve"), "status")
        assert.isTrue(existsSync(canary), "the plant does not work")
      })
    )
  )

  it.live("checks see no variable of the daemon's that holds a key", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          planter(world, () => {})
          yield* world.submit({
            plan: world.file({ id: "a", title: "a", owner: "eve" }),
            checks: ['env > seen; test "$CI" = yes']
          })
          yield* world.state("g1", "goal_met")
          const seen = readFileSync(join(world.folder, "eve/seen"), "utf8")
          assert.notInclude(seen, KEY)
          assert.notMatch(seen, /DATABASE_URL|GH_PAT|SSH_AUTH_SOCK/)
          assert.match(seen, /^PATH=/m)
        }),
      {
        goals: { env: { CI: "yes" } },
        environment: {
          ANTHROPIC_API_KEY: KEY,
          DATABASE_URL: `postgres://u:${KEY}@h/d`,
          GH_PAT: "1234",
          SSH_AUTH_SOCK: "/run/a"
        }
      }
    )
  )

  const heldLive = mechanism.kind === "none" ? it.live.skip : long.live
  heldLive("checks are held in their folder, without network", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          writeFileSync(join(world.folder, "secret"), KEY)
          planter(world, () => {})
          yield* world.submit({
            plan: world.file({ id: "a", title: "a", owner: "eve" }),
            checks: [
              `! cat ${world.folder}/secret`,
              `! cat ${world.root}/README.md`,
              `touch ${world.folder}/out || true`,
              "echo 'there is a network:' && ! grep -qvE 'lo:|[|]' /proc/net/dev",
              "touch made-here"
            ]
          })
          yield* world.until("g1", "its review", ({ state }) => state === "goal_met" || state === "blocked")
          const { findings } = yield* world.goals.page("g1", 0, caller)
          assert.deepStrictEqual(
            findings.filter(({ severity }) => severity === "error").map(({ message }) => message),
            []
          )
          assert.isFalse(existsSync(join(world.folder, "out")))
          assert.isTrue(existsSync(join(world.folder, "eve/made-here")))
        }),
      { isHeld: true, goals: { rounds: 1 } }
    )
  )

  it.live.skipIf(mechanism.kind === "none")("checks on merged work are held in a checkout whose git works", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          for (const agent of ["bob", "eve"]) {
            const place = world.worktree(agent)
            const work = () =>
              Effect.sync(() => {
                commit(place.cwd, agent, { [agent]: "done\n" })
                return { output: "done" }
              })
            world.crew.add(agent, work, place)
          }
          yield* world.submit({
            plan: world.file({ id: "a", title: "a", owner: "bob" }, { id: "b", title: "b", owner: "eve" }),
            checks: ["test -f bob && test -f eve", "git log --format=%s | grep -x first", "git status", "touch built"]
          })
          yield* world.until("g1", "its review", ({ state }) => state === "goal_met" || state === "blocked")
          const { findings } = yield* world.goals.page("g1", 0, caller)
          assert.deepStrictEqual(
            findings.map(({ message }) => message.replace(/^`.*` /, "")),
            ["succeeded", "succeeded", "succeeded", "succeeded"]
          )
        }),
      { isHeld: true, goals: { rounds: 1 } }
    )
  )

  it.live("where no sandbox works, the review says so; where one is required, no check runs", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          planter(world, () => {})
          yield* world.submit({ plan: world.file({ id: "a", title: "a", owner: "eve" }), checks: ["touch ran"] })
          yield* world.state("g1", "blocked")
          const { findings } = yield* world.goals.page("g1", 0, caller)
          assert.match(findings[0]!.message, /`touch ran` could not be run: .*requires a sandbox/)
          assert.isFalse(existsSync(join(world.folder, "eve/ran")))
        }),
      { goals: { sandbox: "required", rounds: 1 } }
    )
  )
})
