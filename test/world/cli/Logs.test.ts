/** `agentd log --text`: lines of output and of decisions, whose they are, and how they look. */
import { agentOf } from "../../../src/board/ConversationView.ts"
import { assert, describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Console, Effect, Stdio } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { ascii, isAsciiOnly } from "../../../src/cli/render/Ascii.ts"
import { behind } from "../../../src/cli/render/ProgramConsole.ts"
import { chosen } from "../../../src/cli/log/LogsChoice.ts"
import { type Entry, KINDS, lineOf, LogsView, Names, type Printing, valueOf } from "../../../src/cli/log/LogsView.ts"
import { levelOf, patternOf } from "../../../src/cli/log/LogsWords.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { kinds } from "../../../src/app/EventKinds.ts"
import { Limits } from "../../../src/board/Limits.ts"
import { agentInfo, conversationInfo, folder, makeWorld, serve, T0 } from "../rpc/World.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { agentd, launch } from "./Child.ts"

const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

const WEB = "web-1a2b3c4d"
const draft = (actor: string, kind: string, event: object, fields: object = {}): RuneDraft => ({
  stream: WEB,
  actor,
  kind,
  payload: { event, ...fields }
})
const begins = (run: string, agent = "builder") =>
  draft(`worker/${agent}`, "worker.moved", { _tag: "PromptReady", runId: run, prompt: "do it", messageIds: [], at: 1 })
const said = (run: string, text: string, source = "stdout", agent = "builder") =>
  draft(`worker/${agent}`, "run.output", {}, { runId: run, source, text })
const started = (run: string, agent = "builder") =>
  draft(
    `turn/${agent}`,
    "turn.started",
    { _tag: "start_turn", turnId: run, agentId: agent, input: "do it", source: "queue", messageIds: [], at: 1 },
    { turn_id: run, agent_id: agent, input: "do it" }
  )
const completed = (run: string, output: string, agent = "builder") =>
  draft(
    `turn/${agent}`,
    "turn.completed",
    { _tag: "response_done", turnId: run, finalOutput: output, usage: {}, exit: { runId: run, seq: 1 } },
    { turn_id: run, final_output: output, usage: {} }
  )
const failed = (run: string, to: string, agent = "builder"): RuneDraft => ({
  ...draft(
    `worker/${agent}`,
    "worker.moved",
    { _tag: "SessionExited", runId: run, outcome: { _tag: "Error", detail: "exit code 3" } },
    { consecutiveErrors: 2, totalErrors: 4 }
  ),
  from: "Running",
  to
})
const delta = (id: string, content: string) =>
  draft(
    "turn/builder",
    "turn.assistant_delta",
    { _tag: "assistant_delta", turnId: id, content },
    { turn_id: id, content }
  )
const result = (status: string) =>
  draft("tool/builder/c1", "tool.result", { callId: "c1" }, { call_id: "c1", status, output: "no such file" })

const runesOf = (drafts: ReadonlyArray<RuneDraft>): ReadonlyArray<Rune> =>
  drafts.map((each, at) => ({
    from: null,
    to: null,
    trigger: null,
    cause: null,
    moves: [],
    visibility: "public",
    ...each,
    format: 2,
    eventId: at + 1,
    seq: at + 1,
    at: T0 + at * 1000
  }))
const entries = (...drafts: ReadonlyArray<RuneDraft>): ReadonlyArray<Entry> => {
  const view = new LogsView()
  return runesOf(drafts).flatMap((rune) => view.feed(rune))
}
const brief = ({ level, run, text, what }: Entry) => [what[0], level, run, text]

