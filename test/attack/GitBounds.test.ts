/** The daemon's own git has bounds over what an agent has committed: an ordinary repository beside bounds set low. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Bounds, git, type Call } from "../../src/runs/git/Git.ts"
import * as GitStore from "../../src/runs/git/GitStore.ts"
import * as TreeDiff from "../../src/runs/git/TreeDiff.ts"
import * as Worktree from "../../src/agents/workplace/Worktree.ts"
import * as Scratch from "../support/Scratch.ts"

const files = Effect.provide(NodeFileSystem.layer)

/** A repository with a thousand files, and an agent's tree of it in which one has changed. */
const world = () => {
  const folder = Scratch.make("agentd-git-bounds-")
  const root = join(folder, "person")
  const script = `mkdir person && cd person && git init -q -b main && for n in $(seq 1000); do echo $n > file-$n; done
    git add . && git -c user.name=p -c user.email=p@localhost commit -qm one`
  execFileSync("sh", ["-ec", script], { cwd: folder })
  return { root, stores: join(folder, "state/store"), tree: join(folder, "state/worktrees/x") }
}

const USUAL = { memory: 2 * 1024 ** 3, processor: 300, output: 64 * 1024 ** 2, entries: 2_000_000 }
const LOW = { ...USUAL, memory: 1024 ** 2 }

describe("bounds of the daemon's git", () => {
  it.live("a command that needs more memory than it may have is ended, and says so", () =>
    Effect.gen(function* () {
      const { root } = world()
      const call: Call = { gitDir: join(root, ".git"), command: "log", options: ["--format=%s"], names: ["main"] }
      assert.deepStrictEqual(yield* git(call), { code: 0, stdout: "one\n", stderr: "" })
      const { message, remedy } = yield* Effect.flip(Effect.provideService(git(call), Bounds, LOW))
      assert.match(message, /^git log in .*\.git was ended: it needs more than 1 MiB of memory$/)
      assert.match(remedy, /^inspect it by hand/)
    })
  )

  it.live("an agent's patch is refused by the same words, and is there within ordinary bounds", () =>
    Effect.gen(function* () {
      const { root, stores, tree } = world()
      yield* files(Worktree.prepare({ repository: root, stores, folder: tree, agent: "x" }))
      execFileSync("sh", ["-ec", "echo changed > file-7"], { cwd: tree })
      const store = (yield* files(GitStore.open(stores, root)))!
      const diff = files(TreeDiff.diff(store, stores, tree))
      const { message } = yield* Effect.flip(Effect.provideService(diff, Bounds, LOW))
      assert.match(message, /was ended: it needs more than 1 MiB of memory$/)
      assert.deepStrictEqual((yield* diff)!.files, [{ path: "file-7", added: 1, removed: 1 }])
    })
  )

  it.live("the entries of a commit are counted before it is unfolded", () =>
    Effect.gen(function* () {
      const { root, stores, tree } = world()
      yield* files(Worktree.prepare({ repository: root, stores, folder: tree, agent: "x" }))
      const store = (yield* files(GitStore.open(stores, root)))!
      const diff = files(TreeDiff.diff(store, stores, tree))
      const few = Effect.provideService(diff, Bounds, { ...USUAL, entries: 900 })
      assert.match((yield* Effect.flip(few)).message, /^git ls-tree in .* was ended: it has more than 900 files$/)
      assert.deepStrictEqual((yield* Effect.provideService(diff, Bounds, { ...USUAL, entries: 1_000 }))!.files, [])
    })
  )

  it.live("a command that prints more than it may is ended; a patch is cut where enough of it is kept", () =>
    Effect.gen(function* () {
      const { root, stores, tree } = world()
      const call: Call = { gitDir: join(root, ".git"), command: "ls-files", options: ["-z"] }
      const low = { ...USUAL, output: 1_000 }
      const { message } = yield* Effect.flip(Effect.provideService(git(call), Bounds, low))
      assert.match(message, /^git ls-files in .* was ended: it prints more than 1 MiB$/)
      yield* files(Worktree.prepare({ repository: root, stores, folder: tree, agent: "x" }))
      execFileSync("sh", ["-ec", "seq 400000 > file-7; echo 1 > file-8"], { cwd: tree })
      const store = (yield* files(GitStore.open(stores, root)))!
      const found = (yield* Effect.provideService(files(TreeDiff.diff(store, stores, tree)), Bounds, {
        ...USUAL,
        output: 1.5 * 1024 ** 2
      }))!
      assert.isTrue(found.isCut)
      assert.isAtMost(found.patch.length, TreeDiff.MAX_PATCH)
      assert.deepStrictEqual(
        found.files.map(({ path }) => path),
        ["file-7", "file-8"]
      )
    })
  )

  it.live("ends with its asker", () =>
    Effect.gen(function* () {
      const folder = Scratch.make("agentd-git-asker-")
      const pid = join(folder, "pid")
      writeFileSync(
        join(folder, "git"),
        `#!/bin/sh\necho $$ > ${pid}.new && mv ${pid}.new ${pid} && exec sleep 600\n`,
        {
          mode: 0o755
        }
      )
      const path = ConfigProvider.layer(ConfigProvider.fromUnknown({ PATH: `${folder}:/usr/bin:/bin` }))
      const asked = yield* Effect.forkChild(
        Effect.provide(git({ gitDir: folder, command: "rev-parse", names: ["HEAD"] }), path)
      )
      while (!existsSync(pid)) yield* Effect.sleep(5)
      yield* Fiber.interrupt(asked)
      assert.isFalse(existsSync(`/proc/${readFileSync(pid, "utf8").trim()}/cwd`))
    })
  )

  it.live("a git that is not there is told of as that", () =>
    Effect.gen(function* () {
      const { root } = world()
      const call: Call = { gitDir: join(root, ".git"), command: "log", names: ["main"] }
      const nowhere = ConfigProvider.layer(ConfigProvider.fromUnknown({ PATH: "/nowhere" }))
      const { message, remedy } = yield* Effect.flip(Effect.provide(git(call), nowhere))
      assert.match(message, /^git log in .*\.git could not be run: /)
      assert.match(remedy, /^install git/)
    })
  )
})
