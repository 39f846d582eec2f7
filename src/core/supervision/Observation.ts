/**
 * Observation: a supervision tree as it is at one moment, as OTP's observer shows it.
 *
 * Guarantees: looking changes nothing and waits for nobody; all of it is of one moment. A
 * supervisor with very many children shows the first of them, and says how many there are.
 */

/** Most children that are shown of one supervisor. */
export const MAX_SHOWN = 1_000

export interface Crash {
  /** ms since the epoch */
  readonly at: number
  readonly message: string
}

/** A child's restarts and crashes in the life of its supervisor. */
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
  /** Of a child that is made of parts of its own: plain data. */
  | { readonly _tag: "Parts"; readonly parts: ReadonlyArray<Part> }

/** An actor within a child. */
export interface Part {
  /** By which others send it messages. */
  readonly address: string
  /** The name of its state, where it has one. */
  readonly state: string | null
  /** Messages that wait. */
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
  /** Undefined: it does not run, or tells nothing. */
  readonly inside: Inspection | undefined
}
