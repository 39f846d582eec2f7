/**
 * Attempt: a reading that may fail, where no reader asks why: a file that is gone, a text that is no JSON. Free of
 * imports: the entries of the program use it before anything else is loaded.
 */

/** Undefined where it fails. */
export const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}
