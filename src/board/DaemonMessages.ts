/**
 * DaemonMessages: what the daemon tells of itself and of its log, as it crosses the control socket.
 */
import { Schema } from "effect"
import { GoalInfo } from "../domain/GoalMessages.ts"
import { AgentInfo, ProjectInfo, WhyLine } from "../domain/Messages.ts"
import { Word } from "../domain/BoardMessages.ts"
import { AccountRow } from "./AccountMessages.ts"
import * as Bounds from "./Bounds.ts"
import { Limits } from "./Limits.ts"

/** The part of a rune that an erasure takes: names of fields and a size, never the texts. */
export const Erasable = Schema.Struct({
  eventId: Schema.Int,
  stream: Schema.String,
  kind: Schema.String,
  fields: Schema.Array(Schema.String),
  size: Schema.Int,
  /** Runes of its stream that repeat its texts; of an erasure: those that went with it. Not there: an older daemon. */
  also: Schema.optionalKey(Schema.Array(Schema.Struct({ eventId: Schema.Int, kind: Schema.String }))),
  more: Schema.optionalKey(Schema.Boolean)
})

/** A finding of `doctor`. */
export const Check = Schema.Struct({
  name: Schema.String,
  level: Schema.Literals(["ok", "warn", "fail"]),
  detail: Schema.String,
  /** The remedy; null when all is well. */
  remedy: Schema.NullOr(Schema.String)
})
export type Check = typeof Check.Type

/** The user's own config, where its file cannot be used: what was in force before is. */
const OwnConfigTrouble = Schema.Struct({
  path: Schema.String,
  problem: Schema.String,
  /** ms since the epoch */
  since: Schema.Finite
})
export type OwnConfigTrouble = typeof OwnConfigTrouble.Type

