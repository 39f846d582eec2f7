/** HistoryProtocol: procedures that show past events, and the notifications that were sent about them. */
import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { AlertRow, MOST_ALERTS, NotifyRow } from "../../domain/AlertMessages.ts"
import * as Bounds from "../../board/Bounds.ts"
import { ExplainReply } from "../../board/DaemonMessages.ts"
import { AtOnce, error, input, procedure } from "./Procedure.ts"
import { Causes, question, TimelinePage } from "../../board/TimelineMessages.ts"

export const histories = [
  /** Lists alerts, newest first. `failed`: only those that could not be delivered. */
  procedure(
    Rpc.make("Alerts", {
      payload: input({ count: Bounds.between(1, MOST_ALERTS, "Ask for fewer."), failed: Schema.Boolean }),
      success: Schema.Array(AlertRow),
      error
    }).annotate(AtOnce, true),
    ({ daemon }, options) => daemon.alerts(options)
  ),
  /** Lists the notification channels in the user's own config, and whether each of them works. */
  procedure(Rpc.make("NotifyList", { success: Schema.Array(NotifyRow), error }), ({ daemon }) => daemon.notifyList),
  /** Sends a test message through a notification channel, and returns the receiver's answer. */
  procedure(
    Rpc.make("NotifyTest", {
      payload: input({ name: Bounds.name }),
      success: Schema.Struct({ message: Schema.String }),
      error
    }),
    ({ daemon }, { name }) => daemon.notifyTest(name)
  ),
  /** Explains how a goal or an agent got into its state. If an agent has this name, the agent is explained. */
  procedure(
    Rpc.make("Explain", { payload: input(Bounds.named), success: ExplainReply, error }),
    ({ inquiries }, { caller, name }) => inquiries.explain(name, caller)
  ),
  /** Runes that match a filter, by their position among the matches, and the number of matches over time. */
  procedure(
    Rpc.make("Timeline", { payload: input(question), success: TimelinePage, error }),
    ({ inquiries }, question) => inquiries.timeline.page(question)
  ),
  procedure(
    Rpc.make("Causes", {
      payload: input({ eventId: Schema.Int, internal: Schema.optionalKey(Schema.Boolean) }),
      success: Causes,
      error
    }),
    ({ inquiries }, { eventId, internal }) => inquiries.timeline.causes(eventId, internal)
  )
] as const
