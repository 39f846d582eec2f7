/**
 * The laws that every machine keeps, as functions that answer with the list of
 * what breaks them: over the table, and over random walks through it.
 *
 * A walk picks among the cells that move in the state where it is, and does
 * without some of the events from its start to its end, so that it goes deep into
 * what the others do; events come from the machine's own Schema, aimed at the data (the
 * run that is alive, the turn that is active) most of the time.
 */
import { deepStrictEqual } from "node:assert"
import { Arbitrary, Effect, Schema } from "effect"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { fieldsOf } from "../../support/KindFields.ts"
import {
  type AnyMachine,
  branchesOf,
  edges,
  fold,
  type Moved,
  type Snapshot,
  step
} from "../../../src/core/event-actor/StateMachine.ts"

type Tagged = { readonly _tag: string }

/** A machine with what its walks need. */
export interface Subject<S extends string, E extends Tagged, D> {
  readonly machine: AnyMachine
  readonly events: ReadonlyArray<Schema.Codec<E, unknown>>
  readonly kinds: ReadonlyArray<string>
  readonly lazy?: ReadonlyArray<string>
  /** With tiny limits, so that walks reach them. */
  readonly initial: D
  /** Where a machine without a final state can always get back to. */
  readonly rest?: S
  /** The event as it would be sent to a machine with this data; `pick` is any number. */
  readonly aim: (data: D, event: E, pick: number) => E
  /** Checks the law after a move; false or a message breaks the walk. */
  readonly holds: (snapshot: Snapshot<S, D>, runes: ReadonlyArray<Moved & Pick<Rune, "kind">>) => boolean | string
}

// oxlint-disable-next-line no-explicit-any
export type AnySubject = Subject<any, any, any>

const cellsOf = (machine: AnyMachine) => machine.table as Record<string, Record<string, unknown>>
const finals = (machine: AnyMachine) => machine.final as ReadonlyArray<string>

export const tagOf = (event: Schema.Codec<Tagged, unknown>): string =>
  (event as unknown as { fields: { _tag: { schema: { literal: string } } } }).fields._tag.schema.literal

/** States × event tags without a cell, and cells without a state or tag. */
export const holes = ({ events, machine }: AnySubject): ReadonlyArray<string> => {
  const tags = events.map(tagOf).toSorted()
  const states = Object.keys(machine.states).toSorted()
  const table = cellsOf(machine)
  const rows = Object.keys(table).toSorted()
  const wrong = states.join() === rows.join() ? [] : [`states ${states.join()} but rows ${rows.join()}`]
  return [
    ...wrong,
    ...rows.flatMap((state) => {
      const cells = Object.keys(table[state]!).toSorted()
      return cells.join() === tags.join() ? [] : [`${state} decides ${cells.join()} of ${tags.join()}`]
    })
  ]
}

const reach = (machine: AnyMachine, from: string, backwards = false): ReadonlySet<string> => {
  const seen = new Set([from])
  const arrows = edges(machine).map((edge) => (backwards ? [edge.to, edge.from] : [edge.from, edge.to]))
  for (let size = 0; size < seen.size;) {
    size = seen.size
    for (const [a, b] of arrows) if (seen.has(a!)) seen.add(b!)
  }
  return seen
}

export const unreachable = ({ machine }: AnySubject): ReadonlyArray<string> => {
  const reached = reach(machine, machine.initial)
  return Object.keys(machine.states).filter((state) => !reached.has(state))
}

/** States that cannot end, or cannot get back to rest where a machine has no end. */
export const stuck = ({ machine, rest }: AnySubject): ReadonlyArray<string> => {
  const goals = finals(machine).length > 0 ? finals(machine) : [rest as string]
  const back = new Set(goals.flatMap((goal) => [...reach(machine, goal, true)]))
  return Object.keys(machine.states).filter((state) => !back.has(state))
}

/** Edges that leave a final state. */
export const escapes = ({ machine }: AnySubject): ReadonlyArray<string> =>
  edges(machine).flatMap((edge) =>
    finals(machine).includes(edge.from) && edge.to !== edge.from ? [`${edge.from} × ${edge.event} → ${edge.to}`] : []
  )

