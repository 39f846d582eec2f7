/**
 * LogControl: the words of memory that the actors' thread and the log's share: by them each wakes the other.
 * Free of imports: a daemon makes them before it loads anything else.
 */

/** Appends that are durable; the count wraps. */
export const DONE = 0
/** Rises when both ends begin anew. */
export const EPOCH = 1
export const STOP = 2
/** Rises whenever there is something to do: a message, the end. */
export const BELL = 3

export const makeControl = (): Int32Array => new Int32Array(new SharedArrayBuffer(16))

/** Wakes the log's thread. */
export const ring = (control: Int32Array): void => {
  Atomics.add(control, BELL, 1)
  Atomics.notify(control, BELL)
}
