/**
 * SetApart: a conversation whose stream is damaged or does not fold: known, named to people, and nothing of it lives.
 *
 * Guarantees: nothing is written to the damaged stream; the daemon's own stream says what is wrong, once, and that a
 * person has given the conversation up. A conversation that was given up is over: its project can begin a new one.
 */
import { Effect } from "effect"
import { projectKinds } from "../domain/ProjectKinds.ts"
import type { ProjectInfo } from "../domain/Messages.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import { readOwn } from "../core/event-log/OwnKinds.ts"
import { DAEMON_STREAM, type RuneDraft } from "../core/event-log/Rune.ts"
import * as ConversationRecovery from "./ConversationRecovery.ts"
import { freshProject, givenUpIn, type ProjectRecord } from "./Recovery.ts"

export interface Damaged {
  readonly record: ProjectRecord
  /** The damage of its stream, in words. */
  readonly message: string
}

export const infoOf = ({ message, record }: Damaged): ProjectInfo => {
  const { agents, config, conversation, name } = record
  return { conversation, name, config, agents: [...agents.keys()], problems: [], damage: message }
}

/** Runes among which it is looked for whether people were told. */
const LOOK_BACK = 200

const readProject = reader(projectKinds)

/** As far as the rune that names its project can be read. */
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

/** Says it in the daemon's stream, where that does not say it already: people are mailed. */
export const tell = (conversation: string, message: string) =>
  Effect.catch(told(conversation, message), (error) =>
    Effect.logWarning(`nobody is mailed that ${conversation} is damaged: ${error.message}`)
  )

const told = Effect.fnUntraced(function* (conversation: string, message: string) {
  const log = yield* EventLog
  const before = yield* log.tail({ stream: DAEMON_STREAM, kinds: ["invariant.violated", "log.repaired"] }, LOOK_BACK)
  // what was told before a repair was mended by it
  const since = before.slice(before.findLastIndex(({ kind }) => kind === "log.repaired") + 1)
  const isTold = since.some((rune) => {
    const own = readOwn(rune)
    return own?.kind === "invariant.violated" && own.payload.stream === conversation && own.payload.severity === "FATAL"
  })
  if (!isTold) yield* log.append([violation(conversation, message)])
})

/** Says in the daemon's stream that the conversation is over. */
export const giveUp = Effect.fnUntraced(function* (
  { config, conversation, name }: ProjectRecord,
  { by, reason }: { readonly by: string; readonly reason: string }
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
