import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Scope } from "effect"
import { TURN } from "../../src/event-actor/Actor.ts"
import { ActorStopped, MailboxFull } from "../../src/event-actor/ActorRef.ts"
import type { ChildHandle, ChildSpec } from "../../src/supervision/Child.ts"
import * as DeadLetters from "../../src/event-actor/DeadLetters.ts"
import * as ServerActor from "../../src/event-actor/ServerActor.ts"
import * as Supervisor from "../../src/supervision/Supervisor.ts"

/** A list that grows; `boom` breaks the step. */
type Message = string
type Options = ServerActor.Options<ReadonlyArray<string>, Message, ReadonlyArray<string>, never>

const actor = (options: Partial<Options> = {}, address = "p/list") =>
  Effect.gen(function* () {
    const deadLetters = yield* DeadLetters.DeadLetters
    const kind = yield* ServerActor.kind<ReadonlyArray<string>, Message, ReadonlyArray<string>>({
      deadLetters,
      init: () => [],
      receive: (state, message) => {
        if (message.startsWith("boom")) throw new Error(message)
        return [...state, message]
      },
      answer: (state) => state,
      ...options
    })
    return yield* kind.make(address)
  })

/** Starts it as a supervisor would and answers its end. */
const run = (spec: ChildSpec) =>
  Effect.gen(function* () {
    const handle = (yield* Effect.scoped(
      spec.start as Exclude<ChildSpec["start"], (by: never) => unknown>
    )) as ChildHandle
    const end = yield* Deferred.make<Exit.Exit<unknown, unknown>>()
    handle.onExit({ childExited: (exit) => Deferred.doneUnsafe(end, Effect.succeed(exit)) })
    return { handle, end: Deferred.await(end) }
  })

const supervised = (spec: ChildSpec) =>
  Supervisor.make({ name: "top", backoff: "none", intensity: 10, period: "30 seconds", children: [spec] })

const test = (name: string, body: () => Effect.Effect<void, unknown, DeadLetters.DeadLetters | Scope.Scope>) =>
  it.effect(name, () => body().pipe(Effect.scoped, Effect.provide(DeadLetters.layerMemory())))

const reasonOf = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), (error) => (error instanceof ActorStopped ? error.reason : error))

