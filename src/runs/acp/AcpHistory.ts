/**
 * AcpHistory: merges the notes that an earlier daemon made about an agent's process with the output of that process.
 *
 * Each line sent to the process is noted, and so is each decision that its output does not show. A note contains how
 * many bytes of output had been read at that time. From these notes, a daemon that resumes the process emits all
 * earlier events in the original order.
 *
 * Guarantees: a note contains no text written by the user. A command that agentd runs for the agent is noted before it
 * begins.
 */
import type { Input } from "../keeper/KeeperProgram.ts"
import type { Before } from "../process/KeptProcess.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import type { AcpSession } from "./AcpSession.ts"
import type { KnownUpdates } from "./AcpUpdates.ts"
import type { KnownWire } from "./AcpWire.ts"

/** A note about a line or a decision. `id`: id of a request from agentd or from the agent. */
export type Note =
  /** A session has begun, or its offers have changed. */
  | { readonly say: "session"; readonly session: AcpSession }
  | { readonly say: "call"; readonly id: number }
  | { readonly say: "prompt"; readonly id: number; readonly turnId: string }
  /** A further prompt in the same turn. */
  | { readonly say: "again"; readonly id: number }
  /** A request of the agent was answered. `option`: the option that was chosen from those that the agent offered. */
  | { readonly say: "reply"; readonly id: unknown; readonly done: boolean; readonly option?: string }
  /** A request from the agent was rejected before it became a call. */
  | { readonly say: "untold"; readonly id: unknown }
  /** A call of the agent requested an approval again, with its current arguments. */
  | { readonly say: "asked"; readonly id: unknown }
  | { readonly say: "cancel" }
  /** A turn that the agent began by itself counts as ended, because no more messages arrived. */
  | { readonly say: "rested" }
  /** Calls that had not changed since `version` were emitted with the data known until then. */
  | { readonly say: "settle"; readonly version: number }
  /**
   * The command that the agent requested with the request `id` begins. If `number` is missing, an older agentd ran the
   * command, and it has ended.
   */
  | { readonly say: "terminal"; readonly id?: unknown; readonly number?: number }
  /**
   * The call of the command `number` has its result. Code and signal are null if it is unknown how the command ended.
   */
  | { readonly say: "exited"; readonly number: number; readonly code: number | null; readonly signal: string | null }

/** A note with its time. `at`: number of output bytes that had been read then. */
type Noted = Note & { readonly at: number }
type Reply = Extract<Noted, { readonly say: "reply" }>

/** Parses a note. Undefined for the end of the input, and for lines that agentd did not write. */
const parse = ({ note }: Input): Noted | undefined => {
  try {
    const noted: Noted = JSON.parse(note)
    return typeof noted.at === "number" ? noted : undefined
  } catch {
    return undefined
  }
}

/** Whether a run that an earlier daemon left can be resumed. */
export const isHeld = (runId: string) =>
  KeptProcess.isHeldWith(runId, (inputs, point) => {
    const notes = inputs.flatMap((input) => parse(input) ?? [])
    const says = new Set(notes.map(({ say }) => say))
    const { isBound = false } = Checkpoint.of<Rest>({ before: { point } })?.state ?? {}
    const isBegun = point !== undefined || (says.has("session") && says.has("prompt"))
    const isLost = isBound || notes.some((note) => note.say === "terminal" && note.number === undefined)
    return isBegun && !isLost
  })

/** State of an agent between two turns. Stored with a checkpoint, for a daemon that resumes the agent. */
export interface Rest {
  readonly session: AcpSession
  readonly updates: KnownUpdates
  readonly wire: KnownWire
  /** Position of the last emitted event. */
  readonly place: { readonly end: number; readonly index: number }
  /** Number of commands that were started for the agent. All of them have ended. */
  readonly terminals: number
  /** True if an older agentd ran a command for the agent. That command ended with the older agentd. */
  readonly isBound?: boolean
}

export class AcpHistory {
  /** Bytes of output that existed when the process was resumed. */
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

  /** How the earlier daemon answered a request; undefined if it did not. */
  replyTo(id: unknown): Reply | undefined {
    return this.replies.get(JSON.stringify(id))
  }

  /** Whether a command had begun for the agent's request. */
  isBegun(id: unknown): boolean {
    return this.begun.has(JSON.stringify(id))
  }

  isUntold(id: unknown): boolean {
    return this.untold.has(JSON.stringify(id))
  }

  /** Removes and returns the notes that were written when no more than `end` bytes of output had been read. */
  upTo(end: number): ReadonlyArray<Note> {
    const next = this.notes.findIndex(({ at }) => at > end)
    return this.notes.splice(0, next < 0 ? this.notes.length : next)
  }
}

/** The history of a resumed process; undefined if this daemon has started the process. */
export const of = (before: Before | undefined): AcpHistory | undefined =>
  before === undefined ? undefined : new AcpHistory(before)
