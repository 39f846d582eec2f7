/**
 * RingControl: the memory that the actors' thread and the log's share, and the words in it by which each tells the
 * other. Free of imports: a daemon makes it before it loads anything else.
 */
export const RING_BYTES = 8 * 1024 * 1024

/** Places of the words. Counts are of 8 bytes, or of appends, and wrap. */
export const WRITTEN = 0
export const FREED = 1
/** Appends that are durable. */
export const DONE = 2
/** Rises when both ends begin anew. */
export const EPOCH = 3
export const STOP = 4
/** Rises whenever there is something to do: a record, an order, the end. */
export const BELL = 5
/** Before the records. */
export const CONTROL_BYTES = 64

export const makeShared = (): SharedArrayBuffer => new SharedArrayBuffer(CONTROL_BYTES + RING_BYTES)

export const controlOf = (shared: SharedArrayBuffer): Int32Array => new Int32Array(shared, 0, CONTROL_BYTES / 4)

/** Wakes the log's thread. */
export const ring = (control: Int32Array): void => {
  Atomics.add(control, BELL, 1)
  Atomics.notify(control, BELL)
}