const unused = (what: string, declared: Iterable<string>, used: Iterable<string | undefined>): Array<string> => {
  const names = new Set(used)
  return [...new Set(declared)].filter((name) => !names.has(name)).map((name) => `${what} ${name} is unused`)
}

/** Names that are declared and not used, or used and not declared. */
export const loose = ({ kinds, machine }: AnySubject): ReadonlyArray<string> => {
  const all = edges(machine)
  const runes = all.map((edge) => (edge.rune as string | undefined) ?? (machine.rune as string))
  const timeouts = Object.values(machine.states).map((spec) => spec.timeout as string | undefined)
  return [
    ...unused(
      "guard",
      Object.keys(machine.guards),
      all.map((edge) => edge.when as string | undefined)
    ),
    ...unused(
      "update",
      Object.keys(machine.updates),
      all.map((edge) => edge.set)
    ),
    ...unused(
      "action",
      Object.keys(machine.actions),
      all.flatMap((edge) => [...((edge.act as ReadonlyArray<string> | undefined) ?? [])])
    ),
    ...unused("timer", Object.keys(machine.timers), timeouts),
    ...unused("kind", kinds, runes),
    ...unused("undeclared kind", runes, kinds),
    ...unused("undeclared kind with fields", Object.keys(machine.fields), kinds)
  ]
}

/** Timers whose event the table refuses in the state that they limit. */
export const deafTimers = ({ initial, machine }: AnySubject): ReadonlyArray<string> =>
  Object.entries(machine.states).flatMap(([state, spec]) => {
    if (spec.timeout === undefined) return []
    const { _tag } = machine.timers[spec.timeout]!.fires(initial) as Tagged
    return typeof cellsOf(machine)[state]![_tag] === "string" ? [`${state}: ${spec.timeout} fires ${_tag}`] : []
  })

const json = <A>(value: A): A =>
  JSON.parse(JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? null : part)))

const freeze = <A>(value: A): A => {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const part of Object.values(value)) freeze(part)
  }
  return value
}

/** Some events of each tag, as the log would give them back. */
const poolOf = (subject: AnySubject): ReadonlyMap<string, ReadonlyArray<Tagged>> =>
  new Map(
    subject.events.map((schema: Schema.Codec<Tagged, unknown>) => {
      const samples = Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(schema), { count: 24, seed: 1 }))
      return [tagOf(schema), samples.map((sample) => stored(schema, sample))]
    })
  )

/** The event as JSON; what JSON has no word for is null there. */
const stored = (schema: Schema.Codec<Tagged, unknown>, sample: Tagged): Tagged => {
  const event: Tagged = json(sample)
  const keys = Object.keys((schema as unknown as { fields: object }).fields)
  const complete: Tagged = Object.assign(Object.fromEntries(keys.map((key) => [key, null])), event)
  return Schema.is(schema)(event) ? event : complete
}

const same = (a: unknown, b: unknown): boolean => {
  try {
    deepStrictEqual(a, b)
    return true
  } catch {
    return false
  }
}

/** Steps an event in every way: without a throw, twice alike, and without a change of its input. */
const stepped = (machine: AnyMachine, state: string, data: unknown, event: Tagged) => {
  const result = step(machine, state, freeze(data), freeze(event))
  if (!same(result, step(machine, state, data, event))) throw new Error(`${state} × ${event._tag} steps in two ways`)
  return result
}

