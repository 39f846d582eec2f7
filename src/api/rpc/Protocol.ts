/**
 * Protocol: all commands of the daemon, as one group of procedures. The CLI, the HTTP interface and the tests call only
 * these. Each procedure is declared together with its implementation. A new procedure is added here, or in the file for
 * its topic, and nowhere else.
 *
 * Guarantees: every input has limits. A value beyond a limit is refused, with the field's name and a remedy. A reply
 * reports only durable changes. A reply never contains a rune of visibility `secret`.
 */
import { Effect, Schema, Stream } from "effect"
import { Rpc } from "effect/rpc"
import {
  AgentInfo,
  AnswerPreview,
  AskedCall,
  CommandRefused,
  ConfigChangeInfo,
  OffersInfo,
  PlateInfo,
  ProjectInfo
} from "../../domain/Messages.ts"
import { ANSWER_SCOPES, MAX_OFFERS } from "../../approvals/AnswerScope.ts"
import { Board, BoardNews } from "../../domain/BoardMessages.ts"
import { DiffInfo } from "../../domain/DiffMessages.ts"
import { MAX_FILE, MAX_FILES } from "../../runs/AttachedFile.ts"
import { Rune } from "../../core/event-log/Rune.ts"
import { access } from "./AccessProtocol.ts"
import { AccountRow } from "../../board/AccountMessages.ts"
import { COST_KEYS, CostRow, LimitRow } from "../../board/CostMessages.ts"
import { channels, voiceChannel } from "./ChannelProtocol.ts"
import { conversations } from "./ConversationProtocol.ts"
import { Check, Erasable, Greeting, selection, StatusReply, VerifyEvent, WhyReply } from "../../board/DaemonMessages.ts"
import { goals } from "./GoalProtocol.ts"
import { schedules } from "./ScheduleProtocol.ts"
import { histories } from "./HistoryProtocol.ts"
import * as Bounds from "../../board/Bounds.ts"
import { Limits } from "../../board/Limits.ts"
import {
  About,
  AtOnce,
  command,
  error,
  Gate,
  type Gated,
  groupOf,
  input,
  procedure,
  question,
  settled,
  Speaks,
  whole
} from "./Procedure.ts"
import { AgentReach } from "../../board/ReachMessages.ts"
import { voices } from "./AgentApiProtocol.ts"
import { TreeRow } from "../../board/TreeMessages.ts"
import { WaitingReply } from "../../board/WaitingMessages.ts"

/** The first call on a connection. It is refused if the protocol versions of client and daemon are incompatible. */
const hello = procedure(
  Rpc.make("Hello", {
    payload: input({
      protocol: Schema.Int,
      version: Bounds.name,
      /** Process id of the caller; an older client does not send it. */
      pid: Schema.optionalKey(Bounds.pid)
    }),
    success: Greeting,
    error: CommandRefused
  })
    .annotate(AtOnce, true)
    .annotate(Speaks, "introduces"),
  ({ inquiries }, peer) => inquiries.greeting(peer)
)

/** The scope in which an approval keeps a rule, and the number of the offer, counted from 1. */
const lasting = Schema.Struct({
  scope: Schema.Literals(ANSWER_SCOPES),
  offer: Bounds.between(1, MAX_OFFERS, "See the offers of the call: agentd approve CALL")
})

