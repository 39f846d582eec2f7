/**
 * Every kind of notice from its rune and the facts of the moment, and every alert that is mailed; texts of others do no
 * harm; no command is a fragment.
 */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Notice from "../../../src/alerts/Notice.ts"
import { newsOf } from "../../../src/alerts/AlertPolicy.ts"
import { NOTICE_KINDS, type NoticeKind } from "../../../src/config/NotifyConfig.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { step } from "../../../src/core/event-actor/StateMachine.ts"
import type { Payload, Rune } from "../../../src/core/event-log/Rune.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"

const NOW = Date.parse("2026-01-15T12:00:00Z")
const MINUTE = 60_000

const rune = (kind: string, actor: string, payload: object, move: { from?: string; to?: string } = {}): Rune =>
  ({ kind, actor, payload, stream: "shop-0", eventId: 7, seq: 3, at: NOW, from: null, to: null, ...move }) as never

const facts = (more: object = {}): Notice.Facts => ({ project: "shop", host: "forge", now: NOW, ...more })

const told = (one: Rune, more: object = {}): Notice.Notice | undefined => newsOf(one)?.notice?.(facts(more))?.notice

const mailed = (one: Rune) => newsOf(one)?.mail

const call = (more: object = {}) => ({
  callId: "01k9abcdefghijkl",
  agent: "builder",
  tool: "Bash",
  arguments: JSON.stringify({ command: "npm publish --access public" }),
  state: "awaiting_approval",
  reason: "leaves this machine",
  until: NOW + 16 * MINUTE,
  ...more
})
const goal = (more: object = {}) => ({
  goal: "Publish the docs",
  state: "executing",
  word: "working",
  submittedAt: NOW - 120 * MINUTE,
  total: 9,
  tasks: { completed: 3 },
  ...more
})
const agent = (more: object = {}) => ({
  agent: "builder",
  conversation: "shop-0",
  word: "idle",
  inbox: 0,
  sessionSeq: 31,
  ...more
})

const asked = rune("tool.approval_requested", "tool/builder/01k9abcdefghijkl", {
  call_id: "01k9abcdefghijkl",
  event: { _tag: "requires_approval", callId: "01k9abcdefghijkl", policyReason: "r" }
})
const plan = (kind: string, event: object, more: object = {}) => rune(kind, "plan/g1", { event, ...more })
const plate = (to: string, from = "Running") =>
  rune("plate.moved", "plate/p1234567890123", { event: { _tag: "PromptSubmit", at: NOW } }, { from, to })
const session = (more: object = {}) => ({
  plateId: "p1234567890123",
  agent: null,
  title: null,
  cwd: "/home/ada/web",
  detail: "asks to use Bash",
  approval: "a1",
  status: "AwaitingApproval",
  ...more
})
/** The payload that the worker itself writes when a run ends so, as its `row`th error in a row, `all`th in all. */
const exited = (outcome: Outcome, row = 5, all = 5): Payload => {
  const data = { ...WorkerMachine.initial(), runId: "r5", consecutiveErrors: row - 1, totalErrors: all - 1 }
  const moved = step(WorkerMachine.Worker, "Running", data, { _tag: "SessionExited", runId: "r5", outcome })
  assert.strictEqual(moved._tag, "Moved")
  return moved._tag === "Moved" ? moved.payload : {}
}
const error: Outcome = { _tag: "Error", detail: "exit code 1: no such file" }
const fatal: Outcome = { _tag: "Fatal", detail: "not logged in", remedy: "Log in." }
const stop = (payload: object, to = "Stopped") =>
  rune("worker.moved", "worker/builder", payload, { from: "Running", to })
const stopped = stop(exited(error))
const violated = (severity: string, rule = "INV-TOOL-TERMINAL") =>
  rune("invariant.violated", "log", { rule, severity, kind: "k", actor: "a", stream: "shop-0", message: "two" })

