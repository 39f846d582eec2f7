/**
 * Protocol: the words between the daemon and a keeper, one JSON value a line, over a socket in a folder that
 * only this user may open.
 *
 * An order has an `id`, its answer names that as `re`; what the keeper tells unasked has a `tell`. Positions and
 * sizes are bytes of a program's output from its beginning. Environment and arguments go this way and into no file.
 *
 * Files of a program's folder that the daemon has to do with: `out.OFFSET` and `err.OFFSET`, which the daemon frees
 * when it does not need them any more; `notes`, `point` and `asked`, which are its own; and once there is an `exit`, all of it.
 */

/** Of these words and of the folder's files, as keeper.mjs says it: a keeper of another one is given no new program. */
export const VERSION = 3

export type StreamName = "out" | "err"

export type Order =
  /** First of all; the answer proves that this is the store's keeper. One of version 2 and before knows it not. */
  | { readonly op: "meet"; readonly nonce: string }
  /**
   * The newest one owns the keeper; an epoch below its last is refused, and the same one of another while its owner is there: "fenced".
   * What proves nothing is refused before: "unproven".
   */
  | { readonly op: "hello"; readonly epoch: number; readonly proof?: string }
  | {
      readonly op: "spawn"
      readonly run: string
      /** By which a shell becomes the program. */
      readonly script: string
      /** The content of its descriptors 3, 4 …, base64. */
      readonly handed?: ReadonlyArray<string>
    }
  /** Numbers rise by one; one that was taken is taken once. `data`: null closes the input. */
  | { readonly op: "write"; readonly run: string; readonly seq: number; readonly data: string | null }
  /** So much is read. */
  | { readonly op: "mark"; readonly run: string; readonly out: number; readonly err: number }
  /** Nobody asks for the program any more: nothing of it is kept once it has ended. */
  | { readonly op: "forget"; readonly run: string }
  /** Takes no new program, and leaves with the last one. */
  | { readonly op: "retire" }

/** The end of a program; both null where the keeper that would know had died. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Anchor {
  readonly pid: number
  readonly start: string
}

/** A program as a keeper lists it. */
export interface Listed {
  readonly run: string
  readonly pid: number
  /** Ticks since the machine's start. */
  readonly start: string
  /** So many processes the machine had begun before it. */
  readonly births?: number
  /** The shell beside it, which ends with it. */
  readonly anchor?: Anchor
  /** The last input that was taken. */
  readonly seq: number
  readonly out: number
  readonly err: number
  readonly exit?: Exit
  /** The output is whole and the exit durable. */
  readonly ended: boolean
}

export interface Reply {
  readonly re: number
  /** "gone": the connection; "late": no answer in time; else the keeper's, or the system's. */
  readonly error?: string
  /** Of the answer to "meet". */
  readonly nonce?: string
  readonly proof?: string
  /** The last one that owned the keeper; -1: nobody yet. */
  readonly epoch?: number
  readonly version?: number
  readonly pid?: number
  readonly start?: string
  readonly births?: number
  readonly anchor?: Anchor
  readonly seq?: number
  readonly runs?: ReadonlyArray<Listed>
}

export type Tale =
  | { readonly tell: "output"; readonly run: string; readonly stream: StreamName; readonly size: number }
  | ({ readonly tell: "exited"; readonly run: string } & Exit)
  /** The output is whole; then the exit is durable, too. */
  | ({
      readonly tell: "whole" | "ended"
      readonly run: string
      readonly out: number
      readonly err: number
    } & Exit)