/** Procedures for the daemon, single agents, sessions, and the log. */
const daemon = [
  hello,
  procedure(Rpc.make("Status", { success: StatusReply }).annotate(AtOnce, true), ({ inquiries }) => inquiries.status),
  procedure(
    Rpc.make("Register", {
      payload: input({
        config: Bounds.path,
        caller: Bounds.caller,
        /**
         * Hash of the config text to which the caller agrees; null if the caller agrees to none. An older client omits
         * it, and thereby agrees to the current file.
         */
        trust: Schema.optionalKey(Schema.NullOr(Bounds.name))
      }),
      success: ProjectInfo,
      error
    }).annotate(Speaks, "decides"),
    ({ inquiries }, { caller, config, trust }) =>
      inquiries.register(
        config,
        caller,
        trust === undefined ? "as it stands" : trust === null ? "nothing" : { hash: trust }
      )
  ),
  /**
   * Shows the change to a project's config that waits for approval. `name`: the project or its conversation; if empty,
   * the caller's own project.
   */
  procedure(question("ConfigChange", ConfigChangeInfo, "conversation"), ({ agents }, { caller, name }) =>
    agents.configChange(name, caller)
  ),
  /**
   * Rejects a config change: the current config stays in force, and the user is asked again only when the file changes
   * again. `hash`: hash of the text that the user has seen.
   */
  procedure(
    command("ConfigKeep", { hash: Schema.optionalKey(Bounds.name) }, "decides", "conversation"),
    ({ agents }, { caller, hash, name }) => agents.configKeep(name, hash, caller)
  ),
  procedure(Rpc.make("Projects", { success: Schema.Array(ProjectInfo) }).annotate(AtOnce, true), (features) =>
    Effect.andThen(settled(features), features.agents.projects)
  ),
  /** Spending grouped by these keys. `since`: the first day or month to count; empty for all time. */
  procedure(
    Rpc.make("Costs", {
      payload: input({ by: Schema.Array(Schema.Literals(COST_KEYS)), since: Bounds.day }),
      success: Schema.Array(CostRow),
      error
    }),
    ({ inquiries }, { by, since }) => inquiries.costs(by, since)
  ),
  /** Spending limits of running agents, of their projects and of the machine, with the amount spent so far. */
  procedure(Rpc.make("Limits", { success: Schema.Array(LimitRow) }), ({ inquiries }) => inquiries.limits),
  procedure(
    Rpc.make("Accounts", { success: Schema.Array(AccountRow) }).annotate(AtOnce, true),
    ({ daemon }) => daemon.accounts
  ),
  procedure(Rpc.make("Agents", { success: Schema.Array(AgentInfo) }).annotate(AtOnce, true), (features) =>
    Effect.andThen(settled(features), features.agents.all)
  ),
  procedure(question("Agent", AgentInfo, "agent"), ({ agents }, { caller, name }) => agents.agent(name, caller)),
  procedure(command("Start", {}, "acts", "agent"), ({ agents }, { caller, name }) => agents.start(name, caller)),
  procedure(command("Stop", {}, "acts", "agent"), ({ agents }, { caller, name }) => agents.stop(name, caller)),
  procedure(command("Restart", {}, "acts", "agent"), ({ agents }, { caller, name }) => agents.restart(name, caller)),
  procedure(command("Interrupt", {}, "acts", "agent"), ({ agents }, { caller, name }) =>
    agents.interrupt(name, caller)
  ),
  procedure(
    command(
      "Set",
      {
        /** The new model; null if the model does not change. */
        model: Schema.NullOr(Bounds.name),
        mode: Schema.NullOr(Bounds.name),
        /** True: first clears the earlier choices of model and mode. */
        reset: Schema.Boolean
      },
      "acts",
      "agent"
    ),
    ({ agents }, { caller, name, ...choice }) => agents.choose(name, choice, caller)
  ),
  procedure(question("Offers", OffersInfo, "agent"), ({ agents }, { caller, name }) => agents.offers(name, caller)),
  /** The changes that an agent has made in its folder since it began to work: a list of files, and a patch. */
  procedure(question("Diff", DiffInfo, "agent"), ({ agents }, { caller, name }) => agents.diff(name, caller)),
  procedure(
    command(
      "Send",
      {
        text: Bounds.text(),
        how: Schema.Literals(["queue", "steer", "urgent"]),
        /** Files attached to the message. Their contents must have been uploaded before (`AddFile`). */
        files: Schema.optionalKey(
          Bounds.list(
            Schema.Struct({ filename: Bounds.filename, sha256: Bounds.sha256 }),
            MAX_FILES,
            "Send some of them with another message."
          )
        )
      },
      "acts",
      "agent"
    ),
    ({ agents }, { caller, name, ...message }) => agents.send(name, message, caller)
  ),
  /**
   * Uploads a piece of a file's content, in base64. Returns the number of bytes that have arrived and are durable; the
   * next piece begins there. An empty piece only asks for this number. When all bytes have arrived, a message can refer
   * to the file.
   */
  procedure(
    Rpc.make("AddFile", {
      payload: input({
        sha256: Bounds.sha256,
        size: Bounds.between(1, MAX_FILE, "Put a larger file into the agent's workspace, and name its path."),
        at: Bounds.between(0, MAX_FILE, "Continue at the offset that was returned."),
        data: Bounds.piece,
        caller: Bounds.caller
      }),
      success: Schema.Struct({ has: Schema.Int }),
      error: CommandRefused
    }).annotate(Speaks, "acts"),
    ({ agents }, { at, data, sha256, size }) =>
      Effect.map(agents.addFile({ sha256, size, at, data: Buffer.from(data, "base64") }), (has) => ({ has }))
  ),
  /** Lists everything that needs a user, approvals and questions first. */
  procedure(Rpc.make("Waiting", { success: WaitingReply }).annotate(AtOnce, true), (features) =>
    whole(features, features.inquiries.waiting)
  ),
  /** Lists agents, sessions, goals, channels and all other items that need a user in one list. */
  procedure(
    Rpc.make("Board", {
      payload: input({
        /** True: also includes items that ended long ago. */
        all: Schema.Boolean
      }),
      success: Board,
      error
    }).annotate(AtOnce, true),
    (features, { all }) => whole(features, features.board.now(all))
  ),
  /** Sends the board first, and then its changes. */
  procedure(
    Rpc.make("BoardNews", {
      payload: input({
        /** False: the stream ends after the first value. */
        follow: Schema.Boolean
      }),
      success: BoardNews,
      error,
      stream: true
    }),
    (features, { follow }) => {
      const news = Stream.unwrap(Effect.as(settled(features), features.board.news))
      return follow ? news : Stream.take(news, 1)
    }
  ),
  /** Retries messages that ended without an answer: the message with that id, or all such messages of the agent. */
  procedure(
    command("Retry", { message: Schema.optionalKey(Bounds.name) }, "acts", "agent"),
    ({ agents }, { caller, message, name }) => agents.retry(name, message, caller)
  ),
  /** Discards messages that ended without an answer. `held`: discards the agent's queued messages instead. */
  procedure(
    command("Dismiss", { message: Schema.optionalKey(Bounds.name), held: Schema.Boolean }, "acts", "agent"),
    ({ agents }, { caller, held, message, name }) => agents.dismiss(name, { which: message, held }, caller)
  ),
  /** Lists sessions. Those that need attention come first, then the newest. */
  procedure(
    Rpc.make("Plates", {
      payload: input({
        /** True: also includes sessions that closed long ago. */
        all: Schema.Boolean
      }),
      success: Schema.Array(PlateInfo)
    }).annotate(AtOnce, true),
    ({ plates }, { all }) => plates.list({ closed: all })
  ),
  /**
   * Shows a session. `name`: the session's id, a unique prefix of it, or the id that the session's own program uses.
   */
  procedure(
    Rpc.make("Plate", { payload: input({ name: Bounds.name }), success: PlateInfo, error: CommandRefused }),
    ({ plates }, { name }) => plates.find(name)
  ),
  procedure(command("ForgetPlate", {}, "acts"), ({ plates }, { caller, name }) => plates.forget(name, caller)),
  /**
   * Answers a call. `name`: the id of a tool call or a unique prefix of it; or else a session's permission request, or
   * the session's plate.
   */
  procedure(
    command(
      "Answer",
      {
        decision: Schema.Literals(["allow", "deny"]),
        reason: Bounds.reason,
        /** Answers to the call's questions: each is an option's number, its label, or free text. */
        answers: Schema.optionalKey(
          Bounds.list(Bounds.line(Limits.answers.length), Limits.answers.count, "Put the answer in quotes.")
        ),
        /**
         * Hash of the call that the user has seen. Approval requires it, and is refused if the call has changed since.
         */
        hash: Schema.optionalKey(Bounds.name),
        /**
         * An approval that also keeps a rule. `hash` is then the hash of the preview (`AnswerPreview`). Undefined: the
         * approval is for this call alone.
         */
        lasting: Schema.optionalKey(lasting),
        /**
         * Further calls that are approved once with this one, each by the hash that the user has seen. If one of the
         * calls has changed or no longer waits, none is approved.
         */
        also: Schema.optionalKey(
          Bounds.list(
            Schema.Struct({ name: Bounds.name, hash: Bounds.name }),
            Limits.batch,
            "Approve fewer calls at once."
          )
        )
      },
      "decides"
    ),
    ({ inquiries }, { caller, name, ...input }) =>
      inquiries.answer(name, { ...input, behavior: input.decision }, caller)
  ),
  /** Shows what an approval that keeps a rule would change: the rule, and the change of the config file. */
  procedure(
    Rpc.make("AnswerPreview", {
      payload: input({ ...Bounds.named, lasting }),
      success: AnswerPreview,
      error
    }).annotate(Speaks, "decides"),
    ({ inquiries }, { caller, lasting, name }) => inquiries.answerPreview(name, lasting, caller)
  ),
  /** Shows in full the call that an answer with this name would decide. */
  procedure(
    Rpc.make("Asked", { payload: input(Bounds.named), success: AskedCall, error }),
    ({ inquiries }, { caller, name }) => inquiries.asked(name, caller)
  ),
  procedure(Rpc.make("Kinds", { success: Schema.Array(Schema.String) }).annotate(AtOnce, true), ({ daemon }) =>
    Effect.succeed(daemon.kinds)
  ),
  procedure(
    Rpc.make("Log", { payload: input(selection), success: Rune, error, stream: true }),
    ({ inquiries }, input) => inquiries.log(input)
  ),
  procedure(
    Rpc.make("Why", { payload: input(Bounds.named), success: WhyReply, error }).annotate(About, "agent"),
    ({ inquiries }, { caller, name }) => inquiries.why(name, caller)
  ),
  procedure(Rpc.make("Verify", { success: VerifyEvent, error, stream: true }), ({ inquiries }) => inquiries.verify),
  /** Reports what would be deleted if the rune were erased; changes nothing. */
  procedure(
    Rpc.make("Erasable", { payload: input({ eventId: Schema.Int }), success: Erasable, error }),
    ({ inquiries }, { eventId }) => inquiries.erasable(eventId)
  ),
  procedure(
    Rpc.make("Erase", {
      payload: input({
        eventId: Schema.Int,
        caller: Bounds.caller,
        /** True: also erases runes of the same stream that contain the same text. */
        also: Schema.optionalKey(Schema.Boolean)
      }),
      success: Erasable,
      error
    }).annotate(Speaks, "decides"),
    ({ inquiries }, { also = false, caller, eventId }) => inquiries.erase(eventId, also, caller)
  ),
  procedure(
    Rpc.make("AlertTest", { success: Schema.Struct({ message: Schema.String }), error }),
    ({ daemon }) => daemon.alertTest
  ),
  /** Ends the daemon. The reply is sent before the daemon ends; with the pid in it, the caller can wait for the end. */
  procedure(
    Rpc.make("Shutdown", {
      /** `keep`: runs continue for the next daemon. */
      payload: input({ reason: Bounds.reason, by: Bounds.name, keep: Schema.optional(Schema.Boolean) }),
      success: Schema.Struct({ pid: Schema.Int }),
      error: CommandRefused
    })
      .annotate(Speaks, "acts")
      .annotate(AtOnce, true),
    ({ inquiries }, { by, keep = false, reason }) => inquiries.shutdown(reason, by, keep)
  ),
  procedure(Rpc.make("Doctor", { success: Schema.Array(Check) }).annotate(AtOnce, true), ({ daemon }) => daemon.checks),
  /** The access of each agent, according to the configs in force. */
  procedure(
    Rpc.make("Reach", { success: Schema.Array(AgentReach) }).annotate(AtOnce, true),
    ({ daemon }) => daemon.reach
  ),
  /** The supervision tree. With `name`: only the parts with that name, and the newest messages of their actors. */
  procedure(
    Rpc.make("Tree", {
      payload: input({ name: Schema.NullOr(Bounds.name) }),
      success: Schema.Array(TreeRow),
      error: CommandRefused
    }).annotate(AtOnce, true),
    ({ inquiries }, { name }) => inquiries.tree(name)
  )
] as const

export const procedures = [
  ...daemon,
  ...channels,
  ...conversations,
  ...goals,
  ...schedules,
  ...histories,
  ...access,
  ...voices // procedures that an agent calls for itself
] as const

export const Control: Gated<typeof procedures> = groupOf(procedures).middleware(Gate)

/**
 * The procedures of a run's own socket: the introduction, and those by which the run acts as itself. None of them can
 * read other data or act for another caller.
 */
export const agentApi = [hello, voiceChannel, ...voices] as const

export const AgentApi: Gated<typeof agentApi> = groupOf(agentApi).middleware(Gate)
