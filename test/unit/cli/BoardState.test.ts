/** Tests of the board in the terminal: its cells, its keys, what a key makes of it, and its pages at any size. */
import { assert, describe, it } from "@effect/vitest"
import { type Act, BoardState, EARLY, REFRESH, TWICE } from "../../../src/cli/tui/BoardState.ts"
import { draw, itemAt } from "../../../src/cli/tui/BoardFrame.ts"
import { Cells, difference, fit, wrap } from "../../../src/cli/tui/TerminalCells.ts"
import { TerminalKeys } from "../../../src/cli/tui/TerminalKeys.ts"
import { displayWidth } from "../../../src/cli/render/Width.ts"
import type { AskedCall } from "../../../src/domain/Messages.ts"
import { TerminalGrid } from "../../support/TerminalGrid.ts"
import { dice } from "../../support/Dice.ts"
import { plateInfo } from "../../world/http/PlatesDouble.ts"
import { agentInfo, boardOf, callInfo, conversationInfo, T0 } from "../../world/rpc/World.ts"

const texts = [
  "plain",
  "文字 wide",
  "e\u0301a",
  "👩‍👩‍👧 family",
  "\u001b[31mred",
  "a\u0000b\nc\u202e",
  "🇩🇪",
  "x".repeat(300),
  ""
]

