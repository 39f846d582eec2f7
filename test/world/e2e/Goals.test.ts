/** Goals under a real daemon that is killed: real agents, real git, real mail, the real command line. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { call, type Client } from "../../../src/api/rpc/ControlClient.ts"
import type { GoalPage } from "../../../src/domain/GoalMessages.ts"
import * as SmtpStand from "../alerts/SmtpStand.ts"
import { dice } from "../../support/Dice.ts"
import * as Laws from "../../support/Laws.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { PATIENCE } from "../../support/Patience.ts"
import { isAll, long, sample } from "../../support/Long.ts"

/** A failing one is printed; `SEED=n` plays it again, as far as the machine is as fast. */
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

const shell = (script: string, more: object = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", killGrace: "1 second", passEnv: ["SANDBOX"] },
  backoff: { base: "200ms", cap: "1 second" },
  minRunInterval: "0ms",
  ...more
})

/**
 * Commits a file named after its task. One named `bad…` fails until a file of that name lies beside the
 * project, one named `once…` fails until it is told of it, one named `slow…` never ends.
 */
const WORKER = `p=$(cat); id=$(printf '%s\\n' "$p" | sed -n 's/.*Task \\([a-z0-9-]*\\): .*/\\1/p' | head -n 1); sleep 0.2
case $id in bad*) [ -e "$SANDBOX/$id" ] || { echo "it is broken" >&2; exit 3; };; slow*) sleep 600;;
once*) case $p in *"The last try ended"*) ;; *) exit 3;; esac;; esac
echo "$id" > "$id.txt"; [ -z "$SAME" ] || echo "$id" > same.txt; git add -A
git diff --cached --quiet || git -c user.name=w -c user.email=w@example.org commit -qm "$id"; echo "made $id.txt"; sleep 0.1`

const planOf = (...tasks: ReadonlyArray<readonly [id: string, ...dependsOn: ReadonlyArray<string>]>) => ({
  tasks: tasks.map(([id, ...dependsOn]) => ({ id, title: id, dependsOn }))
})

/** A planner whose first answer cannot be used. */
const PLANNER = `p=$(cat); sleep 0.2; case $p in
*"plan must change"*) echo '${JSON.stringify(planOf(["d"]))}';;
*"could not be used"*) echo '${JSON.stringify(planOf(["a"], ["once", "a"], ["c", "a"]))}';;
*) echo "I would {begin";; esac`

/** Finds fault with the task `once`, then with the plan, then none. */
const CRITIC = `p=$(cat); sleep 0.2; case $p in
*"## d: "*) echo '{"findings":[]}';;
*fix-1-1*) echo '{"findings":[{"severity":"error","message":"there is no door","needsReplan":true}]}';;
*) echo '{"findings":[{"severity":"error","task":"once","message":"too short","fix":"make it longer"}]}';; esac`

/** A moment in the life of a goal: so many ms after the first rune of that kind that tells of it. */
type Moment = readonly [what: string, kind: string, tells: RegExp, wait?: number]