const failed = (payload: object) =>
  rune("alert.failed", "alerter", {
    batch: "b",
    destination: "slack/x",
    messageId: "m",
    alertIds: ["1", "2", "3"],
    attempt: 8,
    class: "transient",
    permanent: false,
    error: "HTTP 503",
    remedy: "",
    nextAt: NOW,
    channel: "slack",
    ...payload
  })
const budget = {
  key: "k",
  whose: "project",
  name: "shop",
  period: "day",
  label: "d",
  resource: "usd",
  spent: 60,
  limit: 60,
  until: NOW,
  stops: false
}
const account = { provider: "anthropic", account: "team" }
const waits = (state: string) => ({ state, name: "shop", config: "/c", hash: null, problem: "line 12", since: NOW })

/** For each kind a rune and its facts, the notice's title and command, and the subject of the alert that is mailed. */
const cases: {
  readonly [kind in NoticeKind]: readonly [Rune, object, string | RegExp, string, (string | RegExp)?]
} = {
  needsYou: [asked, { call: call(), waiting: 2 }, "shop/builder asks to run Bash", "agentd approve 01k9abcdefgh"],
  question: [
    asked,
    {
      call: call({
        questions: [{ question: "Which region?", options: [{ label: "eu", description: "near" }], several: false }]
      })
    },
    "shop/builder asks: Which region?",
    "agentd answer 01k9abcdefgh 1"
  ],
  failed: [
    stopped,
    { agent: agent(), last: "cannot open" },
    "shop/builder stopped permanently",
    "agentd start shop/builder",
    "builder has failed: 5 errors in a row"
  ],
  goalMet: [
    plan("plan.goal_met", { _tag: "critique_passed", summary: "All is well." }),
    { goal: goal() },
    "Goal shop/g1 is met: Publish the docs",
    "agentd goal merge shop/g1"
  ],
  goalBlocked: [
    plan("plan.blocked", { _tag: "all_runnable_blocked", reason: "vault refuses" }),
    { goal: goal() },
    "Goal shop/g1 is blocked",
    "agentd why shop/g1",
    "goal g1 needs you: vault refuses"
  ],
  goalStopped: [
    plan("plan.stopped", { _tag: "budget_exhausted", reason: "its budget is spent" }),
    { goal: goal() },
    "Goal shop/g1 stopped",
    "agentd goal show shop/g1",
    "goal g1 has failed: its budget is spent"
  ],
  planReady: [
    plan("plan.created", { _tag: "decompose_goal", tasks: [] }),
    { goal: goal({ state: "planning", word: "needs you" }) },
    "Goal shop/g1 has a plan of 9 tasks",
    "agentd goal approve shop/g1"
  ],
  budget: [
    rune("budget.spent", "budget/shop", budget),
    {},
    /^shop: the day's budget of USD for the project is spent/,
    "agentd cost",
    /^shop: the day's budget of USD for the project is spent/
  ],
  budgetNear: [
    rune("budget.near", "budget/shop", { ...budget, spent: 48 }),
    {},
    /^shop: 80 % of the day's budget/,
    "agentd cost",
    /^shop: 80 % of the day's budget/
  ],
  limit: [
    rune(
      "provider.moved",
      "provider/x",
      { event: { _tag: "limited", ...account, at: NOW, until: NOW + MINUTE, message: "no more", by: "shop/a" } },
      { from: "Available", to: "LimitedUntil" }
    ),
    { held: 2 },
    /^The limit of anthropic \(team\) is used up until /,
    "agentd ps"
  ],
  outage: [
    rune("provider.lasting", "provider/x", {
      event: { _tag: "failed", ...account, at: NOW, began: NOW, message: "HTTP 503", by: "shop-0/a" }
    }),
    { held: 5 },
    "anthropic (team) is unavailable",
    "agentd ps",
    "anthropic (team) is unavailable"
  ],
  recovered: [
    rune("provider.recovered", "provider/x", { ...account, event: { _tag: "answered", at: NOW, began: NOW, by: "a" } }),
    {},
    "anthropic (team) answers again",
    "agentd ps",
    "anthropic (team) answers again"
  ],
  daemonBack: [
    rune("daemon.started", "daemon", { pid: 1, version: "1" }),
    { killed: { at: NOW - 3 * MINUTE } },
    "agentd on forge is back after 3 min",
    "agentd status"
  ],
  configHeld: [
    rune("config.waits", "project", waits("untrusted")),
    { effects: ["deployer may run Bash"] },
    "shop: a changed config waits for you",
    "agentd config diff shop",
    "shop: agentd.jsonc has changed and waits for you"
  ],
  configBroken: [
    rune("config.waits", "project", waits("broken")),
    {},
    "shop: agentd.jsonc cannot be used",
    "agentd doctor",
    "shop: agentd.jsonc cannot be used"
  ],
  invariant: [
    violated("ERROR"),
    {},
    /^agentd has found an internal error: INV-TOOL-TERMINAL/,
    "agentd verify",
    "INV-TOOL-TERMINAL violated"
  ],
  unsent: [failed({}), {}, "3 notices could not be sent by slack", "agentd alert test slack"],
  done: [
    rune("turn.completed", "turn/builder", { turn_id: "t", event: {} }),
    { agent: agent(), working: [], turn: "t" },
    "shop/builder is done",
    "agentd why shop/builder"
  ]
}

