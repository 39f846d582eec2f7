/**
 * Boundaries: the moments at which the daemon and its world touch: a group that is committed,
 * a process that is started, a mail that the server takes, an answer that somebody hears.
 * A process can be killed between any two of them, and only they tell two such moments apart.
 *
 * Boundaries are counted in the order in which they come; the same world comes to the same
 * ones, up to the first at which its daemon is killed.
 */

type Around<Name extends string> = `${Name}: before` | `${Name}: after`

export type Boundary =
  /** A group of the log: `before` it is written; `after` it is durable, and no actor has heard of it. */
  | Around<"commit">
  /** Transactions of the file beside the store, and the folding of the write-ahead log into the store. */
  | Around<"index" | "checkpoint">
  /** Orders to the store, its housekeeping, and its closing. */
  | Around<"snapshot" | "position" | "erasure">
  | "rest: before"
  | "close: before"
  /** Files of the daemon: written, renamed, removed. */
  | Around<"file">
  /** An agent's process; a signal to it; a turn that it is given; an answer to its question. */
  | Around<"spawn" | "signal" | "turn" | "answer">
  /** The daemon hears an event of a process. */
  | "event: before"
  /** A git command is given; it has come to its end. */
  | Around<"git">
  /** A mail is handed to the server; the server has taken it, and has not said so. */
  | "mail: before"
  | "mail: taken"
  /** A person asks; an answer leaves; a person has heard it. */
  | "rpc: asked"
  | Around<"rpc">

/** Says that a boundary is come to. False: no daemon lives that would go on. */
export type Touch = (boundary: Boundary) => boolean

export const untouched: Touch = () => true

/** Where a daemon was killed. */
export interface Cut {
  readonly boundary: Boundary
  /** Counted from the beginning of the world. */
  readonly number: number
  /** Before the daemon had taken up what the log holds. */
  readonly isRecovering: boolean
  /** ms since the world began. */
  readonly at: number
}

/** So long the script goes on after a kill, ms. */
const AFTERMATH = 20_000

export class Boundaries {
  readonly passed: Array<Boundary> = []
  readonly cuts: Array<Cut> = []
  /** Boundaries from one kill to the next. */
  private readonly gaps: Array<number>
  private left: number
  /** False once the recording is over. */
  isOpen = true

  /** Kills at the boundary of that number (from 1 on), again so many boundaries later, and so on; never without. */
  constructor(...gaps: ReadonlyArray<number>) {
    this.gaps = [...gaps]
    this.left = this.gaps.shift() ?? 0
  }

  /** When the script is at its end at the latest: what comes long after a kill is another one's. */
  get until(): number {
    const [first] = this.cuts
    return first === undefined ? Number.POSITIVE_INFINITY : first.at + AFTERMATH
  }

  /** Whether the daemon is killed here. */
  pass(boundary: Boundary, isRecovering: boolean, at: number): boolean {
    if (!this.isOpen) return false
    this.passed.push(boundary)
    this.left -= 1
    if (this.left !== 0) return false
    this.cuts.push({ boundary, number: this.passed.length, isRecovering, at })
    this.left = this.gaps.shift() ?? 0
    return true
  }
}