describe("cells", () => {
  it("no text is wider than its room, or leaves half a character", () => {
    for (const text of texts)
      for (let width = 0; width < 12; width++) {
        assert.isAtMost(displayWidth(fit(text, width)), width, JSON.stringify([text, width]))
        for (const line of wrap(text, Math.max(2, width))) assert.isAtMost(displayWidth(line), Math.max(2, width))
        const cells = new Cells(10, 1)
        cells.put(0, 0, text, {}, width)
        assert.isAtMost(displayWidth(cells.lines[0]!), width)
      }
  })

  it("nothing that steers a terminal is written but what is meant", () => {
    const page = new Cells(40, 3)
    for (const [y, text] of ["\u001b[2J\u0007bell", "a\rb\nc\td", "\u009b31m"].entries()) page.put(0, y, text)
    const out = difference(undefined, page)
    // oxlint-disable-next-line no-control-regex
    const left = out.replaceAll(/\u001b\[(\?2026[hl]|2J|[\d;]+[Hm])/g, "")
    assert.notMatch(left, /[\p{Cc}]/u)
  })

  it("what is drawn over what is shown makes the new page, and two like pages make nothing", () => {
    const die = dice(7)
    const random = () => {
      const page = new Cells(24, 6)
      for (let n = 0; n < 8; n++)
        page.put(die(24), die(6), texts[die(texts.length)]!, { fg: die(3), bold: die(2) === 0 }, die(24))
      return page
    }
    for (let round = 0; round < 50; round++) {
      const [one, two] = [random(), random()]
      assert.strictEqual(difference(one, one), "")
      const terminal = new TerminalGrid(24, 6, one.text)
      terminal.take(difference(one, two))
      assert.deepStrictEqual(
        terminal.text,
        two.text.map((text) => text)
      )
    }
  })
})

describe("keys", () => {
  const keys = (...chunks: ReadonlyArray<string>) => {
    const reader = new TerminalKeys()
    return chunks.flatMap((chunk) => reader.read(chunk))
  }
  it("different sequences for one key are one key", () => {
    for (const sent of ["\u001b[H", "\u001b[1~", "\u001bOH"])
      assert.deepStrictEqual(keys(sent), [{ _tag: "Key", key: "home" }])
    assert.deepStrictEqual(keys("j\u001b[Aé"), [
      { _tag: "Key", key: "j" },
      { _tag: "Key", key: "up" },
      { _tag: "Key", key: "é" }
    ])
  })

  it("a paste is text, wherever it is cut, and however long it is", () => {
    const whole = "\u001b[200~x x\nr r\u001b[201~q"
    for (let cut = 6; cut < whole.length; cut++)
      assert.deepStrictEqual(keys(whole.slice(0, cut), whole.slice(cut)), [
        { _tag: "Paste", text: "x x\nr r" },
        { _tag: "Key", key: "q" }
      ])
    const long = keys(
      "\u001b[200~",
      ..."y"
        .repeat(20)
        .split("")
        .map((y) => y.repeat(10_000)),
      "\u001b[201~q"
    )
    assert.strictEqual(long.at(-1)?._tag, "Key")
    assert.lengthOf(long, 2)
  })

  it("clicks, the wheel and the background are told; what is not known is left out", () => {
    assert.deepStrictEqual(
      keys("\u001b[<0;5;3M\u001b[<0;5;3m\u001b[<65;1;1M\u001b]11;rgb:ffff/ffff/ffff\u0007\u001b[99;99u"),
      [
        { _tag: "Click", x: 4, y: 2 },
        { _tag: "Wheel", lines: 3, x: 0, y: 0 },
        { _tag: "Background", isLight: true }
      ]
    )
    const die = dice(3)
    for (let round = 0; round < 2_000; round++) {
      const noise = Array.from({ length: die(30) }, () => String.fromCharCode(die(256))).join("")
      new TerminalKeys().read(noise)
    }
  })
})

const call = callInfo()
const second = callInfo({ callId: "01call000000000000000000bb" })
const asked = (id: string, over: Partial<AskedCall> = {}): AskedCall => ({
  id,
  agent: "web/builder",
  run: "r1",
  tool: "shell",
  folder: "/srv/web",
  input: '{"command":"rm -rf build"}',
  hash: `hash of ${id}`,
  reason: null,
  since: T0,
  until: null,
  ...over
})

const made = () => {
  const state = new BoardState()
  const board = boardOf({
    agents: [
      agentInfo({ word: "needs you" }),
      agentInfo({ agent: "failer", word: "failed", state: "Stopped" }),
      agentInfo({ agent: "worker" })
    ],
    calls: [call, second],
    plates: [plateInfo()]
  })
  state.hear({ head: board.head, rows: board.rows, gone: [] }, T0)
  return state
}
const press = (state: BoardState, keys: string, at = T0): ReadonlyArray<Act> =>
  keys.split(" ").flatMap((key) => state.press({ _tag: "Key", key }, at))
const does = (acts: ReadonlyArray<Act>) => acts.filter(({ _tag }) => _tag !== "Look")

describe("a key", () => {
  it("that ends work is wanted twice, on the same row, and soon", () => {
    const state = made()
    press(state, "G")
    const { row } = state
    assert.strictEqual(row?.kind, "agent")
    assert.deepStrictEqual(does(press(state, "x")), [])
    assert.include(state.note?.text, "x again: stop")
    assert.deepStrictEqual(does(press(state, "x", T0 + TWICE + 1)), [], "too late")
    assert.deepStrictEqual(does(press(state, "x", T0 + TWICE + 2)), [{ _tag: "Do", verb: "stop", name: row!.called }])
    press(state, "x")
    press(state, "k")
    assert.deepStrictEqual(does(press(state, "x")), [], "another row")
    press(state, "r")
    assert.deepStrictEqual(does(press(state, "x")), [], "another key")
  })

  it("starts what has failed, and restarts what works", () => {
    const state = made()
    press(state, "j")
    assert.strictEqual(state.row?.name, "failer")
    assert.deepStrictEqual(does(press(state, "r r")), [{ _tag: "Do", verb: "start", name: "web/failer" }])
  })

  it("approves only what was shown, by its hash, and not before it was seen", () => {
    const state = made()
    assert.deepStrictEqual(does(press(state, "a")), [{ _tag: "Ask", id: call.callId }])
    assert.deepStrictEqual(does(press(state, "a", T0 + 10_000)), [], "nothing is shown yet")
    state.ask(call.callId, asked(call.callId), T0)
    assert.deepStrictEqual(does(press(state, "a", T0 + EARLY - 1)), [], "too early")
    const acts = does(press(state, "a", T0 + EARLY))
    assert.deepStrictEqual(acts, [
      { _tag: "Answer", id: call.callId, hash: `hash of ${call.callId}`, decision: "allow", reason: "" },
      { _tag: "Ask", id: second.callId }
    ])
    assert.deepStrictEqual(does(press(state, "a", T0 + EARLY)), [], "the next one slid under the key")
  })

  it("keeps a rule only after its change was seen, by the hash of what was seen", () => {
    const state = made()
    press(state, "a")
    const rules = ["npm test", "npm test **"].map((words) => ({ words, rules: [words] }))
    const scopes = ["run", "project"] as const
    state.ask(call.callId, asked(call.callId, { offers: rules, scopes, onlyHere: "a change waits" }), T0)
    assert.deepStrictEqual(does(press(state, "e", T0 + EARLY)), [], "this scope is not there now")
    assert.include(state.note?.text, "a change waits")
    const lasting = { scope: "project", offer: 2 } as const
    assert.deepStrictEqual(does(press(state, "2 p", T0 + EARLY)), [{ _tag: "Preview", id: call.callId, lasting }])
    const preview = {
      hash: "hash of the change",
      scope: "project",
      offer: rules[1]!,
      file: "/c",
      diff: ["+ x"]
    } as const
    state.preview(call.callId, preview, T0 + 1_000)
    assert.deepStrictEqual(does(press(state, "a", T0 + 1_000)), [], "too early")
    press(state, "esc", T0 + 2_000)
    assert.isUndefined(state.call?.preview)
    state.preview(call.callId, preview, T0 + 3_000)
    const frame = draw(state, { columns: 100, rows: 40, ascii: false, world: null }, T0 + 3_000).lines.join("\n")
    assert.include(frame, "It would be kept always in this project, in /c:")
    assert.deepStrictEqual(does(press(state, "a", T0 + 4_000))[0], {
      _tag: "Answer",
      id: call.callId,
      hash: "hash of the change",
      decision: "allow",
      reason: "",
      lasting
    })
    press(state, "a")
    state.ask(second.callId, asked(second.callId), T0 + 5_000)
    assert.deepStrictEqual(does(press(state, "r", T0 + 6_000)), [])
    assert.include(state.note?.text, "only be approved once")
  })

  it("approves all calls of one kind that are shown, each by its hash, and then looks again", () => {
    const state = made()
    const [one, two, third] = [call.callId, second.callId, "third"].map((id) => asked(id))
    press(state, "a")
    state.ask(call.callId, one!, T0)
    assert.deepStrictEqual(does(press(state, "A", T0 + EARLY)), [])
    assert.include(state.note?.text, "No other call of this kind waits")
    const title = "3 calls: npm run … (web/builder)"
    state.ask(call.callId, one!, T0 + 1_000, { title, calls: [two!, one!, third!], hash: "" })
    const shown = (rows: number) => draw(state, { columns: 130, rows, ascii: false, world: null }, T0 + 9_000)
    assert.include(shown(20).lines.join("\n"), "more lines ↓")
    assert.deepStrictEqual(does(press(state, "A", T0 + 1_000 + EARLY)), [], "its end was not on the screen")
    assert.include(state.note?.text, "Read all of them first")
    const frame = shown(60).lines.join("\n")
    assert.include(frame, `1 of 2  ${title}`)
    assert.include(frame, "A approve all 3")
    for (const { hash } of [one!, two!, third!]) assert.include(frame, `└ ${hash.slice(0, 32)}`)
    assert.deepStrictEqual(does(press(state, "A", T0 + 1_000 + EARLY - 1)), [], "too early")
    assert.deepStrictEqual(does(press(state, "A", T0 + 1_000 + EARLY)), [
      {
        _tag: "Answer",
        id: two!.id,
        hash: two!.hash,
        decision: "allow",
        reason: "",
        also: [
          { name: one!.id, hash: one!.hash },
          { name: "third", hash: third!.hash }
        ]
      },
      { _tag: "Ask", id: call.callId }
    ])
    assert.deepStrictEqual(does(press(state, "A", T0 + 2_000)), [], "nothing is shown until it is loaded again")
  })

  it("denies with a reason, and a question takes its options", () => {
    const state = made()
    press(state, "a")
    state.ask(call.callId, asked(call.callId), T0)
    press(state, "d n o enter", T0 + EARLY)
    const questions = [
      {
        question: "Which?",
        options: [
          { label: "one", description: "" },
          { label: "two", description: "" }
        ],
        several: false
      }
    ]
    state.ask(second.callId, asked(second.callId, { questions }), T0 + 1_000)
    assert.deepStrictEqual(does(press(state, "a", T0 + 2_000)), [])
    assert.deepStrictEqual(does(press(state, "7", T0 + 2_000)), [], "there is no such option")
    assert.deepInclude(does(press(state, "2", T0 + 2_000))[0], { _tag: "Answer", id: second.callId, answers: ["2"] })
  })

  it("types where something is typed, and a paste presses nothing", () => {
    const state = made()
    press(state, "j s ! g o")
    state.press({ _tag: "Paste", text: " x x\nq" }, T0)
    assert.strictEqual(state.input, "!go x x q")
    assert.deepStrictEqual(does(press(state, "enter")), [
      { _tag: "Send", name: "web/failer", text: "go x x q", how: "urgent" }
    ])
    state.press({ _tag: "Paste", text: "q" }, T0)
    assert.strictEqual(state.mode, "list")
    press(state, "/ w o r k e r enter")
    assert.deepStrictEqual(
      state.items.flatMap((item) => (item._tag === "Row" ? [item.row.name] : [])),
      ["worker"]
    )
    press(state, "esc")
    assert.strictEqual(state.filter, "")
  })
})

it("the pane of a row that changes again and again is loaded once a second, and in the end as it is", () => {
  const state = made()
  const { head, rows } = boardOf({ agents: [agentInfo({ word: "needs you" })], calls: [call] })
  const become = (says: string, at: number) => state.hear({ head, rows: [{ ...rows[0]!, says }], gone: [] }, at)
  assert.lengthOf(become("one", T0 + REFRESH), 1)
  assert.lengthOf(become("two", T0 + REFRESH + 10), 0)
  assert.lengthOf(state.tick(T0 + REFRESH + 20), 0)
  assert.lengthOf(state.tick(T0 + 2 * REFRESH), 1)
  assert.lengthOf(state.tick(T0 + 9 * REFRESH), 0)
})

it("a row that is gone is not chosen, a call that asks no more is closed, and a loss is said and keeps the rows", () => {
  const state = made()
  press(state, "a")
  const next = boardOf({ agents: [agentInfo({ agent: "worker" })] })
  state.hear(
    { head: next.head, rows: next.rows, gone: [...state.rows.keys()].filter((id) => id !== next.rows[0]!.id) },
    T0
  )
  assert.strictEqual(state.call, undefined)
  assert.strictEqual(state.row?.name, "worker")
  state.lose("No daemon is running.", "Start it: agentd start", T0)
  const lines = draw(state, { columns: 100, rows: 20, ascii: false, world: null }, T0 + 65_000).lines
  assert.match(lines[0]!, /^ agentd {2}No daemon is running\. For 1m/)
  assert.notInclude(lines[0]!, "nothing waits")
  assert.include(lines.join("\n"), "web/worker")
})

it("a board without a daemon says in full what is wrong and what to do", () => {
  const state = new BoardState()
  const path = `/home/${"long/".repeat(30)}control.sock`
  state.lose(
    `No daemon is running: nobody answers at ${path}.`,
    "Start it: agentd start. To try agentd: agentd demo",
    T0
  )
  const lines = draw(state, { columns: 60, rows: 20, ascii: false, world: null }, T0).lines
  const text = lines.map((line) => line.trim()).join("")
  assert.include(text, path)
  assert.include(lines.join("\n"), "→ Start it: agentd start")
  assert.include(lines.at(-1)!, "q quit")
})

const KEYS = [
  "j",
  "k",
  "G",
  "f",
  "tab",
  "?",
  "/",
  "esc",
  "a",
  "s",
  "z",
  "J",
  "K",
  "ctrl-k",
  "o",
  "p",
  "P",
  "down",
  "page-down",
  "enter"
]

const PAGE = { columns: 100, rows: 20, ascii: false, world: null }

const agent = (name: string) => {
  const { head, rows } = boardOf({ agents: [agentInfo({ agent: name }), agentInfo({ agent: "tester" })] })
  const state = new BoardState()
  state.hear({ head, rows, gone: [] }, T0)
  return state
}

describe("the pane", () => {
  it("on the whole page shows all of it, line by line, and gives the list back", () => {
    const state = agent("builder")
    while (state.pane !== "diff") press(state, "tab")
    const lines = Array.from({ length: 60 }, (_, n) => ({ text: `    line ${n}`, isCode: true }))
    state.show({ id: state.at, pane: "diff", lines })
    press(state, "z")
    assert.include(draw(state, PAGE, T0).lines.join("\n"), "      line 0\n")
    press(state, "G")
    assert.include(draw(state, PAGE, T0).lines.join("\n"), "      line 59\n")
    press(state, "k")
    const page = draw(state, PAGE, T0).lines.join("\n")
    assert.include(page, "line 58")
    assert.notInclude(page, "line 59")
    assert.include(page, "59 of 60")
    press(state, "q")
    assert.isFalse(state.isZoomed)
    assert.include(draw(state, PAGE, T0).lines.join("\n"), "web/tester")
  })

  it("a story is seen from its end, and scrolled to its beginning", () => {
    const state = agent("builder")
    state.show({ id: state.at, pane: "why", lines: Array.from({ length: 60 }, (_, n) => ({ text: `line ${n}.` })) })
    assert.include(draw(state, PAGE, T0).lines.join("\n"), "line 59.")
    for (let n = 0; n < 40; n++) press(state, "K")
    const page = draw(state, PAGE, T0).lines.join("\n")
    assert.include(page, "line 0.")
    assert.notInclude(page, "line 59.")
    press(state, "J")
    assert.notInclude(draw(state, PAGE, T0).lines.join("\n"), "line 0.")
  })

  it("the diff of a row that changes again and again is loaded seldom", () => {
    const state = agent("builder")
    while (state.pane !== "diff") press(state, "tab")
    const { head, rows } = boardOf({ agents: [agentInfo({ agent: "builder" })] })
    const become = (says: string, at: number) => state.hear({ head, rows: [{ ...rows[0]!, says }], gone: [] }, at)
    assert.lengthOf(become("one", T0 + 20_000), 1)
    assert.lengthOf(become("two", T0 + 20_000 + 5 * REFRESH), 0)
    assert.lengthOf(state.tick(T0 + 31_000), 1)
  })
})

/** Opens the palette and types. */
const typeAt = (state: BoardState, letters: string) =>
  ["ctrl-k", ...letters].forEach((key) => state.press({ _tag: "Key", key }, T0))
const go = (state: BoardState, letters: string) => {
  typeAt(state, letters)
  return press(state, "enter")
}

describe("the list", () => {
  const many = () => {
    const of = (agent: string, project: string, more: object = {}) =>
      agentInfo({ agent, project, conversation: project, ...more })
    const { head, rows } = boardOf({
      agents: [
        of("a", "shop", { since: T0 - 1_000 }),
        of("b", "web", { since: T0 - 9_000 }),
        of("c", "web"),
        of("d", "web", { word: "failed", failed: true })
      ]
    })
    const state = new BoardState()
    state.hear({ head, rows, gone: [] }, T0)
    return state
  }
  const names = (state: BoardState) =>
    state.items.flatMap((item) =>
      item._tag === "Row" ? [item.row.name] : item._tag === "Project" ? [`${item.project} ${item.count}`] : []
    )

  it("is ordered within its groups by what a key chooses", () => {
    const state = many()
    assert.deepStrictEqual(names(state), ["d", "a", "b", "c"])
    press(state, "o o")
    assert.deepStrictEqual([state.sort, names(state)], ["age", ["d", "b", "a", "c"]])
    press(state, "o o")
    assert.strictEqual(state.sort, "state")
  })

  it("folds a project, but not what has failed of it, and all come back", () => {
    const state = many()
    press(state, "G p")
    assert.deepStrictEqual(names(state), ["d", "a", "web 2"])
    assert.include(draw(state, PAGE, T0).lines.join("\n"), "web/ 2 folded")
    assert.strictEqual(state.row?.name, "d")
    press(state, "P")
    assert.lengthOf(names(state), 4)
  })
})

describe("the palette", () => {
  it("leads to a row by letters of its name, a folded one too", () => {
    const state = agent("builder")
    press(state, "f")
    go(state, "tst")
    assert.strictEqual(state.row?.name, "tester")
    assert.strictEqual(state.mode, "list")
  })

  it("offers a row whose name begins so before what is done to another", () => {
    const state = new BoardState()
    const { head, rows } = boardOf({ agents: [agentInfo({ agent: "builder" }), agentInfo({ agent: "reviewer" })] })
    state.hear({ head, rows, gone: [] }, T0)
    go(state, "re")
    assert.strictEqual(state.row?.name, "reviewer")
  })

  it("opens panes and sends, and what ends work wants its key once more", () => {
    const state = agent("builder")
    assert.deepInclude(go(state, "timel")[0], { _tag: "Look", pane: "timeline" })
    go(state, "send to")
    assert.strictEqual(state.mode, "send")
    press(state, "esc")
    assert.deepStrictEqual(go(state, "restart"), [])
    assert.match(state.note!.text, /^r again: restart web\/builder/)
    assert.deepInclude(press(state, "r")[0], { _tag: "Do", verb: "restart" })
  })

  it("hears letters as letters, and nothing beneath it", () => {
    const state = agent("builder")
    typeAt(state, "xx")
    press(state, "ctrl-k")
    assert.strictEqual(state.mode, "list")
    assert.strictEqual(state.note, undefined)
    typeAt(state, "no such thing")
    assert.include(draw(state, PAGE, T0).lines.join("\n"), "Nothing has this name.")
    assert.deepStrictEqual(press(state, "enter"), [])
  })
})

describe("a page of 80 columns", () => {
  const page = (agents: Parameters<typeof boardOf>[0]["agents"], columns = 80) => {
    const state = new BoardState()
    const { head, rows } = boardOf({ agents: agents ?? [] })
    state.hear({ head, rows, gone: [] }, T0)
    return draw(state, { columns, rows: 30, ascii: false, world: null }, T0).lines
  }

  it("ends with the keys for help and for the end, and names its columns", () => {
    const lines = page([agentInfo({ inbox: 2 })])
    assert.match(lines.at(-1)!.trimEnd(), /\? keys {2}q quit$/)
    assert.match(lines[1]!, /inbox +for *$/)
    assert.notInclude(lines[0]!, "rune")
  })

  it("says the cause of a stop first, and gives a row's text the room of empty columns", () => {
    const detail = "5 errors in a row; the last: exit code 7: report: no space left on device"
    const text = page([agentInfo({ word: "failed", failed: true, state: "Stopped", detail })]).join("\n")
    assert.include(text, "exit code 7: report: no space left")
  })

  it("parts how long a wait is from what it waits for, with one verb", () => {
    const waits = agentInfo({ word: "waiting", reason: "run", nextAt: T0 + 13_000, detail: "waits for its next run" })
    assert.include(page([waits]).join("\n"), "waiting 13 s · for its next run")
  })
})

it("every page of every size has its size, and what is chosen is on it", () => {
  const die = dice(11)
  for (let round = 0; round < 150; round++) {
    const state = new BoardState()
    const words = ["needs you", "failed", "working", "idle", "waiting", "retrying"] as const
    const agents = Array.from({ length: die(60) }, (_, n) =>
      agentInfo({
        agent: `a${n}`,
        word: words[die(words.length)]!,
        detail: texts[die(texts.length)]!,
        nextAt: T0 + 5_000
      })
    )
    const conversations = die(2) === 0 ? [] : [conversationInfo({ state: "suspended", detail: "suspended: 3 errors" })]
    const board = boardOf({ agents, calls: die(2) === 0 ? [] : [{ ...call, agent: "a0" }], conversations })
    state.hear({ head: board.head, rows: board.rows, gone: [] }, T0)
    for (let n = 0; n < die(40); n++) press(state, KEYS[die(KEYS.length)]!, T0)
    const terminal = { columns: 60 + die(240), rows: 10 + die(60), ascii: die(2) === 0, world: null }
    const page = draw(state, terminal, T0)
    for (const line of page.lines) assert.isAtMost(displayWidth(line), terminal.columns)
    if (state.mode === "list" && state.row !== undefined && !state.isZoomed) {
      const shown = Array.from({ length: terminal.rows }, (_, y) => itemAt(terminal, state, { x: 1, y }))
      assert.isTrue(shown.some((item) => item?._tag === "Row" && item.row.id === state.at))
    }
  }
})
