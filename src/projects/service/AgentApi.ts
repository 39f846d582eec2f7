/**
 * AgentApi: the part of Agents for callers that know only a run or the id of a call. It handles reports and questions
 * from agents, and answers to their calls.
 */
import { type Context, Effect } from "effect"
import type { AgentReport } from "../../domain/AgentPort.ts"
import { type Caller, CommandRefused, type Done, refuse, type Report } from "../../domain/Messages.ts"
import { causeOf, type Rune, type RuneDraft } from "../../core/event-log/Rune.ts"
import type { EventLog, StorageError } from "../../core/event-log/EventLog.ts"
import type { AgentScope } from "../../agents/actors/AgentScope.ts"
import { asksFirst } from "../../agents/machines/CallRow.ts"
import type { Project } from "../Project.ts"
import type { Agents } from "./Agents.ts"
import * as LastingAnswer from "./LastingAnswer.ts"
import type { VoiceOf } from "../../agents/actors/AgentVoice.ts"
import { MAX_WAITING } from "../../agents/machines/Inbox.ts"

export interface Surroundings {
  readonly log: EventLog["Service"]
  /** With the user's own config and the file system, as at the daemon's start. */
  readonly context: Context.Context<never>
  /** All live agents. */
  readonly agentScopes: () => ReadonlyArray<AgentScope>
  readonly find: (of: Pick<VoiceOf, "agent" | "conversation">) => AgentScope | undefined
  readonly projectOf: (agentScope: AgentScope) => Project | undefined
  /** Sends an agent's report to the agent's parent. */
  readonly heard: (of: VoiceOf, rune: Rune) => Effect.Effect<void>
  readonly report: (report: AgentReport) => Effect.Effect<void>
}

type Voices = Pick<
  Agents["Service"],
  "calls" | "askedCall" | "answerCall" | "answerPreview" | "voice" | "report" | "ask" | "inbox"
>

/** The agent that made a call. `name`: the call's id or a unique prefix of it. */
const owner = (
  agentScopes: ReadonlyArray<AgentScope>,
  name: string
): readonly [AgentScope, string] | CommandRefused => {
  const exact = agentScopes.find((agentScope) => agentScope.knows(name))
  if (exact !== undefined) return [exact, name]
  const found = agentScopes.flatMap((agentScope) =>
    agentScope
      .calls()
      .filter(({ callId }) => name !== "" && callId.startsWith(name))
      .map(({ callId }) => [agentScope, callId] as const)
  )
  if (found.length === 1) return found[0]!
  return found.length === 0
    ? refuse("not_found", `There is no call "${name}".`, "See what waits for an answer: agentd approve")
    : refuse(
        "ambiguous",
        `"${name}" is the start of ${found.length} call ids.`,
        `Say which: ${found.map(([, callId]) => callId).join(", ")}`
      )
}

const written = (log: EventLog["Service"], draft: RuneDraft): Effect.Effect<Rune, CommandRefused | StorageError> =>
  log.append([draft]).pipe(
    Effect.map(([rune]) => rune!),
    Effect.catchTag("RuneRefused", (error) =>
      refuse("too_large", error.message, "Shorten the text, or put it in a file.")
    )
  )

/**
 * The agent that receives a report: the parent. Undefined if there is none, or if the work came from a channel or a
 * plan.
 */
const hearer = ({ find }: Surroundings, of: VoiceOf): AgentScope | undefined => {
  const speaker = find(of)
  const parent = speaker?.setting.parent
  const isTheirs = of.turnId !== null && speaker?.inbox().data.carried.some(({ alone }) => alone === true) === true
  return parent == null || isTheirs ? undefined : find({ ...of, agent: parent })
}

const reporting = Effect.fnUntraced(function* (
  around: Surroundings,
  of: VoiceOf,
  { evidence, status, summary }: Report
) {
  const { agent, conversation, turnId } = of
  const parent = hearer(around, of)
  if (parent !== undefined && parent.inbox().data.waiting.length >= MAX_WAITING) {
    return yield* refuse(
      "full",
      `${parent.name} already has ${MAX_WAITING} waiting messages.`,
      "Send everything in one report, later."
    )
  }
  const rune = yield* written(around.log, {
    stream: conversation,
    kind: "agent.reported",
    actor: `voice/${agent}`,
    trigger: "report",
    payload: { agent_id: agent, turn_id: turnId, parent_id: parent?.name ?? null, status, summary, evidence }
  })
  const { at, eventId } = rune
  const cause = causeOf(rune)
  yield* around.report({ _tag: "Reported", conversation, agent, eventId, cause, at, turnId, status, summary, evidence })
  yield* around.heard(of, rune)
  return { eventId, message: parent === undefined ? "Reported." : `Reported to ${parent.name}.` }
})

/** A call that waits for the user, with its project. */
const waiting = Effect.fnUntraced(function* (around: Surroundings, name: string) {
  const found = owner(around.agentScopes(), name)
  if (found instanceof CommandRefused) return yield* found
  const [agentScope, callId] = found
  const asked = agentScope.asked(callId)
  if (asked instanceof CommandRefused) return yield* asked
  const project = around.projectOf(agentScope)
  return project === undefined
    ? yield* refuse("closed", `${callId} belongs to a project that is closed.`, "See what waits: agentd approve")
    : { asked, of: { agentScope, callId, project } }
})

const OVER = refuse(
  "closed",
  "This run has ended, or is not a run of agentd.",
  "Only an agent's run starts agentd mcp. In a terminal, use the other commands: agentd --help"
)

export const make = (around: Surroundings): Voices => ({
  calls: Effect.sync(() =>
    around
      .agentScopes()
      .flatMap((agentScope) => agentScope.calls())
      .toSorted(asksFirst)
  ),
  askedCall: (name) =>
    Effect.gen(function* () {
      const { asked, of } = yield* waiting(around, name)
      return yield* LastingAnswer.shown(of, asked)
    }).pipe(Effect.provideContext(around.context)),
  answerCall: (name, { lasting, ...said }, caller: Caller) =>
    Effect.suspend(() => {
      const found = owner(around.agentScopes(), name)
      if (found instanceof CommandRefused) return Effect.fail(found)
      const [agentScope, callId] = found
      if (lasting === undefined || said.behavior === "deny") return agentScope.answer(callId, said, caller)
      return Effect.flatMap(waiting(around, name), ({ of }) => LastingAnswer.answer(of, lasting, said, caller))
    }).pipe(Effect.provideContext(around.context)),
  answerPreview: (name, lasting) =>
    Effect.flatMap(waiting(around, name), ({ of }) => LastingAnswer.preview(of, lasting)).pipe(
      Effect.provideContext(around.context)
    ),
  voice: (runId) =>
    Effect.suspend(() => {
      for (const agentScope of around.agentScopes()) {
        const voice = agentScope.voice(runId)
        if (voice !== undefined) return Effect.succeed(voice)
      }
      return Effect.fail(OVER)
    }),
  report: (of, report) => Effect.uninterruptible(reporting(around, of, report)),
  ask: (of, question) =>
    Effect.suspend(() => {
      const agentScope = around.find(of)
      if (agentScope === undefined) return Effect.fail(OVER)
      return Effect.map(agentScope.tellInbox({ _tag: "Ask", question, turnId: of.turnId }), ({ eventId }): Done => ({
        eventId,
        message: "A person is asked; the answer will come as a message."
      }))
    }),
  inbox: (of) => Effect.sync(() => around.find(of)?.messages() ?? [])
})