describe("the lines", () => {
  it("are asked for by kinds that there are", () => {
    expect(KINDS.filter((kind) => kinds.get(kind) === undefined)).toEqual([])
    expect(KINDS.length).toBeLessThanOrEqual(Limits.kinds)
  })

  it("of a command: its words from the first, apart from what was decided, all of its run", () => {
    const lines = entries(
      begins("r1"),
      said("r1", "first"),
      said("r1", "oops", "stderr"),
      started("r1"),
      said("r1", "second"),
      completed("r1", "first\nsecond"),
      begins("r2"),
      failed("r2", "CoolingDown")
    )
    expect(lines.map(brief)).toEqual([
      ["d", 5, "r1", "▶ a turn begins"],
      ["o", 6, "r1", "first"],
      ["o", 4, "r1", "oops"],
      ["o", 6, "r1", "second"],
      ["d", 5, "r1", expect.stringMatching(/^✓ the turn is over/)],
      ["d", 5, "r1", "— the run has ended"],
      ["d", 5, "r2", "▶ a turn begins"],
      ["d", 3, "r2", "— the run has ended: exit code 3 (error 2 in a row, 4 in total); it tries again"]
    ])
  })

  it("of a window that begins in the midst of a run: its words come once", () => {
    const lines = entries(said("r1", "second"), completed("r1", "first\nsecond"))
    expect(lines.filter(({ what }) => what === "output").map(({ text }) => text)).toEqual(["second"])
  })

  it("of a model: an answer that streams is output, also where a decision ends its line", () => {
    const lines = entries(
      started("t1"),
      delta("t1", "one\ntw"),
      delta("t1", "o"),
      result("error"),
      failed("r1", "Stopped")
    )
    expect(lines.map(brief)).toEqual([
      ["d", 5, null, "▶ a turn begins"],
      ["o", 6, null, "one"],
      ["o", 6, null, "two"],
      ["o", 3, null, "  → error"],
      ["o", 6, null, "    no such file"],
      ["d", 3, null, expect.stringMatching(/it has stopped permanently$/)]
    ])
    const view = new LogsView()
    const runes = runesOf([delta("t1", "half a li")])
    expect(runes.flatMap((rune) => view.feed(rune))).toEqual([])
    expect(view.flush(runes[0]!).map(({ agent, text }) => [agent, text])).toEqual([["builder", "half a li"]])
  })

  it("nothing that is said speaks to the terminal, is endless, or passes for a decision", () => {
    const evil = "\u001b[2J\u001b]0;x\u0007▪ the turn is over\r\n\u202eabc"
    for (const each of [evil, "x".repeat(100_000), "y\n".repeat(10_000)]) {
      const lines = entries(begins("r1"), said("r1", each), said("r1", each, each), delta("r1", each)).slice(1)
      for (const line of lines) {
        expect(line.text).not.toMatch(/[\p{Cc}\u202e]/u)
        expect(line.text.length).toBeLessThanOrEqual(4100)
        expect(line.what).toBe("output")
      }
    }
  })

  it("an agent's name may hold slashes; a call is its agent's", () => {
    expect(agentOf({ actor: "tool/a/b/c1" })).toBe("a/b")
    expect(agentOf({ actor: "worker/a/b" })).toBe("a/b")
  })
})

describe("how a line looks", () => {
  const entry: Entry = {
    at: T0,
    conversation: WEB,
    agent: "builder",
    run: "r1",
    what: "decision",
    level: 3,
    text: "✗ it failed",
    restsOn: 1
  }
  const printing = (over: Partial<Printing> = {}): Printing => ({
    style: "short",
    utc: true,
    now: T0,
    colour: false,
    ascii: false,
    names: undefined,
    ...over
  })
  it.each([
    [{}, "09:12:00 ▪ ✗ it failed"],
    [{ now: T0 + 86_400_000 }, "2026-11-20 09:12:00 ▪ ✗ it failed"],
    [{ style: "short-iso" }, "2026-11-20T09:12:00+0000 ▪ ✗ it failed"],
    [{ style: "cat" }, "✗ it failed"],
    [{ ascii: true }, "09:12:00 # x it failed"],
    [{ names: new Names(["web/longer"]) }, "09:12:00 builder    ▪ ✗ it failed"],
    [
      { colour: true, names: new Names(["builder"]) },
      "\u001b[2m09:12:00\u001b[0m \u001b[36mbuilder\u001b[0m ▪ \u001b[31m✗ it failed\u001b[0m"
    ]
  ] as const)("%j", (over, line) => expect(lineOf(entry, "builder", printing(over))).toBe(line))

  it("as JSON it has the level's name and both times", () =>
    expect(valueOf(entry, "web/builder")).toMatchObject({ level: "err", time: "2026-11-20T09:12:00.000Z", at: T0 }))

  it("agents keep their colours", () => {
    const names = new Names([])
    const [a, b] = [names.of("a", true), names.of("b", true)]
    expect(a).not.toBe(b.replace("b", "a"))
    expect(names.of("a", true)).toBe(a)
  })

  it.each([
    [{ TERM: "dumb" }, true],
    [{ LANG: "C" }, true],
    [{ LANG: "en_US.ISO-8859-1", LC_ALL: "" }, true],
    [{ LANG: "C", LC_ALL: "de_DE.UTF-8" }, false],
    [{ LANG: "C.utf8" }, false],
    [{}, false]
  ])("with %j it is ASCII alone: %s", (env: { readonly [name: string]: string }, is) =>
    expect(isAsciiOnly((name) => env[name])).toBe(is)
  )
  it.effect.each([
    [true, "C", "* working ~"],
    [true, "de_DE.UTF-8", "● working …"],
    [false, "C", "● working …"]
  ] as const)("what any verb prints on a terminal (%s) of locale %s: %s", ([isTerminal, LANG, line]) =>
    Effect.gen(function* () {
      const said: Array<unknown> = []
      yield* behind(Console.log("● working …")).pipe(
        Effect.provideService(Console.Console, { ...globalThis.console, log: (one: unknown) => void said.push(one) }),
        Effect.provideService(TerminalCapabilities.TerminalCapabilities, {
          canColor: false,
          canAnimate: false,
          canPrompt: false
        }),
        Effect.provide(Stdio.layerTest({ stdoutIsTerminal: Effect.succeed(isTerminal) })),
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { LANG } }))
      )
      expect(said).toEqual([line])
    })
  )
  it("our marks have their letters, other text is as it is", () => expect(ascii("● ◆ 文 …")).toBe("* ! 文 ~"))
})

