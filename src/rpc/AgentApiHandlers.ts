/**
 * AgentApiHandlers: what a managed agent's own requests do.
 *
 * Guarantees: each asks the agents first whose run it is, and whether it is under
 * way; then the agent's config whether it may.
 */
import { Effect } from "effect"
import { Agents, type InboxMessage, type VoiceOf } from "../agents/Agents.ts"
import type { Voice } from "../config/AgentConfig.ts"
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import { Limits } from "./Limits.ts"
import * as Suggestion from "./Suggestion.ts"
import { group, type VoiceInboxReply } from "./AgentApiProtocol.ts"

/** Of an inbox's texts, in one answer. */
const INBOX_BYTES = 2 * Limits.textBytes

/** As much as fits, oldest first, and one at least. */
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
  return new CommandRefused({
    message: `${of.agent} may not do this: "${voice}" is not in ${field}.`,
    remedy: `Go on without it, or let a person add "${voice}" to ${field}${config === null ? "" : ` in ${config}`}.`
  })
}

/** Checks who speaks, and whether the agent may: the first step of each procedure. Names are looked up in its conversation. */
export const speaking = Effect.fnUntraced(function* (agents: Agents["Service"], runId: string, voice: Voice) {
  const of = yield* agents.voice(runId)
  const by = `agent:${of.agent}`
  const home = yield* Effect.option(agents.conversation(of.conversation, { by, config: null }))
  const config = home._tag === "Some" ? home.value.config : null
  if (!of.may.includes(voice)) return yield* forbidden(of, voice, config)
  const caller: Caller = { by, config }
  return { of, caller }
})

/** Another agent of the same conversation. */
const neighbour = Effect.fnUntraced(function* (agents: Agents["Service"], of: VoiceOf, name: string, caller: Caller) {
  const found = yield* agents
    .agent(name, caller)
    .pipe(Effect.catchTag("CommandRefused", (error) => Effect.flip(Suggestion.ofAgent(agents, name, caller, error))))
  const others = (yield* agents.all)
    .filter(({ agent, conversation }) => conversation === of.conversation && agent !== of.agent)
    .map(({ agent }) => agent)
  const remedy = others.length === 0 ? "There is nobody else here." : `Message one of these: ${others.join(", ")}.`
  if (found.conversation !== of.conversation) {
    return yield* new CommandRefused({ message: `${name} belongs to another conversation.`, remedy })
  }
  if (found.agent === of.agent) {
    return yield* new CommandRefused({ message: "A message to yourself would only come back to you.", remedy })
  }
})

export const layer = group.toLayer(
  Effect.map(Agents, (agents) =>
    group.of({
      Voice: ({ runId }) =>
        Effect.map(agents.voice(runId), ({ agent, conversation, may }) => ({ agent, conversation, may })),
      VoiceInbox: ({ runId }) =>
        Effect.flatMap(speaking(agents, runId, "inbox"), ({ of }) => Effect.map(agents.inbox(of), fitting)),
      VoiceMessage: Effect.fnUntraced(function* ({ agent, runId, text }) {
        const { caller, of } = yield* speaking(agents, runId, "message")
        yield* neighbour(agents, of, agent, caller)
        return yield* agents.send(agent, { text, how: "queue" }, caller)
      }),
      VoiceReport: ({ report, runId }) =>
        Effect.flatMap(speaking(agents, runId, "report"), ({ of }) => agents.report(of, report)),
      VoiceAsk: ({ question, runId }) =>
        Effect.flatMap(speaking(agents, runId, "ask"), ({ of }) => agents.ask(of, question)),
      VoiceSpawn: ({ request, runId }) =>
        Effect.flatMap(speaking(agents, runId, "spawn"), ({ caller, of }) => agents.spawn(of.agent, request, caller))
    })
  )
)
