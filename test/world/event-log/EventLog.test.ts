/** The contract of EventLog, held against every implementation. */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Effect, Exit, Fiber, Layer, Schema, Scope, Stream } from "effect"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { folder, layer, note, output } from "./Disk.ts"

const inFolder = <A, E, R>(over: (options: DaemonLog.Options) => Layer.Layer<A, E, R>) =>
  Layer.unwrap(Effect.map(folder, (path) => over({ file: `${path}/runes.db` })))
const layerSql = inFolder(layer)
const layerInline = inFolder((options) => DaemonLog.layerInline(options).pipe(Layer.provide(Redact.layer)))

const ids = (runes: ReadonlyArray<Rune>) => runes.map(({ eventId }) => eventId)
const numbers = (runes: ReadonlyArray<Rune>) => runes.map(({ payload }) => (payload["event"] as { n: number }).n)
const notes = (stream: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => note(stream, from + index))

describe.each([
  ["SqlRuneLog", layerSql],
  ["SqlRuneLog without a thread", layerInline],
  ["MemoryRuneLog", DaemonLog.layerMemory]
] as const)("%s", (name, implementation) => {
  /** Each test has a log of its own. */
  const test = <E>(name: string, body: (log: EventLog["Service"]) => Effect.Effect<void, E, Scope.Scope>) =>
    it.effect(name, () =>
      Effect.scoped(Effect.flatMap(EventLog, body)).pipe(Effect.provide(implementation, { local: true }))
    )

  test("ids rise by one over all streams, in the order of the drafts", (log) =>
    Effect.gen(function* () {
      const first = yield* log.append([note("a", 1), note("b", 2), note("a", 3)])
      const second = yield* log.append([note("b", 4)])
      expect(ids([...first, ...second])).toEqual([1, 2, 3, 4])
      expect(yield* log.head).toBe(4)
    }))

  test("each stream has a hash chain of its own, over header and payload", (log) =>
    Effect.gen(function* () {
      const runes = yield* log.append([note("a", 1), note("b", 2), note("a", 3)])
      expect(runes.map(({ seq }) => seq)).toEqual([1, 1, 2])
      expect(yield* log.verify).toEqual({ runes: 3, streams: 2, erased: [], problems: [] })
    }))

  test("what append answers is what is read later", (log) =>
    Effect.gen(function* () {
      const draft: RuneDraft = {
        ...note("a", 1, "naïve 🜁 \u0000 \ud800 text"),
        from: "Open",
        to: "Open",
        cause: { stream: "b", seq: 7 },
        moves: ["agent/builder"],
        visibility: "secret"
      }
      const [appended] = yield* log.append([draft])
      expect(yield* Stream.runCollect(log.read({}))).toEqual([appended])
      expect(yield* log.get(1)).toEqual(appended)
      expect(yield* log.tail({}, 1)).toEqual([appended])
      expect(appended).toMatchObject({
        from: "Open",
        to: "Open",
        cause: { stream: "b", seq: 7 },
        visibility: "secret",
        trigger: "Received"
      })
    }))

  test("an empty append writes nothing; get of an id that is not there is undefined", (log) =>
    Effect.gen(function* () {
      expect(yield* log.append([])).toEqual([])
      expect(yield* log.head).toBe(0)
      expect(yield* log.get(1)).toBeUndefined()
      expect(yield* Stream.runCollect(log.read({}))).toEqual([])
    }))

  test("a refused draft takes the whole append with it, and no other append", (log) =>
    Effect.gen(function* () {
      const bad = { ...note("a", 2), kind: "no.such_kind" }
      const [refused, kept] = yield* Effect.all(
        [Effect.flip(log.append([note("a", 1), bad])), log.append([note("a", 3)])],
        { concurrency: "unbounded" }
      )
      expect(refused).toMatchObject({ _tag: "RuneRefused", rule: "schema", kind: "no.such_kind" })
      expect(numbers(kept)).toEqual([3])
      expect(numbers(yield* Stream.runCollect(log.read({})))).toEqual([3])
    }))

  test("a payload of the wrong shape is refused and the refusal says where", (log) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(log.append([{ ...note("a", 1), payload: { event: { tag: "Received" } } }]))
      expect(error).toMatchObject({ _tag: "RuneRefused", rule: "schema" })
      expect(error.message).toContain("_tag")
    }))

  test("a rune above the size limit is refused", (log) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(log.append([note("a", 1, "x".repeat(1024 * 1024))]))
      expect(error).toMatchObject({ _tag: "RuneRefused", rule: "size" })
    }))

  test("names that a column of text does not keep are refused", (log) =>
    Effect.gen(function* () {
      for (const actor of ["a\u0000b", "a\ud800b", "x".repeat(600)]) {
        expect(yield* Effect.flip(log.append([{ ...note("a", 1), actor }]))).toMatchObject({ rule: "schema" })
      }
      expect(yield* Effect.flip(log.append([note("", 1)]))).toMatchObject({ rule: "schema" })
    }))

  test("selections: after, stream, actor, kinds, since, each and together", (log) =>
    Effect.gen(function* () {
      yield* log.append([
        note("a", 1),
        { ...note("b", 2), actor: "inbox/critic" },
        output("a", "line"),
        { ...note("a", 4), actor: "inbox/critic" }
      ])
      const select = (selection: Parameters<typeof log.read>[0]) =>
        Effect.map(Stream.runCollect(log.read(selection)), ids)
      expect(yield* select({ after: 2 })).toEqual([3, 4])
      expect(yield* select({ stream: "a" })).toEqual([1, 3, 4])
      expect(yield* select({ actor: "inbox/critic" })).toEqual([2, 4])
      expect(yield* select({ kinds: ["run.output"] })).toEqual([3])
      expect(yield* select({ kinds: [] })).toEqual([])
      expect(yield* select({ since: 1 })).toEqual([])
      expect(yield* select({ since: 0, stream: "a", actor: "inbox/critic", after: 1 })).toEqual([4])
    }))

  test("tail gives the newest that match, oldest first, however far back they are", (log) =>
    Effect.gen(function* () {
      yield* log.append(notes("rare", 1, 3))
      for (let group = 0; group < 6; group++) yield* log.append(notes("busy", 1, 4000))
      expect(ids(yield* log.tail({ stream: "rare" }, 2))).toEqual([2, 3])
      expect(ids(yield* log.tail({}, 2))).toEqual([24_002, 24_003])
      expect((yield* log.tail({ stream: "busy" }, 5000)).length).toBe(5000)
      expect(ids(yield* log.tail({ after: 2 }, 1_000_000)).slice(0, 2)).toEqual([3, 4])
    }))

  test("tail of a stream gives what matches there, whatever else matches in other streams", (log) =>
    Effect.gen(function* () {
      yield* log.append([...notes("a", 1, 3), ...notes("b", 1, 3), ...notes("a", 4, 1_203)])
      const [found] = yield* log.append([{ ...note("a", 1_204), actor: "inbox/critic" }])
      yield* log.append([...notes("b", 4, 4), ...notes("a", 1_205, 1_904)])
      const ofCritic = { stream: "a", actor: "inbox/critic" }
      expect(ids(yield* log.tail(ofCritic, 3))).toEqual([found!.eventId])
      expect(yield* log.tail({ ...ofCritic, after: found!.eventId }, 3)).toEqual([])
      expect((yield* log.tail({ stream: "a" }, 600)).map(({ seq }) => seq)).toEqual(
        Array.from({ length: 600 }, (_, n) => 1_305 + n)
      )
      expect(ids(yield* log.tail({ stream: "b" }, 2))).toEqual([6, 1_208])
    }))

  test("read gives every rune once, in order, over many pages, and stops at the head it began with", (log) =>
    Effect.gen(function* () {
      for (let group = 0; group < 6; group++) yield* log.append(notes("a", group * 4000 + 1, group * 4000 + 4000))
      const seen = yield* log.read({}).pipe(
        Stream.tap((rune) => (rune.eventId === 1 ? log.append([note("a", 0)]) : Effect.void)),
        Stream.runCollect
      )
      expect(ids(seen)).toEqual(Array.from({ length: 24_000 }, (_, index) => index + 1))
    }))

  test("lazy runes are durable with the next group, in their order", (log) =>
    Effect.gen(function* () {
      yield* log.appendLazy([output("a", "1"), output("a", "2")])
      yield* log.append([note("a", 3)])
      const runes = yield* Stream.runCollect(log.read({}))
      expect(runes.map(({ kind }) => kind)).toEqual(["run.output", "run.output", "inbox.received"])
    }))

  test("lazy runes alone are written without another append", (log) =>
    Effect.gen(function* () {
      yield* log.appendLazy([output("a", "1")])
      expect(ids(yield* log.subscribe({}).pipe(Stream.take(1), Stream.runCollect))).toEqual([1])
    }))

  test("a flood of lazy runes drops the oldest and says how many", (log) =>
    Effect.gen(function* () {
      yield* log.appendLazy(Array.from({ length: 5000 }, (_, n) => output("a", String(n))))
      yield* log.append([note("a", 1)])
      const [said] = yield* log.subscribe({ kinds: ["runes.dropped"] }).pipe(Stream.take(1), Stream.runCollect)
      expect(said).toMatchObject({ stream: "a", payload: { count: 5000 - 4096 } })
      const kept = yield* log.subscribe({ kinds: ["run.output"] }).pipe(Stream.take(4096), Stream.runCollect)
      expect(kept[0]!.payload["text"]).toBe(String(5000 - 4096))
    }))

  test("a kind that a fold reads is not appended lazily", (log) =>
    Effect.gen(function* () {
      yield* log.appendLazy([note("a", 1), output("a", "2")])
      yield* log.append([note("a", 3)])
      expect((yield* Stream.runCollect(log.read({}))).map(({ kind }) => kind)).toEqual(["run.output", "inbox.received"])
    }))

  test("INV-RESUME-NO-GAPS: a subscriber gets what is there, then what comes", (log) =>
    Effect.gen(function* () {
      yield* log.append(notes("a", 1, 10))
      const reader = yield* log.subscribe({ after: 4 }).pipe(Stream.take(10), Stream.runCollect, Effect.forkChild)
      for (let n = 11; n <= 14; n++) yield* log.append([note("a", n)])
      expect(numbers(yield* Fiber.join(reader))).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
    }))

  test("a subscriber sees committed runes only, and only those that match", (log) =>
    Effect.gen(function* () {
      const reader = yield* log
        .subscribe({ stream: "b" })
        .pipe(Stream.take(2), Stream.runCollect, Effect.forkChild({ startImmediately: true }))
      yield* Effect.flip(log.append([note("b", 1), { ...note("b", 2), kind: "no.such_kind" }]))
      yield* log.append([note("a", 3), note("b", 4)])
      yield* log.append([note("b", 5)])
      expect(numbers(yield* Fiber.join(reader))).toEqual([4, 5])
    }))

  test("a slow subscriber does not hold up the writer, and misses nothing", (log) =>
    Effect.gen(function* () {
      const total = 20_000
      let taken = 0
      const reader = yield* log.subscribe({}).pipe(
        Stream.tap(() => Effect.sync(() => void taken++)),
        Stream.take(total),
        Stream.runCollect,
        Effect.forkChild
      )
      for (let group = 0; group < 10; group++) yield* log.append(notes("a", group * 2000 + 1, group * 2000 + 2000))
      expect(yield* log.head).toBe(total)
      expect(taken).toBeLessThan(total)
      expect(ids(yield* Fiber.join(reader))).toEqual(Array.from({ length: total }, (_, index) => index + 1))
    }))

  it.effect.prop(
    "INV-RESUME-NO-DUPLICATES: under concurrent appends each subscriber gets each later rune once, in order",
    {
      batches: Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 }))), {
        minLength: 1,
        maxLength: 30
      }),
      cursor: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))
    },
    ({ batches, cursor }) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* log.append(notes("a", 1, 60))
        const total = 60 + batches.reduce((sum, size) => sum + size, 0)
        const subscribe = (stream: "a" | "b" | undefined) =>
          log.subscribe({ after: cursor, ...(stream === undefined ? {} : { stream }) }).pipe(
            Stream.takeUntil((rune) => rune.eventId >= total),
            Stream.runCollect,
            Effect.forkChild
          )
        const all = yield* subscribe(undefined)
        yield* Effect.forEach(batches, (size, index) => log.append(notes(index % 2 === 0 ? "a" : "b", 1, size)), {
          concurrency: "unbounded"
        })
        const everything = yield* Stream.runCollect(log.read({}))
        expect(ids(yield* Fiber.join(all))).toEqual(ids(everything).filter((id) => id > cursor))
        expect((yield* log.verify).problems).toEqual([])
      }).pipe(Effect.provide(implementation, { local: true })),
    // each sample opens a log of its own
    { arbitrary: { runs: name === "MemoryRuneLog" ? 100 : 15 } }
  )

  test("verify finds nothing wrong with what the log wrote itself", (log) =>
    Effect.gen(function* () {
      yield* log.append([...notes("a", 1, 50), ...notes("b", 1, 50)])
      yield* log.appendLazy([output("a", "x")])
      yield* log.append([note("a", 51)])
      expect(yield* log.verify).toEqual({ runes: 102, streams: 2, erased: [], problems: [] })
    }))

  it.effect("when the log is closed, what waits is written, subscribers end, and appends are refused", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.build(implementation).pipe(Scope.provide(scope))
      const log = yield* Effect.provideContext(EventLog, context)
      const reader = yield* log.subscribe({}).pipe(Stream.runCollect, Effect.forkChild({ startImmediately: true }))
      yield* log.appendLazy([output("a", "last words")])
      yield* Scope.close(scope, Exit.void)
      expect(ids(yield* Fiber.join(reader))).toEqual([1])
      expect(yield* Effect.flip(log.append([note("a", 1)]))).toMatchObject({ _tag: "StorageError", reason: "closed" })
    })
  )
})
