/**
 * Observation: a snapshot of a supervision tree, similar to what OTP's observer shows.
 *
 * Guarantees: taking a snapshot changes nothing and does not wait. The whole snapshot is from the same moment. A
 * supervisor with very many children lists the first `MAX_SHOWN` children and the total number.
 */

export const MAX_SHOWN = 1_000

export interface Crash {
  /** When the snapshot was taken, in ms since the epoch. */
  readonly at: number
  readonly message: string
}

/** Restarts and last crash of a child since its supervisor was started. */
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
  /** A child that consists of actors. The actors are described as plain data. */
  | { readonly _tag: "Parts"; readonly parts: ReadonlyArray<Part> }

/** Description of one of the actors of a child. */
export interface Part {
  readonly address: string
  /** Name of the actor's state; null: the state has no name. */
  readonly state: string | null
  /** Number of waiting messages. */
  readonly mailbox: number
  /** The newest handled messages, oldest first. */
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
  /** Status of the child, a value of `Incarnation.Status`. */
  readonly status: string
  /** Restart type of the child, a value of `Child.RestartType`. */
  readonly restart: string
  readonly restarts: number
  readonly crash: Crash | undefined
  /** Description of the child's content; undefined: the child is not running, or cannot be inspected. */
  readonly inside: Inspection | undefined
}
