/**
 * DaemonMessages: the state of the daemon and of its log, as sent over the control socket.
 */
import { Schema } from "effect"
import { GoalInfo } from "../domain/GoalMessages.ts"
import { AgentInfo, ProjectInfo, WhyLine } from "../domain/Messages.ts"
import { Word } from "../domain/BoardMessages.ts"
import { AccountRow } from "./AccountMessages.ts"
import * as Bounds from "./Bounds.ts"
import { Limits } from "./Limits.ts"

/** The parts of a rune that an erasure deletes: names of fields and a size, but not the content. */
export const Erasable = Schema.Struct({
  eventId: Schema.Int,
  stream: Schema.String,
  kind: Schema.String,
  fields: Schema.Array(Schema.String),
  size: Schema.Int,
  /** Other runes with the same content. After an erasure, those erased with it. Undefined from an older daemon. */
  also: Schema.optionalKey(Schema.Array(Schema.Struct({ eventId: Schema.Int, kind: Schema.String }))),
  more: Schema.optionalKey(Schema.Boolean)
})

/** A result of `doctor`. */
export const Check = Schema.Struct({
  name: Schema.String,
  level: Schema.Literals(["ok", "warn", "fail"]),
  detail: Schema.String,
  /** The remedy for a problem; null if there is no problem. */
  remedy: Schema.NullOr(Schema.String)
})
export type Check = typeof Check.Type

/** An error in the user's own config file: the last usable version stays in force. */
const OwnConfigTrouble = Schema.Struct({
  path: Schema.String,
  problem: Schema.String,
  /** When the error was found, ms since the epoch. */
  since: Schema.Finite
})
export type OwnConfigTrouble = typeof OwnConfigTrouble.Type

export const DaemonStatus = Schema.Struct({
  pid: Schema.Int,
  version: Schema.String,
  /** True if the daemon's program was replaced by another version. Undefined if it was not, or from an older daemon. */
  replaced: Schema.optionalKey(Schema.Boolean),
  ownConfig: Schema.optionalKey(OwnConfigTrouble),
  /** Present if the keeper of runs cannot be reached: the reason, and since when, in ms since the epoch. */
  keeper: Schema.optionalKey(Schema.Struct({ message: Schema.String, since: Schema.Finite })),
  /** Zone for times without a zone. `doubt`: why it is a guess; null if certain. Undefined from an older daemon. */
  zone: Schema.optionalKey(Schema.Struct({ name: Schema.String, doubt: Schema.NullOr(Schema.String) })),
  /** When the daemon started, ms since the epoch. */
  startedAt: Schema.Finite,
  state: Schema.String,
  socket: Schema.String,
  phase: Schema.Literals(["recovering", "ready", "stopping"]),
  /** Progress in reading the log's streams, from which the daemon builds its state. Undefined from an older daemon. */
  reading: Schema.optionalKey(
    Schema.Struct({
      streams: Schema.Int,
      read: Schema.Int,
      runes: Schema.Int,
      /** Streams that could not be read and were left out. */
      unreadable: Schema.Array(Schema.Struct({ stream: Schema.String, message: Schema.String })),
      /** Parts of streams that were left out. Undefined from an older daemon. */
      aside: Schema.optionalKey(
        Schema.Array(Schema.Struct({ stream: Schema.String, part: Schema.String, message: Schema.String }))
      ),
      /** Description of acknowledged runes that are missing from the log; undefined if none are missing. */
      behind: Schema.optionalKey(Schema.String),
      /** Archives of an older agentd that could not be restored into the log: one line for each conversation. */
      archives: Schema.optionalKey(Schema.String),
      /** Parts of the daemon that are not ready yet. */
      waiting: Schema.Array(Schema.String)
    })
  ),
  supervision: Schema.Struct({
    by: Schema.Literals(["systemd", "detached", "foreground"]),
    unit: Schema.NullOr(Schema.String),
    /** The evidence from which `by` was determined. */
    restsOn: Schema.String
  }),
  log: Schema.Struct({
    /** The highest eventId among durable runes. */
    head: Schema.Int,
    bytes: Schema.Finite,
    /** Size in bytes of the segments, to which the oldest runes are moved. Undefined from an older daemon. */
    sealed: Schema.optionalKey(Schema.Finite),
    /** eventId of the oldest rune, if older ones were deleted by the user's setting. Undefined if none were. */
    begins: Schema.optionalKey(Schema.Int),
    /** Result of the last check of the whole log; null if there was none. Undefined from an older daemon. */
    checked: Schema.optionalKey(
      Schema.NullOr(
        Schema.Struct({
          /** Time of the check, ms since the epoch. */
          at: Schema.Finite,
          runes: Schema.Int,
          problems: Schema.Int,
          /** Description of the first problem; null if there is none. */
          first: Schema.NullOr(Schema.String)
        })
      )
    ),
    /** Growth in bytes per day; null if the log is too young to tell. */
    perDay: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
    /** Free bytes on the disk; null if unknown. */
    free: Schema.optionalKey(Schema.NullOr(Schema.Finite))
  }),
  outbox: Schema.Struct({
    /** False if no mail is sent, because no address is configured. */
    configured: Schema.Boolean,
    waiting: Schema.Int,
    failed: Schema.Int,
    lastSentAt: Schema.NullOr(Schema.Finite),
    lastError: Schema.NullOr(Schema.String),
    /** Since when mail cannot be sent, ms since the epoch. Undefined if it can be, or if an older log does not say. */
    failsSince: Schema.optionalKey(Schema.Finite),
    /** True if the numbers are not known yet, because queued mails are still being read. */
    unread: Schema.optionalKey(Schema.Boolean),
    /** The eventId of the newest alert rune; 0 before the first. */
    restsOn: Schema.Int
  }),
  /** The HTTP server. Undefined if this daemon serves no HTTP. */
  http: Schema.optionalKey(
    Schema.Struct({
      socket: Schema.NullOr(Schema.String),
      /** The configured port; null if none is configured. */
      port: Schema.NullOr(Schema.Int),
      listening: Schema.Boolean,
      /** Why the daemon does not listen on its port; null if it listens, or has no port. */
      problem: Schema.NullOr(
        Schema.Struct({
          message: Schema.String,
          remedy: Schema.String,
          /** True if another user's program occupies the port. */
          foreign: Schema.optionalKey(Schema.Boolean),
          /** Since when the daemon cannot listen, ms since the epoch. */
          since: Schema.optionalKey(Schema.Finite)
        })
      )
    })
  )
})
export type DaemonStatus = typeof DaemonStatus.Type

