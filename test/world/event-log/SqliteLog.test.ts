/** The log on its thread, and without: what lands, what fails, what is undone, what a kill leaves. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import type { ActorStopped } from "../../../src/core/event-actor/ActorError.ts"
import { actor } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { EventLog, type StorageError } from "../../../src/core/event-log/EventLog.ts"
import { type Flight, Log, type Owner, type Unit } from "../../../src/core/event-log/Log.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { type Cause, FORMAT, type Rune } from "../../../src/core/event-log/Rune.ts"
import { lab, Restarter, scopeIn } from "../event-actor/Lab.ts"
import { meddle, note, storeFile, withLog } from "./Disk.ts"

/** An actor's rune that no invariant looks at. */
const noted = { runes: [{ kind: "run.output", payload: { runId: "run-1", source: "stdout", text: "go" } }] }

const forms = [
  ["on its thread", DaemonLog.layer],
  ["without a thread", DaemonLog.layerInline]
] as const

const open = (over: (typeof forms)[number][1], options: DaemonLog.Options) =>
  Effect.map(Layer.build(Layer.fresh(over(options).pipe(Layer.provide(Redact.layer)))), (context) => ({
    log: Context.get(context, Log),
    events: Context.get(context, EventLog)
  }))

/** An owner of units that keeps what it hears; it steps again what is undone behind another's failure. */
class Teller implements Owner {
  ahead = 0
  readonly heard: Array<string> = []
  readonly landed = Deferred.makeUnsafe<void>()
  private readonly log: Log
  private readonly stream: string
  private again: Array<string> = []
  private waits = 0

  constructor(log: Log, stream: string) {
    this.log = log
    this.stream = stream
  }

  /** Tells a unit of a rune for each text. */
  tell(texts: ReadonlyArray<string>, kind = "inbox.received", cause: Cause | null = null): Unit {
    const runes: Array<Rune> = []
    const payloads = texts.map((text) => {
      const payload = { event: { _tag: "Received", text } }
      runes.push({
        format: FORMAT,
        eventId: this.log.head + runes.length + 1,
        seq: this.log.seqOf(this.stream) + runes.length + 1,
        stream: this.stream,
        at: 1_000,
        kind,
        actor: 'inbox/"ü"',
        from: "Ü",
        to: null,
        trigger: null,
        cause,
        moves: texts.length > 1 ? ["agent/a", "turn/a"] : [],
        visibility: "internal",
        payload
      })
      return JSON.stringify(payload)
    })
    const unit = { owner: this, runes, texts: payloads }
    this.log.append(unit)
    this.waits += 1
    return unit
  }

  durable({ runes }: Unit): void {
    this.heard.push(...runes.map(({ payload }) => (payload["event"] as { text: string }).text))
    this.waits -= 1
    if (this.waits === 0) Deferred.doneUnsafe(this.landed, Effect.void)
  }

  failed({ runes }: Unit, _: unknown, culprit: boolean): void {
    this.waits -= 1
    const texts = runes.map(({ payload }) => (payload["event"] as { text: string }).text)
    if (culprit) this.heard.push(`failed ${texts.join()}`)
    else this.again.push(...texts)
  }

  refold(): void {
    const again = this.again
    this.again = []
    try {
      for (const text of again) this.tell([text])
    } catch {
      // the log takes nothing more
    }
    if (this.waits === 0) Deferred.doneUnsafe(this.landed, Effect.void)
  }

  rest(): void {}
}

const rows = (file: string) => {
  const database = new DatabaseSync(file, { readOnly: true })
  const all = database.prepare("SELECT event_id, stream, seq, kind FROM runes ORDER BY event_id").all()
  database.close()
  return all as unknown as ReadonlyArray<{ event_id: number; stream: string; seq: number; kind: string }>
}

