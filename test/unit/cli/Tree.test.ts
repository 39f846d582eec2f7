/** How the supervision tree looks, and which part of it a name means. */
import { assert, describe, it } from "@effect/vitest"
import { partsOf, treeOf } from "../../../src/board/TreeMessages.ts"
import { view } from "../../../src/cli/daemon/Tree.ts"
import type { Inspection, Observed } from "../../../src/core/supervision/Observation.ts"

const NOW = Date.parse("2026-11-20T09:12:00Z")
const world = { now: NOW, colour: false, columns: null, world: null }

const child = (id: string, inside?: Inspection, more: Partial<Observed> = {}): Observed => ({
  id,
  type: inside?._tag === "Supervisor" ? "supervisor" : "worker",
  status: "running",
  restart: "permanent",
  restarts: 0,
  crash: undefined,
  inside,
  ...more
})

const supervisor = (
  children: ReadonlyArray<Observed>,
  strategy = "one_for_one",
  count = children.length
): Inspection => ({
  _tag: "Supervisor",
  strategy,
  children,
  count
})

const parts = (
  ...states: ReadonlyArray<readonly [address: string, state: string | null, mailbox: number]>
): Inspection => ({
  _tag: "Parts",
  parts: states.map(([address, state, mailbox]) => ({
    address,
    state,
    mailbox,
    newest: [{ at: NOW - 60_000, message: "Look" }]
  }))
})

const whole = treeOf(
  "agentd",
  supervisor([
    child("control"),
    child(
      "conversations",
      supervisor([
        child("builder", parts(["shop/turn/builder", "idle", 0], ["shop/inbox/builder", "Open", 3]), {
          restarts: 2,
          crash: { at: NOW - 5_000, message: "Error: it\u001b[31m broke" }
        }),
        child("tester", undefined, { status: "restarting" })
      ])
    ),
    child("plates", supervisor([], "one_for_one", 4_000))
  ])
)

describe("agentd status --tree", () => {
  it("draws every part below its supervisor, with what is to be known of it", () =>
    assert.deepStrictEqual(
      view(
        whole.map((row) => ({ ...row, newest: [] })),
        world,
        false
      ),
      [
        "agentd  one_for_one",
        "├─ control  running",
        "├─ conversations  one_for_one",
        "│  ├─ builder  running, 2 restarts, crashed 5s ago: Error: it·[31m broke",
        "│  │  ├─ shop/turn/builder  idle",
        "│  │  └─ shop/inbox/builder  Open, 3 messages waiting",
        "│  └─ tester  restarting",
        "└─ plates  one_for_one, and 4000 more"
      ]
    ))

  it("a name means a child with all below it, or an actor by the end of its address, each once", () => {
    const names = (name: string) => partsOf(whole, name).map((row) => `${row.depth} ${row.name}`)
    assert.deepStrictEqual(names("builder"), ["0 builder", "1 shop/turn/builder", "1 shop/inbox/builder"])
    assert.deepStrictEqual(names("turn/builder"), ["0 shop/turn/builder"])
    assert.deepStrictEqual(names("control"), ["0 control"])
    assert.deepStrictEqual(names("nobody"), [])
  })

  it("of a part the newest messages are shown, with their times", () => {
    const [, line] = view(partsOf(whole, "turn/builder"), world, true)
    assert.match(line!, /^ {2}\d\d:11:00 Look$/)
  })
})
