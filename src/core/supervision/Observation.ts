/**
 * Observation: a snapshot of a supervision tree, as OTP's observer shows it.
 *
 * Guarantees: taking a snapshot changes nothing and does not wait. All of it is from the same
 * moment. A supervisor with very many children lists the first `MAX_SHOWN` and the total count.
 */

/** Maximum number of children that are listed per supervisor. */
export const MAX_SHOWN = 1_000

export interface Crash {
  /** ms since the epoch */
  readonly at: number
  readonly message: string
}

/** A child's restarts and last crash since its supervisor started. */
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
  /** A child that consists of parts, as plain data. */
  | { readonly _tag: "Parts"; readonly parts: ReadonlyArray<Part> }

/** An actor inside a child. */
export interface Part {
  /** The address to which others send it messages. */
  readonly address: string
  /** The name of the actor's state, or null if it has none. */
  readonly state: string | null
  /** Number of waiting messages. */
  readonly mailbox: number
  /** The newest messages, oldest first. */
  readonly newest: ReadonlyArray<Taken>
}

export interface Taken {
  /** ms since the epoch */
  readonly at: number
  readonly message: string
}

export interface Observed {
  readonly id: string
  readonly type: "worker" | "supervisor"
  /** `Incarnation.Status` */
  readonly status: string
  /** `Child.RestartType` */
  readonly restart: string
  readonly restarts: number
  readonly crash: Crash | undefined
  /** Undefined if the child does not run, or cannot be inspected. */
  readonly inside: Inspection | undefined
}