describe("Actor", () => {
  test("answers an ask from the state that all earlier messages led to", () =>
    Effect.gen(function* () {
      const list = yield* actor()
      yield* supervised(list)
      list.tellNow("a")
      yield* list.tell("b")
      assert.deepStrictEqual(yield* list.ask("c"), ["a", "b", "c"])
    }))

  test("an ask is answered after its batch is committed", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const batches: Array<ReadonlyArray<string>> = []
      const list = yield* actor({
        commit: (_, messages) => {
          batches.push(messages)
          return Deferred.await(gate)
        }
      })
      yield* supervised(list)
      for (const message of ["a", "b"]) list.tellNow(message)
      const asking = yield* Effect.forkChild(list.ask("c"), { startImmediately: true })
      assert.deepStrictEqual(batches, [["a", "b", "c"]])
      assert.isUndefined(asking.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* Fiber.join(asking), ["a", "b", "c"])
    }))

  test("message k of a batch crashes: those before it are committed, those after it are kept", () =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<string>> = []
      const list = yield* actor({
        commit: (_, messages) => Effect.sync(() => void batches.push(messages))
      })
      const { end } = yield* run(list)
      for (const message of ["a", "b", "boom", "c"]) list.tellNow(message)
      assert.isTrue(Exit.hasDies(yield* end))
      assert.deepStrictEqual(batches, [["a", "b"]])
      for (let crash = 2; crash <= 3; crash++) yield* (yield* run(list)).end
      yield* run(list)
      assert.deepStrictEqual(yield* list.ask("d"), ["c", "d"])
      assert.deepStrictEqual(batches, [
        ["a", "b"],
        ["c", "d"]
      ])
    }))

  test("a message that crashes its actor three times is dead-lettered and the actor lives", () =>
    Effect.gen(function* () {
      const list = yield* actor()
      const top = yield* supervised(list)
      for (const message of ["boom", "a"]) list.tellNow(message)
      const letters = yield* DeadLetters.DeadLetters
      while ((yield* letters.recent).length === 0 || (yield* top.countChildren).active === 0) yield* Effect.yieldNow
      assert.deepStrictEqual(yield* list.ask("b"), ["a", "b"])
      const [letter] = yield* letters.recent
      assert.strictEqual(letter!.reason, "poison")
      assert.strictEqual(letter!.message, "boom")
      assert.instanceOf(letter!.why, Error)
      const exits = (yield* top.trace).filter((event) => event._tag === "Exited")
      assert.lengthOf(exits, 3)
    }))

  test("an ask whose own message crashes fails at once, typed, and is not tried again", () =>
    Effect.gen(function* () {
      const list = yield* actor()
      yield* supervised(list)
      assert.strictEqual(yield* reasonOf(list.ask("boom")), "crashed")
      while (Exit.isFailure(yield* Effect.exit(list.ask("a")))) yield* Effect.yieldNow
      assert.deepStrictEqual(yield* list.ask("b"), ["a", "b"])
    }))

  test("stop comes before work when draining, and the mail waits for the next incarnation", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const batches: Array<number> = []
      const list = yield* actor({
        commit: (_, messages) => {
          batches.push(messages.length)
          return batches.length === 1 ? Effect.uninterruptible(Deferred.await(gate)) : Effect.void
        }
      })
      const { handle, end } = yield* run(list)
      for (let n = 0; n < TURN * 2; n++) list.tellNow(`${n}`)
      while (batches.length === 0) yield* Effect.yieldNow
      handle.stop("shutdown")
      yield* Deferred.succeed(gate, undefined)
      assert.isTrue(Exit.hasInterrupts(yield* end))
      assert.deepStrictEqual(batches, [TURN])
      yield* run(list)
      assert.lengthOf(yield* list.ask("last"), TURN + 1)
    }))

  test("an idle actor that is asked to stop ends during the call", () =>
    Effect.gen(function* () {
      const list = yield* actor()
      const { handle, end } = yield* run(list)
      handle.stop("shutdown")
      handle.stop("shutdown")
      handle.stop("kill")
      const exit = yield* end
      assert.isTrue(Exit.hasInterrupts(exit))
      assert.strictEqual(yield* reasonOf(list.ask("a")), "stopped")
    }))

  test("kill ends it at once; its next start waits for what could not be interrupted", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let commits = 0
      const list = yield* actor({
        commit: () => (commits++ === 0 ? Effect.uninterruptible(Deferred.await(gate)) : Effect.void)
      })
      const { handle, end } = yield* run(list)
      const asking = yield* Effect.forkChild(reasonOf(list.ask("a")), { startImmediately: true })
      handle.stop("shutdown")
      assert.strictEqual(yield* reasonOf(list.ask("b")), "stopping")
      handle.stop("kill")
      yield* end
      assert.strictEqual(yield* Fiber.join(asking), "stopped")
      const again = yield* Effect.forkChild(run(list), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isUndefined(again.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(again)
      assert.deepStrictEqual(yield* list.ask("c"), ["c"])
    }))

  test("tell waits for room and loses nothing; offer and ask are refused typed", () =>
    Effect.gen(function* () {
      const list = yield* actor({ capacity: 2 })
      yield* list.tell("a")
      yield* list.tell("b")
      yield* run(list)
      const telling = yield* Effect.forkChild(list.tell("c"), { startImmediately: true })
      assert.isUndefined(telling.pollUnsafe())
      const full = yield* Effect.flip(list.offer("d"))
      assert.instanceOf(full, MailboxFull)
      assert.strictEqual(full.capacity, 2)
      assert.instanceOf(yield* Effect.flip(list.ask("d")), MailboxFull)
      yield* Fiber.join(telling)
      assert.deepStrictEqual(yield* list.ask("e"), ["a", "b", "c", "e"])
    }))

  test("nobody waits for room in a mailbox whose actor is down", () =>
    Effect.gen(function* () {
      const list = yield* actor({ capacity: 1 })
      const { end } = yield* run(list)
      list.tellNow("boom")
      const telling = yield* Effect.forkChild(list.tell("a"), { startImmediately: true })
      yield* end
      yield* Fiber.join(telling)
      yield* list.tell("b")
      const [letter] = yield* (yield* DeadLetters.DeadLetters).recent
      assert.deepInclude(letter, { reason: "full", message: "b", address: "p/list" })
    }))

  describe("an ask ends typed and at once when the actor is", () => {
    test("not started", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* reasonOf((yield* actor()).ask("a")), "unstarted")
      }))

    test("restarting: those that wait and those that come", () =>
      Effect.gen(function* () {
        const list = yield* actor()
        const { end } = yield* run(list)
        list.tellNow("boom")
        list.tellNow("a")
        const waiting = yield* Effect.forkChild(reasonOf(list.ask("b")), { startImmediately: true })
        assert.strictEqual(yield* Fiber.join(waiting), "restarting")
        assert.isTrue(Exit.hasDies(yield* end))
        assert.strictEqual(yield* reasonOf(list.ask("c")), "restarting")
      }))

    test("dead for good", () =>
      Effect.gen(function* () {
        const list = yield* actor({ restart: "temporary" })
        yield* run(list)
        yield* Effect.exit(list.ask("boom"))
        assert.strictEqual(yield* reasonOf(list.ask("a")), "stopped")
      }))

    test("asking itself", () =>
      Effect.gen(function* () {
        const list: ServerActor.ServerActor<ReadonlyArray<string>, Message, ReadonlyArray<string>> = yield* actor({
          commit: (_, messages) =>
            messages[0] === "self" ? Effect.asVoid(Effect.flatMap(Effect.yieldNow, () => list.ask("b"))) : Effect.void
        })
        const { end } = yield* run(list)
        assert.strictEqual(yield* reasonOf(list.ask("self")), "restarting")
        assert.isTrue(Exit.hasFails(yield* end))
      }))

    test("ended by the failure of its commit", () =>
      Effect.gen(function* () {
        const list = yield* actor({ commit: () => Effect.fail("disk") })
        const { end } = yield* run(list)
        assert.strictEqual(yield* reasonOf(list.ask("a")), "restarting")
        assert.deepStrictEqual(yield* end, Exit.fail("disk"))
      }))
  })

  test("an ask that is given up before its turn is not carried out", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const list = yield* actor({ commit: () => Deferred.await(gate) })
      yield* run(list)
      const first = yield* Effect.forkChild(list.ask("a"), { startImmediately: true })
      const second = yield* Effect.forkChild(list.ask("b"), { startImmediately: true })
      yield* Fiber.interrupt(second)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      assert.deepStrictEqual(yield* list.ask("c"), ["a", "c"])
    }))

  test("a temporary actor that ends is closed: its mail is dead-lettered", () =>
    Effect.gen(function* () {
      const list = yield* actor({ restart: "temporary" })
      const { end } = yield* run(list)
      list.tellNow("boom")
      list.tellNow("a")
      yield* end
      const recent = yield* (yield* DeadLetters.DeadLetters).recent
      assert.deepStrictEqual(
        recent.map((letter) => [letter.reason, letter.message]),
        [
          ["closed", "boom"],
          ["closed", "a"]
        ]
      )
    }))

  test("11 of 20 closed at once are no restarts of their supervisor", () =>
    Effect.gen(function* () {
      const lists = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => `a${n}`),
        (id) => actor({}, id)
      )
      const top = yield* Supervisor.make({ name: "top", intensity: 0, children: lists })
      for (const list of lists.slice(0, 11)) list.close()
      yield* Effect.repeat(Effect.yieldNow, { times: 20 })
      assert.strictEqual((yield* top.countChildren).active, 9)
      assert.deepStrictEqual(yield* lists[19]!.ask("a"), ["a"])
    }))

  test("whoever else listens to its end takes it from nobody, and no second supervisor runs it", () =>
    Effect.gen(function* () {
      const list = yield* actor()
      yield* supervised(list)
      const heard: Array<string> = []
      list.onExit({ childExited: (exit) => void heard.push(exit._tag) })
      const other = yield* Supervisor.make({ name: "other" })
      assert.strictEqual((yield* Effect.flip(other.startChild(list)))._tag, "AlreadySupervised")
      list.tellNow("boom")
      yield* Effect.repeat(Effect.yieldNow, { times: 20 })
      assert.deepStrictEqual(heard, ["Failure"])
      assert.strictEqual(yield* Effect.map(list.ask("a"), (said) => said.at(-1)), "a")
    }))

  test("a supervisor forgets a closed actor, and another one finds nothing to start in it", () =>
    Effect.gen(function* () {
      const list = yield* actor()
      const top = yield* supervised(list)
      list.close()
      assert.deepStrictEqual(yield* top.whichChildren, [])
      assert.isUndefined(yield* top.startChild(list))
      assert.deepStrictEqual(
        (yield* top.whichChildren).map(({ id, status }) => [id, status]),
        [["p/list", "down"]]
      )
    }))

  test("closing it dead-letters its mail and refuses what comes", () =>
    Effect.gen(function* () {
      const list = yield* actor()
      const { end } = yield* run(list)
      list.tellNow("a")
      list.close()
      yield* end
      assert.isFalse(list.tellNow("b"))
      yield* list.tell("c")
      assert.strictEqual(yield* reasonOf(list.offer("d")), "stopped")
      const recent = yield* (yield* DeadLetters.DeadLetters).recent
      assert.deepStrictEqual(
        recent.map((letter) => [letter.reason, letter.message]),
        [
          ["closed", "a"],
          ["closed", "b"],
          ["closed", "c"]
        ]
      )
    }))

  test("16 busy actors starve no bystander: told, it works after at most one turn of each", () =>
    Effect.gen(function* () {
      let worked = 0
      const looks: Array<number> = []
      const deadLetters = yield* DeadLetters.DeadLetters
      const kind = yield* ServerActor.kind<number, "work" | "look", number>({
        deadLetters,
        capacity: 100_000,
        init: () => 0,
        receive: (state, message) => {
          if (message === "look") looks.push(worked)
          else worked += 1
          return state + 1
        },
        answer: (state) => state
      })
      const bystander = yield* kind.make("p/bystander")
      yield* run(bystander)
      for (let n = 0; n < 16; n++) {
        const busy = yield* kind.make(`p/busy/${n}`)
        yield* run(busy)
        for (let m = 0; m < 20 * TURN; m++) busy.tellNow("work")
      }
      const delays: Array<number> = []
      for (let look = 0; look < 10; look++) {
        const before = worked
        bystander.tellNow("look")
        while (looks.length <= look) yield* Effect.yieldNow
        delays.push(looks[look]! - before)
      }
      assert.isBelow(worked, 16 * 20 * TURN, "the others were busy to the end")
      assert.isAtMost(Math.max(...delays), 2 * 16 * TURN)
    }))

  test("an ask of an idle actor waits for no busy one: the asker lends it its turn", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const options = {
        receive: (state: ReadonlyArray<string>, message: string) => {
          order.push(message)
          return state
        },
        capacity: 10_000
      }
      const busy = yield* actor(options, "p/busy")
      const bystander = yield* actor(options, "p/bystander")
      yield* run(busy)
      yield* run(bystander)
      for (let n = 0; n < 10 * TURN; n++) busy.tellNow("work")
      yield* bystander.ask("bystander")
      assert.deepStrictEqual(order, ["bystander"])
    }))
})
