/** Tests of a supervision tree's description of itself. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import type { ChildHandle, ChildSpec, ExitObserver } from "../../../src/core/supervision/Child.ts"
import { type Inspection, MAX_SHOWN } from "../../../src/core/supervision/Observation.ts"
import { child as nested, make } from "../../../src/core/supervision/Supervisor.ts"
import { settled } from "../../world/supervision/otp/Lab.ts"

/** A child that is made of one actor. */
class Told implements ChildHandle {
  private observer: ExitObserver | undefined = undefined
  stop(): void {
    this.end(Exit.interrupt())
  }
  onExit(observer: ExitObserver): void {
    this.observer = observer
  }
  end(exit: Exit.Exit<unknown, unknown>): void {
    const { observer } = this
    this.observer = undefined
    observer?.childExited(exit)
  }
  inspect(): Inspection {
    return { _tag: "Parts", parts: [{ address: "s/turn/a", state: "idle", mailbox: 2, newest: [] }] }
  }
}

const supervised = (children: ReadonlyArray<ChildSpec>) =>
  make({ name: "root", intensity: 5, period: "10 seconds", children })

describe("a tree that is looked at", () => {
  it.effect("shows supervisors, children, their parts, restarts and newest crashes, all of one moment", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust(1_000)
      const made: Array<Told> = []
      const told: ChildSpec = {
        id: "a",
        start: () => {
          made.push(new Told())
          return made.at(-1)!
        }
      }
      const below = nested({ name: "below", strategy: "rest_for_one", children: [told] })
      const root = yield* supervised([below, { id: "loop", start: Effect.succeed(Effect.never), restart: "transient" }])
      made[0]!.end(Exit.die(new Error("it broke")))
      yield* settled
      const { children, count, strategy } = root.inspect()
      assert.deepStrictEqual([strategy, count], ["one_for_one", 2])
      const [first, second] = children
      assert.deepInclude(second, { id: "loop", type: "worker", status: "running", restart: "transient", restarts: 0 })
      assert.deepInclude(first, { id: "below", type: "supervisor", status: "running" })
      const inside = first!.inside
      assert(inside?._tag === "Supervisor")
      const [row] = inside.children
      assert.deepInclude(row, { id: "a", status: "running", restarts: 1 })
      assert.deepStrictEqual(row!.crash, { at: 1_000, message: "Error: it broke" })
      assert.deepStrictEqual(row!.inside, made[1]!.inspect())
    }).pipe(Effect.scoped)
  )

  it.effect("shows the first of very many, and keeps nothing of those that are gone", () =>
    Effect.gen(function* () {
      const idle = (id: string): ChildSpec => ({ id, restart: "temporary", start: () => new Told() })
      const root = yield* supervised(Array.from({ length: MAX_SHOWN + 7 }, (_, n) => idle(`c${n}`)))
      const { children, count } = root.inspect()
      assert.deepStrictEqual([children.length, count], [MAX_SHOWN, MAX_SHOWN + 7])
      yield* root.terminateChild("c0")
      assert.strictEqual(root.inspect().count, MAX_SHOWN + 6)
    }).pipe(Effect.scoped)
  )
})
