/**
 * recordRunes: records a rune log as a fixture, once. A log of an older schema must be replayable forever, so an
 * existing fixture is never written again. Usage: node recordRunes.ts VERSION
 */
import { Effect, Layer } from "effect"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { type AnyMachine, step, type Tagged } from "../../src/core/event-actor/StateMachine.ts"
import * as Inbox from "../../src/agents/machines/Inbox.ts"
import * as ToolMachine from "../../src/agents/machines/ToolMachine.ts"
import * as TurnMachine from "../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../src/agents/machines/WorkerMachine.ts"
import { DAEMON_STREAM, type RuneDraft } from "../../src/core/event-log/Rune.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../src/app/DaemonLog.ts"

const stream = "shop-1a2b3c4d"
const fixture = new URL(`../fixtures/runes/v${process.argv[2]}.sql`, import.meta.url)
if (existsSync(fixture)) throw new Error(`${fixture.pathname} is there already: it is never changed`)

/** The runes of a machine that gets these events; each event must move it. */
const life = (
  machine: AnyMachine,
  actor: string,
  initial: unknown,
  events: ReadonlyArray<object>
): Array<RuneDraft> => {
  let [state, data]: [string, unknown] = [machine.initial, initial]
  return (events as ReadonlyArray<Tagged>).map((event) => {
    const moved = step<string, Tagged, unknown, Tagged>(machine as never, state, data, event)
    if (moved._tag === "Refused") throw new Error(`${actor}: ${event._tag} is ${moved.why} in ${state}`)
    const draft = {
      stream,
      kind: moved.kind,
      actor,
      from: state,
      to: moved.state,
      trigger: event._tag,
      payload: moved.payload
    }
    ;[state, data] = [moved.state, moved.data]
    return draft
  })
}

const initial = WorkerMachine.initial({ mode: "inbox" })
const message = {
  messageId: "m1",
  from: "ana",
  text: "Fix the login page, s'il vous plaît 🙏",
  urgent: false,
  at: 1_000
}
const [run1, run2] = ["run-0001", "run-0002"]

const drafts: ReadonlyArray<RuneDraft> = [
  { stream: DAEMON_STREAM, kind: "daemon.started", actor: "daemon", payload: { pid: 1, version: "0.1.0" } },
  { stream, kind: "project.registered", actor: "project", payload: { config: "/shop/agentd.jsonc", name: "shop" } },
  {
    stream,
    kind: "worker.started",
    actor: "worker/builder",
    to: "Initializing",
    payload: { by: "ana", incarnation: 1, initial }
  },
  ...life(Inbox.Inbox, "inbox/builder", Inbox.initial, [
    { _tag: "Received", message },
    { _tag: "Delivered", runId: run2, messageIds: ["m1"] }
  ]),
  ...life(WorkerMachine.Worker, "worker/builder", initial, [
    { _tag: "WorktreeReady", cwd: "/shop/.agentd/builder", branch: "agentd/builder" },
    { _tag: "PromptReady", prompt: "Fix it", runId: run1, messageIds: ["m1"], at: 2_000 },
    { _tag: "SessionExited", runId: run1, outcome: { _tag: "Error", detail: "exit 1: no such model" } },
    { _tag: "BackoffElapsed" },
    { _tag: "PromptReady", prompt: "Fix it", runId: run2, messageIds: ["m1"], at: 5_000 },
    { _tag: "SessionStarted", runId: run2, seq: 1, pid: 4321 },
    { _tag: "SessionExited", runId: run2, outcome: { _tag: "Success" } },
    { _tag: "WorktreeReady", cwd: "/shop/.agentd/builder", branch: "agentd/builder" }
  ]),
  ...life(TurnMachine.Turn, "turn/builder", TurnMachine.initial(), [
    {
      _tag: "start_turn",
      turnId: "t1",
      agentId: "builder",
      input: "Fix it",
      source: "queue",
      messageIds: ["m1"],
      at: 5_100
    },
    { _tag: "tool_calls_received", turnId: "t1", callIds: ["c1"] },
    { _tag: "tools_finished", turnId: "t1", results: [{ callId: "c1" }], continue: true },
    { _tag: "response_done", turnId: "t1", finalOutput: "Done.", usage: { outputTokens: 7 } },
    { _tag: "turn_finalized", turnId: "t1" }
  ]),
  ...life(ToolMachine.Tool, "tool/c1", ToolMachine.initial(), [
    { _tag: "call_requested", callId: "c1", turnId: "t1", toolName: "shell", arguments: { command: "npm test" } },
    { _tag: "requires_approval", callId: "c1", policyReason: "it has side effects" },
    { _tag: "approved", callId: "c1", approver: "ana" },
    { _tag: "success", callId: "c1", output: "42 passed" }
  ]),
  {
    stream,
    kind: "run.output",
    actor: "worker/builder",
    payload: { runId: run2, source: "stdout", text: "42 passed\n" }
  },
  { stream: DAEMON_STREAM, kind: "daemon.stopping", actor: "daemon", payload: { reason: "stop" } }
]

const quoted = (value: unknown): string =>
  value === null ? "NULL" : typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value)

/** The database as SQL statements that create it again. */
const dump = (file: string): string => {
  const database = new DatabaseSync(file, { readOnly: true })
  const tables = database.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").all()
  const triggers = database.prepare("SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name").all()
  const rows = tables.flatMap(({ name }) =>
    database
      .prepare(`SELECT * FROM ${String(name)}`)
      .all()
      .map((row) => `INSERT INTO ${String(name)} VALUES (${Object.values(row).map(quoted).join(", ")});`)
  )
  database.close()
  return [
    ...tables.map(({ sql }) => `${String(sql)};`),
    ...rows,
    ...triggers.map(({ sql }) => `${String(sql)};`),
    ""
  ].join("\n")
}

const folder = mkdtempSync(join(tmpdir(), "agentd-record-"))
const file = join(folder, "runes.db")
await Effect.runPromise(
  Effect.flatMap(EventLog, (log) => log.append(drafts)).pipe(
    Effect.provide(DaemonLog.layer({ file }).pipe(Layer.provide(Redact.layer)))
  )
)
writeFileSync(fixture, dump(file))
rmSync(folder, { recursive: true })
