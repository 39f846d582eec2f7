/**
 * ConversationCommands: a user's commands on a whole conversation.
 *
 * Guarantees: Everything that a reply reports is durable. An error says what prevents the command, and names the
 * command that helps.
 */
import { Deferred, Effect } from "effect"
import { type Caller, type CommandRefused, type ConversationInfo, type Done, refuse } from "../domain/Messages.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import { SpendingLimits } from "../domain/SpendingLimits.ts"
import * as ConversationRecovery from "./ConversationRecovery.ts"
import * as ConversationRow from "./ConversationRow.ts"
import { type Entry, isClosed } from "./service/NameLookup.ts"
import { type Closing, refusalOf } from "./NotLiving.ts"
import type { Project } from "./Project.ts"
import * as ProjectStop from "../agents/machines/ProjectStop.ts"
import type { ProjectRecord } from "./Recovery.ts"

/** The row of a conversation that is not alive: it is closed or archived, or its config cannot be read. */
const recorded = ({ agents, config, conversation, life, name }: ProjectRecord): ConversationInfo =>
  ConversationRow.row({
    conversation,
    project: name,
    config,
    snapshot: life.snapshot,
    broken: life.broken,
    agents: [...agents.keys()],
    queued: [],
    spent: life.spent,
    limits: life.limits
  })

export const row = (entry: Entry): ConversationInfo => {
  if (entry._tag === "Open") return entry.project.row
  const info = recorded(entry.record)
  const [problem = "its file is missing"] = entry.problems
  if (entry.reason === "damaged") return { ...info, state: "damaged", detail: problem }
  return entry.reason === "closed" ? info : { ...info, detail: `${info.detail}; ${problem}` }
}

export const opened = (entry: Entry): Effect.Effect<Project, CommandRefused> =>
  entry._tag === "Open" ? Effect.succeed(entry.project) : refusalOf(entry)

const notNow = ({ life, conversation }: Project, remedy: string) =>
  refuse("conflict", `The conversation ${conversation} ${ConversationRow.standing(life.snapshot)}.`, remedy)

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

/** Says what happens to the work in progress. A run that is being started has no turn yet, and now cannot start one. */
const underWay = ({ members }: Project, turns: number, inFlight: "interrupt" | "complete"): string => {
  const starting = [...members.values()].filter(
    ({ agentScope }) => agentScope.worker()?.state === "Spawning" && agentScope.turn().state === "idle"
  ).length
  const parts = [
    ...(turns === 0
      ? []
      : [`${plural(turns, "turn")} ${inFlight === "interrupt" ? "being interrupted" : "may still finish"}`]),
    ...(starting === 0
      ? []
      : [
          `${plural(starting, "run")} ${starting === 1 ? "is being started: its turn waits" : "are being started: their turns wait"}`
        ])
  ]
  return parts.length === 0 ? "no turn is in progress" : parts.join("; ")
}

export const pause = Effect.fnUntraced(function* (
  entry: Entry,
  { inFlight, reason }: { readonly inFlight: "interrupt" | "complete"; readonly reason: string },
  { by }: Caller
): Effect.fn.Return<Done, CommandRefused | StorageError> {
  const project = yield* opened(entry)
  const { conversation, life, name } = project
  const { data, entered, state } = life.snapshot
  if (state === "paused") {
    if (inFlight === "interrupt") yield* life.interrupt(data.turnIds)
    return {
      eventId: entered,
      message: `${conversation} is paused already. Let it go on: agentd project resume ${name}`
    }
  }
  const done = yield* life.ask({ _tag: "pause_requested", by, reason, inFlight })
  if (done === undefined) {
    const [first] = project.members.keys()
    return yield* notNow(
      project,
      state === "created" && first !== undefined
        ? `Start one of its agents first: agentd start ${name}/${first}`
        : `agentd project show ${name}`
    )
  }
  const meanwhile = underWay(project, done.state.data.turnIds.length, inFlight)
  return {
    eventId: done.eventId,
    message: `${conversation} is paused; ${meanwhile}. Let it go on: agentd project resume ${name}`
  }
}, Effect.uninterruptible)

export const resume = Effect.fnUntraced(function* (
  entry: Entry,
  { by }: Caller
): Effect.fn.Return<Done, CommandRefused | StorageError> {
  const project = yield* opened(entry)
  const { conversation, life, name } = project
  const { state } = life.snapshot
  const done = yield* life.resume(by)
  if (done === undefined) {
    return yield* notNow(project, `It has nothing to resume. See its state: agentd project show ${name}`)
  }
  const anew = state === "suspended" ? ", with fresh counters and a fresh budget" : ""
  return { eventId: done.eventId, message: `${conversation} goes on${anew}.` }
}, Effect.uninterruptible)

const listed = (names: ReadonlyArray<string>): string => (names.length === 0 ? "none" : names.join(", "))

/**
 * Commands that stop and start a whole project. The stop is logged before the first agent ends, so that after a crash
 * the next daemon continues the stop. Agents that were already stopped before are not started again.
 */
type Answer = Effect.Effect<Done, CommandRefused | StorageError>

