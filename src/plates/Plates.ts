/**
 * Plates: every coding session on this machine, with its true status.
 *
 * Guarantees: an event is received without waiting for a disk, and the plate
 * still appends before it acts; what is unknown or malformed is refused with a
 * reason and never guessed at; a missed hook is made good within 12 seconds.
 */
import { Context, type Effect, Schema } from "effect"
import type { Caller, CommandRefused, Done, PlateInfo } from "../domain/Messages.ts"
import type * as PlateMachine from "./PlateMachine.ts"
import type { StorageError } from "../event-log/EventLog.ts"

/** The body is not an event. Its `field` and `remedy` make up the 400. */
export class EventRefused extends Schema.TaggedError<EventRefused>()("EventRefused", {
  field: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Where a hook came from, besides its body. */
export interface Origin {
  /** `AGENTD_PLATE` in the environment of the session, if it was started through us. */
  readonly plate: string | undefined
  /** `AGENTD_RUN`: the session is a run of ours. */
  readonly run: string | undefined
  /** The session's process, where the handler knows it. */
  readonly pid: number | undefined
  /** When it was said, ms since the epoch, where it was kept until we were up. */
  readonly at?: number
}

/** What a run of ours tells of itself. */
export interface RunReport {
  readonly runId: string
  /** `project/agent` */
  readonly agent: string
  readonly event:
    | Extract<PlateMachine.Event, { readonly runId: string; readonly _tag: `Run${string}` }>
    | RunBegun
    | RunEnded
}
export interface RunBegun {
  readonly _tag: "RunBegun"
  readonly cwd: string
  readonly pid?: number
  /** The coding CLI's own id, where it is known already: its hooks go to the same plate. */
  readonly sessionId?: string
}
export interface RunEnded {
  readonly _tag: "RunEnded"
}

/** How well the board is kept. */
export interface Health {
  /** What the log holds is on the board. */
  readonly ready: boolean
  /** Plates that are not closed. */
  readonly open: number
  /** When the health check has last gone through them all, ms since the epoch; null before the first time. */
  readonly checkedAt: number | null
}

/** An answer to a permission request; `answers` to what it asks a person to choose. */
export type Decision =
  | { readonly behavior: "allow"; readonly answers?: ReadonlyArray<string> | undefined }
  | { readonly behavior: "deny"; readonly message: string }

export class Plates extends Context.Service<
  Plates,
  {
    /** Claude Code's own hook, as it is. */
    readonly hook: (body: unknown, origin: Origin) => Effect.Effect<void, EventRefused>
    /** The five events of `POST /events`. */
    readonly event: (body: unknown) => Effect.Effect<void, EventRefused>
    /** A plate before its session has started; durable when it answers. */
    readonly register: (body: unknown) => Effect.Effect<{ readonly plateId: string }, EventRefused | StorageError>
    /** The process is gone; durable when it answers. */
    readonly stopped: (body: unknown) => Effect.Effect<void, EventRefused | StorageError>
    readonly forget: (plateId: string, caller: Caller) => Effect.Effect<Done, CommandRefused | StorageError>
    /** Attention first, then the newest. Closed ones fade after a day, or all are listed. */
    readonly list: (options: { readonly closed: boolean }) => Effect.Effect<ReadonlyArray<PlateInfo>>
    /** By plate id, a unique beginning of it, or the session's id. */
    readonly find: (name: string) => Effect.Effect<PlateInfo, CommandRefused>
    /** A PermissionRequest hook that may be answered here: waits for a person; undefined when it was settled elsewhere or nobody answered in time. */
    readonly permission: (body: unknown, origin: Origin) => Effect.Effect<Decision | undefined, EventRefused>
    /** Answers an open permission request, by its id or its plate's. */
    readonly answer: (
      id: string,
      decision: Decision,
      caller: Caller
    ) => Effect.Effect<Done, CommandRefused | StorageError>
    /** A run of ours has one plate, whoever tells of it first: this, or its session's hooks. */
    readonly run: (report: RunReport) => Effect.Effect<void>
    readonly health: Effect.Effect<Health>
  }
>()("agentd/plates/Plates") {}
