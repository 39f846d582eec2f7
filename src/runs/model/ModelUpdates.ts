/**
 * ModelUpdates: the events of a run of agentd's own model agent. It reads what the agent says in `_meta` (AgentdMeta),
 * which AcpUpdates cannot know of another agent: whether a call has side effects, why it asks, when it begins, how it
 * ends, and what each request cost. Like AcpUpdates, it does no I/O and does not depend on time.
 *
 * Guarantees: the events are those that the agent's own turn loop has emitted, in the same order.
 */
import { Deferred, Effect } from "effect"
import type { RunEvent, ToolStatus } from "../Backend.ts"
import * as AgentdMeta from "../acp/AgentdMeta.ts"
import { AcpUpdates, type End, type KnownUpdates, type Open, type Turn } from "../acp/AcpUpdates.ts"
import * as Messages from "../acp/AcpMessages.ts"

type Meta = AgentdMeta.AgentdMeta

interface Events {
  /** Emits events after all earlier events. */
  readonly aside: (make: () => ReadonlyArray<RunEvent>) => Effect.Effect<void>
}

const isCall = (kind: string): boolean => kind === "tool_call" || kind === "tool_call_update"

const usageOf = ({ usage = [] }: Meta): ReadonlyArray<RunEvent> => usage.map((one) => ({ _tag: "Usage", ...one }))

/** Events that belong to no call. */
const eventsOf = (meta: Meta): ReadonlyArray<RunEvent> => [
  ...(meta.notice === undefined ? [] : [{ _tag: "Notice", ...meta.notice } as const]),
  ...usageOf(meta),
  ...(meta.compacted === undefined ? [] : [{ _tag: "Compacted", ...meta.compacted } as const]),
  ...(meta.windows === undefined ? [] : [{ _tag: "Windows", ...meta.windows } as const])
]

export class ModelUpdates extends AcpUpdates {
  /** The agent's own words about each open call, by the agent's id. */
  private readonly metas = new Map<string, Meta>()
  /** The agent's own words with the answer to the current prompt. */
  private last: Meta = {}

  constructor(known?: KnownUpdates) {
    super(undefined, known)
  }

  override update(update: { readonly sessionUpdate: string }): ReadonlyArray<RunEvent> {
    const meta = AgentdMeta.of(update)
    const kind = update.sessionUpdate
    const call = isCall(kind) ? Messages.read(Messages.ToolCall, update) : undefined
    if (call !== undefined) this.metas.set(call.toolCallId, { ...this.metas.get(call.toolCallId), ...meta })
    const begun = meta.begun === true ? this.sign() : []
    const callId = call === undefined ? undefined : this.turn?.open.get(call.toolCallId)?.ids.at(-1)
    const told = [...begun, ...super.update(update)]
    if (call !== undefined && this.turn?.open.has(call.toolCallId) !== true) this.metas.delete(call.toolCallId)
    if (callId !== undefined && meta.started === true) return [...told, { _tag: "ToolStarted", callId }]
    if (callId !== undefined && meta.progress !== undefined)
      return [...told, { _tag: "ToolProgress", callId, ...meta.progress }]
    return call === undefined ? [...told, ...eventsOf(meta)] : told
  }

  /** Is answered when everything that the agent has said until now is counted, if its turn goes on then. */
  goesOn({ aside }: Events): Effect.Effect<object> {
    return Effect.flatMap(Deferred.make<object>(), (told) =>
      Effect.andThen(
        aside(() => [{ _tag: "GoesOn", go: Effect.asVoid(Deferred.succeed(told, {})) }]),
        Deferred.await(told)
      )
    )
  }

  /** The agent's id of a call that is open. */
  nameOf(callId: string): string | undefined {
    return [...(this.turn?.open ?? [])].find(([, { ids }]) => ids.includes(callId))?.[0]
  }

  /** Called with the answer to a prompt, before its turn ends. Returns the error if the turn has failed. */
  hears(answer: unknown): AgentdMeta.Fault | undefined {
    this.last = AgentdMeta.of(answer)
    return this.last.error
  }

  /** The agent itself asks about every call that needs it. */
  override get unasked(): undefined {
    return undefined
  }

  override usage(): ReadonlyArray<RunEvent> {
    return this.turn === undefined ? [] : usageOf(this.last)
  }

  override finish(end: End): ReadonlyArray<RunEvent> {
    const { error, output } = this.last
    this.last = {}
    this.metas.clear()
    return super.finish(end).map((event) => {
      if ((event._tag === "TurnCompleted" || event._tag === "TurnInterrupted") && output !== undefined)
        return { ...event, output }
      return event._tag === "TurnError" && error?.goesOn === true ? { ...event, goesOn: true } : event
    })
  }

  protected override callEvent(id: string, open: Open): RunEvent {
    const event = super.callEvent(id, open)
    const { call } = this.metas.get(open.known.toolCallId) ?? {}
    if (call === undefined || event._tag !== "ToolCall") return event
    const { readOnly, tool, voice } = call
    const { rawInput } = open.known
    return { ...event, tool, arguments: rawInput, readOnly, ...(voice === true ? { voice } : {}) }
  }

  /** The agent reports when a call begins, which can be later than its approval. */
  protected override start(): ReadonlyArray<RunEvent> {
    return []
  }

  protected override statusOf(turn: Turn, open: Open, told: ToolStatus): ToolStatus {
    return this.metas.get(open.known.toolCallId)?.status ?? super.statusOf(turn, open, told)
  }

  protected override question(open: Open): ReadonlyArray<RunEvent> {
    const { call } = this.metas.get(open.known.toolCallId) ?? {}
    return super
      .question(open)
      .map((event) =>
        event._tag === "ApprovalRequested" && call?.reason !== undefined
          ? { _tag: event._tag, callId: event.callId, always: call.always === true, reason: call.reason }
          : event
      )
  }
}