for (const [form, over] of forms) {
  describe(`SqliteLog ${form}`, () => {
    it.live("what goes through the thread comes back as it was, whatever its letters and its size, in order", () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const texts = ["plain", 'ü \u{1f642} \u2028 "', "x".repeat(300_000), "", "\u0000 \ud800"]
        const { events, log } = yield* open(over, { file })
        const [a, b] = [new Teller(log, "one"), new Teller(log, "zwei ü \u{1f642}")]
        for (const text of texts) {
          a.tell([text])
          b.tell([text, "and"], "inbox.received", { stream: "one", seq: log.seqOf("one") })
        }
        yield* Effect.all([Deferred.await(a.landed), Deferred.await(b.landed)])
        assert.deepStrictEqual(a.heard, texts)
        const read = yield* events.tail({}, 100)
        assert.deepStrictEqual(
          read
            .filter(({ stream }) => stream === "one")
            .map(({ payload }) => (payload["event"] as Rune["payload"])["text"]),
          texts
        )
        const second = read.find(({ stream }) => stream !== "one")!
        assert.deepInclude(second, {
          moves: ["agent/a", "turn/a"],
          cause: { stream: "one", seq: 1 },
          from: "Ü",
          seq: 1
        })
        assert.deepStrictEqual(yield* events.verify, { runes: 15, streams: 2, erased: [], problems: [] })
        assert.deepStrictEqual([log.head, log.durable, log.seqOf("one")], [15, 15, 5])
      })
    )

    it.live("more than there is room for waits, in order; an append too large for the ring keeps its place", () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const { events, log } = yield* open(over, { file, maxRuneBytes: 32 * 1024 * 1024 })
        const teller = new Teller(log, "a")
        const texts = Array.from({ length: 40 }, (_, n) => `${n}`.padEnd(n % 13 === 7 ? 9_000_000 : 700_000, "."))
        for (const text of texts) teller.tell([text])
        yield* Deferred.await(teller.landed)
        assert.deepStrictEqual(teller.heard, texts)
        assert.deepStrictEqual((yield* events.verify).problems, [])
      })
    )

    it.live(
      "an append that the store does not take is found in its group: all behind it is stepped again, ids stay dense",
      () =>
        Effect.gen(function* () {
          const file = yield* storeFile
          const { events, log } = yield* open(over, { file })
          meddle(
            file,
            "CREATE TRIGGER bad BEFORE INSERT ON runes WHEN NEW.kind = 'bad' BEGIN SELECT RAISE(ABORT, 'bad'); END"
          )
          const [a, b] = [new Teller(log, "a"), new Teller(log, "b")]
          for (let n = 0; n < 20; n++) {
            a.tell([`a${n}`], n === 7 ? "bad" : "inbox.received")
            b.tell([`b${n}`])
          }
          yield* Effect.all([Deferred.await(a.landed), Deferred.await(b.landed)])
          const told = (name: string) => Array.from({ length: 20 }, (_, n) => `${name}${n}`)
          assert.deepStrictEqual(
            a.heard.filter((text) => text !== "failed a7"),
            told("a").filter((text) => text !== "a7")
          )
          assert.include(a.heard, "failed a7")
          assert.deepStrictEqual(b.heard, told("b"))
          assert.deepStrictEqual(
            rows(file).map(({ event_id }) => event_id),
            Array.from({ length: 39 }, (_, n) => n + 1)
          )
          assert.deepStrictEqual(
            (yield* events.verify).problems.map(({ message }) => message),
            ["the definitions of its tables and triggers were changed"]
          )
          // the service's own appends stand behind such a one, too, and are appended again
          const [failed, kept] = yield* Effect.all(
            [Effect.sync(() => a.tell(["x"], "bad")), events.append([note("c", 1)])],
            { concurrency: "unbounded" }
          )
          assert.strictEqual(failed.runes.length, 1)
          assert.strictEqual(kept[0]!.eventId, 40)
        })
    )

    it.live("owners share what may be on its way: many alone, few together", () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const { log } = yield* open(over, { file })
        assert.strictEqual(log.share(1), 384)
        assert.strictEqual(log.share(4), 8)
        assert.strictEqual(log.share(1_000), 2)
        const teller = new Teller(log, "a")
        teller.tell(["1"])
        assert.strictEqual((log.flight as Flight).owners, 1)
        assert.strictEqual(log.share(1), 16)
        yield* Deferred.await(teller.landed)
        assert.strictEqual(log.share(1), 384)
      })
    )

    it.live("storage that gives up says so once; nothing becomes durable after it, and what was is there", () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const { events, log } = yield* open(over, { file, giveUpAfter: "60 millis" })
        yield* events.append([note("a", 1)])
        const other = new DatabaseSync(file)
        other.exec("BEGIN IMMEDIATE")
        const teller = new Teller(log, "b")
        teller.tell(["lost"])
        const error = yield* events.failed
        assert.strictEqual(error.reason, "locked")
        other.exec("ROLLBACK")
        other.close()
        assert.deepStrictEqual(teller.heard, [])
        assert.throws(() => teller.tell(["never"]), error.message)
        assert.deepStrictEqual([log.durable, rows(file).length], [1, 1])
      })
    )

    it.live("when storage has given up each ask ends with what it says: on its way, behind another's, and after", () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const { events, log } = yield* open(over, { file, giveUpAfter: "60 millis" })
        const { system } = lab(log, {}, yield* Effect.context<never>())
        const supervisor = new Restarter()
        const [a, b] = ["a", "b"].map((name) => {
          const scope = scopeIn(system, name)
          const one = scope.add(name, actor<number, string>({ initial: 0, decide: () => noted, apply: (n) => n + 1 }))
          supervisor.startChild(scope)
          return one
        })
        const other = new DatabaseSync(file)
        other.exec("BEGIN IMMEDIATE")
        const asked = yield* Effect.forEach([a!, b!, a!, b!], (one) => Effect.forkChild(Effect.exit(one.ask("go"))))
        const { message } = yield* events.failed
        const answers = yield* Effect.forEach(asked, Fiber.join)
        const late = yield* Effect.exit(b!.ask("go"))
        other.exec("ROLLBACK")
        other.close()
        for (const answer of [...answers, late]) {
          assert.isTrue(Exit.isFailure(answer))
          const [reason] = Exit.isFailure(answer) ? answer.cause.reasons : []
          const error = reason?._tag === "Fail" ? (reason.error as StorageError | ActorStopped) : undefined
          assert.isTrue(error?._tag === "ActorStopped" || error?.message === message, String(error?.message))
        }
      })
    )

    it.live("64 writers, each waits for its own: all are there, each stream in its order", () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const { events } = yield* open(over, { file })
        yield* Effect.forEach(
          Array.from({ length: 64 }, (_, n) => n),
          (writer) => Effect.forEach([1, 2, 3, 4, 5], (n) => events.append([note(`s${writer % 8}`, n)])),
          { concurrency: "unbounded" }
        )
        const verdict = yield* events.verify
        assert.deepStrictEqual(verdict, { runes: 320, streams: 8, erased: [], problems: [] })
      })
    )
  })
}

const child = fileURLToPath(new URL("../../support/fsyncs.ts", import.meta.url))
const strace = "/usr/bin/strace"

describe("a sequential append", () => {
  const has = existsSync(strace)
  if (!has) it.skip(`is one fsync: SKIPPED, since there is no ${strace} to count them`, () => {})
  it.live.skipIf(!has)("is one fsync, counted by strace", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const count = (appends: number) =>
        Effect.callback<number>((resume) => {
          const traced = spawn(
            strace,
            ["-f", "-qq", "-e", "trace=fsync,fdatasync", process.execPath, child, file, String(appends)],
            { stdio: ["ignore", "inherit", "pipe"] }
          )
          let said = ""
          traced.stderr.setEncoding("utf8").on("data", (text: string) => (said += text))
          traced.on("close", () =>
            resume(Effect.succeed(said.split("\n").filter((line) => /\bf(data)?sync\(/.test(line)).length))
          )
        })
      yield* withLog({ file }, (log) => log.append([note("a", 0)]))
      // opening, checkpoints and closing sync a few times, whatever is appended between
      const [few, many] = [yield* count(20), yield* count(220)]
      assert.isAtLeast(many - few, 180)
      assert.isAtMost((many - few) / 200, 1.15)
    })
  )
})
