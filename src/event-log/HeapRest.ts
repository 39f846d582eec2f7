/**
 * HeapRest: gives back the memory that a start has used, of the thread that calls: by full collections, after which
 * its heap is as small as what it holds, and the code that only a start needs is gone. What is needed again is compiled
 * again.
 *
 * Guarantees: no flag of V8's is set here: they are those of all threads, and a process in which one thread set some while
 * another's heap was collected was seen to die. Where the program has not set them as it began (`V8Flags`), V8 alone
 * collects.
 */
import { runInNewContext } from "node:vm"

/** Collections after which another finds nothing more. */
export const ROUNDS = 4

const WHOLE = { type: "major", execution: "sync", flavor: "last-resort" } as const

type Gc = (how: typeof WHOLE) => void

/** Collects once; undefined where a program may not. */
export const collector = (): (() => void) | undefined => {
  // a context that was there before the flag lacks it
  const gc = (globalThis.gc ?? runInNewContext("globalThis.gc")) as Gc | undefined
  return gc && (() => gc(WHOLE))
}
