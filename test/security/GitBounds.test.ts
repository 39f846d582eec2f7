/** The daemon's own git has bounds over what an agent has committed: an ordinary repository beside bounds set low. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { Bounds, git, type Call } from "../../src/git/Git.ts"
import * as Store from "../../src/git/Store.ts"
import * as TreeDiff from "../../src/git/TreeDiff.ts"
import * as Worktree from "../../src/agents/Worktree.ts"
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

const LOW = { memory: 1024 ** 2, processor: 300 }

describe("bounds of the daemon's git", () => {
  it.live("a command that needs more memory than it may have is ended, and says so", () =>
    Effect.gen(function* () {
      const { root } = world()
      const call: Call = { gitDir: join(root, ".git"), command: "log", options: ["--format=%s"], names: ["main"] }
      assert.deepStrictEqual(yield* git(call), { code: 0, stdout: "one\n", stderr: "" })
      const { message, remedy } = yield* Effect.flip(Effect.provideService(git(call), Bounds, LOW))
      assert.match(message, /^git log in .*\.git was ended: it needs more than 1 MiB of memory$/)
      assert.match(remedy, /^look at it by hand/)
    })
  )

  it.live("an agent's patch is refused by the same words, and is there within ordinary bounds", () =>
    Effect.gen(function* () {
      const { root, stores, tree } = world()
      yield* files(Worktree.prepare({ repository: root, stores, folder: tree, agent: "x" }))
      execFileSync("sh", ["-ec", "echo changed > file-7"], { cwd: tree })
      const store = (yield* files(Store.open(stores, root)))!
      const diff = files(TreeDiff.diff(store, stores, tree))
      const { message } = yield* Effect.flip(Effect.provideService(diff, Bounds, LOW))
      assert.match(message, /was ended: it needs more than 1 MiB of memory$/)
      assert.deepStrictEqual((yield* diff)!.files, [{ path: "file-7", added: 1, removed: 1 }])
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