describe("a notice", () => {
  for (const kind of NOTICE_KINDS) {
    it(kind, () => {
      const [one, more, title, command, subject] = cases[kind]
      const notice = told(one, more)
      assert.isDefined(notice, `${kind} is told`)
      assert.strictEqual(notice.kind, kind)
      if (typeof title === "string") assert.strictEqual(notice.title, title)
      else assert.match(notice.title, title)
      assert.strictEqual(notice.command, command)
      assert.isAtMost(notice.title.length, Notice.TITLE)
      assert.isNotEmpty(notice.body)
      assert.notMatch(notice.body, /undefined|null|NaN/)
      const headline = mailed(one)?.headline
      if (subject instanceof RegExp) assert.match(headline ?? "", subject)
      else assert.strictEqual(headline, subject)
    })
  }

  it("a stop for good: its reason, its last line and what is kept are lines of their own", () => {
    const body = (more: object) => told(stopped, { agent: agent(), ...more })?.body.split("\n")
    assert.deepStrictEqual(body({ last: "cannot open" })?.slice(1), [
      "Its last line: cannot open",
      "It ran 31 times. Its inbox and its branch are kept."
    ])
    assert.strictEqual(
      body({ agent: agent({ sessionSeq: 0 }), last: "no" })?.at(-1),
      "Its inbox and its branch are kept."
    )
    assert.strictEqual(body({})?.length, 2)
  })

  it("a call that nobody answered in time is told, with commands that still work; another bound is not", () => {
    const text = "nobody answered within 10 min: Bash: npm publish expired, and was denied"
    const expired = (payload: object) =>
      rune("agent.bound_reached", "inbox/builder", { agent_id: "builder", text, ...payload })
    const notice = told(expired({ call_id: "c1" }), {})!
    assert.deepInclude(notice, {
      kind: "needsYou",
      title: "shop/builder: nobody answered its call in time",
      body: text,
      command: "agentd why shop/builder"
    })
    assert.isUndefined(told(expired({}), {}))
  })

  it("an account that wants a login, and a turn over its budget, need you", () => {
    const event = { _tag: "refused", ...account, at: NOW, began: NOW, message: "401\nlog in", by: "shop-0/a" }
    assert.deepInclude(told(rune("provider.lasting", "provider/x", { event }), { held: 1 }), {
      kind: "needsYou",
      body: "401. 1 agent waits and continues by itself.",
      command: "agentd accounts",
      urgency: "now",
      project: null
    })
    const turn = rune("budget.spent", "budget/builder", { ...budget, key: "shop/turn/1", period: "turn" })
    assert.deepInclude(told(turn), { kind: "needsYou", command: "agentd waiting", urgency: "now", project: "shop" })
  })

  it("what waits says for how long, what it is, and who else waits", () => {
    const { body } = told(...(cases.needsYou.slice(0, 2) as [Rune, object]))!
    assert.strictEqual(
      body,
      "npm publish --access public\n\nWhy it asks: leaves this machine. It waits for another 16 min; then the call is denied.\n2 more wait for you.\nThe whole call is shown before you approve it."
    )
  })

  it("no notice offers more than once: its command keeps no rule, and nothing that sends notices can answer a call", () => {
    for (const [one, more] of Object.values(cases)) {
      const { body, command } = told(one, more)!
      assert.notMatch(`${command}\n${body}`, /--for|--rule|--all/)
    }
    const offers = [{ words: "npm publish", rules: ["npm publish **"] }]
    const { body, command } = told(asked, { call: call({ offers, scopes: ["run", "everyone"] }) })!
    assert.strictEqual(command, "agentd approve 01k9abcdefgh", "without a hash it shows the call, and approves nothing")
    assert.notInclude(body, "npm publish **")
    const folder = join(import.meta.dirname, "../../../src/alerts")
    for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((one) => one.endsWith(".ts")))
      assert.notMatch(
        readFileSync(join(folder, file), "utf8"),
        /answerCall|answerPreview|AnswerTarget|LastingAnswer/,
        file
      )
  })

  it("texts of others are one line in a title, and move no cursor anywhere", () => {
    const evil = "x\u001b[31m\n\u202eevil\u0007".repeat(200)
    const one = told(asked, { call: call({ tool: evil, arguments: evil, reason: evil }) })!
    assert.isAtMost(one.title.length, Notice.TITLE)
    // oxlint-disable-next-line no-control-regex
    assert.notMatch(one.title + one.body, /[\u0000-\u0009\u000b-\u001f\u202a-\u202e]/u)
    assert.isAtMost(one.body.length, 2_000)
  })
})

