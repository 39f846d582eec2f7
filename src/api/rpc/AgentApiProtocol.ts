/**
 * AgentApiProtocol: procedures that a managed agent can call for itself, through `agentd mcp`. The agent identifies
 * itself by the id of its run. On its run's own socket, it cannot name another run.
 *
 * Guarantees: each procedure first checks which agent the calling run belongs to, and whether the run is in progress. A
 * run that has ended is refused. An action that is not listed in the field `may` of the agent's config is refused, and
 * the refusal names the field. No procedure has an effect outside the agent's own conversation. On the control socket
 * these checks tell agents apart. They cannot stop another process of the same user, which can connect to that socket
 * anyway.
 */
import { AttachedFile } from "../../runs/AttachedFile.ts"
import { Effect, Schema } from "effect"
import { Rpc } from "effect/rpc"
import type { Agents } from "../../projects/service/Agents.ts"
import type { InboxMessage, VoiceOf } from "../../agents/actors/AgentVoice.ts"
import { type Voice, VOICES } from "../../config/AgentConfig.ts"
import { type Caller, Done, refuse, Report } from "../../domain/Messages.ts"
import * as Bounds from "../../board/Bounds.ts"
import { spawnRequest } from "./ConversationProtocol.ts"
import { Limits } from "../../board/Limits.ts"
import { error, input, procedure, Speaks } from "./Procedure.ts"
import * as Suggestion from "./Suggestion.ts"

const run = { runId: Bounds.name }

const report = Schema.Struct({
  ...Report.fields,
  summary: Bounds.text(),
  evidence: Bounds.list(
    Bounds.line(Limits.evidence.length),
    Limits.evidence.count,
    "Name only those that prove the result."
  )
})

export const VoiceInfo = Schema.Struct({
  conversation: Schema.String,
  agent: Schema.String,
  may: Schema.Array(Schema.Literals(VOICES))
})
export type VoiceInfo = typeof VoiceInfo.Type

/** The messages of an inbox that fit into one reply. */
export const VoiceInboxReply = Schema.Struct({
  /** The messages, oldest first. */
  messages: Schema.Array(
    Schema.Struct({
      messageId: Schema.String,
      from: Schema.String,
      text: Schema.String,
      at: Schema.Finite,
      /** True if the agent's current turn already contains the message. */
      carried: Schema.Boolean,
      /** Files attached to the message. The agent receives them in the turn that contains the message. */
      files: Schema.optional(Schema.Array(AttachedFile))
    })
  ),
  /** Number of further messages that did not fit into the reply. */
  more: Schema.Int
})
export type VoiceInboxReply = typeof VoiceInboxReply.Type

/** Maximum total size of the message texts in one reply, in bytes. */
const INBOX_BYTES = 2 * Limits.textBytes

/** The oldest messages, as many as fit into one reply, but at least one. */
export const fitting = (messages: ReadonlyArray<InboxMessage>): VoiceInboxReply => {
  let [size, count] = [0, 0]
  for (const { text } of messages) {
    size += Buffer.byteLength(text)
    if (count > 0 && size > INBOX_BYTES) break
    count++
  }
  return { messages: messages.slice(0, count), more: messages.length - count }
}

const forbidden = (of: VoiceOf, voice: Voice, config: string | null) => {
  const field = `agents.${of.agent}.may`
  return refuse(
    "not_allowed",
    `${of.agent} may not do this: "${voice}" is not in ${field}.`,
    `Continue without it, or let a person add "${voice}" to ${field}${config === null ? "" : ` in ${config}`}.`
  )
}

/**
 * The first step of each procedure: finds out which agent calls, and checks its permission. Names are looked up in the
 * agent's conversation.
 */
export const speaking = Effect.fnUntraced(function* (agents: Agents["Service"], runId: string, voice: Voice) {
  const of = yield* agents.voice(runId)
  const by = `agent:${of.agent}`
  const home = yield* Effect.option(agents.conversation(of.conversation, { by, config: null }))
  const config = home._tag === "Some" ? home.value.config : null
  if (!of.may.includes(voice)) return yield* forbidden(of, voice, config)
  const caller: Caller = { by, config }
  return { of, caller }
})

/** Checks that `name` is another agent in the same conversation. */
const neighbour = Effect.fnUntraced(function* (agents: Agents["Service"], of: VoiceOf, name: string, caller: Caller) {
  const found = yield* agents
    .agent(name, caller)
    .pipe(Effect.catchTag("CommandRefused", (error) => Effect.flip(Suggestion.ofAgent(agents, name, caller, error))))
  const others = (yield* agents.all)
    .filter(({ agent, conversation }) => conversation === of.conversation && agent !== of.agent)
    .map(({ agent }) => agent)
  const remedy = others.length === 0 ? "There is no other agent here." : `Message one of these: ${others.join(", ")}.`
  if (found.conversation !== of.conversation) {
    return yield* refuse("not_allowed", `${name} belongs to another conversation.`, remedy)
  }
  if (found.agent === of.agent) {
    return yield* refuse("invalid", "A message to yourself would only come back to you.", remedy)
  }
})

export const voices = [
  procedure(
    Rpc.make("Voice", { payload: input(run), success: VoiceInfo, error }).annotate(Speaks, "speaks"),
    ({ agents }, { runId }) =>
      Effect.map(agents.voice(runId), ({ agent, conversation, may }) => ({ agent, conversation, may }))
  ),
  procedure(
    Rpc.make("VoiceInbox", { payload: input(run), success: VoiceInboxReply, error }).annotate(Speaks, "speaks"),
    ({ agents }, { runId }) =>
      Effect.flatMap(speaking(agents, runId, "inbox"), ({ of }) => Effect.map(agents.inbox(of), fitting))
  ),
  /** Sends a message to another agent in the caller's conversation, by the agent's name. */
  procedure(
    Rpc.make("VoiceMessage", {
      payload: input({ ...run, agent: Bounds.name, text: Bounds.text() }),
      success: Done,
      error
    }).annotate(Speaks, "speaks"),
    Effect.fnUntraced(function* ({ agents }, { agent, runId, text }) {
      const { caller, of } = yield* speaking(agents, runId, "message")
      yield* neighbour(agents, of, agent, caller)
      return yield* agents.send(agent, { text, how: "queue" }, caller)
    })
  ),
  procedure(
    Rpc.make("VoiceReport", { payload: input({ ...run, report }), success: Done, error }).annotate(Speaks, "speaks"),
    ({ agents }, { report, runId }) =>
      Effect.flatMap(speaking(agents, runId, "report"), ({ of }) => agents.report(of, report))
  ),
  procedure(
    Rpc.make("VoiceAsk", { payload: input({ ...run, question: Bounds.text() }), success: Done, error }).annotate(
      Speaks,
      "speaks"
    ),
    ({ agents }, { question, runId }) =>
      Effect.flatMap(speaking(agents, runId, "ask"), ({ of }) => agents.ask(of, question))
  ),
  procedure(
    Rpc.make("VoiceSpawn", { payload: input({ ...run, request: spawnRequest }), success: Done, error }).annotate(
      Speaks,
      "speaks"
    ),
    ({ agents }, { request, runId }) =>
      Effect.flatMap(speaking(agents, runId, "spawn"), ({ caller, of }) => agents.spawn(of.agent, request, caller))
  )
] as const
