/** Each matter that needs a person is a row of one list, whose commands are the program's own. */
import { assert, describe, it } from "@effect/vitest"
import { declared } from "../../../src/cli/parse/DeclaredVerbs.ts"
import { VERBS } from "../../../src/cli/parse/HintCommand.ts"
import { parse } from "../../../src/cli/parse/QuickArgs.ts"
import { render } from "../../../src/cli/daemon/Waiting.ts"
import type { ChannelInfo } from "../../../src/domain/ChannelMessages.ts"
import type { GoalInfo } from "../../../src/domain/GoalMessages.ts"
import type { BacklogInfo, ProjectInfo } from "../../../src/domain/Messages.ts"
import type { Standing } from "../../../src/domain/ProviderStatus.ts"
import { type Given, listOf, shownArguments } from "../../../src/board/WaitingList.ts"
import { WAITING_KINDS } from "../../../src/board/WaitingMessages.ts"
import { plateInfo } from "../../world/http/PlatesDouble.ts"
import { agentInfo, callInfo, conversationInfo, nothingWaits, T0, boardOf } from "../../world/rpc/World.ts"

const home = { conversation: "web-1a2b3c4d", project: "web" }
const dropped = (n: number, errorType = "refusal") => ({
  messageId: `m${n}`,
  from: "ada",
  text: `Build ${n}`,
  errorType,
  reason: "no",
  since: T0 + n
})
const backlog = (over: Partial<BacklogInfo>): BacklogInfo => ({
  ...home,
  agent: "builder",
  dropped: [],
  more: 0,
  held: 0,
  heldSince: null,
  ...over
})
const channel = {
  ...home,
  name: "reviews",
  closed: false,
  paused: false,
  seats: [],
  restsOn: 4,
  waits: "rests after 20 posts without a person: agentd channel resume web/reviews"
} as unknown as ChannelInfo
const goal = {
  ...home,
  goalId: "g1",
  goal: "Port it",
  state: "blocked",
  reason: "3 reviews did not pass",
  detail: "",
  since: T0,
  restsOn: 7
} as unknown as GoalInfo
const project: ProjectInfo = {
  conversation: home.conversation,
  name: "web",
  config: "/web/agentd.jsonc",
  agents: [],
  problems: []
}
const login: Standing = {
  provider: "anthropic",
  account: "login",
  state: "LoginNeeded",
  since: T0,
  until: T0 + 60_000,
  message: "connection refused",
  restsOn: 3
}

/** A daemon in which one of each kind waits. */
const each: Given = {
  ...nothingWaits,
  agents: [
    agentInfo({ failed: true, detail: "5 errors in a row", state: "Stopped" }),
    agentInfo({ agent: "idle", state: "Stopped", detail: "stopped by ada" })
  ],
  backlog: [
    backlog({ dropped: [dropped(1)], questions: [{ eventId: 9, question: "Which branch?", since: T0 }] }),
    backlog({ agent: "idle", held: 2, heldSince: T0, bounds: [{ eventId: 4, text: "3 deep is the limit", since: T0 }] })
  ],
  calls: [callInfo()],
  channels: [channel],
  conversations: [conversationInfo({ state: "suspended", detail: "suspended: its budget is spent" })],
  goals: [goal],
  outages: [login],
  replaced: true,
  aside: [{ stream: "03plate", part: "the session", message: "its runes do not fold" }],
  behind: "the store ends with rune 8, and rune 9 was acknowledged",
  archives:
    "yard: /state/archive/yard.jsonl.gz is not put back: that needs 900 MB, and 20 MB are free\nshop: it is damaged",
  log: {
    head: 9,
    bytes: 4_000,
    free: 900_000_000,
    checked: { at: T0, runes: 9, problems: 2, first: "rune 7 of yard: its payload is not the one that was appended" }
  },
  outbox: { failed: 2, waiting: 0, lastError: "no route to host", lastSentAt: null },
  plates: [plateInfo({ plateId: "02terminal", status: "AwaitingInput" })],
  projects: [
    { ...project, waits: { hash: "abc", since: T0, changes: 3 } },
    { ...project, conversation: "shop-1", name: "shop", problems: ["agents: is missing"] },
    { ...project, conversation: "yard-1a2b3c4d", name: "yard", damage: "its chain is broken at rune 7" }
  ]
}

/** Verbs that only the whole program has. */
const WHOLE = new Set(["trust", "attach", "focus", "log", "verify", "repair", "project close", "restart"])