/** A number that depends on both in no simple way: generated ones are small and alike too often. */
const mixed = (a: number, b: number): number => {
  const once = Math.imul(a ^ (a >>> 15) ^ Math.imul(b + 1, 0x9e3779b1), 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return (twice ^ (twice >>> 16)) >>> 1
}

const trail = (runes: ReadonlyArray<Moved>): string =>
  runes.map((rune) => (rune.payload["event"] as Tagged)._tag).join(", ")

/** The walk that the numbers lead; a message where a law breaks. Moves that leave less to do are seldom taken. */
const walk = (subject: AnySubject, pool: ReadonlyMap<string, ReadonlyArray<Tagged>>) => {
  const { machine } = subject
  const isEvent = Schema.is(Schema.Union(subject.events))
  const moves = new Map(
    Object.entries(cellsOf(machine)).map(([state, row]) => {
      const open = Object.keys(row).filter((tag) => typeof row[tag] !== "string")
      const ahead = (tag: string) =>
        Math.max(...branchesOf(row[tag] as never).map((branch) => reach(machine, String(branch["to"])).size))
      const most = Math.max(...open.map(ahead))
      return [state, { open, gentle: open.filter((tag) => ahead(tag) === most) }]
    })
  )
  const tags = [...pool.keys()]
  return (numbers: ReadonlyArray<number>): true | string => {
    let live: Snapshot<string, unknown> = { state: machine.initial, data: subject.initial, entered: 0, seq: 0, at: 0 }
    const runes: Array<Moved & Pick<Rune, "kind">> = []
    const draw = (tag: string, number: number) => {
      const samples = pool.get(tag)!
      const pick = mixed(number, runes.length)
      return subject.aim(live.data, samples[mixed(pick, 1) % samples.length], pick) as Tagged
    }
    const swarm = new Set(tags.filter((_, index) => mixed(numbers[0]!, index) % 2 === 0))
    for (const [index, drawn] of numbers.entries()) {
      const number = mixed(drawn, index)
      const { gentle, open } = moves.get(live.state)!
      if (open.length === 0) break
      const chosen = gentle.filter((tag) => swarm.has(tag))
      const choice = number % 29 === 0 ? open : chosen.length > 0 ? chosen : gentle
      const event = draw(choice[number % choice.length]!, number)
      if (!isEvent(event)) return `${JSON.stringify(event)} is no event`
      const result = stepped(machine, live.state, live.data, event)
      if (result._tag === "Refused") continue
      const rune = {
        eventId: runes.length + 1,
        seq: runes.length + 1,
        at: runes.length * 100,
        kind: result.kind,
        payload: json(result.payload)
      }
      const unsaid = Object.keys(rune.payload).filter((field) => !fieldsOf(result.kind).includes(field))
      if (unsaid.length > 0) return `the schema of ${result.kind} leaves out ${unsaid.join(", ")}`
      runes.push(rune)
      if (subject.lazy?.includes(result.kind) && !(result.state === live.state && same(result.data, live.data))) {
        return `${result.kind} is lazy and changes the machine`
      }
      const moved = result.state !== live.state
      const entered = moved || result.reenter ? rune.eventId : live.entered
      live = { state: result.state, data: result.data, entered, seq: entered, at: moved ? rune.at : live.at }
      const verdict = subject.holds(live, runes)
      if (verdict !== true) return `in ${live.state}: ${verdict || "the invariant"} is broken, after ${trail(runes)}`
    }
    for (const tag of tags) stepped(machine, live.state, live.data, draw(tag, numbers[0] ?? 0))
    const folded = fold(machine, subject.initial, runes)
    if (!same(folded, live)) return `the fold is ${JSON.stringify(folded)}, the live machine ${JSON.stringify(live)}`
    return same(folded, fold(machine, subject.initial, runes)) || "two folds differ"
  }
}

const attempt = (run: () => true | string): true | string => {
  try {
    return run()
  } catch (error) {
    return String(error)
  }
}

const numbers = Arbitrary.array(
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1 << 20 }))),
  {
    minLength: 1,
    maxLength: 160
  }
)

/** Random walks, shrunk where one fails; the message of a failure tells how to replay it. */
export const walks = (subject: AnySubject, options: Arbitrary.CheckOptions = {}) => {
  const walked = walk(subject, poolOf(subject))
  return Effect.runSync(
    Arbitrary.checkEffect(
      numbers,
      (path) =>
        Effect.suspend(() => {
          const verdict = attempt(() => walked(path))
          return verdict === true ? Effect.succeed(true) : Effect.fail(verdict)
        }),
      { runs: 500, seed: 1, size: 200, ...options }
    )
  )
}

/** Every state × every tag, with the first data and some events of each: what throws. */
export const throws = (subject: AnySubject): ReadonlyArray<string> => {
  const pool = poolOf(subject)
  return Object.keys(subject.machine.states).flatMap((state) =>
    [...pool].flatMap(([tag, samples]) => {
      try {
        for (const sample of samples) stepped(subject.machine, state, subject.initial, sample)
        return []
      } catch (error) {
        return [`${state} × ${tag}: ${String(error)}`]
      }
    })
  )
}
