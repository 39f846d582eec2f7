/**
 * Disk: rune logs on real files in a folder of their own, and drafts to put in them.
 */
import { Context, Effect, Layer } from "effect"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { initial } from "../../../src/agents/machines/ConversationMachine.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import * as Scratch from "../../support/Scratch.ts"

/** A folder that is gone when the test is over. */
export const folder = Scratch.folder("agentd-runes-")

/** Where a store goes that is not there yet. */
export const storeFile = Effect.map(folder, (path) => join(path, "runes.db"))

export const layer = (options: DaemonLog.Options) => DaemonLog.layer(options).pipe(Layer.provide(Redact.layer))

/** Opens the log, uses it, closes it. */
export const withLog = <A, E>(options: DaemonLog.Options, use: (log: EventLog["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(EventLog, use).pipe(Effect.provide(layer(options), { local: true }))

/**
 * The same without its thread, by the same code: for tests that open many stores for what
 * is in them and not for how they are written. A thread takes ten times as long to start.
 */
export const withInlineLog = <A, E>(
  options: DaemonLog.Options,
  use: (log: EventLog["Service"]) => Effect.Effect<A, E>
) =>
  Effect.flatMap(EventLog, use).pipe(
    Effect.provide(DaemonLog.layerInline(options).pipe(Layer.provide(Redact.layer)), { local: true })
  )

/** By its thread for every sixth of many samples, without for the others. */
export const withSampleLog = (sample: number): typeof withLog => (sample % 6 === 0 ? withLog : withInlineLog)

/** Opens the log in the test's scope: `Scope.close` is the daemon's end. */
export const openLog = (options: DaemonLog.Options) =>
  Effect.map(Layer.build(Layer.fresh(layer(options))), (context) => Context.get(context, EventLog))

/** A rune that no invariant looks at. */
export const note = (stream: string, n: number, text = ""): RuneDraft => ({
  stream,
  kind: "inbox.received",
  actor: "inbox/builder",
  trigger: "Received",
  payload: { event: { _tag: "Received", n, message: { messageId: `${n}`, from: "ada", text, urgent: false, at: n } } }
})

export const output = (stream: string, text: string): RuneDraft => ({
  stream,
  kind: "run.output",
  actor: "worker/builder",
  payload: { runId: "run-1", source: "stdout", text }
})

/** Seals the stream of a conversation. */
export const closing = (stream: string): RuneDraft => ({
  stream,
  kind: "session.closed",
  actor: `conversation/${stream}`,
  payload: { event: { _tag: "cleanup_complete", stats: { turns: 0 } }, final_stats: { turns: 0 } }
})

/** As the daemon writes it: what lists the conversation when its runes are gone. */
export const archivedRune = (stream: string): RuneDraft => ({
  stream: "daemon",
  kind: "session.archived",
  actor: `conversation/${stream}`,
  from: "closed",
  to: "archived",
  trigger: "archive_requested",
  payload: {
    event: { _tag: "archive_requested", by: "ada" },
    conversation_id: stream,
    summary: {
      conversation: stream,
      project: "shop",
      config: "/home/ada/shop/agentd.json",
      agents: ["builder"],
      data: initial(),
      spent: { tokens: 0, toolCalls: 0, wallTime: 0, usd: 0 },
      limits: { tokens: null, toolCalls: null, wallTime: null, usd: null },
      file: `archive/${stream}.jsonl.gz`
    }
  }
})

/** Changes the file behind agentd's back. */
export const meddle = (file: string, sql: string): void => {
  const database = new DatabaseSync(file)
  try {
    database.exec(sql)
  } finally {
    database.close()
  }
}

/** The same, past the triggers that forbid it: they are there again when it returns. */
export const force = (file: string, sql: string): void => {
  const database = new DatabaseSync(file)
  try {
    const triggers = database.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid").all()
    database.exec(triggers.map(({ name }) => `DROP TRIGGER ${name as string}`).join(";"))
    database.exec(sql)
    database.exec(triggers.map((trigger) => trigger["sql"] as string).join(";"))
  } finally {
    database.close()
  }
}

/** All columns of a rune but its position. */
export const OTHER_COLUMNS =
  "stream, at, kind, actor, from_state, to_state, trigger_name, cause, visibility, payload, payload_hash, hash, format, seq, prev, cause_stream, cause_seq, moves"