export const DaemonStatus = Schema.Struct({
  pid: Schema.Int,
  version: Schema.String,
  /** Another program than the daemon's is installed in its place. Not there: no, or an older daemon. */
  replaced: Schema.optionalKey(Schema.Boolean),
  ownConfig: Schema.optionalKey(OwnConfigTrouble),
  /** The keeper of runs cannot be reached: why, and since when, ms since the epoch. */
  keeper: Schema.optionalKey(Schema.Struct({ message: Schema.String, since: Schema.Finite })),
  /** The zone of times that name none; `doubt`: why that is a guess. Not there: an older daemon. */
  zone: Schema.optionalKey(Schema.Struct({ name: Schema.String, doubt: Schema.NullOr(Schema.String) })),
  /** ms since the epoch */
  startedAt: Schema.Finite,
  state: Schema.String,
  socket: Schema.String,
  phase: Schema.Literals(["recovering", "ready", "stopping"]),
  /** The log's streams that the daemon's parts are made of. Not there: an older daemon. */
  reading: Schema.optionalKey(
    Schema.Struct({
      streams: Schema.Int,
      read: Schema.Int,
      runes: Schema.Int,
      /** Streams that cannot be read, and are left out. */
      unreadable: Schema.Array(Schema.Struct({ stream: Schema.String, message: Schema.String })),
      /** Parts of streams that are left out. Not there: an older daemon. */
      aside: Schema.optionalKey(
        Schema.Array(Schema.Struct({ stream: Schema.String, part: Schema.String, message: Schema.String }))
      ),
      /** In words: runes that were acknowledged are not there. */
      behind: Schema.optionalKey(Schema.String),
      /** Archives of an older agentd that could not be put back into the log: a line for each conversation, in words. */
      archives: Schema.optionalKey(Schema.String),
      /** Parts that are not ready yet. */
      waiting: Schema.Array(Schema.String)
    })
  ),
  supervision: Schema.Struct({
    by: Schema.Literals(["systemd", "detached", "foreground"]),
    unit: Schema.NullOr(Schema.String),
    /** How the daemon knows. */
    restsOn: Schema.String
  }),
  log: Schema.Struct({
    /** The highest eventId that is durable. */
    head: Schema.Int,
    bytes: Schema.Finite,
    /** Of the segments, to which the oldest runes have gone. Not there: an older daemon. */
    sealed: Schema.optionalKey(Schema.Finite),
    /** The first rune that is there: older ones were deleted by a person's setting. Not there: none was. */
    begins: Schema.optionalKey(Schema.Int),
    /** How the last check of the whole log ended; null: there was none. Not there: an older daemon. */
    checked: Schema.optionalKey(
      Schema.NullOr(
        Schema.Struct({
          /** ms since the epoch */
          at: Schema.Finite,
          runes: Schema.Int,
          problems: Schema.Int,
          /** The first problem, in words. */
          first: Schema.NullOr(Schema.String)
        })
      )
    ),
    /** Bytes that a day adds; null where it is too early to say. */
    perDay: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
    /** Bytes that are free on the disk; null where there is no telling. */
    free: Schema.optionalKey(Schema.NullOr(Schema.Finite))
  }),
  outbox: Schema.Struct({
    /** False: nobody is mailed, because no address is configured. */
    configured: Schema.Boolean,
    waiting: Schema.Int,
    failed: Schema.Int,
    lastSentAt: Schema.NullOr(Schema.Finite),
    lastError: Schema.NullOr(Schema.String),
    /** Since when no mail can be sent, ms since the epoch. Not there: it can, or an older log does not say. */
    failsSince: Schema.optionalKey(Schema.Finite),
    /** The figures count nothing yet: what waits is still being read. */
    unread: Schema.optionalKey(Schema.Boolean),
    /** The eventId of the newest alert rune; 0 before the first. */
    restsOn: Schema.Int
  }),
  /** Not there: this daemon serves no HTTP. */
  http: Schema.optionalKey(
    Schema.Struct({
      socket: Schema.NullOr(Schema.String),
      /** Null: no port is asked for. */
      port: Schema.NullOr(Schema.Int),
      listening: Schema.Boolean,
      /** Why it does not listen on its port. */
      problem: Schema.NullOr(
        Schema.Struct({
          message: Schema.String,
          remedy: Schema.String,
          /** Another user's program has the port. */
          foreign: Schema.optionalKey(Schema.Boolean),
          /** ms since the epoch */
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
  /** The newest eventId that put one of them there. */
  restsOn: Schema.Int
})
export type StateCount = typeof StateCount.Type

const WordCount = Schema.Struct({ word: Word, agents: Schema.Int, restsOn: Schema.Int })
export type WordCount = typeof WordCount.Type

export const StatusReply = Schema.Struct({
  daemon: DaemonStatus,
  /** On the daemon's clock: ms since it started. */
  uptime: Schema.Finite,
  projects: Schema.Array(ProjectInfo),
  states: Schema.Array(StateCount),
  /** The same by the word for people. Not there: an older daemon. */
  words: Schema.optionalKey(Schema.Array(WordCount)),
  /** Accounts with providers of which something was told. Not there: an older daemon. */
  accounts: Schema.optionalKey(Schema.Array(AccountRow))
})
export type StatusReply = typeof StatusReply.Type

export const WhyReply = Schema.Struct({
  agent: AgentInfo,
  /** Newest last. */
  lines: Schema.Array(WhyLine),
  /** The next step for a person, where there is one. */
  advice: Schema.NullOr(Schema.String)
})
export type WhyReply = typeof WhyReply.Type

/** The same of an agent or a goal: one of the two is there. */
export const ExplainReply = Schema.Struct({
  agent: Schema.optionalKey(AgentInfo),
  goal: Schema.optionalKey(GoalInfo),
  lines: Schema.Array(WhyLine),
  advice: Schema.NullOr(Schema.String)
})
export type ExplainReply = typeof ExplainReply.Type

export const VerifyEvent = Schema.Union([
  Schema.TaggedStruct("Started", {
    /** About so many are to be read. */
    runes: Schema.Int
  }),
  /** Still at it. */
  Schema.TaggedStruct("Progress", { elapsed: Schema.Finite }),
  Schema.TaggedStruct("Verdict", {
    runes: Schema.Int,
    streams: Schema.Int,
    erased: Schema.Array(Schema.Struct({ eventId: Schema.Int, stream: Schema.String })),
    /** Where the log begins: older runes were deleted by a person's setting. */
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

/** The selection of runes; all filters must hold. */
export const selection = {
  /** Only runes with an eventId above this. */
  after: Schema.optional(Schema.Int),
  /** ms since the epoch */
  since: Schema.optional(Schema.Finite),
  stream: Schema.optional(Bounds.name),
  agent: Schema.optional(Bounds.name),
  kinds: Schema.optional(Bounds.list(Bounds.name, Limits.kinds, "Ask for fewer kinds, or for all of them.")),
  /** Only the newest so many of what is there. */
  tail: Schema.optional(Bounds.between(0, Limits.tail, "Ask for fewer, or leave it out to read everything.")),
  internal: Schema.optional(Schema.Boolean),
  follow: Schema.Boolean,
  caller: Bounds.caller
}
const LogSelection = Schema.Struct(selection)
export type LogSelection = typeof LogSelection.Type

/** The daemon's side of the first exchange on a connection. */
export const Greeting = Schema.Struct({
  protocol: Schema.Int,
  /** The oldest protocol that it answers. */
  oldest: Schema.Int,
  version: Schema.String
})