export const StateCount = Schema.Struct({
  state: Schema.String,
  agents: Schema.Int,
  /** eventId of the newest rune that put an agent into this state. */
  restsOn: Schema.Int
})
export type StateCount = typeof StateCount.Type

const WordCount = Schema.Struct({ word: Word, agents: Schema.Int, restsOn: Schema.Int })
export type WordCount = typeof WordCount.Type

export const StatusReply = Schema.Struct({
  daemon: DaemonStatus,
  /** Time since the daemon started, in ms, by the daemon's own clock. */
  uptime: Schema.Finite,
  projects: Schema.Array(ProjectInfo),
  states: Schema.Array(StateCount),
  /** Number of agents per status word (not per state). Undefined if the daemon is too old to send it. */
  words: Schema.optionalKey(Schema.Array(WordCount)),
  /** Accounts for which a failure, limit or usage was reported. Undefined if the daemon is too old to send them. */
  accounts: Schema.optionalKey(Schema.Array(AccountRow))
})
export type StatusReply = typeof StatusReply.Type

export const WhyReply = Schema.Struct({
  agent: AgentInfo,
  /** The explanation, newest line last. */
  lines: Schema.Array(WhyLine),
  /** The next step for the user; null if there is none. */
  advice: Schema.NullOr(Schema.String)
})
export type WhyReply = typeof WhyReply.Type

/** Explains the state of an agent or of a goal. Exactly one of `agent` and `goal` is set. */
export const ExplainReply = Schema.Struct({
  agent: Schema.optionalKey(AgentInfo),
  goal: Schema.optionalKey(GoalInfo),
  lines: Schema.Array(WhyLine),
  advice: Schema.NullOr(Schema.String)
})
export type ExplainReply = typeof ExplainReply.Type

export const VerifyEvent = Schema.Union([
  Schema.TaggedStruct("Started", {
    /** Estimated number of runes to read. */
    runes: Schema.Int
  }),
  Schema.TaggedStruct("Progress", { elapsed: Schema.Finite }),
  Schema.TaggedStruct("Verdict", {
    runes: Schema.Int,
    streams: Schema.Int,
    erased: Schema.Array(Schema.Struct({ eventId: Schema.Int, stream: Schema.String })),
    /** The oldest rune of the log, if older ones were deleted according to the user's setting. */
    begins: Schema.optionalKey(Schema.Struct({ eventId: Schema.Int, at: Schema.Finite, by: Schema.String })),
    problems: Schema.Array(
      Schema.Struct({
        eventId: Schema.Int,
        stream: Schema.String,
        rule: Schema.String,
        message: Schema.String
      })
    )
  })
])
export type VerifyEvent = typeof VerifyEvent.Type

/** Filters for runes. Only runes that pass all filters are returned. */
export const selection = {
  /** Only runes with a higher eventId than this. */
  after: Schema.optional(Schema.Int),
  /** Only runes since this time, ms since the epoch. */
  since: Schema.optional(Schema.Finite),
  stream: Schema.optional(Bounds.name),
  agent: Schema.optional(Bounds.name),
  kinds: Schema.optional(Bounds.list(Bounds.name, Limits.kinds, "Ask for fewer kinds, or for all of them.")),
  /** Only the newest `tail` runes that match. */
  tail: Schema.optional(Bounds.between(0, Limits.tail, "Ask for fewer, or leave it out to read everything.")),
  internal: Schema.optional(Schema.Boolean),
  follow: Schema.Boolean,
  caller: Bounds.caller
}
const LogSelection = Schema.Struct(selection)
export type LogSelection = typeof LogSelection.Type

/** The daemon's reply in the first exchange on a connection. */
export const Greeting = Schema.Struct({
  protocol: Schema.Int,
  /** The oldest protocol that the daemon supports. */
  oldest: Schema.Int,
  version: Schema.String
})
