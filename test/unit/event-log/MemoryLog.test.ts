/** Tests of a log's checks before it stores: positions, seqs, guard, stops; and of the undoing of a failed append. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { Schema } from "effect"
import { AdmissionState, UnreadGuard } from "../../../src/core/event-log/AdmissionState.ts"
import { EventDraft } from "../../../src/core/event-log/EventDraft.ts"
import * as EventKinds from "../../../src/core/event-log/EventKinds.ts"
import { RuneRefused } from "../../../src/core/event-log/EventLog.ts"
import { GENESIS, hashRune } from "../../../src/core/event-log/HashChain.ts"
import { type Checker, InvariantGuard } from "../../../src/core/event-log/InvariantGuard.ts"
import { Flight, type Owner, type Unit } from "../../../src/core/event-log/Log.ts"
import { MemoryLog } from "../../../src/core/event-log/MemoryLog.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"

const table = {
  said: EventKinds.kind(Schema.Struct({ n: Schema.Finite })),
  noted: EventKinds.kind(Schema.Struct({})),
  closed: EventKinds.kind(Schema.Struct({}), { seals: true })
}
const kinds = EventKinds.make(table)
const read = EventKinds.reader(table)

/** The numbers that are said rise. */
const rising: Checker<number> = {
  kinds: ["said"],
  initial: 0,
  check: (last, { payload }) =>
    Number(payload["n"]) > last ? undefined : { rule: "INV-RISING", message: `${String(payload["n"])} after ${last}` },
  apply: (_, { payload }) => Number(payload["n"])
}

const admission = () => new AdmissionState({ guard: new InvariantGuard([rising]), kinds })
const open = () => new MemoryLog(admission(), new EventDraft(kinds, (json) => json))

const nobody: Owner = { ahead: 0, durable: () => {}, failed: () => {}, refold: () => {}, rest: () => {} }

/** Steps as an actor does: the next positions and seqs, on one stack. */
const stepped = (
  log: { readonly head: number; seqOf(stream: string): number; prepare(draft: RuneDraft): unknown },
  drafts: ReadonlyArray<RuneDraft>,
  owner: Owner = nobody
): Unit => {
  const seqs = new Map<string, number>()
  const runes: Array<Rune> = []
  const texts: Array<string> = []
  for (const draft of drafts) {
    const prepared = log.prepare(draft) as Exclude<ReturnType<EventDraft["prepare"]>, RuneRefused>
    const seq = (seqs.get(draft.stream) ?? log.seqOf(draft.stream)) + 1
    seqs.set(draft.stream, seq)
    texts.push(prepared.text)
    runes.push({
      format: 2,
      eventId: log.head + runes.length + 1,
      seq,
      at: 0,
      from: null,
      to: null,
      trigger: null,
      cause: null,
      moves: [],
      ...draft,
      visibility: prepared.visibility,
      payload: prepared.payload
    } as Rune)
  }
  return { owner, runes, texts }
}
const said = (stream: string, n: number): RuneDraft => ({ stream, kind: "said", actor: "a/b", payload: { n } })
const noted = (stream: string): RuneDraft => ({ stream, kind: "noted", actor: "a/b", payload: {} })
const closed = (stream: string): RuneDraft => ({ stream, kind: "closed", actor: "a/b", payload: {} })

describe("MemoryLog", () => {
  it("positions rise over the log, seqs within their stream, and the chains hold", () => {
    const log = open()
    log.append(stepped(log, [said("a", 1), said("b", 1), said("a", 2)]))
    log.append(stepped(log, [said("b", 2)]))
    expect(log.stored().map(({ eventId, seq, stream }) => [eventId, stream, seq])).toEqual([
      [1, "a", 1],
      [2, "b", 1],
      [3, "a", 2],
      [4, "b", 2]
    ])
    expect([log.head, log.durable, log.seqOf("a"), log.seqOf("c")]).toEqual([4, 4, 2, 0])
    const chains = new Map<string, string>()
    for (const rune of log.stored()) {
      expect(rune.hash).toBe(hashRune(chains.get(rune.stream) ?? GENESIS, rune, rune.payloadHash))
      chains.set(rune.stream, rune.hash)
    }
  })

  it("a position or a seq out of order is a throw, and nothing is taken", () => {
    const log = open()
    const unit = stepped(log, [said("a", 1)])
    log.append(unit)
    expect(() => log.append(unit)).toThrow("was next")
    expect(log.head).toBe(1)
  })

  it("the guard is asked of the whole unit before any of it is taken", () => {
    const log = open()
    expect(log.refuses(stepped(log, [said("a", 1), said("a", 2)]))).toBeUndefined()
    expect(log.refuses(stepped(log, [said("a", 2), said("a", 1)]))).toMatchObject({ rule: "INV-RISING" })
    log.append(stepped(log, [said("a", 1)]))
    expect(log.refuses(stepped(log, [said("a", 1)]))).toMatchObject({ rule: "INV-RISING", kind: "said" })
    expect(log.refuses(stepped(log, [said("b", 1)]))).toBeUndefined()
  })

  it("a sealed stream and a halted one take nothing more", () => {
    const log = open()
    expect(log.refuses(stepped(log, [closed("a"), said("a", 1)]))).toMatchObject({ rule: "sealed" })
    log.append(stepped(log, [said("a", 1), closed("a")]))
    expect(log.refuses(stepped(log, [said("a", 2)]))).toMatchObject({ rule: "sealed" })
    log.halt("b", { rule: "INV-HASH-VALID", message: "its chain is broken" })
    expect(log.refuses(stepped(log, [said("b", 1)]))).toMatchObject({ rule: "INV-HASH-VALID" })
  })

  it("what is folded is what is stored: what JSON does not hold is not in the payload either", () => {
    const log = open()
    const payload = { n: 1, gone: () => 1, nothing: undefined, nan: Number.NaN }
    expect(log.prepare({ ...said("a", 1), payload })).toMatchObject({ payload: { n: 1, nan: null } })
    expect(log.prepare({ ...said("a", 1), payload: { n: Number.NaN } })).toBeInstanceOf(RuneRefused)
    expect(log.prepare({ ...said("a", 1), moves: ["a\u0000"] })).toMatchObject({ rule: "schema" })
  })
})