describe("what a call asks for", () => {
  it("is a plan in its own words, nothing where it has no arguments, else its arguments", () => {
    assert.deepStrictEqual(shownArguments("{}"), [])
    assert.deepStrictEqual(shownArguments(JSON.stringify({ plan: '# Plan\n1. "look"' })), ['# Plan\n1. "look"'])
    // shortened in the middle, on its way here
    const cut = '{"plan":"# Plan\\n1. lo\n… 900 characters are left out …\nend"}'
    assert.deepStrictEqual(shownArguments(cut), ["# Plan\n1. lo\n… 900 characters are left out …\nend"])
    const broken = '{"plan":"a\\u12\n… left out …\n"}'
    assert.deepStrictEqual(shownArguments(broken), [broken])
    assert.deepStrictEqual(shownArguments('{"command":"ls"}'), ['{"command":"ls"}'])
  })
})

describe("the list of what needs a person", () => {
  it("says of each row since when it is so, but where nobody knows", () => {
    const port = { message: "another program listens", remedy: "end it", since: T0 }
    const timed: Given = {
      ...each,
      channels: [{ ...channel, since: T0 }],
      doubt: "the time zone is not known",
      http: { socket: null, port: 4410, listening: false, problem: port },
      keeper: { message: "it does not answer", since: T0 },
      ownConfig: { path: "/c", problem: "a comma", since: T0 },
      outbox: { ...each.outbox, failsSince: T0 },
      projects: each.projects.map((one) => (one.problems.length === 0 ? one : { ...one, since: T0 })),
      startedAt: T0
    }
    const untimed = listOf(timed).rows.filter(({ since }) => since === 0)
    assert.deepStrictEqual(
      untimed.map(({ id }) => id.split("/")[0]).toSorted(),
      ["aside", "damage", "disk", "program"],
      "what was so before the daemon began, and what is no rune's"
    )
  })

  it("has a row for each kind, and each command is one that the program takes", () => {
    const { rows } = listOf(each)
    const kinds = new Set(rows.map(({ kind }) => kind))
    assert.deepStrictEqual(
      WAITING_KINDS.filter((kind) => !kinds.has(kind)),
      []
    )
    assert.strictEqual(new Set(rows.map(({ id }) => id)).size, rows.length)
    for (const { commands, who } of rows) {
      assert.isAbove(commands.length, 0, who)
      for (const { command } of commands) {
        const [program, verb = "", ...rest] = command.replaceAll(/'([^']*)'/g, "$1").split(" ")
        assert.strictEqual(program, "agentd")
        assert.include(VERBS, verb)
        const isKnown =
          WHOLE.has(verb) || WHOLE.has(`${verb} ${rest[0]}`) || parse([verb, ...rest], declared) !== undefined
        const isAsked = /^agentd (approve|goal approve) \S+$/.test(command)
        assert.isTrue(isKnown || isAsked, command)
      }
    }
  })

  it("what is damaged comes first, then what asks, then what waits longest", () => {
    const { rows } = listOf(each)
    assert.deepStrictEqual(
      rows.slice(0, 7).map(({ kind }) => kind),
      ["damage", "damage", "damage", "damage", "damage", "damage", "approval"]
    )
    const archives = rows.filter(({ id }) => id.startsWith("archives/"))
    assert.deepStrictEqual(
      archives.map(({ details, who }) => [who, details[0]]),
      [
        ["yard", "/state/archive/yard.jsonl.gz is not put back: that needs 900 MB, and 20 MB are free"],
        ["shop", "it is damaged"]
      ]
    )
  })

  it("who waits longest comes first, whatever asks; what nobody knows the time of last", () => {
    const asks = [callInfo({ callId: "later", since: T0 + 9 }), callInfo({ callId: "sooner", since: T0 + 1 })]
    const questions = [{ eventId: 9, question: "Which branch?", since: T0 + 5 }]
    const { rows } = listOf({ ...nothingWaits, calls: asks, backlog: [backlog({ questions })] })
    assert.deepStrictEqual(
      rows.map(({ since }) => since),
      [T0 + 1, T0 + 5, T0 + 9]
    )
  })

  it("an outage is on the board as what waits, and asks no person for anything", () => {
    const outages: ReadonlyArray<Standing> = [{ ...login, state: "Unavailable" }]
    assert.deepStrictEqual(listOf({ ...nothingWaits, outages }).rows, [])
    const [row] = boardOf({ ...nothingWaits, outages }).rows
    assert.deepInclude(row, { word: "waiting", reason: "network", since: T0, until: T0 + 60_000 })
    assert.strictEqual(boardOf({ ...nothingWaits, outages: [login] }).rows[0]!.word, "needs you")
    const limited: ReadonlyArray<Standing> = [{ ...login, state: "LimitedUntil" }]
    assert.strictEqual(boardOf({ ...nothingWaits, outages: limited }).rows[0]!.reason, "limit")
  })

  it("messages that a spent limit holds back are named, with the time at which they go on", () => {
    const spent = agentInfo({ word: "waiting", reason: "limit", state: "BuildingPrompt", spent: true, nextAt: T0 + 7 })
    const given = { ...nothingWaits, agents: [spent], backlog: [backlog({ held: 2, heldSince: T0 })] }
    const [row] = listOf(given).rows
    assert.deepInclude(row, { kind: "held", since: T0, until: T0 + 7 })
    assert.include(row!.text, "has 2 queued messages")
    assert.deepStrictEqual(
      boardOf(given).rows.map(({ kind, says, word }) => [kind, word, says]),
      [["agent", "waiting", row!.text]],
      "and the agent's own row says it"
    )
    const forGood = listOf({ ...nothingWaits, agents: [{ ...spent, word: "needs you", nextAt: null, inbox: 0 }] }).rows
    assert.deepStrictEqual(
      forGood.map(({ kind }) => kind),
      ["bound"]
    )
  })

  it("a config that has changed several times says how often", () => {
    const [row] = listOf(each).rows.filter(({ kind }) => kind === "config")
    assert.include(row!.text, "has changed 3 times and waits for you")
  })

  it("a project whose folder is gone is told as that, with its end", () => {
    const gone: ProjectInfo = {
      conversation: "web-1a2b3c4d",
      name: "web",
      config: "/srv/web/agentd.jsonc",
      agents: [],
      problems: ["/srv/web/agentd.jsonc: its folder no longer exists"]
    }
    const [row] = listOf({ ...nothingWaits, projects: [gone] }).rows
    assert.include(row!.text, "does not exist any more")
    assert.strictEqual(row!.commands[0]!.command, "agentd project remove web")
  })

  it("names what is in two projects of one name beyond doubt", () => {
    const other = { conversation: "web-ffff0000", project: "web" }
    const { rows } = listOf({
      ...nothingWaits,
      projects: [project, { ...project, conversation: other.conversation }],
      backlog: [backlog({ dropped: [dropped(1)] }), backlog({ ...other, dropped: [dropped(1)] })]
    })
    assert.deepStrictEqual(
      rows.map(({ commands }) => commands[0]!.command),
      ["agentd retry web-1a2b3c4d/builder", "agentd retry web-ffff0000/builder"]
    )
  })

  it("10,000 dropped messages are one row, that names a few and says how many more there are", () => {
    const many = backlog({ dropped: Array.from({ length: 100 }, (_, n) => dropped(n)), more: 9_900 })
    const { rows } = listOf({ ...nothingWaits, backlog: [many] })
    assert.strictEqual(rows.length, 1)
    assert.include(rows[0]!.text, "10000 messages ended without an answer")
    assert.strictEqual(rows[0]!.details.length, 7)
    assert.match(rows[0]!.details.at(-1)!, /9900 older ones/)
  })

  it("3,000 questions of one agent hide nothing of another's, and stay in their order", () => {
    const asks = (from: number, count: number) =>
      Array.from({ length: count }, (_, n) => ({
        eventId: from + n,
        question: `Question ${from + n}?`,
        since: from + n
      }))
    const flood = backlog({ agent: "flood", questions: asks(1, 3_000) })
    const other = backlog({ agent: "other", questions: asks(9_000, 2), dropped: [{ ...dropped(1), since: 9_500 }] })
    const { more, rows } = listOf({ ...nothingWaits, backlog: [flood, other] })
    assert.deepStrictEqual([rows.length, more], [1_000, 2_003])
    const own = rows.flatMap(({ details, who }, at) => (who.endsWith("/other") ? [[at, details[0]]] : []))
    assert.lengthOf(own, 3, "its questions, and what was dropped")
    assert.isTrue(own.every(([at]) => Number(at) < 25))
    const flooded = rows.filter(({ who }) => who.endsWith("/flood")).map(({ details }) => details[0])
    assert.deepStrictEqual(
      flooded,
      asks(1, 997).map(({ question }) => question)
    )
    // few rows stand by their time alone
    const few = listOf({
      ...nothingWaits,
      backlog: [backlog({ agent: "a", questions: asks(1, 3) }), backlog({ agent: "b", questions: asks(2, 1) })]
    })
    assert.deepStrictEqual(
      few.rows.map(({ since }) => since),
      [1, 2, 2, 3]
    )
  })

  it("is bounded, and says how many more there are, on each screen", () => {
    const all = Array.from({ length: 1_200 }, (_, n) => backlog({ agent: `a${n}`, dropped: [dropped(n)] }))
    const list = listOf({ ...nothingWaits, backlog: all })
    assert.deepStrictEqual([list.rows.length, list.more], [1_000, 200])
    assert.strictEqual(render(list, T0, false).at(-1), "… and 200 more")
    const board = boardOf({ backlog: all }, T0).rows
    assert.strictEqual(board.length, 1_001)
    assert.include(board.find(({ name }) => name === "agentd")?.says, "and 200 more matters")
  })
})