const world = Effect.fnUntraced(function* (
  more: { readonly goals?: object; readonly env?: object; readonly budget?: object } = {}
) {
  const box = yield* Sandbox.make()
  const { port, taken } = yield* SmtpStand.stand()
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", box.project, ...args], { encoding: "utf8", stdio: "pipe" })
  git("init", "-q", "-b", "main")
  git("config", "user.name", "t")
  git("config", "user.email", "t@example.org")
  git("commit", "-q", "--allow-empty", "-m", "first")
  const worker = shell(WORKER, { worktree: true })
  const { budget = {}, env = {} } = more
  box.configure({
    agents: {
      pm: shell(PLANNER),
      ann: { ...worker, budget, backend: { ...worker.backend, env } },
      ben: { ...worker, backend: { ...worker.backend, env } },
      critic: shell(CRITIC)
    },
    goals: { workers: ["ann", "ben"], backoff: { base: "500ms", cap: "1 second" }, ...more.goals },
    mail: {
      to: "you@example.org",
      from: "agentd@example.org",
      digestWindow: "10ms",
      smtp: { host: "127.0.0.1", port, security: "none" }
    }
  })
  const caller = { by: "ada", config: box.file("agentd.jsonc") }
  const socket = join(box.state, "control.sock")
  const ask = <A, E>(use: (client: Client) => Effect.Effect<A, E>) =>
    Effect.orElseSucceed(call(socket, use), () => undefined)
  const ready = Effect.map(
    ask((client) => Effect.all([client.Status(), client.Agents()])),
    (seen) => seen?.[0].daemon.phase === "ready" && seen[1].length === 4
  )
  const page = ask((client) => client.Goal({ name: "g1", from: 0, caller }))
  const until = (what: string, holds: (page: GoalPage) => boolean) =>
    box.until(what, page, (seen) => seen !== undefined && holds(seen))
  const state = (wanted: string) => until(wanted, ({ goal }) => goal.state === wanted)
  const up = box.up(ready)
  /** The first rune after that one that tells of it. */
  const rune = ([what, kind, tells]: Moment, after: number) =>
    box.until(
      what,
      Effect.map(
        ask((client) => {
          const log = client.Log({
            after,
            kinds: [kind],
            internal: true,
            follow: true,
            caller: { ...caller, config: null }
          })
          const told = Stream.filter(log, ({ actor, payload }) => tells.test(`${actor} ${JSON.stringify(payload)}`))
          return Effect.timeout(Stream.runHead(told), PATIENCE)
        }),
        (found) => (found?._tag === "Some" ? found.value.eventId : undefined)
      ),
      (found) => found !== undefined
    )
  /** Killed at that moment, and started again once no process is left; answers with the rune that told of it. */
  const dies = Effect.fnUntraced(function* (moment: Moment, after = 0) {
    const told = yield* rune(moment, after)
    yield* Effect.sleep(moment[3] ?? 0)
    yield* box.kill9
    yield* box.until("no process is left", box.processes, (pids) => pids.length === 0)
    yield* up
    // the next moment may be told of by the same rune
    return told! - 1
  })
  /** Once all is over: nothing was done twice, nothing is left, the log holds. */
  const inOrder = Effect.gen(function* () {
    const runes = yield* box.runes()
    assert.deepStrictEqual(Laws.broken(runes), [])
    const ends = runes.filter(({ kind }) => kind === "plan.task_completed").map(({ payload }) => payload["task_id"])
    assert.strictEqual(new Set(ends).size, ends.length, `ended twice: ${ends.join(", ")}`)
    yield* box.until("no process is left", box.processes, (pids) => pids.length === 0)
    const checkouts = Effect.sync(() => git("worktree", "list").trim().split("\n"))
    yield* box.until("no checkout of agentd's own is left", checkouts, (lines) =>
      lines.every((line) => /\[(main|agentd\/ann|agentd\/ben)\]/.test(line))
    )
    const verdict = yield* box.cli("verify")
    assert.strictEqual(verdict.code, 0, verdict.stdout)
    return runes
  })
  return { box, git, ask, caller, page, state, until, up, dies, inOrder, taken }
})