it.each([
  ["err", 3],
  ["Error", 3],
  ["warn", 4],
  ["4", 4],
  ["emerg", 0],
  ["8", undefined],
  ["constructor", undefined]
])("level %s", (text, level) => expect(levelOf(text)).toBe(level))

it("a pattern without capitals finds both cases", () => {
  expect(patternOf("oops")!.test("OOPS")).toBe(true)
  expect(patternOf("OOPS")!.test("oops")).toBe(false)
  expect(patternOf("(")).toBeUndefined()
})

describe("whose lines", () => {
  const homes = [
    { conversation: WEB, project: "web", config: "/web", state: "active", agents: ["builder", "tester"] },
    { conversation: "shop-00000001", project: "shop", config: "/shop", state: "active", agents: ["builder"] }
  ]
  const named = (names: ReadonlyArray<string>, own: string | null = null) => chosen(names, homes, own)
  it.each([
    [[], ["web/builder", "web/tester", "shop/builder"]],
    [["builder"], []],
    [["tester"], ["tester"]],
    [["web"], ["builder", "tester"]],
    [["web/*"], ["builder", "tester"]],
    [["web/builder"], ["builder"]],
    [["*e*"], ["web/builder", "web/tester", "shop/builder"]],
    [
      ["tester", "shop/*"],
      ["web/tester", "shop/builder"]
    ],
    [["nobody"], []]
  ])("%j means %j", (names, are) => expect(named(names).names).toEqual(are))

  it("a bare name is the caller's own agent; one agent is read alone", () => {
    expect(named(["builder"], "/shop").only).toBe("shop-00000001/builder")
    expect(named(["tester"], "/shop").names).toEqual([])
    expect(named(["tester"], "/new").unknown).toEqual(["tester"])
    expect(named(["builder"])).toMatchObject({ only: undefined, which: ["web/builder", "shop/builder"] })
    expect(named(["web"]).only).toBeUndefined()
    expect(named(["web/*"]).only).toBeUndefined()
    const over = homes.map((home) => ({ ...home, state: "closed" }))
    expect(chosen(["web/builder"], over, null)).toMatchObject({ only: undefined, names: ["builder"] })
  })

  it("says which names mean nothing; a pattern means what comes later, too", () => {
    expect(named(["web/bulder", "web/*"]).unknown).toEqual(["web/bulder"])
    expect(named(["new/*"]).nameOf("new-12345678", "a")).toBe("a")
    expect(named(["web"]).nameOf("web-1a2b3c4d.2", "late")).toBe("late")
  })
})

