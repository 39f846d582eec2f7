/** Goals under a real daemon that is killed: real agents, real git, the real command line. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { call, type Client } from "../../src/control/ControlClient.ts"
import type { GoalPage } from "../../src/domain/GoalMessages.ts"
import type { Rune } from "../../src/domain/Rune.ts"
import { dice } from "../support/Dice.ts"
import * as Sandbox from "../support/Sandbox.ts"

const long = process.env["LONG"] !== undefined
/** A failing one is printed; `SEED=n` plays it again, as far as the machine is as fast. */
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

const shell = (script: string, more: object = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", killGrace: "1 second" },
  backoff: { base: "200ms", cap: "1 second" },
  minRunInterval: "0ms",
  ...more
})

/** Commits a file named after its task; one named `bad…` fails until a file of that name lies beside the project. */
const WORKER = `p=$(cat); id=$(printf '%s\\n' "$p" | sed -n 's/.*Task \\([a-z0-9-]*\\): .*/\\1/p' | head -n 1); sleep 0.3
case $id in bad*) [ -e "$SANDBOX/$id" ] || { echo "it is broken" >&2; exit 3; };; esac
echo "$id" > "$id.txt"; [ -z "$SAME" ] || echo "$id" > same.txt; git add -A
git diff --cached --quiet || git -c user.name=w -c user.email=w@example.org commit -qm "$id"; echo "made $id.txt"; sleep 0.1`

const PLAN = { tasks: ["a", "b", "c"].map((id) => ({ id, title: id, dependsOn: id === "c" ? ["a", "b"] : [] })) }

/** The first answer cannot be used. */
const PLANNER = `p=$(cat); sleep 0.3; case $p in *"could not be used"*) echo '${JSON.stringify(PLAN)}';; *) echo "I would {begin";; esac`

/** Finds fault once, with b. */
const CRITIC = `p=$(cat); sleep 0.3; case $p in
*fix-1-1*) echo '{"findings":[]}';;
*) echo '{"findings":[{"severity":"error","task":"b","message":"too short","fix":"make it longer"}]}';; esac`

const world = Effect.fnUntraced(function* (more: { readonly goals?: object; readonly env?: object } = {}) {
  const box = yield* Sandbox.make()
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", box.project, ...args], { encoding: "utf8", stdio: "pipe" })
  git("init", "-q", "-b", "main")
  git("config", "user.name", "t")
  git("config", "user.email", "t@example.org")
  git("commit", "-q", "--allow-empty", "-m", "first")
  const worker = shell(WORKER, { worktree: true })
  const { env = {} } = more
  box.configure({
    agents: {
      pm: shell(PLANNER),
      ann: { ...worker, backend: { ...worker.backend, env } },
      ben: { ...worker, backend: { ...worker.backend, env } },
      critic: shell(CRITIC)
    },
    goals: { workers: ["ann", "ben"], backoff: { base: "200ms", cap: "1 second" }, autoStart: true, ...more.goals }
  })
  const caller = { by: "ada", config: box.file("agentd.jsonc") }
  const ask = <A, E>(use: (client: Client) => Effect.Effect<A, E>) =>
    Effect.orElseSucceed(call(join(box.state, "control.sock"), use), () => undefined)
  const ready = Effect.map(
    ask((client) => client.Status()),
    (status) => status?.daemon.phase === "ready"
  )
  const until = (what: string, holds: (page: GoalPage) => boolean) =>
    box.until(
      what,
      ask((client) => client.Goal({ name: "g1", from: 0, caller })),
      (page) => page !== undefined && holds(page)
    )
  const state = (wanted: string) => until(wanted, ({ goal }) => goal.state === wanted)
  return { box, git, state, until, up: box.up(ready) }
})

const messagesOf = ({ payload }: Rune): ReadonlyArray<string> => {
  const event = payload["event"]
  return typeof event === "object" && event !== null && "messageIds" in event ? (event.messageIds as Array<string>) : []
}

/** By message: how often a turn began that carried it, and after which of them it was over. */
const carriedAfterItsEnd = (runes: ReadonlyArray<Rune>): ReadonlyArray<string> => {
  const carried = new Map<string, ReadonlyArray<string>>()
  const done = new Set<string>()
  const twice: Array<string> = []
  for (const rune of runes) {
    if (rune.kind === "turn.started") {
      carried.set(rune.actor, messagesOf(rune))
      twice.push(...messagesOf(rune).filter((messageId) => done.has(messageId)))
    }
    if (rune.kind === "turn.completed") for (const messageId of carried.get(rune.actor) ?? []) done.add(messageId)
  }
  return twice
}

