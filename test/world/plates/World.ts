/**
 * A board in a world of its own: the real plates over a log in memory, a real
 * folder for transcripts, and helpers that say what a session does.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert } from "@effect/vitest"
import { Clock, Context, Effect, Exit, FileSystem, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { appendFileSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import type { Origin } from "../../../src/plates/EventIntake.ts"
import { layer, type Options, Plates } from "../../../src/plates/Plates.ts"
import * as MemoryEventLog from "../../../src/app/DaemonLog.ts"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import { Log } from "../../../src/core/event-log/Log.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { PATIENCE } from "../../support/Patience.ts"

/** The wall clock of the tests: a time that files can have. */
export const T0 = Date.parse("2026-11-20T09:00:00Z")

export const caller = { by: "ada", config: null }

/** The fields that a hook's test leaves out. */
export const nobody: Origin = { plate: undefined, run: undefined, pid: undefined }

type Fields = { readonly [field: string]: unknown }

/** As Claude Code sends it. */
export const payload = (name: string, sessionId: string, more: Fields = {}) => ({
  session_id: sessionId,
  transcript_path: `/nowhere/${sessionId}.jsonl`,
  cwd: "/home/user/project",
  hook_event_name: name,
  ...more
})

/** The captured hooks, by the name of their case. */
export const captured: ReadonlyMap<string, Fields> = new Map(
  readFileSync(join(import.meta.dirname, "../../fixtures/hooks/claude.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const { case: name, payload: body } = JSON.parse(line) as { readonly case: string; readonly payload: Fields }
      return [name, body] as const
    })
)

const setUp = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* Log
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "agentd-plates-" })
  return { log, store, folder }
})

/** Lets what was started go on, in real time: the clock of the test does not move. */
export const breathe = TestClock.withLive(Effect.sleep("1 millis"))

/** Turns in which nothing is written, after which all that was said has been taken in. */
const QUIET = 12

/** Until nothing more is written: each rune begins the wait anew, so that a slow machine takes as many turns as it needs. */
const quiet = Effect.fnUntraced(function* (log: EventLog["Service"]) {
  let head = yield* log.head
  for (let beat = 0; beat < QUIET; beat++) {
    yield* breathe
    const now = yield* log.head
    if (now !== head) beat = 0
    head = now
  }
})

/** Until it holds, or the test fails. */
export const until = <A, E, R>(what: string, read: Effect.Effect<A, E, R>, holds: (value: A) => boolean) =>
  Effect.gen(function* () {
    for (let look = 0; look < PATIENCE; look++) {
      const value = yield* read
      if (holds(value)) return value
      yield* breathe
    }
    return assert.fail(`never: ${what}; at last ${JSON.stringify(yield* read)}`)
  })

export interface Setting extends Partial<Options> {
  /** Start is over once the log is folded; default true. */
  readonly awaitReady?: boolean
  readonly fileSystem?: Layer.Layer<FileSystem.FileSystem>
}

/** The daemon's plates, from their start to their stop. */
export const start = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  store: Log,
  { awaitReady = true, fileSystem = NodeServices.layer, ...options }: Setting = {}
) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const supervisor = DynamicSupervisor.make({
    name: "plates",
    strategy: "one_for_one",
    intensity: 10,
    period: "30 seconds"
  })
  const context = yield* Layer.build(
    layer({ supervisor, watch: false, ...options }).pipe(
      Layer.provide(ActorSystem.layer({ log: store, strict: true })),
      Layer.provide(EventLoop.layer),
      Layer.provide(DeadLetters.layerMemory()),
      Layer.provide(Layer.succeed(EventLog, log)),
      Layer.provide(Redact.layer),
      Layer.provide(fileSystem)
    )
  ).pipe(Scope.provide(scope))
  yield* Supervisor.make({ name: "root", children: [supervisor.child] }).pipe(Scope.provide(scope))
  const plates = Context.get(context, Plates)
  if (awaitReady) yield* until("the log is folded", plates.health, ({ ready }) => ready)
  return { plates, stop: Scope.close(scope, Exit.void) }
})

export interface World {
  readonly log: EventLog["Service"]
  /** The log as actors append to it. */
  readonly store: Log
  /** Where transcripts lie. */
  readonly folder: string
  readonly board: Board
}

/** A test's hands on a board. */
export class Board {
  readonly plates: Plates["Service"]
  readonly stop: Effect.Effect<void>
  readonly folder: string
  private readonly log: EventLog["Service"]

  constructor(plates: Plates["Service"], stop: Effect.Effect<void>, folder: string, log: EventLog["Service"]) {
    this.plates = plates
    this.stop = stop
    this.folder = folder
    this.log = log
  }

  transcript(sessionId: string): string {
    return join(this.folder, "-home-user-project", `${sessionId}.jsonl`)
  }

  hook(name: string, sessionId: string, more: Fields = {}, origin: Partial<Origin> = {}) {
    const body = payload(name, sessionId, { transcript_path: this.transcript(sessionId), ...more })
    return this.plates.hook(body, { ...nobody, ...origin })
  }

