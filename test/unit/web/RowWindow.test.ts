/** Tests of the rows of a long list: which places are asked for, and which are kept. */
import { assert, describe, it } from "@effect/vitest"
import { RowWindow, SIZE } from "../../../src/web/RowWindow.ts"

const row = (place: number, eventId = place + 1) => ({ place, eventId })
const block = (n: number, upTo = SIZE) => Array.from({ length: upTo }, (_, at) => row(n * SIZE + at))
const TOTAL = 100_000

describe("places of a long list", () => {
  it("asks for what is in sight alone, two blocks at once, and never for what was scrolled past", () => {
    const places = new RowWindow()
    places.see(190, 650)
    assert.deepStrictEqual([places.ask(TOTAL), places.ask(TOTAL), places.ask(TOTAL)], [0, 1, undefined])
    for (let first = 0; first < 90_000; first += 500) places.see(first, first + 40)
    places.see(90_000, 90_040)
    assert.isUndefined(places.ask(TOTAL))
    places.take(block(0), 0)
    assert.deepStrictEqual([places.ask(TOTAL), places.ask(TOTAL)], [450, undefined])
    places.take(block(450), 450)
    assert.isUndefined(places.ask(TOTAL))
  })

  it("asks again for a block at the end that has grown, and for one whose question failed; not for places without a row", () => {
    const places = new RowWindow()
    places.see(0, 100)
    assert.strictEqual(places.ask(50), 0)
    places.failed(0)
    assert.strictEqual(places.ask(50), 0)
    // a rune that is secret has a place and no row
    places.take(block(0, 49), 0)
    assert.isUndefined(places.ask(50))
    assert.strictEqual(places.ask(80), 0)
    places.take(block(0, 80), 0)
    // the newest come by themselves
    places.take([row(80)])
    assert.isUndefined(places.ask(81))
  })

  it("asks for the beginning of a block whose end came by itself", () => {
    const places = new RowWindow()
    places.take(block(1, 100).slice(50))
    places.see(260, 300)
    assert.isUndefined(places.ask(300))
    places.see(220, 260)
    assert.strictEqual(places.ask(300), 1)
  })

  it("lets rows go that no longer stand where they stood", () => {
    const places = new RowWindow()
    places.see(0, 100)
    places.ask(200)
    places.take(block(0), 0)
    places.take([row(199, 500)])
    assert.deepStrictEqual([...places.rows.keys()], [199])
    assert.strictEqual(places.ask(200), 0)
  })

  it("keeps what is near, however far somebody scrolls", () => {
    const places = new RowWindow()
    for (let n = 0; n < TOTAL / SIZE; n++) {
      places.see(n * SIZE, n * SIZE + 40)
      assert.strictEqual(places.ask(TOTAL), n)
      places.take(block(n), n)
    }
    assert.isBelow(places.rows.size, 5_000)
    assert.isTrue(places.rows.has(TOTAL - SIZE + 20))
    places.see(0, 40)
    assert.strictEqual(places.ask(TOTAL), 0)
  })
})
