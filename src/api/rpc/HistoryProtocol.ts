/** HistoryProtocol: procedures that show what happened, and which notifications were sent about it. */
import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { AlertRow, MOST_ALERTS, NotifyRow } from "../../domain/AlertMessages.ts"
import * as Bounds from "../../board/Bounds.ts"
import { ExplainReply } from "../../board/DaemonMessages.ts"
import { AtOnce, error, input, procedure } from "./Procedure.ts"
import { Causes, question, TimelinePage } from "../../board/TimelineMessages.ts"

export const histories = [
  /** Newest first. `failed`: only those that were not delivered. */
  procedure(
    Rpc.make("Alerts", {
      payload: input({ count: Bounds.between(1, MOST_ALERTS, "Ask for fewer."), failed: Schema.Boolean }),
      success: Schema.Array(AlertRow),
      error
    }).annotate(AtOnce, true),
    ({ daemon }, options) => daemon.alerts(options)
  ),
  /** The notification channels of the user's own config, each with whether it could be used. */
  procedure(Rpc.make("NotifyList", { success: Schema.Array(NotifyRow), error }), ({ daemon }) => daemon.notifyList),
  /** Sends a message through a channel now, and returns the receiver's answer. */
  procedure(
    Rpc.make("NotifyTest", {
      payload: input({ name: Bounds.name }),
      success: Schema.Struct({ message: Schema.String }),
      error
    }),
    ({ daemon }, { name }) => daemon.notifyTest(name)
  ),
  /** Why a goal or an agent is in its state: `name` is an agent if one has this name. */
  procedure(
    Rpc.make("Explain", { payload: input(Bounds.named), success: ExplainReply, error }),
    ({ inquiries }, { caller, name }) => inquiries.explain(name, caller)
  ),
  /** Runes by their position among the matches of a filter, and their number over time. */
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