describe("an alert that is mailed", () => {
  for (const [what, given, headline] of [
    ["errors in all", stop(exited(error, 1, 20)), "builder has failed: 20 errors in total"],
    ["the 20th that is a timeout", stop(exited({ _tag: "Timeout" }, 2, 20)), "builder has failed: 20 errors in total"],
    ["a run that cannot succeed", stop(exited(fatal)), "builder has failed: not logged in"],
    [
      "an event of a newer agentd",
      stop({ event: { _tag: "Later" }, fatal: { message: "no git\nrepository", remedy: null } }),
      "builder has failed: no git repository"
    ],
    [
      "a suspension",
      rune("session.suspended", "conversation/shop", {
        event: { _tag: "budget_exhausted", resource: "usd", spent: 2, limit: 1 }
      }),
      "shop needs you"
    ],
    ["a question", rune("agent.asked", "agent/builder", { question: "Which?" }), "builder asks: Which?"]
  ] as const)
    it(`${what} → ${headline}`, () => assert.strictEqual(mailed(given)?.headline, headline))

  it("a stop for good has its counters, its run and what to do", () => {
    assert.deepInclude(mailed(stopped), {
      kind: "agent.stopped",
      reason: "5 errors in a row; the last: exit code 1: no such file",
      remedy: "Fix what the last error names, then start the agent again.",
      errors: { row: 5, all: 5 },
      runId: "r5"
    })
  })

  it("says what to do in words that hold wherever they are typed", () => {
    const payload = { event: { _tag: "another" }, question: "Which?" }
    const remedy = (kind: string, actor: string) => mailed(rune(kind, actor, payload))?.remedy ?? ""
    assert.match(remedy("session.suspended", "conversation/shop-0"), /agentd project resume shop-0$/)
    assert.match(remedy("agent.asked", "agent/builder"), /agentd send shop-0\/builder/)
    assert.match(remedy("plan.blocked", "plan/g1"), /agentd goal show shop-0\/g1\n.*agentd goal retry shop-0\/g1/)
  })

  it("a text without end fits a rune", () => {
    const long = mailed(stop(exited({ _tag: "Error", detail: "x".repeat(1e6) })))
    assert.isBelow(JSON.stringify(long).length, 8000)
  })
})

