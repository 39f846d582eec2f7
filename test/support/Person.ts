/**
 * Person: a simulated person who works with a stage's agents at random until the daemon is killed, and then waits until
 * all work is finished.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Dice } from "./Dice.ts"
import * as Laws from "./Laws.ts"
import * as Stage from "./Stage.ts"
import { type Step, told } from "./Told.ts"

/** Simulates a person until the daemon is gone; adds each acknowledged message to `acknowledged`. */
export const person = Effect.fnUntraced(function* (shop: Stage.Project, die: Dice, acknowledged: Array<string>) {
  const agents = Stage.BACKENDS.map((on) => `a-${on}`)
  for (;;) {
    const agent = agents[die(agents.length)]!
    const text = `number ${acknowledged.length}.${die(1_000_000)}`
    const steps: ReadonlyArray<Step> = [
      [{ say: text }],
      [{ sleep: 50 + die(150) }, { say: text }],
      [{ ask: "touch asked" }, { sleep: die(100) }, { say: text }],
      [{ stuck: true as const }, { say: text }]
    ][die(4)]!
    const how = (["queue", "queue", "steer", "urgent"] as const)[die(4)]!
    yield* shop.send(agent, `${text}\n${told(...steps)}`, how)
    acknowledged.push(text)
    if (die(4) === 0) yield* Effect.ignore(shop.interrupt(agents[die(3)]!))
    const calls = yield* shop.stage.rpc((client) => client.Calls())
    for (const { callId, state } of calls) {
      if (state === "awaiting_approval") yield* Effect.ignore(shop.answer(callId, die(3) === 0 ? "deny" : "allow"))
    }
    yield* Effect.sleep(die(60))
  }
})

/**
 * Runs the daemon several times while a person works with its agents, and kills it each time at a random moment. Then
 * checks that all work is done exactly once.
 */
export const killedAtAnyMoment = <E, R>(
  stage: Stage.Stage,
  story: {
    readonly die: Dice
    readonly kills: number
    /** Maximum lifetime of a daemon after its first 200 ms, in ms. */
    readonly longest: number
    /** Runs each time after the daemon was killed. */
    readonly then: Effect.Effect<unknown, E, R>
  }
) =>
  Effect.gen(function* () {
    const { die, kills, longest, then } = story
    const shop = stage.home({
      conversation: { maxTurnErrors: 1000 },
      agents: stage.trio("a", { idleTimeout: "300ms", interruptGrace: "500ms" })
    })
    const acknowledged: Array<string> = []
    for (let life = 0; life < kills; life++) {
      yield* stage.up
      yield* shop.register
      const speaking = yield* Effect.forkChild(Effect.exit(person(shop, die, acknowledged)))
      yield* Effect.sleep(200 + die(longest))
      yield* stage.box.kill9
      yield* Fiber.await(speaking)
      yield* then
    }
    yield* stage.up
    yield* workedOff(shop)
    yield* keptAll(shop, acknowledged)
  })

/** Checks that the log is valid and contains every acknowledged message exactly once. */
export const keptAll = Effect.fnUntraced(function* (shop: Stage.Project, acknowledged: ReadonlyArray<string>) {
  const log = yield* shop.log()
  assert.deepStrictEqual(Laws.broken(log), [])
  // only the person's messages are numbered; others can be equal
  const received = [...Laws.received(log).values()]
    .map((text) => text.split("\n")[0]!)
    .filter((text) => text.startsWith("number "))
  assert.isAbove(acknowledged.length, 0)
  assert.deepStrictEqual(
    acknowledged.filter((text) => !received.includes(text)),
    []
  )
  assert.strictEqual(new Set(received).size, received.length, "and none is there twice")
  const verdict = yield* shop.cli("verify")
  assert.strictEqual(verdict.code, 0, verdict.stdout)
})

/** Waits until all work is done: allows every call that asks, and interrupts agents whose commands hang. */
export const workedOff = (shop: Stage.Project) =>
  shop.until(
    "all is worked off",
    Effect.gen(function* () {
      for (const { callId, since, state, tool } of yield* shop.stage.rpc((client) => client.Calls())) {
        if (state === "awaiting_approval") yield* Effect.ignore(shop.answer(callId, "allow"))
        else if (/Bash|execute|shell/.test(tool) && Date.now() - since > 500) {
          for (const on of Stage.BACKENDS) yield* Effect.ignore(shop.interrupt(`a-${on}`))
        }
      }
      const turns = Laws.turnsOf(yield* shop.log())
      const waiting = (yield* shop.agents).filter(({ inbox }) => inbox > 0)
      return [...turns.filter(({ ends }) => ends.length === 0), ...waiting, ...Laws.broken(yield* shop.log())]
    }),
    (left) => left.length === 0
  )
