/** A goal whose agent breaks the repository that it works in: that is said, and the goal is not met. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"
import { long } from "../../support/Long.ts"

const COMMIT =
  "cat > /dev/null; echo new > made; git add made; git -c user.name=w -c user.email=w@localhost commit -qm made"

/** Git cannot read it: in two ways, and in more of them. */
const BREAKS = [
  ["is taken away", "rm -r .git", long.live],
  ["names no commit any more", "echo broken > .git/HEAD", long.live],
  ["has no objects any more", "rm -r .git/objects", it.live],
  [
    "has objects that are broken",
    "find .git/objects -type f | while read f; do chmod u+w $f; echo broken > $f; done",
    long.live
  ]
] as const

for (const [what, breaks, live] of BREAKS)
  live(`a repository that ${what}`, () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: { w: { worktree: true, backend: { type: "command", shell: `${COMMIT}; ${breaks}` } } },
        goals: { workers: ["w"], checks: ["true"], autoStart: true }
      })
      const plan = join(box.folder, "plan.json")
      writeFileSync(plan, JSON.stringify({ tasks: [{ id: "t1", title: "make it", description: "make it" }] }))
      const script = "git init -q -b main; git add .; git -c user.name=p -c user.email=p@localhost commit -qm one"
      execFileSync("sh", ["-ec", script], { cwd: box.project })
      yield* box.up()
      assert.strictEqual((yield* box.cli("goal", "make it", "--plan", plan)).code, 0)
      const said = Effect.map(box.cli("goal", "show", "g1"), ({ stdout }) => stdout)
      yield* box.until("it is said", said, (text) => /repository .*cannot be read: ./.test(text))
      const waiting = Effect.map(box.cli("waiting"), ({ stdout }) => stdout)
      yield* box.until("somebody is told", waiting, (text) => /^shop\/(w|g1): /m.test(text))
      assert.lengthOf(yield* box.runes("plan.task_completed", "plan.goal_met"), 0)
    })
  )
