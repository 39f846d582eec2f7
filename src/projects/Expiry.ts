/**
 * Expiry: erases the text of prompts, messages and tool calls after the time that the config sets. It erases rune by
 * rune, in batches of limited size.
 *
 * Guarantees: Text that is still needed is kept: waiting messages, unanswered messages that need the user's
 * decision, and messages of an unfinished turn. All runes since the start of such a turn are kept too, including its
 * calls and approvals. A project that is closing, or whose config or log cannot be read, is skipped. The next start of
 * the daemon completes an interrupted erasure (EventLog.erase).
 */
import { Clock, Duration, Effect, Stream } from "effect"
import { textsIn } from "../core/event-log/Erasure.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { isActive } from "../agents/machines/AgentStates.ts"
import type { AgentScope } from "../agents/actors/AgentScope.ts"
import { inboxKinds, toolKinds } from "../agents/machines/AgentKinds.ts"
import { turnKinds } from "../agents/machines/TurnKinds.ts"
import type { MessageFiles } from "../agents/prompt/MessageFiles.ts"
import * as RetainedFiles from "./service/RetainedFiles.ts"
import type { Projects } from "./Projects.ts"

/** Maximum number of runes of one conversation that one batch erases. */
export const BATCH = 100

export const ERASER = "agentd keepPrompts"

const KINDS: ReadonlyArray<string> = [
  ...Object.keys(inboxKinds),
  ...Object.keys(turnKinds),
  ...Object.keys(toolKinds),
  "worker.moved",
  "run.output",
  "run.thought",
  "run.background",
  "run.notice",
  "agent.asked",
  "agent.reported"
]

/** The parts of a conversation that are still needed. */
interface Needed {
  readonly messages: ReadonlySet<string>
  /** All runes since this time are still needed, ms since the epoch. */
  readonly since: number
}

/**
 * Whether a rune can be erased. Of a worker's runes, only those with a prompt are erased: the others can contain the
 * reason for a stop, which is still needed.
 */
const mayGo = ({ kind, payload, trigger }: Rune): boolean =>
  (kind !== "worker.moved" || trigger === "PromptReady") && textsIn(payload).length > 0

/** States in which a worker needs no prompt. */
const RESTS: ReadonlySet<string> = new Set(["Stopped", "CoolingDown", "SessionComplete"])

const neededBy = (agentScopes: ReadonlyArray<AgentScope>): Needed => {
  const messages = new Set<string>()
  let since = Number.POSITIVE_INFINITY
  for (const agentScope of agentScopes) {
    const turn = agentScope.turn()
    const isUndone = isActive(turn) || turn.state === "interrupted" || turn.data.unfinished.length > 0
    for (const { first, messageId } of RetainedFiles.neededMessages({ inbox: agentScope.inbox(), turn }))
      messages.add(first ?? messageId)
    for (const messageId of turn.data.unfinished) messages.add(messageId)
    if (isUndone) since = Math.min(since, turn.data.startedAt ?? 0)
    const worker = agentScope.worker()
    if (worker !== undefined && !RESTS.has(worker.state)) since = Math.min(since, worker.at)
    for (const call of agentScope.calls()) since = Math.min(since, call.since)
  }
  return { messages, since }
}

const messageIn = ({ payload }: Rune): string | undefined => {
  const { event } = payload as { readonly event?: { readonly message?: { readonly messageId?: string } } }
  return event?.message?.messageId
}

/**
 * Maximum number of stored ids of runes that cannot be erased. If there are more such runes, agentd tries in vain to
 * erase some of them again.
 */
const MAX_KEPT = 100_000

export const make = (projects: Projects, log: EventLog["Service"], files: MessageFiles) => {
  /** Up to which event id each stream is already erased. Later batches do not read the runes up to it again. */
  const places = new Map<string, number>()
  /** Ids of runes that cannot be erased, because a state still needs their text. */
  const kept = new Set<number>()

  /** Remembers a rune that the log refused to erase, so that its erasure is not tried again. */
  const stays = (eventId: number): void => {
    if (kept.size >= MAX_KEPT) kept.delete(kept.values().next().value!)
    kept.add(eventId)
  }

  const batch = Effect.fnUntraced(function* (
    stream: string,
    before: number,
    needed: Needed
  ): Effect.fn.Return<number, StorageError> {
    const after = places.get(stream) ?? 0
    let last = after
    let isHeld = false
    const now = yield* Clock.currentTimeMillis
    const found = yield* log.read({ stream, kinds: KINDS, after }).pipe(
      Stream.takeWhile(({ at }) => at > now || at < Math.min(before, needed.since)),
      // a rune with a timestamp in the future is treated as if it were as old as the next rune
      Stream.mapAccum(
        (): ReadonlyArray<Rune> => [],
        (ahead, rune) => (rune.at > now ? [[...ahead, rune], []] : [[], [...ahead, rune]])
      ),
      Stream.filter((rune) => {
        const id = messageIn(rune)
        const isNeeded = id !== undefined && needed.messages.has(id)
        if (isNeeded) isHeld = true
        const goes = !isNeeded && !kept.has(rune.eventId) && mayGo(rune)
        if (!isHeld) last = rune.eventId
        return goes
      }),
      Stream.take(BATCH),
      Stream.runCollect
    )
    yield* Effect.forEach(
      found,
      ({ eventId }) =>
        Effect.catchTag(Effect.asVoid(log.erase(eventId, ERASER)), "RuneRefused", () =>
          Effect.sync(() => stays(eventId))
        ),
      { discard: true }
    )
    // after a full batch, the stream is known to be erased only up to the last rune of the batch
    if (!isHeld) places.set(stream, found.length === BATCH ? found.at(-1)!.eventId : last)
    return found.length
  })

  /**
   * Erases one batch of expired runes in each conversation. The conversation's config says when text expires; otherwise
   * `usual` applies. Returns the number of runes that were tried.
   */
  return Effect.fnUntraced(function* (usual: Duration.Duration | undefined): Effect.fn.Return<number, StorageError> {
    yield* RetainedFiles.sweep(projects, log, files)
    const now = yield* Clock.currentTimeMillis
    let settled = 0
    for (const [conversation, { config, isOver, members, record }] of projects.living) {
      const keep = config.keepPrompts ?? usual
      const isBroken = [...record.agents.values()].some(({ broken }) => broken !== undefined)
      if (keep === undefined || isBroken || isOver !== undefined) continue
      const needed = neededBy([...members.values()].map(({ agentScope }) => agentScope))
      settled += yield* batch(conversation, now - Duration.toMillis(keep), needed)
    }
    for (const { reason, record } of projects.notLiving) {
      if (reason !== "closed") continue
      const { conversation } = record
      const keep = projects.configOf(conversation)?.keepPrompts ?? usual
      if (keep === undefined) continue
      settled += yield* batch(conversation, now - Duration.toMillis(keep), {
        messages: new Set(),
        since: Number.POSITIVE_INFINITY
      })
    }
    return settled
  })
}
