/**
 * AcpHistory: what an earlier daemon told an agent's process, and decided beside it, set into what that has said.
 *
 * Each line that the process is given, and each decision of which the stream says nothing, is noted beside it, with how
 * much of the process's output had been heard by then. By that a daemon that takes the process up tells all that it
 * knew, in the order in which it came about.
 *
 * Guarantees: a note holds no words of a person; a command that agentd began for the agent is known before it begins.
 */
import type { Input } from "../keeper/HeldProgram.ts"
import type { Before } from "../process/KeptProcess.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import * as RestPoint from "../process/RestPoint.ts"
import type { AcpSession } from "./AcpSession.ts"
import type { KnownUpdates } from "./AcpUpdates.ts"
import type { KnownWire } from "./AcpWire.ts"

/** `id`: of a request, ours or the agent's. */
export type Note =
  /** A session has begun, or offers others now. */
  | { readonly say: "session"; readonly session: AcpSession }
  | { readonly say: "call"; readonly id: number }
  | { readonly say: "prompt"; readonly id: number; readonly turnId: string }
  /** A further prompt of the same turn. */
  | { readonly say: "again"; readonly id: number }
  /** A request of the agent has its answer; `option`: the chosen one of those that it offered. */
  | { readonly say: "reply"; readonly id: unknown; readonly done: boolean; readonly option?: string }
  /** A request of the agent is refused before it was a call. */
  | { readonly say: "untold"; readonly id: unknown }
  /** A call of the agent's is asked for again, as it is by then. */
  | { readonly say: "asked"; readonly id: unknown }
  | { readonly say: "cancel" }
  /** A turn of its own is taken for ended: nothing more was heard of it. */
  | { readonly say: "rested" }
  /** Calls that had not changed since that version are told as far as they are known. */
  | { readonly say: "settle"; readonly version: number }
  /** A command begins for the agent, which has asked for it by this request. An older agentd told no number: that command ended with it. */
  | { readonly say: "terminal"; readonly id?: unknown; readonly number?: number }
  /** The call of that command has its result; neither code nor signal: how it ended is not known. */
  | { readonly say: "exited"; readonly number: number; readonly code: number | null; readonly signal: string | null }

/** `at`: bytes of the output that had been heard. */
type Noted = Note & { readonly at: number }
type Reply = Extract<Noted, { readonly say: "reply" }>

/** Undefined for the end of the input, and for what no daemon of ours has written. */
const parse = ({ note }: Input): Noted | undefined => {
  try {
    const noted: Noted = JSON.parse(note)
    return typeof noted.at === "number" ? noted : undefined
  } catch {
    return undefined
  }
}

/** Whether a run that an earlier daemon has left can be taken up. */
export const isHeld = (runId: string) =>
  KeptProcess.isHeldWith(runId, (inputs, point) => {
    const notes = inputs.flatMap((input) => parse(input) ?? [])
    const says = new Set(notes.map(({ say }) => say))
    const { isBound = false } = RestPoint.of<Rest>({ before: { point } })?.state ?? {}
    const isBegun = point !== undefined || (says.has("session") && says.has("prompt"))
    const isLost = isBound || notes.some((note) => note.say === "terminal" && note.number === undefined)
    return isBegun && !isLost
  })

/** Knowledge of an agent between two turns, for a daemon that hears it from there on. */
export interface Rest {
  readonly session: AcpSession
  readonly updates: KnownUpdates
  readonly wire: KnownWire
  /** Of the event that was told last. */
  readonly place: { readonly end: number; readonly index: number }
  /** Commands that were begun for it: none of them is there any more. */
  readonly terminals: number
  /** An older agentd ran a command for it, which ended with that. */
  readonly isBound?: boolean
}

export class AcpHistory {
  /** Bytes of output that were there when the process was taken up. */
  readonly size: number
  private readonly notes: Array<Noted>
  private readonly replies: ReadonlyMap<string, Reply>
  private readonly begun: ReadonlySet<string>
  private readonly untold: ReadonlySet<string>

  constructor({ inputs, out }: Before) {
    this.size = out
    this.notes = inputs.flatMap((input) => parse(input) ?? []).toSorted((one, other) => one.at - other.at)
    this.replies = new Map(
      this.notes.flatMap((note) => (note.say === "reply" ? [[JSON.stringify(note.id), note] as const] : []))
    )
    const asked = (say: "terminal" | "untold") =>
      new Set(this.notes.flatMap((note) => (note.say === say && "id" in note ? [JSON.stringify(note.id)] : [])))
    this.begun = asked("terminal")
    this.untold = asked("untold")
  }

  /** The answer that the agent's request has had. */
  replyTo(id: unknown): Reply | undefined {
    return this.replies.get(JSON.stringify(id))
  }

  /** Whether a command had begun for the agent's request. */
  isBegun(id: unknown): boolean {
    return this.begun.has(JSON.stringify(id))
  }

  /** Whether the agent's request was no call. */
  isUntold(id: unknown): boolean {
    return this.untold.has(JSON.stringify(id))
  }

  /** Notes of what had been done when the output up to there had been heard, and not more. */
  upTo(end: number): ReadonlyArray<Note> {
    const next = this.notes.findIndex(({ at }) => at > end)
    return this.notes.splice(0, next < 0 ? this.notes.length : next)
  }
}

/** Undefined: this daemon has started the process. */
export const of = (before: Before | undefined): AcpHistory | undefined =>
  before === undefined ? undefined : new AcpHistory(before)
