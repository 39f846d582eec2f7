/** LiveConversations: implements the interface `Conversations` with the conversations of this daemon. */
import { Effect, Stream } from "effect"
import { Conversations, type Standing } from "../domain/Conversations.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import * as ConversationMachine from "../agents/machines/ConversationMachine.ts"

const standings: { readonly [state in ConversationMachine.State]: Standing } = {
  "[*]": "working",
  created: "working",
  active: "working",
  paused: "resting",
  suspended: "resting",
  closing: "resting",
  closed: "sealed",
  archived: "sealed"
}

export const make = (of: {
  readonly log: EventLog["Service"]
  /** Ids of all conversations. First waits until every conversation is loaded. */
  readonly known: Effect.Effect<ReadonlyArray<string>>
  /** The state of the conversation; undefined if the conversation is unknown. */
  readonly stateOf: (conversation: string) => ConversationMachine.State | undefined
}): Conversations["Service"] =>
  Conversations.of({
    known: of.known,
    standing: (conversation) => standings[of.stateOf(conversation) ?? "active"],
    changes: Stream.unwrap(
      Effect.map(of.log.head, (after) =>
        of.log.subscribe({ after, kinds: [...ConversationMachine.kinds] }).pipe(
          Stream.filter(({ to }) => to !== null),
          Stream.map(({ stream, to }) => ({
            conversation: stream,
            standing: standings[to as ConversationMachine.State]
          }))
        )
      )
    )
  })