describe("nothing is told", () => {
  const nothing: ReadonlyArray<readonly [string, Rune, object]> = [
    ["of a call that is answered by now", asked, {}],
    ["of a plan that is not whole yet", cases.planReady[0], { goal: goal({ state: "planning", word: "working" }) }],
    ["of a goal that a person cancelled", plan("plan.stopped", { _tag: "user_cancel", by: "ada", reason: "no" }), {}],
    ["of a daemon that was asked to end", cases.daemonBack[0], {}],
    [
      "of a session that is a run of an agent's",
      plate("AwaitingApproval"),
      { plate: session({ agent: "shop/builder" }) }
    ],
    ["of a session that has moved on", plate("AwaitingApproval"), { plate: session({ status: "Running" }) }],
    ["of a failed attempt that is one of the first", failed({ attempt: 2 }), {}],
    ["of a failed attempt that was told of", failed({ attempt: 9 }), {}],
    ["of a withdrawal that failed", failed({ alertIds: [], silent: true }), {}],
    ["done: it has work", cases.done[0], { agent: agent({ inbox: 1 }), turn: "t" }],
    [
      "done: it works in the background, or has a wake-up",
      cases.done[0],
      { agent: agent({ word: "working" }), turn: "t" }
    ],
    ["done: a sub-agent of it works", cases.done[0], { agent: agent(), working: ["helper"], turn: "t" }],
    ["done: it needs a person", cases.done[0], { agent: agent({ word: "needs you" }), turn: "t" }]
  ]
  for (const [what, one, more] of nothing) it(what, () => assert.isUndefined(told(one, more)))

  for (const [what, one] of [
    ["an operator's stop", stop({})],
    ["a spent budget: its agent's stop is told", rune("agent.budget_exhausted", "agent/builder", {})],
    ["a move to another state", stop({}, "CoolingDown")],
    ["a warning", violated("WARN", "INV-AGENT-BUDGET")],
    ["a goal that a person cancels", plan("plan.stopped", { _tag: "user_cancel", by: "ada", reason: "no" })],
    ["another kind", rune("run.started", "worker/builder", {})]
  ] as const)
    it(`of ${what}, neither by mail nor by a channel`, () => assert.isUndefined(newsOf(one)))
})

describe("a session of a person's own", () => {
  it("asks for leave, asks, and is done; its own title is its name", () => {
    assert.deepInclude(told(plate("AwaitingApproval"), { plate: session() }), {
      kind: "needsYou",
      title: "the session in web asks for approval",
      command: "agentd approve p12345678901"
    })
    const asking = session({ status: "AwaitingInput", approval: null, title: "Fix the footer" })
    assert.deepInclude(told(plate("AwaitingInput"), { plate: asking }), {
      kind: "question",
      title: "Fix the footer asks you",
      command: "agentd focus p12345678901"
    })
    assert.deepInclude(told(plate("Idle"), { plate: session({ status: "Idle" }) }), { kind: "done" })
  })
})

describe("a digest", () => {
  const of = (kind: NoticeKind, title: string, urgency: Notice.Urgency) =>
    Notice.of({ kind, title, body: "b", command: "agentd ps", urgency, about: title, project: null })

  it("of fifty agents that died at once names five, and counts the rest", () => {
    const all = Array.from({ length: 50 }, (_, at) => of("failed", `shop/agent-${at} stopped permanently`, "soon"))
    const one = Notice.digest(all)
    assert.strictEqual(one.title, "agentd: 50 notices")
    assert.lengthOf(one.body.split("\n"), 6)
    assert.match(one.body, /and 45 more$/)
    assert.strictEqual(one.command, "agentd alert ls")
  })

  it("has what needs a person first", () => {
    const one = Notice.digest([of("outage", "a", "digest"), of("needsYou", "b", "now")], 3)
    assert.strictEqual(one.title, "agentd: 5 notices, 1 needs you")
    assert.strictEqual(one.urgency, "now")
    assert.strictEqual(one.body, "  - b\n  - a\n  and 3 more")
    assert.strictEqual(one.command, "agentd waiting")
  })
})
