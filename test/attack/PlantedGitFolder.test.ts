/**
 * Finding: an agent that is held plants `commondir` in the person's git folder, with settings of
 * its own beside it: the person's next `git status`, and the daemon's next worktree, run them. And:
 * the removal of a worktree runs the filters of a repository that lies in it.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Worktree from "../../src/agents/workplace/Worktree.ts"
import { probe } from "../../src/runs/sandbox/Sandbox.ts"
import * as Confined from "../support/Confined.ts"

const environment = { PATH: process.env["PATH"]!, HOME: "/nonexistent" }
const mechanisms = await Promise.all(
  (["bubblewrap", "namespaces"] as const).map((kind) => Effect.runPromise(probe(environment, [kind])))
)

const git = (folder: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", ...args], {
    encoding: "utf8",
    stdio: "pipe"
  }).trim()

const world = Effect.acquireRelease(
  Effect.sync(() => {
    const home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-planted-folder-")))
    const repository = path.join(home, "project")
    const canary = path.join(home, "canary")
    fs.mkdirSync(repository)
    git(repository, "init", "--quiet", "--initial-branch=main")
    fs.writeFileSync(path.join(repository, "f"), "1\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "one")
    const spec = (agent: string) => ({
      agent,
      repository,
      folder: path.join(home, "state/worktrees", agent),
      stores: path.join(home, "state/store")
    })
    const ran = () => {
      const there = fs.existsSync(canary)
      fs.rmSync(canary, { force: true })
      return there
    }
    return { home, repository, canary, spec, ran }
  }),
  ({ home }) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
)

/** Plants a common folder in a git folder: its own settings and attributes, all else as it is. */
const plant = (gitDir: string, canary: string) => `
cd ${gitDir} || exit 1
mkdir -p e/info; for n in objects refs logs packed-refs; do ln -sfn ../$n e/$n; done
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch ${canary}; true\\n[filter "x"]\\n\\tclean = touch ${canary}; cat\\n\\tsmudge = touch ${canary}; cat\\n' > e/config
printf '* filter=x\\n' > e/info/attributes
printf 'e\\n' > commondir
test -e commondir && echo planted`

const prepare = (spec: Worktree.WorktreeSpec) => Effect.provide(Worktree.prepare(spec), NodeFileSystem.layer)

describe("commondir planted in the person's git folder", () => {
  for (const mechanism of mechanisms) {
    const live = it.live.skipIf(mechanism.kind === "none")
    for (const place of ["a worktree of its own", "the person's checkout"] as const) {
      live(`by an agent in ${place}, held by ${mechanism.kind}: it cannot be made, and nothing runs`, () =>
        Effect.gen(function* () {
          const { canary, home, ran, repository, spec } = yield* world
          const { folder } = yield* prepare(spec("eve"))
          const workspace = place === "a worktree of its own" ? folder : repository
          const rules = { workspace, network: false, hidden: [path.join(home, "state")], environment }
          const script = plant(path.join(repository, ".git"), canary)
          const { output } = yield* Confined.run(mechanism, rules, ["/bin/sh", "-c", script], environment)
          assert.notInclude(output, "planted")
          assert.isFalse(fs.existsSync(path.join(repository, ".git/commondir")))
          git(repository, "status")
          yield* prepare(spec("bob"))
          assert.isFalse(ran())
        })
      )
    }
  }

  it.live("the plant works: it would have run in the person's git", () =>
    Effect.gen(function* () {
      const { canary, ran, repository } = yield* world
      execFileSync("sh", ["-c", plant(path.join(repository, ".git"), canary)])
      git(repository, "status")
      assert.isTrue(ran())
    })
  )
})

describe("a repository in a worktree that is removed", () => {
  it.live("is not entered: the worktree is kept, and no filter runs", () =>
    Effect.gen(function* () {
      const { canary, ran, spec } = yield* world
      const { folder } = yield* prepare(spec("eve"))
      const sub = path.join(folder, "sub")
      git(folder, "init", "--quiet", sub)
      fs.writeFileSync(path.join(sub, "f"), "1\n")
      git(sub, "add", ".")
      git(sub, "commit", "--quiet", "-m", "in it")
      git(folder, "add", "sub")
      git(folder, "commit", "--quiet", "-m", "gitlink")
      git(sub, "config", "filter.x.clean", `touch ${canary}; cat`)
      fs.mkdirSync(path.join(sub, ".git/info"), { recursive: true })
      fs.writeFileSync(path.join(sub, ".git/info/attributes"), "* filter=x\n")
      fs.writeFileSync(path.join(sub, "f"), "2\n")
      const removal = yield* Effect.provide(Worktree.remove(spec("eve")), NodeFileSystem.layer)
      assert.isFalse(ran())
      assert.deepInclude(removal, { _tag: "Kept", reason: "Uncommitted" })
      assert.isTrue(fs.existsSync(path.join(sub, "f")))
      git(folder, "status")
      assert.isTrue(ran(), "the plant does not work")
    })
  )
})
