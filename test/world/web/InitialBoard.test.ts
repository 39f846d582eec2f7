/** Tests of the board's first look: what the page shows first, and that nothing moves when the rest does. */
import { assert, describe, it } from "@effect/vitest"
import type { BoardRow } from "../../../src/domain/BoardMessages.ts"
import { order } from "../../../src/domain/BoardRow.ts"
import { type InitialBoard, glimpseOf } from "../../../src/domain/InitialBoard.ts"
import { WORDS } from "../../../src/domain/StatusWords.ts"

interface Filter {
  readonly items: {
    readonly value: ReadonlyArray<{ readonly is: string; readonly id?: string; readonly count?: number }>
  }
  readonly filter: { value: string }
}
interface Store {
  readonly readGlimpse: (glimpse: InitialBoard) => void
  readonly load: (board: { readonly head: unknown; readonly rows: ReadonlyArray<BoardRow> }) => void
  readonly counts: { readonly value: unknown }
  readonly projects: { readonly value: unknown }
  readonly isWhole: { readonly value: boolean }
}

/** Modules of the page know the browser, which the compiler does not here. */
const page = <A>(name: string): Promise<A> => import(`../../../src/web/${name}.ts`) as Promise<A>

const rowOf = (n: number): BoardRow => {
  const word = WORDS[(n * 7) % WORDS.length]!
  const given = { kind: "agent", word, conversation: "c", project: `p${n % 3}`, name: `a${n}`, says: "", since: n }
  return { id: `agent/c/a${n}`, ...given } as unknown as BoardRow
}
const head = { rune: 9, startedAt: 1, today: { tokens: 0, usd: 0 } }
const rows = Array.from({ length: 1_000 }, (_, n) => rowOf(n))

describe("the first look at the board", () => {
  it("has the rows that come first, and counts all others once", () => {
    const glimpse = glimpseOf({ head, rows })
    assert.deepStrictEqual(glimpse.rows, rows.toSorted(order).slice(0, glimpse.rows.length))
    assert.isBelow(JSON.stringify(glimpse).length, JSON.stringify(rows).length / 5)
    const counted = glimpse.beyond.reduce((all, { count }) => all + count, 0)
    assert.strictEqual(glimpse.rows.length + counted, rows.length)
  })

  it("is all of a board that is small", () => {
    const few = rows.slice(0, 40)
    assert.deepStrictEqual(glimpseOf({ head, rows: few }), { head, rows: few.toSorted(order), beyond: [] })
  })

  it("shows each row at the place that it keeps, and the counts that it keeps", async () => {
    const glimpse = glimpseOf({ head, rows })
    const { filter, items } = await page<Filter>("Filter")
    const store = await page<Store>("BoardStore")
    store.readGlimpse(glimpse)
    const looks = () => ({ counts: store.counts.value, projects: store.projects.value })
    const first = { ...looks(), items: items.value }
    assert.isFalse(store.isWhole.value)
    // a name is not looked for among rows that are not known
    filter.value = "a999"
    assert.deepStrictEqual(items.value, [])
    filter.value = ""
    store.load({ head, rows })
    assert.isTrue(store.isWhole.value)
    assert.deepStrictEqual(looks(), { counts: first.counts, projects: first.projects })
    assert.strictEqual(items.value.length, first.items.length)
    first.items.forEach((item, place) => {
      if (item.is !== "ghost") assert.deepStrictEqual(items.value[place], item)
      else assert.strictEqual(items.value[place]?.is, "row")
    })
  })
})