  /** Sends hooks one after the other, as they are. */
  readonly hooks = Effect.fnUntraced({ self: this }, function* (this: Board, ...bodies: ReadonlyArray<Fields>) {
    for (const body of bodies) yield* this.plates.hook(body, nobody)
  })

  get rows() {
    return this.plates.list({ closed: true })
  }

  /** The row of a session, once it is so. */
  until(sessionId: string, what: string, holds: (row: PlateInfo) => boolean) {
    return until(what, this.plates.find(sessionId), holds)
  }

  status(sessionId: string, status: PlateInfo["status"]) {
    return this.until(sessionId, `${sessionId} is ${status}`, (row) => row.status === status)
  }

  /** The plate once all hooks have been taken in. */
  readonly settled = Effect.fnUntraced({ self: this }, function* (this: Board, sessionId: string) {
    yield* quiet(this.log)
    return yield* this.plates.find(sessionId)
  })

  /** Appends records to a session's transcript, as written now by the clock of the test. */
  readonly write = Effect.fnUntraced(
    { self: this },
    function* (this: Board, sessionId: string, ...records: ReadonlyArray<Fields | string>) {
      const now = yield* Clock.currentTimeMillis
      const file = this.transcript(sessionId)
      mkdirSync(dirname(file), { recursive: true })
      const lines = records.map((record) =>
        typeof record === "string"
          ? record
          : `${JSON.stringify({ timestamp: new Date(now).toISOString(), ...record })}\n`
      )
      appendFileSync(file, lines.join(""))
      utimesSync(file, now / 1_000, now / 1_000)
    }
  )

  /** Written at that time, and nobody knows what. */
  readonly touch = (sessionId: string, at: number) =>
    Effect.sync(() => utimesSync(this.transcript(sessionId), at / 1_000, at / 1_000))

  /** Empties it. */
  readonly wipe = (sessionId: string) => Effect.sync(() => writeFileSync(this.transcript(sessionId), ""))

  /** Lets the health check go through all plates, and what it told be taken in. */
  readonly check = Effect.fnUntraced({ self: this }, function* (this: Board) {
    const before = (yield* this.plates.health).checkedAt
    yield* TestClock.adjust("10 seconds")
    yield* until("it is checked", this.plates.health, ({ checkedAt }) => checkedAt !== before && checkedAt !== null)
    yield* quiet(this.log)
  })
}

/** Runs with a fresh board; the clock stands at a time that files can have. */
export const run = <A, E>(body: (world: World) => Effect.Effect<A, E, Scope.Scope>, options: Setting = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* TestClock.setTime(T0)
      const { folder, log, store } = yield* setUp
      const { plates, stop } = yield* start(log, store, options)
      return yield* body({ log, store, folder, board: new Board(plates, stop, folder, log) })
    })
  ).pipe(Effect.provide([MemoryEventLog.layerMemory, NodeServices.layer]))

/** Another daemon on the same log. */
export const restart = Effect.fnUntraced(function* ({ board, folder, log, store }: World, options: Setting = {}) {
  yield* board.stop
  const next = yield* start(log, store, options)
  return new Board(next.plates, next.stop, folder, log)
})

/** The pid of a process that lives until the test ends. */
export const child = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => spawn("sleep", ["300"], { stdio: "ignore" })),
    (process) => Effect.sync(() => process.kill("SIGKILL"))
  ),
  ({ pid }) => pid!
)

// --- records of a transcript

/** The record by which a turn ends whose requests were given up, as Claude Code writes it. */
export const apiError = (error: string): Fields => ({
  type: "assistant",
  isSidechain: false,
  message: {
    id: `synthetic-${error}`,
    model: "<synthetic>",
    role: "assistant",
    stop_reason: "stop_sequence",
    content: [{ type: "text", text: "API Error: Request rejected (429)" }]
  },
  error,
  isApiErrorMessage: true,
  apiErrorStatus: 429
})

export const user = (content: unknown, more: Fields = {}) => ({
  type: "user",
  isSidechain: false,
  message: { role: "user", content },
  ...more
})
export const interrupt = (how = "") => user([{ type: "text", text: `[Request interrupted by user${how}]` }])
export const result = (callId: string, more: Fields = {}) =>
  user([{ type: "tool_result", tool_use_id: callId, content: "ok" }], more)
export const assistant = (id: string, content: ReadonlyArray<Fields>, more: Fields = {}) => ({
  type: "assistant",
  isSidechain: false,
  message: { id, role: "assistant", content, stop_reason: "tool_use", usage: { input_tokens: 100, output_tokens: 20 } },
  ...more
})
export const toolUse = (message: string, callId: string, name: string, input: Fields = {}) =>
  assistant(message, [{ type: "tool_use", id: callId, name, input }])
export const said = (message: string, text = "Done.") => ({
  ...assistant(message, [{ type: "text", text }]),
  message: {
    id: message,
    role: "assistant",
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    usage: { input_tokens: 100, output_tokens: 20 }
  }
})
export const bookkeeping = { type: "last-prompt", lastPrompt: "go", sessionId: "s" }