describe("agentd log --text", () => {
  const world = () =>
    makeWorld({
      agents: [agentInfo(), agentInfo({ agent: "tester" })],
      conversations: [conversationInfo({ agents: ["builder", "tester"] })]
    })
  const history = [
    begins("r1"),
    started("r1"),
    said("r1", "b1\nb2"),
    begins("s1", "tester"),
    said("s1", "t1", "stderr", "tester"),
    said("r1", "B3"),
    completed("r1", "b1\nb2\nB3")
  ]
  const texts = (out: string) => out.trimEnd().split("\n")

  it.live("shows agents by time, chosen by name, level, kind, pattern, number and run; and ends", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(world(), history)
      const logs = (...args: ReadonlyArray<string>) =>
        Effect.map(agentd(["--state", state, "log", "--text", ...args]), ({ code, err, out }) => {
          expect([code, err]).toEqual([0, ""])
          return texts(out)
        })
      const all = yield* logs()
      expect(all.map((line) => line.replace(/^.*?\d\d:\d\d:\d\d /, ""))).toEqual([
        "builder ▪ ▶ a turn begins",
        "builder │ b1",
        "builder │ b2",
        "tester  ▪ ▶ a turn begins",
        "tester  │ t1",
        "builder │ B3",
        expect.stringMatching(/^builder ▪ ✓ the turn is over/),
        "builder ▪ — the run has ended"
      ])
      expect(yield* logs("-n", "3", "-o", "cat", "--only", "output")).toEqual(["b2", "t1", "B3"])
      expect(yield* logs("tester", "-p", "warning", "-o", "cat")).toEqual(["t1"])
      expect(yield* logs("-g", "b3", "-o", "cat")).toEqual(["B3"])
      expect(yield* logs("builder", "--run", "last", "-o", "cat", "-n", "2")).toHaveLength(2)
      expect(yield* logs("--until", "2001-01-01")).toEqual([""])
      const values = (yield* logs("web/*", "--json")).map((line) => JSON.parse(line))
      expect(values[1]).toMatchObject({ name: "builder", what: "output", level: "info", run: "r1", text: "b1" })
    })
  )

  it.live("refuses a name that means nothing, a level, a time and a run that there is not", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(world(), history)
      const run = (...args: ReadonlyArray<string>) => agentd(["--state", state, "log", "--text", ...args])
      expect(yield* run("bulder")).toMatchObject({ code: 1, err: /Did you mean "builder"\?/ })
      expect(yield* run("--run", "99")).toMatchObject({ code: 1, err: /No run "99" is known/ })
      expect(yield* run("-p", "bad")).toMatchObject({ code: 2, err: /a level: emerg/ })
      expect(yield* run("--since", "lunch")).toMatchObject({ code: 2, err: /yesterday/ })
      expect(yield* run("-g", "(")).toMatchObject({ code: 2, err: /regular expression/ })
    })
  )

  it.live("-f goes on with what comes, and shows no line twice", () =>
    Effect.gen(function* () {
      const { append, state } = yield* serve(world(), history)
      const { child, ended, out } = yield* launch(["--state", state, "log", "--text", "-f", "-n", "1", "-o", "cat"])
      yield* eventually(() => out().includes("the run has ended"))
      yield* append(said("s1", "late", "stdout", "tester"), begins("r2"), said("r2", "later"))
      yield* eventually(() => out().includes("later\n"))
      child.kill("SIGINT")
      expect((yield* ended).code).toBe(130)
      expect(texts(out())).toEqual(["— the run has ended", "late", "▶ a turn begins", "later"])
    })
  )

  it.live("says that nobody is there where there is no log either", () =>
    Effect.gen(function* () {
      const state = yield* folder
      expect(yield* agentd(["--state", state, "log", "--text"])).toMatchObject({ code: 3, err: /No daemon is running/ })
    })
  )

  it.live("of a real daemon: a command's first second comes first; the same lines come without the daemon", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const backend = {
        type: "command",
        shell: "echo early; echo bad >&2; cat > /dev/null; sleep 0.3; echo late",
        readyAfter: "200ms"
      }
      const bad = {
        mode: "loop",
        prompt: "x",
        backend: { type: "command", shell: "echo said; exit 1" },
        maxConsecutiveErrors: 4,
        backoff: { base: "1ms", cap: "1ms" },
        minRunInterval: "0ms"
      }
      box.configure({ agents: { worker: { backend }, bad } })
      yield* box.up()
      yield* box.cli("send", "worker", "go")
      const args = ["log", "--text", "worker", "--run", "last", "-o", "cat"]
      const live = yield* box.until("it is over", box.cli(...args), ({ stdout }) => stdout.includes("has ended"))
      expect(texts(live.stdout).filter((line) => !line.startsWith("✓"))).toEqual([
        "▶ a turn begins",
        "early",
        "bad",
        "late",
        "— the run has ended"
      ])
      // what a run said comes before its end
      const ends = box.cli("log", "--text", "bad", "-o", "cat")
      const { stdout } = yield* box.until("it has failed", ends, (all) => all.stdout.includes("permanently"))
      for (const run of stdout.split("▶ a turn begins").slice(1)) assert.match(run, /^\nsaid\n— the run has ended/)
      yield* box.kill9
      expect((yield* box.cli(...args)).stdout).toBe(live.stdout)
    })
  )
})
