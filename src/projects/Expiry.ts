/**
 * Expiry: texts of prompts, messages and tools are kept for the time that the config says, then erased
 * by the log, one rune after the other, a bounded number at a time.
 *
 * Guarantees: what is still needed stays: a message that waits, that came to no answer and waits for
 * a person, or that a turn carries which is not done, and all since such a turn began, its calls and their approvals among that; a project whose
 * config or log cannot be read, or that is being closed, is left alone; what was begun is finished
 * by the next start (EventLog.erase).
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
import * as NeededFiles from "./service/NeededFiles.ts"
import type { Projects } from "./Projects.ts"

/** Most runes of one conversation in a batch. */
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

/** The part of a conversation that is still needed. */
interface Needed {
  /** Messages by their ids. */
  readonly messages: ReadonlySet<string>
  /** Runes since then, ms since the epoch. */
  readonly since: number
}

/** Of a worker only the prompt goes: why it stopped is its state. */
const mayGo = ({ kind, payload, trigger }: Rune): boolean =>
  (kind !== "worker.moved" || trigger === "PromptReady") && textsIn(payload).length > 0

/** States of a worker in which it needs no prompt. */
const RESTS: ReadonlySet<string> = new Set(["Stopped", "CoolingDown", "SessionComplete"])

const neededBy = (trees: ReadonlyArray<AgentScope>): Needed => {
  const messages = new Set<string>()
  let since = Number.POSITIVE_INFINITY
  for (const tree of trees) {
    const turn = tree.turn()
    const isUndone = isActive(turn) || turn.state === "interrupted" || turn.data.unfinished.length > 0
    for (const { first, messageId } of NeededFiles.neededMessages({ inbox: tree.inbox(), turn }))
      messages.add(first ?? messageId)
    for (const messageId of turn.data.unfinished) messages.add(messageId)
    if (isUndone) since = Math.min(since, turn.data.startedAt ?? 0)
    const worker = tree.worker()
    if (worker !== undefined && !RESTS.has(worker.state)) since = Math.min(since, worker.at)
    for (const call of tree.calls()) since = Math.min(since, call.since)
  }
  return { messages, since }
}

const messageIn = ({ payload }: Rune): string | undefined => {
  const { event } = payload as { readonly event?: { readonly message?: { readonly messageId?: string } } }
  return event?.message?.messageId
}

/** Runes that the log does not erase, as many as are remembered: beyond them a stream may be looked at in vain. */
const MAX_KEPT = 100_000

export const make = (projects: Projects, log: EventLog["Service"], files: MessageFiles) => {
  /** The place in each stream before which nothing is left to erase: it saves reading, and is found anew at a start. */
  const places = new Map<string, number>()
  /** Runes whose texts are part of a state. */
  const kept = new Set<number>()

  /** Remembers a rune that is not asked for again. */
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
      // a rune that a clock far ahead has stamped is as old as the next one
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
    // beyond a full batch nothing was looked at for certain
    if (!isHeld) places.set(stream, found.length === BATCH ? found.at(-1)!.eventId : last)
    return found.length
  })

  /** Erases a batch of each conversation whose config says so, else of all for which `usual` does; answers how many runes were dealt with. */
  return Effect.fnUntraced(function* (usual: Duration.Duration | undefined): Effect.fn.Return<number, StorageError> {
    yield* NeededFiles.sweep(projects, log, files)
    const now = yield* Clock.currentTimeMillis
    let settled = 0
    for (const [conversation, { config, isOver, members, record }] of projects.living) {
      const keep = config.keepPrompts ?? usual
      const isBroken = [...record.agents.values()].some(({ broken }) => broken !== undefined)
      if (keep === undefined || isBroken || isOver !== undefined) continue
      const needed = neededBy([...members.values()].map(({ tree }) => tree))
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
