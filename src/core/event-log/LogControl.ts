/**
 * LogControl: the words of memory that the actors' thread and the log's thread share, and through which each wakes the
 * other. Without imports: a daemon creates the words before it loads anything else.
 */

/** Index of the word with the number of durable appends; the count wraps. */
export const DONE = 0
/** The word rises when both threads start again after a failure. */
export const EPOCH = 1
export const STOP = 2
/** The word rises whenever the log's thread has something to do: a message, or the end. */
export const BELL = 3

export const makeControl = (): Int32Array => new Int32Array(new SharedArrayBuffer(16))

/** Wakes the log's thread. */
export const ring = (control: Int32Array): void => {
  Atomics.add(control, BELL, 1)
  Atomics.notify(control, BELL)
}
