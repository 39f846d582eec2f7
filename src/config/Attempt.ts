/**
 * Attempt: runs a function that may throw, for callers that need not know why it failed: a missing file, or text that
 * is not JSON. The module has no imports, because the program's entry points use it before anything else is loaded.
 */

/** The function's result; undefined if the function throws. */
export const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}
