/**
 * Random: scopes of three actors that tell each other and themselves, join each other's
 * runes, throw, refuse and postpone, over a log that fails at times; asks are given up,
 * actions break, scopes are stopped, killed and started again. Whatever happens: the live
 * state is the fold of the log, an append is a whole macrostep, ids and seqs are dense,
 * each message that was told on is in the log, waits, or is dead-lettered, nothing twice,
 * and each durable move acts once.
 *
 * `SEEDS=3000 npx vitest run test/world/event-actor/Random.test.ts` for more lives, `SEED=17 SEEDS=1` for one.
 */
import type { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import { assert, it } from "@effect/vitest"
import { Effect, type Fiber } from "effect"
import { actor, later, type Tell, tell } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { Ask, Mail } from "../../../src/core/event-actor/Mail.ts"
import type { Member } from "../../../src/core/event-actor/Member.ts"
import { fold } from "../../../src/core/event-actor/ScopeFold.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { HeldLog, lab, quiet, random, Restarter, scopeIn } from "./Lab.ts"

const SEEDS = Number(process.env["SEEDS"] ?? 200)
const FIRST = Number(process.env["SEED"] ?? 1)

interface Message {
  readonly id: number
  /** The consequences, step by step; the number of the step is where it is. */
  readonly then: ReadonlyArray<What>
  readonly step: number
}
type What = "tell" | "later" | "cross" | "join" | "no join" | "throw" | "illegal" | "postpone" | "end"
interface State {
  readonly seen: ReadonlyArray<string>
  readonly open: boolean
}
const NAMES = ["a", "b", "c"] as const

/** Where a rune comes from: message and step; joined, who moved by it. */
const markOf = ({ payload }: Rune, joined?: string): string =>
  `${payload["id"]}/${payload["step"]}${joined === undefined ? "" : `+${joined}`}`

const world = (dice: () => number) => {
  const log = new HeldLog(1 + Math.floor(dice() * 6))
  const { letters, system } = lab(log, { capacity: 10_000 })
  const supervisor = new Restarter()
  const scopes: Array<ReadonlyArray<Member<State, Message>>> = []
  const acted: Array<string> = []
  const tellsOf = (message: Message, what: What, index: number, ref: (name: string) => Tell["to"]) => {
    const next = { ...message, step: message.step + 1 }
    const other = NAMES[(message.id + message.step) % 3]!
    if (what === "end" || what === "postpone") return []
    if (what === "cross")
      return [
        tell(
          scopes[1 - index]!.find(({ name }) => name === other)!,
          next
        )
      ]
    return what === "later" ? [later(ref(other), next as never)] : [tell(ref(other), next as never)]
  }
  const definition = (index: number, name: string) =>
    actor<State, Message, string>({
      initial: { seen: [], open: index === 0 },
      decide: (state, message, { ref }) => {
        const what = message.then[message.step]!
        if (what === "throw") throw new Error("thrown")
        if (what === "illegal") return "illegal"
        if (what === "postpone" && !state.open) return "postpone"
        const moves = what === "join" || what === "no join" ? NAMES.filter((other) => other !== name).slice(0, 1) : []
        return {
          acts: [`${message.id}/${message.step}`],
          runes: [{ kind: "did", payload: { id: message.id, step: message.step, what }, moves }],
          tells: tellsOf(message, what, index, ref)
        }
      },
      // one that is not concerned, one that refuses, and one that moves further siblings by the same rune
      join: (state, rune) => {
        if (rune.payload["what"] === "no join") return state.open ? undefined : "illegal"
        const third = NAMES.find((other) => other !== name && other !== rune.actor)!
        return { acts: [markOf(rune, name)], moves: rune.moves.length === 0 ? [third] : [] }
      },
      apply: (state, rune, isJoined) => ({
        seen: [...state.seen, markOf(rune, isJoined ? name : undefined)],
        open: state.open || state.seen.length > 2
      }),
      perform: (done) => {
        acted.push(done)
        const id = Number(done.split("/")[0])
        if (id % 13 === 5) throw new Error("no hands")
        if (id % 7 === 3) return Effect.andThen(Effect.yieldNow, id % 2 === 0 ? Effect.void : Effect.die("no feet"))
        return undefined
      }
    })
  for (const index of [0, 1]) {
    const scope = scopeIn(system, `s${index}`)
    scopes.push(NAMES.map((name) => scope.add(name, definition(index, name))))
    supervisor.startChild(scope)
  }
  return { acted, letters, log, supervisor, scopes }
}

/** Two mixtures: much within a scope, and much across with a log that fails often. */
const mixtures: ReadonlyArray<{
  readonly kinds: ReadonlyArray<What>
  readonly breaks: number
  readonly stops: number
}> = [
  {
    kinds: ["tell", "tell", "later", "cross", "join", "join", "no join", "end", "postpone", "throw", "illegal"],
    breaks: 0.05,
    stops: 0.02
  },
  {
    kinds: ["tell", "cross", "cross", "cross", "cross", "join", "postpone", "end", "throw", "illegal"],
    breaks: 0.25,
    stops: 0.02
  }
]

const agree = (
  scopes: ReadonlyArray<ReadonlyArray<Member<State, Message>>>,
  runes: ReadonlyArray<Rune>,
  at: string
) => {
  for (const members of scopes) {
    const { stream } = members[0]!.scope
    const actors = Object.fromEntries(members.map(({ definition, name }) => [name, definition]))
    const states = fold(
      actors,
      runes.filter((rune) => rune.stream === stream)
    )
    for (const { name, state } of members) assert.deepStrictEqual(state, states[name] as State, `${at}: ${name}`)
  }
}

/** The message in a mailbox, bare or in an envelope. */
const textOf = (item: unknown): Message => (item instanceof Mail ? item.message : item) as Message

type World = ReturnType<typeof world>

/** Forty messages, in any order, while the log lands and fails and scopes stop. */
const storm = async ({ log, scopes, supervisor }: World, dice: () => number, seed: number) => {
  const { breaks, kinds, stops } = mixtures[seed % 2]!
  const all = scopes.flat()
  const asked: Array<Fiber.Fiber<unknown, unknown>> = []
  let failures = 0
  for (let id = 0; id < 40; id++) {
    const then = Array.from({ length: 6 }, (_, n) => (n === 5 ? "end" : kinds[Math.floor(dice() * kinds.length)]!))
    const message: Message = { id, then, step: 0 }
    const member = all[Math.floor(dice() * all.length)]!
    if (dice() < 0.3) asked.push(Effect.runFork(member.ask(message)))
    else member.tellNow(message)
    if (dice() < 0.1) asked[Math.floor(dice() * asked.length)]?.interruptUnsafe()
    if (dice() < 0.4) await Promise.resolve()
    if (dice() < 0.3 && log.waiting > 0) log.land(1 + Math.floor(dice() * log.waiting))
    if (dice() < breaks && log.waiting > 0) {
      log.break()
      failures += 1
    }
    if (dice() < stops) supervisor.stopChild(all[Math.floor(dice() * all.length)]!.scope as CommitScope)
    if (dice() < stops) supervisor.kill(all[Math.floor(dice() * all.length)]!.scope as CommitScope)
    startAgain({ scopes, supervisor })
    agree(scopes, log.kept, `seed ${seed}`)
  }
  return { asked, failures }
}

const startAgain = ({ scopes, supervisor }: Pick<World, "scopes" | "supervisor">): void => {
  for (const [{ scope } = assert.fail()] of scopes) {
    const it = scope as CommitScope
    if (it.status === "stopped") supervisor.startChild(it)
  }
}

const rest = async (one: World): Promise<void> => {
  const { log } = one
  for (let n = 0; n < 2_000; n++) {
    await Promise.resolve()
    startAgain(one)
    if (log.waiting > 0) log.land(1)
    else if (n > 200) {
      await quiet()
      startAgain(one)
      if (log.waiting === 0) break
    }
  }
  await quiet()
}

/** Each message that was told on: to a sibling in the same append, to another scope or for later in another one. */
const told = ({ letters, log, scopes }: World, seed: number): void => {
  const steps = new Set(log.kept.map((rune) => markOf(rune)))
  const waits = scopes.flat().flatMap(({ postponed }) => (postponed ?? []).map((item) => textOf(item).id))
  const buried = letters.map(({ message }) => (message as Message).id)
  for (const runes of log.appends) {
    for (const { payload } of runes) {
      const { id, what } = payload as { readonly id: number; readonly what: What }
      if (what === "end" || what === "postpone") continue
      const next = `${id}/${Number(payload["step"]) + 1}`
      const isThere = steps.has(next) || waits.includes(id) || buried.includes(id)
      assert.isTrue(isThere, `seed ${seed}: ${next} is missing`)
    }
  }
}

it(`${SEEDS} seeds`, { timeout: 3_600_000 }, async () => {
  const counts = { appends: 0, crashes: 0, failures: 0, letters: 0, joined: 0 }
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const dice = random(seed)
    const one = world(dice)
    const { acted, letters, log, scopes, supervisor } = one
    const { asked, failures } = await storm(one, dice, seed)
    await rest(one)
    agree(scopes, log.kept, `seed ${seed}`)
    const numbers = log.kept.map(({ eventId }) => eventId)
    assert.deepStrictEqual(
      numbers,
      Array.from(numbers, (_, index) => index + 1),
      `seed ${seed}: ids`
    )
    const marks = log.kept.map((rune) => markOf(rune))
    assert.strictEqual(new Set(marks).size, marks.length, `seed ${seed}: nothing twice`)
    const joined = log.kept.flatMap((rune) => rune.moves.map((name) => markOf(rune, name)))
    assert.deepStrictEqual(
      acted.toSorted(),
      [...marks, ...joined].toSorted(),
      `seed ${seed}: one action for each durable move, none for what was undone`
    )
    told(one, seed)
    const open = scopes.flat().flatMap(({ postponed }) => (postponed ?? []).filter((item) => item instanceof Ask))
    const pending = asked.filter((fiber) => fiber.pollUnsafe() === undefined)
    assert.strictEqual(pending.length, open.length, `seed ${seed}: an ask did not end`)
    for (const { name, postponed, waiting } of scopes.flat()) {
      assert.strictEqual(waiting, postponed?.length ?? 0, `seed ${seed}: ${name} counts its mail`)
    }
    counts.appends += log.appends.length
    counts.joined += joined.length
    counts.crashes += supervisor.restarts
    counts.failures += failures
    counts.letters += letters.length
  }
  assert.isTrue(counts.crashes > SEEDS && counts.joined > SEEDS && counts.failures > 0 && counts.letters > 0)
})