const together = long ? describe : describe.concurrent

together("a goal under a daemon that is killed", { timeout: 90_000 }, () => {
  for (let round = 0; round < (long ? 12 : 1); round++) {
    it.live(`INV-TASK-SINGLE: kill -9 at any moment: what ran to its end is not run again (${round})`, () =>
      Effect.gen(function* () {
        const { box, git, state, until, up } = yield* world()
        const below = dice(seed + round)
        yield* up
        yield* box.cli("goal", "Open a shop", "--planner", "pm", "--critic", "critic", "--check", "sleep 0.3; ls c.txt")
        for (let loss = 0; loss < (long ? 8 : 2); loss++) {
          // in the middle of a task for sure, then anywhere
          if (loss === 0 && !long) yield* until("a task runs", ({ goal }) => goal.tasks.running > 0)
          else yield* Effect.sleep(below(1_500))
          yield* box.kill9
          yield* up
        }
        const { goal, tasks } = (yield* state("goal_met"))!
        assert.deepStrictEqual(
          tasks.map(({ errors, id, state }) => [id, state, errors]),
          ["a", "b", "c", "fix-1-1"].map((id) => [id, "completed", 0]),
          "a loss is no error of a task"
        )
        assert.strictEqual(goal.rounds, 1)
        const runes = yield* box.runes("turn.started", "turn.completed", "plan.task_completed", "inbox.received")
        assert.deepStrictEqual(carriedAfterItsEnd(runes), [])
        assert.lengthOf(
          runes.filter(({ kind }) => kind === "plan.task_completed"),
          4
        )
        // the planner twice, two reviews, four tasks: no answer is asked for again
        assert.lengthOf(
          runes.filter(({ kind }) => kind === "inbox.received"),
          8
        )
        assert.strictEqual((yield* box.cli("goal", "merge", "g1")).code, 0)
        assert.strictEqual(git("show", "main:a.txt", "main:c.txt", "main:fix-1-1.txt").trim(), "a\nc\nfix-1-1")
      }).pipe(Effect.tapCause(() => Effect.logError(`replay with SEED=${seed + round}${long ? " LONG=1" : ""}`)))
    )
  }

  it.live(
    "blocked: it is so after kill -9 too, goes on after retry; what conflicts in a merge is named, not forced",
    () =>
      Effect.gen(function* () {
        const { box, git, state, until, up } = yield* world({ goals: { maxTaskErrors: 1 }, env: { SAME: "1" } })
        yield* up
        const tasks = [
          { id: "bad", title: "x", owner: "ann" },
          { id: "after", title: "x", owner: "ben", dependsOn: ["bad"] }
        ]
        writeFileSync(box.file("plan.json"), JSON.stringify({ tasks }))
        yield* box.cli("goal", "Open a shop", "--plan", "plan.json")
        yield* state("blocked")
        yield* box.kill9
        yield* up
        const before = (yield* state("blocked"))!
        assert.match(before.goal.detail, /1 task depends on bad \(.*exit code 3.*\), which failed/)
        writeFileSync(`${box.folder}/bad`, "")
        assert.strictEqual((yield* box.cli("goal", "retry", "g1", "bad")).code, 0)
        // both write the same file: the gate finds it, whatever the agents say
        const found = yield* until("the review", ({ findings }) => findings.length > 0)
        assert.match(found!.findings[0]!.message, /conflicts with the rest of the work in same\.txt/)
        yield* box.cli("goal", "cancel", "g1", "--reason", "seen enough")
        const merge = yield* box.cli("goal", "merge", "g1", "--unreviewed")
        assert.strictEqual(merge.code, 1)
        assert.match(merge.stdout, /merged agentd\/ann .*\n.*conflict agentd\/ben .*same\.txt/)
        assert.strictEqual(readFileSync(box.file("same.txt"), "utf8"), "bad\n")
        assert.strictEqual(git("status", "--porcelain", "--untracked-files=no"), "", "the checkout is clean")
        assert.isFalse(existsSync(box.file("after.txt")))
      })
  )
})
