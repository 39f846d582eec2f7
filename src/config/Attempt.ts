/**
 * Attempt: runs a function that may fail, if the reason does not matter: a file that is gone, a
 * text that is not JSON. It has no imports, because the program's entries use it before anything
 * else is loaded.
 */

/** Undefined if the function throws. */
export const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}
