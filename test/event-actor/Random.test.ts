/**
 * Random: scopes of three actors that tell each other and themselves, throw, refuse and
 * postpone, over a log that fails at times. Whatever happens: the live state is the fold of
 * the log, an append is a whole macrostep, ids are dense, each message that was told on is in
 * the log, waits, or is dead-lettered, nothing twice, and each durable rune acts once.
 * `SEEDS=3000 npx vitest run test/event-actor/Random.test.ts` for more lives, `SEED=17` for one.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { actor, later, type Tell, tell } from "../../src/event-actor/EventSourcedActor.ts"
import { Ask, Mail } from "../../src/event-actor/Mail.ts"
import type { Member } from "../../src/event-actor/Member.ts"
import type { Rune } from "../../src/event-log/Rune.ts"
import { HeldLog, lab, quiet, random, Restarter, scopeIn } from "./Lab.ts"

const SEEDS = Number(process.env["SEEDS"] ?? 200)
const FIRST = Number(process.env["SEED"] ?? 1)

interface Message {
  readonly id: number
  /** What it leads to, step by step; the number of the step is where it is. */
  readonly then: ReadonlyArray<"tell" | "later" | "cross" | "throw" | "illegal" | "postpone" | "end">
  readonly step: number
  readonly steps: number
}
interface State {
  readonly seen: ReadonlyArray<string>
  readonly open: boolean
}

const world = (dice: () => number) => {
  const log = new HeldLog(1 + Math.floor(dice() * 6))
  const { letters, system } = lab(log, { capacity: 10_000 })
  const supervisor = new Restarter()
  const scopes: Array<ReadonlyArray<Member<State, Message>>> = []
  const acted: Array<string> = []
  const definition = (index: number, name: string) =>
    actor<State, Message, string>({
      initial: { seen: [], open: index === 0 },
      decide: (state, message, { ref }) => {
        const what = message.then[message.step]!
        if (what === "throw") throw new Error("thrown")
        if (what === "illegal") return "illegal"
        if (what === "postpone" && !state.open) return "postpone"
        const next = { ...message, step: message.step + 1 }
        const other = `${["a", "b", "c"][(message.id + message.step) % 3]}`
        const tells: Array<Tell> =
          what === "end" || what === "postpone"
            ? []
            : what === "tell"
              ? [tell(ref<Message>(other), next)]
              : what === "later"
                ? [later(ref<Message>(other), next)]
                : [
                    tell(
                      scopes[1 - index]!.find(({ name }) => name === other)!,
                      next
                    )
                  ]
        return {
          acts: [`${message.id}/${message.step}`],
          runes: [{ kind: "did", payload: { id: message.id, step: message.step, what, by: name } }],
          tells
        }
      },
      apply: (state, { payload }) => ({
        seen: [...state.seen, `${payload["id"]}/${payload["step"]}`],
        open: state.open || state.seen.length > 2
      }),
      perform: (done) => void acted.push(done)
    })
  for (const index of [0, 1]) {
    const scope = scopeIn(system, `s${index}`)
    scopes.push(["a", "b", "c"].map((name) => scope.add(name, definition(index, name)) as Member<State, Message>))
    supervisor.startChild(scope)
  }
  return { acted, letters, log, supervisor, scopes }
}

const foldOf = (member: Member<State, Message>, runes: ReadonlyArray<Rune>): State =>
  runes
    .filter(({ actor, stream }) => actor === member.name && stream === member.scope.stream)
    .reduce((state, rune) => member.definition.apply(state, rune, false) as State, member.definition.initial as State)

/** What lies in a mailbox, bare or in an envelope. */
const textOf = (item: unknown): Message => (item instanceof Mail ? item.message : item) as Message

/** Two mixtures: much within a scope, and much across with a log that fails often. */
const mixtures = [
  { kinds: ["tell", "tell", "later", "cross", "end", "end", "postpone", "throw", "illegal"], breaks: 0.05 },
  { kinds: ["tell", "cross", "cross", "cross", "cross", "postpone", "end", "throw", "illegal"], breaks: 0.25 }
] as const

it(`${SEEDS} seeds`, { timeout: 3_600_000 }, async () => {
  const counts = { appends: 0, crashes: 0, breaks: 0, letters: 0 }
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const dice = random(seed)
    const { breaks, kinds } = mixtures[seed % 2]!
    const { acted, letters, log, scopes, supervisor } = world(dice)
    const all = scopes.flat()
    let asked = 0
    let ended = 0
    for (let id = 0; id < 40; id++) {
      const then = Array.from({ length: 6 }, (_, n) => (n === 5 ? "end" : kinds[Math.floor(dice() * kinds.length)]!))
      const message: Message = { id, then, step: 0, steps: then.length }
      const member = all[Math.floor(dice() * all.length)]!
      if (dice() < 0.3) {
        asked += 1
        void Effect.runPromiseExit(member.ask(message)).then(() => (ended += 1))
      } else member.tellNow(message)
      if (dice() < 0.4) await Promise.resolve()
      if (dice() < 0.3 && log.waiting > 0) log.land(1 + Math.floor(dice() * log.waiting))
      if (dice() < breaks && log.waiting > 0) {
        log.break()
        counts.breaks += 1
      }
      for (const member of all)
        assert.deepStrictEqual(member.state, foldOf(member, log.kept), `seed ${seed}: committed state`)
    }
    for (let n = 0; n < 2_000; n++) {
      await Promise.resolve()
      if (log.waiting > 0) log.land(1)
      else if (n > 200) {
        await quiet()
        if (log.waiting === 0) break
      }
    }
    for (const member of all) assert.deepStrictEqual(member.state, foldOf(member, log.kept), `seed ${seed}`)
    assert.deepStrictEqual(
      log.kept.map(({ eventId }) => eventId),
      log.kept.map((_, index) => index + 1),
      `seed ${seed}: ids`
    )
    const steps = log.kept.map(({ payload }) => `${payload["id"]}/${payload["step"]}`)
    assert.strictEqual(new Set(steps).size, steps.length, `seed ${seed}: nothing twice`)
    assert.deepStrictEqual(
      acted.toSorted(),
      steps.toSorted(),
      `seed ${seed}: one action for each durable rune, none for what was undone`
    )
    for (const runes of log.appends) {
      for (const { payload } of runes) {
        const { id, what } = payload
        if (what === "end" || what === "postpone") continue
        // told on: to a sibling in the same append, to a stranger or for later in another one
        const next = `${id}/${Number(payload["step"]) + 1}`
        const isThere = (what === "tell" ? runes : log.kept).some(
          (rune) => `${rune.payload["id"]}/${rune.payload["step"]}` === next
        )
        const waits = all.some(({ postponed }) => (postponed ?? []).some((item) => textOf(item).id === id))
        const isBuried = letters.some(({ message }) => (message as Message).id === id)
        // kept by the sibling, it came later
        const came = steps.includes(next)
        assert.isTrue(isThere || waits || isBuried || came, `seed ${seed}: ${next} is missing`)
      }
    }
    assert.strictEqual(
      ended +
        all.reduce((sum, { postponed }) => sum + (postponed ?? []).filter((item) => item instanceof Ask).length, 0),
      asked,
      `seed ${seed}: an ask did not end`
    )
    counts.appends += log.appends.length
    counts.crashes += supervisor.restarts
    counts.letters += letters.length
  }
  assert.isTrue(counts.crashes > SEEDS && counts.breaks > 0 && counts.letters > SEEDS)
})
