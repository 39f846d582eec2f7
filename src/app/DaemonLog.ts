/** DaemonLog: the event log with agentd's rune kinds and invariants. */
import { Layer } from "effect"
import { severityOf } from "../domain/Invariants.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import { InvariantGuard } from "../core/event-log/InvariantGuard.ts"
import type { Log } from "../core/event-log/Log.ts"
import { LogRules, type Rules } from "../core/event-log/LogRules.ts"
import * as MemoryEventLog from "../core/event-log/MemoryEventLog.ts"
import type { Redact } from "../core/event-log/Redact.ts"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"
import type { InlineDisk } from "../core/event-log/SqliteLog.ts"
import * as SqlEventLog from "../core/event-log/SqlEventLog.ts"
import { kinds } from "./EventKinds.ts"
import { checkers } from "./InvariantCheckers.ts"

export interface Options extends SqlEventLog.Options {
  /** Folds that the daemon's features use. If a feature's fold is missing, the feature reads the stream itself. */
  readonly folds?: Rules["folds"]
}

export const rules: Rules = {
  kinds,
  guard: new InvariantGuard(checkers),
  folds: [],
  home: DAEMON_STREAM,
  severityOf,
  archives: { kind: "session.archived", streamOf: ({ actor }) => actor.slice(actor.indexOf("/") + 1) }
}

const layerRules = ({ folds = [] }: Pick<Options, "folds"> = {}): Layer.Layer<LogRules> =>
  Layer.succeed(LogRules, { ...rules, folds })

/** A log that a separate thread writes to a file. */
export const layer = (options: Options): Layer.Layer<EventLog | Log, StorageError, Redact> =>
  SqlEventLog.layer(options).pipe(Layer.provide(layerRules(options)))

/** A log that the current thread writes to a file. */
export const layerInline = (options: Options, disk?: InlineDisk): Layer.Layer<EventLog | Log, StorageError, Redact> =>
  SqlEventLog.layerInline(options, disk).pipe(Layer.provide(layerRules(options)))

/** A read-only log in a file that another process may be writing. */
export const layerReadOnly = (options: Pick<Options, "file">): Layer.Layer<EventLog, StorageError> =>
  SqlEventLog.layerReadOnly(options).pipe(Layer.provide(layerRules()))

export const layerMemory: Layer.Layer<EventLog | Log> = MemoryEventLog.layerMemory.pipe(Layer.provide(layerRules()))
