/**
 * Protocol: the messages between the daemon and a keeper, one JSON value per line. They go over a socket in a folder
 * that only this user can open.
 *
 * An order has an `id`, and its answer has the same value as `re`. A message that the keeper sends by itself has a
 * `tell`. Positions and sizes are bytes from the beginning of a program's output. Environment and arguments are sent
 * this way and written to no file.
 *
 * Files in a program's folder that the daemon may use: `out.OFFSET` and `err.OFFSET`, which the daemon removes when it
 * no longer needs them; `notes`, `point` and `asked`, which belong to the daemon; and all files once there is an
 * `exit`.
 */

/**
 * Version of these messages and of the folder's files, the same as in keeper.mjs. A keeper with another version gets no
 * new program.
 */
export const VERSION = 3

export type StreamName = "out" | "err"

export type Order =
  /**
   * The first order on a connection. The answer proves that the keeper belongs to this store. Keepers up to version 2
   * do not know this order.
   */
  | { readonly op: "meet"; readonly nonce: string }
  /**
   * The daemon with the highest epoch owns the keeper. A lower epoch, or an equal one while its owner is connected, is
   * rejected ("fenced"). A hello without a valid proof is rejected before that ("unproven").
   */
  | { readonly op: "hello"; readonly epoch: number; readonly proof?: string }
  | {
      readonly op: "spawn"
      readonly run: string
      /** Script with which a waiting shell turns into the program. */
      readonly script: string
      /** Contents of the program's file descriptors 3, 4 and so on, in base64. */
      readonly handed?: ReadonlyArray<string>
    }
  /**
   * Writes to the program's input. `seq` increases by one with each input; an input with a known number is not written
   * again. `data`: null closes the input.
   */
  | { readonly op: "write"; readonly run: string; readonly seq: number; readonly data: string | null }
  /** Tells the keeper how many bytes of output the daemon has read. */
  | { readonly op: "mark"; readonly run: string; readonly out: number; readonly err: number }
  /** The program is no longer needed: the keeper discards it when it has ended. */
  | { readonly op: "forget"; readonly run: string }
  /** Tells the keeper to accept no new programs, and to exit when its last program has ended. */
  | { readonly op: "retire" }

/** How a program ended. Both fields are null if the keeper that started the program has died. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Anchor {
  readonly pid: number
  readonly start: string
}

/** A program in the list that a keeper sends. */
export interface Listed {
  readonly run: string
  readonly pid: number
  /** Start time of the program, in clock ticks since boot. */
  readonly start: string
  /** Number of processes that the machine had started before this program. */
  readonly births?: number
  /** The shell that runs next to the program and ends with it. */
  readonly anchor?: Anchor
  /** Number of the last input that was accepted. */
  readonly seq: number
  readonly out: number
  readonly err: number
  readonly exit?: Exit
  /** True if the output is complete and the exit is durable. */
  readonly ended: boolean
}

export interface Reply {
  readonly re: number
  /**
   * Why an order failed. "gone": the connection ended. "late": no answer came in time. Otherwise an error code of the
   * keeper or the system.
   */
  readonly error?: string
  /** Part of the answer to the order "meet". */
  readonly nonce?: string
  readonly proof?: string
  /** Epoch of the last daemon that owned the keeper; -1 if there was none. */
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
  /** Reports that a program's output is complete ("whole"), or also that its exit is durable ("ended"). */
  | ({
      readonly tell: "whole" | "ended"
      readonly run: string
      readonly out: number
      readonly err: number
    } & Exit)
