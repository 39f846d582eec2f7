/**
 * LogControl: words in shared memory with which the actors' thread and the log's thread wake each other. Has no
 * imports, because a daemon creates the words before it loads other code.
 */

/** Index of the word that counts durable appends. The count wraps at 32 bits. */
export const DONE = 0
/** Index of the word that is incremented when both threads continue after a failure. */
export const EPOCH = 1
export const STOP = 2
/** Index of the word that is incremented to wake the log's thread, for a message or to stop the thread. */
export const BELL = 3

export const makeControl = (): Int32Array => new Int32Array(new SharedArrayBuffer(16))

export const ring = (control: Int32Array): void => {
  Atomics.add(control, BELL, 1)
  Atomics.notify(control, BELL)
}