/** A state to step on, as a log does. */
const steps = (state: AdmissionState) => {
  const of = {
    get head() {
      return state.head
    },
    seqOf: (stream: string) => state.seqOf(stream),
    prepare: (draft: RuneDraft) => new EventDraft(kinds, (json) => json).prepare(draft)
  }
  const unit = (...drafts: ReadonlyArray<RuneDraft>) => stepped(of, drafts)
  const take = (...drafts: ReadonlyArray<RuneDraft>) => {
    const taken = unit(...drafts)
    expect(state.refuses(taken)).toBeUndefined()
    state.take(taken, false)
  }
  return { take, unit }
}

describe("AdmissionState", () => {
  it("a stream that is not read takes what no invariant looks at; a failed append does not make it unread again", () => {
    const guard = new InvariantGuard([rising])
    const streams = new Map([["a", { seq: 3, isSealed: false, guard: new UnreadGuard() }]])
    const state = new AdmissionState({ guard, kinds, head: 3, streams })
    const { take, unit } = steps(state)
    expect(() => state.refuses(unit(said("a", 8)))).toThrow("said comes before a was read")
    take(noted("a"))
    expect(() => state.refuses(unit(said("a", 8)))).toThrow("said comes before a was read")
    take(said("b", 1))
    state.restoreGuard("a", [7])
    state.restoreGuard("a", [1])
    take(said("a", 8))
    state.undo(3)
    expect(state.seqOf("a")).toBe(3)
    expect(state.refuses(unit(said("a", 7)))).toMatchObject({ rule: "INV-RISING" })
    take(noted("a"), said("a", 9))
    expect(state.refuses(unit(said("a", 9)))).toMatchObject({ rule: "INV-RISING" })
  })

  it("a failed append gives back positions, seqs, the guard's states and a seal", () => {
    const state = admission()
    const { take } = steps(state)
    take(said("a", 5))
    take(said("a", 6), said("b", 1))
    state.landed()
    take(closed("a"))
    state.landed()
    take(said("b", 9))
    state.undo(3)
    expect([state.head, state.seqOf("a"), state.seqOf("b"), state.isSealed("a")]).toEqual([3, 2, 1, false])
    take(said("a", 7), said("b", 2))
  })
})

describe("Flight", () => {
  it("a failure undoes all behind it, in order; owners that append again meanwhile are not undone", () => {
    const flight = new Flight()
    const heard: Array<string> = []
    const owner = (name: string): Owner => ({
      ahead: 0,
      durable: () => {},
      failed: (unit, _, culprit) => {
        heard.push(`${name} ${String(unit.runes.length)} ${String(culprit)}`)
        flight.push(unit)
      },
      refold: () => heard.push(`${name} refold`),
      rest: () => heard.push(`${name} rest`)
    })
    const [a, b] = [owner("a"), owner("b")]
    const unit = (owner: Owner): Unit => ({ owner, runes: [], texts: [] })
    for (const one of [unit(a), unit(b), unit(a)]) flight.push(one)
    flight.wait(9, b)
    flight.fail(new Error("no"))
    expect(heard).toEqual(["a 0 true", "b 0 false", "a 0 false", "b refold", "a refold"])
    expect([flight.size, flight.owners, a.ahead, b.ahead]).toEqual([3, 2, 2, 1])
    flight.passed(10)
    expect(heard).toHaveLength(5)
  })
})

describe("EventKinds", () => {
  it("a payload that was checked on writing has its type on reading", () => {
    const log = open()
    const [rune] = stepped(log, [said("a", 3)]).runes
    const known = read(rune!)
    if (known?.kind === "said") expect(known.payload.n.toFixed(1)).toBe("3.0")
    else expect.unreachable()
    expectTypeOf(known.payload).toEqualTypeOf<typeof table.said.payload.Type>()
    expectTypeOf(known.payload.n).toEqualTypeOf<number>()
  })

  it("a rune of no kind of the table, and one whose payload is gone, are read as none", () => {
    const rune = { kind: "said", payload: { n: 3 } }
    expect(read(rune)).toBe(rune)
    expect(read({ ...rune, kind: "sung" })).toBeUndefined()
    expect(read({ ...rune, payload: { archived: true } })).toBeUndefined()
    expect(read({ ...rune, payload: {} })).toBeUndefined()
  })

  it("what was written is trusted; a checked reader checks it again, for runes of a newer program", () => {
    const newer = { kind: "said", payload: { n: "three" } }
    expect(read(newer)).toBe(newer)
    const checked = EventKinds.checkedReader(table)
    expect(checked(newer)).toBeUndefined()
    expect(checked({ kind: "said", payload: { n: 3, more: true } })?.payload).toEqual({ n: 3, more: true })
  })
})