/** From the goal to the goal met, in the order in which they come. */
const MOMENTS: ReadonlyArray<Moment> = [
  ["goal_received", "plan.goal_received", /./],
  ["the planner is asked", "inbox.received", /decompose\/\d+\/1"/],
  ["the planner works", "turn.started", /^turn\/pm/, 100],
  ["the planner has answered, in words that cannot be used", "turn.completed", /I would/],
  ["its answer is handed back", "inbox.received", /decompose\/\d+\/2"/],
  ["the planner has answered", "turn.completed", /^turn\/pm .*tasks/],
  ["planning", "plan.created", /./],
  ["the plan waits for approval", "plan.created", /./, 200],
  ["executing", "plan.approved", /./],
  ["a task is assigned, and nobody was told", "plan.task_assigned", /"a"/],
  ["a task is given out, and not begun", "inbox.received", /g1\/a\/1"/],
  ["a task runs", "plan.task_started", /"a"/, 100],
  ["a task's turn has ended", "turn.completed", /made a/],
  ["a task is completed", "plan.task_completed", /"a"/],
  ["a task's turn has failed", "turn.error", /exit/],
  ["a failed task is waiting for its next attempt", "plan.task_retried", /once/, 100],
  ["it is tried again", "inbox.received", /g1\/once\/2"/],
  ["reviewing", "plan.reviewing", /./],
  ["in the gate", "plan.reviewing", /./, 150],
  ["the critic is asked", "inbox.received", /review\/\d+\/1"/],
  ["the critic works", "turn.started", /^turn\/critic/, 100],
  ["the critic has answered", "turn.completed", /^turn\/critic/],
  ["its findings are kept", "plan.critique", /./],
  ["what it found becomes a task", "plan.retrying", /./],
  ["replanning", "plan.replanning", /./],
  ["the planner is asked to revise", "inbox.received", /revise\/\d+\/1"/],
  ["the planner has revised", "turn.completed", /^turn\/pm .*\\"d\\"/],
  ["the plan is revised", "plan.updated", /./],
  ["the last review", "plan.reviewing", /./, 150],
  ["goal_met", "plan.goal_met", /./]
]

/** All that anybody was ever asked, where nothing went wrong but what was meant to. */
const ASKED = [
  "decompose/…/1",
  "decompose/…/2",
  "a/1",
  "once/1",
  "once/2",
  "c/1",
  "review/…/1",
  "fix-1-1/1",
  "review/…/1",
  "revise/…/1",
  "d/1",
  "review/…/1"
]

/** A goal from its planner to its end, under a daemon that is killed at each of those moments. */
const killedAt = Effect.fnUntraced(function* (moments: ReadonlyArray<Moment>) {
  const { ask, box, caller, dies, git, inOrder, page, state, taken, up } = yield* world({ goals: { rounds: 4 } })
  yield* up
  const request = { goal: "Open a shop", plan: null, planner: "pm", critic: "critic", checks: ["sleep 0.3; ls c.txt"] }
  // a person who looks now and then, and approves what waits for it
  const person = Effect.gen(function* () {
    for (;;) {
      yield* Effect.sleep(400)
      const seen = yield* page
      if (seen?.goal.detail.includes("goal approve") === true)
        yield* ask((client) =>
          Effect.flatMap(client.GoalAsked({ name: "g1", from: 0, caller }), ({ hash }) =>
            client.GoalApprove({ name: "g1", hash, caller })
          )
        )
    }
  })
  const approving = yield* Effect.forkChild(person)
  const submitting = yield* Effect.forkChild(ask((client) => client.GoalSubmit({ request, caller })))
  let after = 0
  for (const moment of moments) after = yield* dies(moment, after)
  yield* Fiber.await(submitting)
  const { goal, tasks } = (yield* state("goal_met"))!
  yield* Fiber.interrupt(approving)
  assert.deepStrictEqual(
    tasks.map(({ id, state }) => [id, state]),
    ["a", "once", "c", "fix-1-1", "d"].map((id) => [id, "completed"])
  )
  assert.strictEqual(goal.rounds, 2)
  const asked = [...Laws.received(yield* inOrder).keys()].map((id) =>
    id.replace("plan/g1/", "").replace(/\/\d+\//, "/…/")
  )
  assert.sameMembers(asked, ASKED)
  assert.deepStrictEqual(taken, [], "nobody needs to be told of a goal that is met")
  assert.strictEqual((yield* box.cli("goal", "merge", "g1")).code, 0)
  assert.strictEqual(
    git("show", ...["a", "once", "c", "fix-1-1", "d"].map((id) => `main:${id}.txt`)).trim(),
    "a\nonce\nc\nfix-1-1\nd"
  )
})

/** Some of them, in their order. */
const some = (from: number, count: number): ReadonlyArray<Moment> => {
  const below = dice(from)
  const left = MOMENTS.slice(0, -1)
  while (left.length > count) left.splice(below(left.length), 1)
  return left
}

const together = isAll ? describe : describe.concurrent

together("a goal under a daemon that is killed", () => {
  const named = some(seed, 2)
  const rows = sample([...MOMENTS.map((moment) => [moment]), MOMENTS], [named])
  for (const moments of rows) {
    const when = moments.length > 5 ? "at every moment" : moments.map(([what]) => what).join("; ")
    it.live(`INV-TASK-SINGLE: kill -9: ${when} [SEED=${seed}]`, () => killedAt(moments))
  }

  long.live(
    "blocked and cancelled: kill -9 keeps it so; it goes on after retry; a conflict in a merge is named, not forced",
    () =>
      Effect.gen(function* () {
        const { box, dies, git, inOrder, state, taken, until, up } = yield* world({
          goals: { maxTaskErrors: 1, autoStart: true },
          env: { SAME: "1" }
        })
        yield* up
        const tasks = [
          { id: "bad", title: "x", owner: "ann" },
          { id: "after", title: "x", owner: "ben", dependsOn: ["bad"] }
        ]
        writeFileSync(box.file("plan.json"), JSON.stringify({ tasks }))
        yield* box.cli("goal", "Open a shop", "--plan", "plan.json")
        if (isAll) yield* dies(["a task has failed", "plan.task_failed", /./])
        yield* dies(["blocked", "plan.blocked", /./])
        const before = (yield* state("blocked"))!
        assert.match(before.goal.detail, /1 task depends on bad \(.*exit code 3.*\), which failed/)
        yield* box.until(
          "its mail",
          Effect.sync(() => taken.length),
          (mails) => mails > 0
        )
        const watching = yield* Effect.forkChild(box.cli("goal", "watch", "g1"))
        writeFileSync(`${box.folder}/bad`, "")
        assert.strictEqual((yield* box.cli("goal", "retry", "g1", "bad")).code, 0)
        if (isAll) yield* dies(["it goes on", "plan.unblocked", /./])
        // both write the same file: the gate finds it, whatever the agents say
        const conflict = /conflicts with the rest of the work in same\.txt/
        if (isAll) yield* dies(["the gate finds it", "plan.critique", conflict])
        yield* until("the review", ({ findings }) => findings.some(({ message }) => conflict.test(message)))
        yield* box.cli("goal", "cancel", "g1", "--reason", "seen enough")
        yield* dies(["cancelled", "plan.stopped", /seen enough/])
        const watched = yield* Fiber.join(watching)
        assert.strictEqual(watched.code, 1)
        assert.match(
          watched.stderr,
          /^(Waiting for the daemon, which does not answer.*\n)*agentd: g1 stopped: .*seen enough/
        )
        assert.match(watched.stdout, /g1 is working: [^]*g1 is stopped: /)
        const merge = yield* box.cli("goal", "merge", "g1", "--unreviewed")
        assert.strictEqual(merge.code, 1)
        assert.match(merge.stdout, /merged agentd\/ann .*\n.*conflict agentd\/ben .*same\.txt/)
        assert.strictEqual(readFileSync(box.file("same.txt"), "utf8"), "bad\n")
        assert.strictEqual(git("status", "--porcelain", "--untracked-files=no"), "", "the checkout is clean")
        assert.isFalse(existsSync(box.file("after.txt")))
        yield* inOrder
        assert.lengthOf(taken, 1)
        assert.match(SmtpStand.header(taken[0], "Subject")!, /goal g1 needs you: 1 task depends on bad/)
        const text = SmtpStand.body(taken[0])
        for (const line of [
          "Who:     goal shop/g1",
          "submitted this goal: Open a shop",
          "0 of 2 tasks done, 1 failed, 1 blocked, 1 error",
          /agentd .*goal retry shop-[0-9a-f]+\/g1/
        ]) {
          assert.match(text, typeof line === "string" ? new RegExp(line.replaceAll("/", "\\/")) : line)
        }
      })
  )

  long.live("stopped, by a spent budget and by a person: kill -9 then, and nothing goes on", () =>
    Effect.gen(function* () {
      const { box, dies, inOrder, state, taken, up } = yield* world({
        goals: { autoStart: true },
        budget: { wallTime: "100ms" }
      })
      yield* up
      const give = (...tasks: ReadonlyArray<object>) => {
        writeFileSync(box.file("plan.json"), JSON.stringify({ tasks }))
        return box.cli("goal", "Open a shop", "--plan", "plan.json")
      }
      yield* give({ id: "one", title: "x", owner: "ann" }, { id: "two", title: "x", owner: "ann", dependsOn: ["one"] })
      const stopped = yield* dies(["exhausted", "plan.stopped", /the budget of ann is spent/])
      yield* give({ id: "slow", title: "x", owner: "ben" })
      yield* dies(["it runs", "plan.task_started", /slow/], stopped)
      yield* box.until("it runs again", box.processes, (pids) => pids.length > 0)
      yield* box.cli("goal", "cancel", "g2", "--reason", "enough")
      yield* dies(["cancelled", "plan.stopped", /enough/], stopped)
      yield* box.untilAgent("ben", "is free", ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt")
      yield* box.until(
        "the mail about the goal",
        Effect.sync(() => taken.map(SmtpStand.body).join("\n")),
        (bodies) => /^goal g1 /m.test(bodies)
      )
      const { goal, tasks } = (yield* state("stopped"))!
      assert.strictEqual(goal.reason, "the budget of ann is spent")
      assert.deepStrictEqual(
        tasks.map(({ id, state }) => [id, state]),
        [
          ["one", "pending"],
          ["two", "pending"]
        ]
      )
      const runes = yield* inOrder
      assert.lengthOf(
        runes
          .filter(({ kind }) => kind === "turn.started")
          .filter(({ payload }) => /Task one/.test(String(payload["input"]))),
        1
      )
      const told = taken.map(SmtpStand.body).join("\n")
      assert.lengthOf(told.match(/^goal g1 has failed: the budget of ann is spent/gm) ?? [], 1)
      assert.notMatch(told, /g2/, "who cancels a goal knows")
    })
  )
})
