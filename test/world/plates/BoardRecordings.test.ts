/** The recorded sessions of real CLIs: the same hooks again, and the board says the same again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { recordings } from "../../../scripts/docs/Board.ts"
import { figuresOf, type Track } from "../../../scripts/board/Recording.ts"
import { SESSION_SOURCES } from "../../../src/plates/SessionSources.ts"
import { nobody, run } from "./World.ts"

/** Statuses that rest on a hook, in their order. */
const byHooks = ({ row }: Track): ReadonlyArray<string> =>
  row
    .map(([, told]) => told.split(" "))
    .flatMap(([status, signal]) => (signal === "hook" ? [status!] : []))
    .filter((status, index, all) => status !== all[index - 1])

const isWithin = (some: ReadonlyArray<string>, all: ReadonlyArray<string>): boolean => {
  let at = 0
  for (const one of all) if (one === some[at]) at += 1
  return at === some.length
}

for (const { agent, played } of recordings()) {
  describe(`a recording of ${agent}`, () => {
    const source = SESSION_SOURCES.find(({ id }) => id === agent)
    for (const { hooks, name, tracks } of played.filter(({ hooks }) => hooks.length > 0)) {
      it.effect(name, () =>
        run(({ board }) =>
          Effect.gen(function* () {
            // a clear gives a session another id
            const all: Array<string> = []
            const told = new Map<string, Array<string>>([["all", all]])
            let last = 0
            for (const [at, body] of hooks) {
              yield* TestClock.adjust(Math.max(0, at - last))
              last = Math.max(at, last)
              yield* board.plates.hook(body, nobody, source)
              const session = String(body["session_id"])
              const statuses = told.get(session) ?? []
              const { status } = yield* board.settled(session)
              told.set(session, [...statuses, status])
              all.push(status)
            }
            for (const track of tracks) {
              const recorded = byHooks(track)
              assert.isTrue(
                [...told.values()].some((statuses) => isWithin(recorded, statuses)),
                `${recorded.join(" ")}: ${JSON.stringify([...told.values()])}`
              )
            }
          })
        )
      )
    }
  })
}

describe("the figures of a recording", () => {
  const of = (
    row: Track["row"],
    screen: Track["screen"] = [
      [0, "idle"],
      [2_000, "working"],
      [6_000, "idle"]
    ]
  ) => figuresOf([{ screen, row, end: 10_000 }])

  it("a board that is up to a second ahead is right; a late one is wrong for as long", () => {
    const [working, idle] = of([
      [0, "Idle hook"],
      [1_500, "Running hook"],
      [7_000, "Idle hook"]
    ])
    assert.deepStrictEqual(working, { state: "working", seconds: 4, right: 1, changes: 1, missed: 0, p99: 0 })
    assert.deepStrictEqual(idle, { state: "idle", seconds: 6, right: 5 / 6, changes: 2, missed: 0, p99: 1_000 })
  })

  it("a change that the row never shows is missed", () => {
    const [working] = of([[0, "Idle hook"]])
    assert.deepStrictEqual([working?.missed, working?.right, working?.p99], [1, 0, undefined])
  })

  it("what lasts less than a quarter of a second is no state", () => {
    assert.lengthOf(
      of(
        [[0, "Idle hook"]],
        [
          [0, "idle"],
          [3_000, "working"],
          [3_200, "idle"]
        ]
      ),
      1
    )
  })
})
