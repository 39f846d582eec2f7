/**
 * NotLiving: a conversation that is listed but not running, and the reason.
 *
 * - `closed`: the conversation is over, and its project can start a new one.
 * - `lost`: the trusted config is missing. The conversation can still be closed, because agents that an earlier daemon
 *   left running were ended when this daemon started.
 * - `damaged`: the stream is damaged or its runes cannot be applied, so nothing is written to it. The daemon's own
 * stream records
 *   the damage once. When a user gives the conversation up, that is recorded too, and it becomes `closed`.
 */
import { Deferred, Effect, Schema } from "effect"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import { ConversationConfig } from "../config/Config.ts"
import { projectKinds } from "../domain/ProjectKinds.ts"
import { type CommandRefused, type ProjectInfo, refuse } from "../domain/Messages.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import { readOwn } from "../core/event-log/OwnKinds.ts"
import { DAEMON_STREAM, type RuneDraft } from "../core/event-log/Rune.ts"
import { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import { AgentsEnvironment } from "./AgentsEnvironment.ts"
import { waiting } from "./ConfigTrust.ts"
import { ConversationActor } from "./ConversationActor.ts"
import * as ConversationRecovery from "./ConversationRecovery.ts"
import * as ConversationRow from "./ConversationRow.ts"
import { freshProject, givenUpIn, type ProjectRecord } from "./Recovery.ts"

const REASONS = ["lost", "closed", "damaged"] as const

export type Reason = (typeof REASONS)[number]

export interface NotLiving {
  readonly _tag: "NotLiving"
  readonly record: ProjectRecord
  readonly reason: Reason
  /** The reason as lines of text; empty if the conversation was closed normally. */
  readonly problems: ReadonlyArray<string>
}

export interface Closing {
  readonly by: string
  readonly reason: string
}

const make = (reason: Reason, record: ProjectRecord, problems: ReadonlyArray<string>): NotLiving => ({
  _tag: "NotLiving",
  record,
  reason,
  problems
})

export const closed = (record: ProjectRecord): NotLiving => make("closed", record, [])

export const lost = (record: ProjectRecord, { message }: CommandRefused): NotLiving =>
  make("lost", record, message.split("\n"))

export const damaged = (record: ProjectRecord, message: string): NotLiving => make("damaged", record, [message])

export const inOrder = (all: Iterable<NotLiving>): ReadonlyArray<NotLiving> =>
  [...all].toSorted((a, b) => REASONS.indexOf(a.reason) - REASONS.indexOf(b.reason))

/** The row of the project in a list of open projects. */
export const infoOf = ({ problems, reason, record }: NotLiving): ProjectInfo => {
  const { agents, config, conversation, name, trust } = record
  const known = { conversation, name, config, agents: [...agents.keys()] }
  return reason === "damaged"
    ? { ...known, problems: [], damage: problems[0]! }
    : { ...known, problems, ...(reason === "lost" ? { lost: true } : {}), ...waiting(trust) }
}

export const refusalOf = ({
  problems: [problem = "its file is missing"],
  reason,
  record
}: NotLiving): CommandRefused => {
  const { config, conversation, name } = record
  switch (reason) {
    case "closed":
      return ConversationRow.over({ conversation, project: name })
    case "damaged":
      return ConversationRow.damaged(conversation, problem)
    case "lost":
      return refuse(
        "conflict",
        `The conversation ${conversation} is not available: ${problem}`,
        `Fix ${config}, or close the conversation: agentd project close ${conversation}`
      )
  }
}

/** Closes a conversation whose config is lost, without starting its agents. Returns when the conversation is closed. */
export const end = (
  { agents, conversation, life, name }: ProjectRecord,
  supervisor: DynamicSupervisor.DynamicSupervisor,
  why: Closing | undefined
): Effect.Effect<void, StorageError, ActorSystem | AgentsEnvironment> =>
  Effect.scoped(
    Effect.gen(function* () {
      const config = Schema.decodeSync(ConversationConfig)({})
      const made = new ConversationActor(
        {
          conversation,
          system: yield* ActorSystem,
          config: () => config,
          livingAgents: () => [],
          leaving: Effect.succeed([]),
          ended: () => Effect.void,
          renewed: () => Effect.void,
          recoveredTo: (yield* AgentsEnvironment).recoveredTo
        },
        life,
        yield* Effect.scope
      )
      yield* supervisor.add(made.child)
      yield* made.create({ name, agents: [...agents.keys()] })
      if (why !== undefined) yield* made.ask({ _tag: "close_requested", ...why })
      yield* Deferred.await(made.closed)
      life.snapshot = made.snapshot
      yield* supervisor.remove(made.child.id)
    })
  )

/** How many recent runes are scanned for an earlier notification. */
const LOOK_BACK = 200

const readProject = reader(projectKinds)

/**
 * Creates the record of a damaged conversation. It contains the project's name and file if the rune with them can be
 * read.
 */
export const recordOf = Effect.fnUntraced(function* (conversation: string) {
  const log = yield* EventLog
  const named = log.tail({ stream: conversation, kinds: ["project.registered"] }, 1)
  const [first] = yield* Effect.orElseSucceed(named, () => [])
  const about = first === undefined ? undefined : readProject(first)
  return about?.kind === "project.registered"
    ? freshProject(conversation, about.payload.config, about.payload.name)
    : freshProject(conversation, "", conversation)
})

const violation = (conversation: string, message: string): RuneDraft => ({
  stream: DAEMON_STREAM,
  kind: "invariant.violated",
  actor: ConversationRecovery.conversationAddress(conversation),
  trigger: "recover",
  payload: { rule: "INV-HASH-VALID", severity: "FATAL", kind: "", actor: "", stream: conversation, message }
})

/**
 * Records the damage in the daemon's stream, unless it is already recorded there. The rune causes a mail to the user.
 */
export const tell = (conversation: string, message: string) =>
  Effect.catch(told(conversation, message), (error) =>
    Effect.logWarning(`nobody is mailed that ${conversation} is damaged: ${error.message}`)
  )

const told = Effect.fnUntraced(function* (conversation: string, message: string) {
  const log = yield* EventLog
  const before = yield* log.tail({ stream: DAEMON_STREAM, kinds: ["invariant.violated", "log.repaired"] }, LOOK_BACK)
  // damage reported before a repair is treated as repaired
  const since = before.slice(before.findLastIndex(({ kind }) => kind === "log.repaired") + 1)
  const isTold = since.some((rune) => {
    const own = readOwn(rune)
    return own?.kind === "invariant.violated" && own.payload.stream === conversation && own.payload.severity === "FATAL"
  })
  if (!isTold) yield* log.append([violation(conversation, message)])
})

/** Records in the daemon's stream that a user gave up a damaged conversation. The conversation is then closed. */
export const giveUp = Effect.fnUntraced(function* (
  { config, conversation, name }: ProjectRecord,
  { by, reason }: Closing
): Effect.fn.Return<ProjectRecord, StorageError, EventLog> {
  const log = yield* EventLog
  const [rune] = yield* log
    .append([
      {
        stream: DAEMON_STREAM,
        kind: "conversation.given_up",
        actor: ConversationRecovery.conversationAddress(conversation),
        payload: { conversation, config, name, by, reason }
      }
    ])
    .pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
  return givenUpIn(rune!)!
})
