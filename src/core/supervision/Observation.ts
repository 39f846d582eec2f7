/**
 * Observation: a snapshot of a supervision tree, similar to what OTP's observer shows.
 *
 * Guarantees: taking a snapshot changes nothing and does not wait. The whole snapshot is from the same moment. A
 * supervisor with very many children lists the first `MAX_SHOWN` children and the total number.
 */

/** Maximum number of children that a snapshot lists for each supervisor. */
export const MAX_SHOWN = 1_000

export interface Crash {
  /** When the child crashed, in ms since the epoch. */
  readonly at: number
  readonly message: string
}

/** Number of restarts and last crash of a child since its supervisor was started. */
export interface History {
  readonly restarts: number
  readonly crash: Crash | undefined
}

export type Inspection =
  | {
      readonly _tag: "Supervisor"
      readonly strategy: string
      readonly children: ReadonlyArray<Observed>
      readonly count: number
    }
  /** A child that consists of actors, described as plain data. */
  | { readonly _tag: "Parts"; readonly parts: ReadonlyArray<Part> }

/** Description of an actor that belongs to a child. */
export interface Part {
  /** Address of the actor, to which messages are sent. */
  readonly address: string
  /** Name of the actor's state; null: the state has no name. */
  readonly state: string | null
  /** Number of messages that wait for the actor. */
  readonly mailbox: number
  /** The newest messages that the actor has handled, oldest first. */
  readonly newest: ReadonlyArray<Taken>
}

export interface Taken {
  /** When the actor handled the message, in ms since the epoch. */
  readonly at: number
  readonly message: string
}

export interface Observed {
  readonly id: string
  readonly type: "worker" | "supervisor"
  /** Status of the child, one of `Incarnation.Status`. */
  readonly status: string
  /** Restart type of the child, one of `Child.RestartType`. */
  readonly restart: string
  readonly restarts: number
  readonly crash: Crash | undefined
  /** Description of the child's content; undefined: the child is not running, or cannot be inspected. */
  readonly inside: Inspection | undefined
}
