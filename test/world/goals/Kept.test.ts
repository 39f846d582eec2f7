/** Commits of goals that came to nothing, in repositories of agents' own; the machine's sandbox holds the git that works there. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ToolSandbox from "../../../src/runs/ToolSandbox.ts"
import * as Worktree from "../../../src/agents/workplace/Worktree.ts"
import { Confine } from "../../../src/runs/git/GitStore.ts"
import { caller, commit, git, run, type World } from "./World.ts"
import { long } from "../../support/Long.ts"

const files = <A, E>(effect: Effect.Effect<A, E, import("effect").FileSystem.FileSystem>) =>
  Effect.provide(effect, NodeFileSystem.layer)

const isHeld = await Effect.runPromise(
  Effect.flatMap(Confine, (confine) => confine("/nowhere")).pipe(
    Effect.provide(ToolSandbox.layer({ environment: { PATH: process.env["PATH"] }, hidden: [] })),
    Effect.map((hold) => hold !== undefined)
  )
)
if (!isHeld) console.warn("SKIPPED: branches that are taken back (no sandbox works on this machine)")

/** An agent in a repository of its own, with what it does for each task; one without an answer is at work until it is interrupted. */
const agent = (world: World, name: string, does: (task: string, cwd: string) => "done" | "fails" | undefined) =>
  Effect.gen(function* () {
    const of = {
      repository: world.root,
      stores: join(world.folder, "state/store"),
      folder: join(world.folder, "state/worktrees/web", name)
    }
    const { branch, cwd } = yield* files(Worktree.prepare({ ...of, agent: name }))
    world.crew.add(
      name,
      ({ messageId }) =>
        Effect.suspend(() => {
          const done = does(messageId.split("/")[2]!, cwd)
          if (done === undefined) return Effect.never
          return Effect.succeed(done === "done" ? { output: "done" } : { outcome: "error" as const })
        }),
      { branch: branch!, cwd }
    )
    return cwd
  })

const notes = (cwd: string): string =>
  existsSync(join(cwd, "notes.md")) ? readFileSync(join(cwd, "notes.md"), "utf8") : ""
const line = (cwd: string, text: string) => commit(cwd, text, { "notes.md": `${notes(cwd)}${text}\n` })
const task = (id: string, owner = "bob") => ({ id, title: id, owner })
const subjects = (world: World, ref: string) => git(world.root, "log", "--format=%s", `main..${ref}`).split("\n")

describe.skipIf(!isHeld)("what a goal leaves that came to nothing", () => {
  it.live("a cancelled goal's commits and changes are kept by name, and are not in the next goal's merge", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          const cwd = yield* agent(world, "bob", (id, at) => {
            line(at, id)
            if (id !== "a") return "done"
            writeFileSync(join(at, "README.md"), "half\n")
            writeFileSync(join(at, "new.txt"), "half\n")
            return undefined
          })
          yield* world.submit({ plan: world.file(task("a")) })
          yield* world.until("g1", "it has committed", () => existsSync(join(cwd, "new.txt")))
          const { message } = yield* world.goals.cancel("g1", "", caller)
          assert.match(message, /^g1 is stopped; any commits of bob for it are kept as agentd\/kept\/bob\/g1\.$/)
          yield* world.until("g1", "it is named", ({ detail }) =>
            detail.endsWith("; its commits are kept as agentd/kept/bob/g1")
          )
          yield* world.submit({ plan: world.file(task("b"), task("c")) })
          yield* world.state("g2", "goal_met")
          assert.deepStrictEqual((yield* world.goals.page("g2", 0, caller)).findings, [])
          yield* world.merge("g2")
          assert.strictEqual(notes(world.root), "b\nc\n")
          assert.isFalse(existsSync(join(world.root, "new.txt")))
          assert.deepStrictEqual(subjects(world, "agentd/kept/bob/g1"), ["not committed when its goal ended", "a"])
          for (const file of ["README.md", "new.txt"])
            assert.strictEqual(git(world.root, "show", `agentd/kept/bob/g1:${file}`), "half")
        }),
      { isHeld: true }
    )
  )

  long.live(
    "a daemon that is gone between the name and the branch, or before both, does the rest with the next task",
    () =>
      run(
        (world) =>
          Effect.gen(function* () {
            world.repository()
            const cwd = yield* agent(world, "bob", (id, at) => {
              line(at, id)
              return id === "a" ? undefined : "done"
            })
            yield* world.submit({ plan: world.file(task("a")) })
            yield* world.until("g1", "it has committed", () => existsSync(join(cwd, "notes.md")))
            yield* world.goals.cancel("g1", "", caller)
            // as if it had died before it gave the name
            git(world.root, "update-ref", "-d", "refs/agentd/kept/bob/g1")
            yield* world.restart
            yield* world.until("g1", "it is named", ({ detail }) => detail.includes("agentd/kept/bob/g1"))
            yield* world.submit({ plan: world.file(task("b")) })
            yield* world.state("g2", "goal_met")
            yield* world.merge("g2")
            assert.strictEqual(notes(world.root), "b\n")
          }),
        { isHeld: true }
      )
  )

  long.live("two cancelled goals of one agent", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          const cwd = yield* agent(world, "bob", (id, at) => {
            line(at, id)
            return ["a", "b"].includes(id) ? undefined : "done"
          })
          for (const [goal, id] of [
            ["g1", "a"],
            ["g2", "b"]
          ] as const) {
            yield* world.submit({ plan: world.file(task(id)) })
            yield* world.until(goal, "it has committed", () => notes(cwd).endsWith(`${id}\n`))
            yield* world.goals.cancel(goal, "", caller)
            yield* world.until(goal, "bob is free", () => !world.crew.agents.get("bob")!.member.busy)
          }
          yield* world.submit({ plan: world.file({ id: "c", title: "c", owner: "bob" }) })
          yield* world.state("g3", "goal_met")
          yield* world.merge("g3")
          assert.strictEqual(notes(world.root), "c\n")
          assert.deepStrictEqual(subjects(world, "agentd/kept/bob/g1"), ["a"])
          assert.deepStrictEqual(subjects(world, "agentd/kept/bob/g2"), ["b"])
        }),
      { isHeld: true }
    )
  )

  it.live("work that is done, or that a person has had it do, is never taken back", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          const cwd = yield* agent(world, "bob", (id, at) => {
            line(at, id)
            return id === "b" ? undefined : "done"
          })
          yield* world.submit({ plan: world.file(task("a")) })
          yield* world.state("g1", "goal_met")
          yield* world.submit({ plan: world.file(task("b")) })
          yield* world.until("g2", "it has committed", () => notes(cwd).endsWith("b\n"))
          yield* world.goals.cancel("g2", "", caller)
          yield* world.submit({ plan: world.file(task("c")) })
          yield* world.state("g3", "goal_met")
          yield* world.merge("g1")
          yield* world.merge("g3")
          assert.strictEqual(notes(world.root), "a\nc\n")
        }),
      { isHeld: true }
    )
  )
})