/** Stops the whole project. Returns when the agents have ended. */
export const stopAll = (project: Project, caller: Caller): Answer =>
  Effect.gen(function* () {
    const { registry, name, record } = project
    if (project.isOver !== undefined) return yield* project.isOver
    if (record.stopped === null) yield* project.say("project.stopped", caller.by)
    const { by = caller.by, eventId = 0 } = record.stopped ?? {}
    const ended = yield* registry.halt({ ...caller, by: ProjectStop.authorOf(by) })
    return {
      eventId,
      message: `${name} is stopped; ended: ${listed(ended)}. It stays so until: agentd project start ${name}`
    }
  }).pipe(Effect.uninterruptible)

/** Starts the whole project. Returns when the agents that were stopped with the project have started. */
export const startAll = (project: Project, caller: Caller): Answer =>
  Effect.gen(function* () {
    const { registry, name, record } = project
    if (project.isOver !== undefined) return yield* project.isOver
    const eventId =
      record.stopped === null ? project.life.snapshot.entered : yield* project.say("project.started", caller.by)
    const begun = yield* registry.wake(caller)
    const left = registry.still
    const rest =
      left.length === 0 ? "" : ` Stopped before, and left so: ${listed(left)}; agentd start ${name}/${left[0]!}`
    return { eventId, message: `${name} is started; begun: ${listed(begun)}.${rest}` }
  }).pipe(Effect.uninterruptible)

const farewell = ({ conversation, life }: ProjectRecord): Done => {
  const { data, entered } = life.snapshot
  const turns = `${data.turns} turn${data.turns === 1 ? "" : "s"}`
  return {
    eventId: entered,
    message: `${conversation} is closed after ${turns}: ${ConversationRow.spentInWords(life.spent)}. Its log is sealed.`
  }
}

export const close = Effect.fnUntraced(function* (
  entry: Entry,
  { force, reason }: { readonly reason: string; readonly force: boolean },
  { by }: Caller,
  closing: {
    readonly lost: (record: ProjectRecord, why: Closing) => Effect.Effect<void, StorageError>
    readonly damaged: (record: ProjectRecord, why: Closing) => Effect.Effect<number, StorageError>
  }
): Effect.fn.Return<Done, CommandRefused | StorageError> {
  const { record } = entry
  if (entry._tag === "NotLiving" && entry.reason === "damaged") {
    const { conversation } = record
    const eventId = yield* closing.damaged(record, { by, reason })
    return { eventId, message: `${conversation} is given up. Its log is not changed: agentd verify` }
  }
  if (entry._tag === "NotLiving" && entry.reason === "lost") yield* closing.lost(record, { by, reason })
  else {
    const project = yield* opened(entry)
    const { life, retired } = project
    if (force) yield* life.hurry
    if (life.snapshot.state !== "closing")
      yield* Effect.uninterruptible(life.ask({ _tag: "close_requested", by, reason }))
    yield* Deferred.await(retired)
  }
  return farewell(record)
})

/**
 * Archives a closed conversation. After a restart, the daemon reads only the rune `session.archived` instead of the
 * conversation's own runes.
 */
export const archive = Effect.fnUntraced(function* (
  entry: Entry,
  { by }: Caller,
  log: EventLog["Service"]
): Effect.fn.Return<Done, CommandRefused | StorageError> {
  const { record } = entry
  const { agents, config, conversation, life, name } = record
  if (!isClosed(entry)) {
    return yield* refuse(
      "conflict",
      `The conversation ${conversation} is open: only a closed one can be archived.`,
      `Close it first: agentd project close ${name}`
    )
  }
  const { entered, state } = life.snapshot
  const summary = { conversation, project: name, config, agents: [...agents.keys()], trusted: record.trust.hash }
  const spending = yield* Effect.flatMap(SpendingLimits, (allowances) => allowances.archived(conversation))
  const rune = yield* log
    .archive(conversation, {
      stream: "daemon",
      kind: "session.archived",
      actor: ConversationRecovery.conversationAddress(conversation),
      from: "closed",
      to: "archived",
      trigger: "archive_requested",
      payload: {
        event: { _tag: "archive_requested", by },
        conversation_id: conversation,
        summary: {
          ...summary,
          data: life.snapshot.data,
          spent: life.spent,
          limits: life.limits,
          ...(spending === undefined ? {} : { spending })
        }
      }
    })
    .pipe(
      Effect.catchTag("RuneRefused", ({ message }) =>
        refuse(
          "conflict",
          `${conversation} cannot be archived: ${message}`,
          "See what is wrong with its log: agentd verify"
        )
      )
    )
  if (rune === undefined) {
    return { eventId: entered, message: `${conversation} is ${state} already.` }
  }
  const found = ConversationRecovery.archived(rune)
  if (found !== undefined) life.snapshot = found.life.snapshot
  return { eventId: rune.eventId, message: `${conversation} is archived. Its runes stay in the log.` }
}, Effect.uninterruptible)

export const keepInForce = (project: Project, hash: string | undefined, { by }: Caller): Answer =>
  project.keepInForce(hash, by).pipe(
    Effect.catchTag("RuneRefused", (error) => Effect.die(error)),
    Effect.map((eventId): Done => ({
      eventId,
      message: `${project.name}: the version in force is kept. The change is put aside until the file changes again.`
    }))
  )
