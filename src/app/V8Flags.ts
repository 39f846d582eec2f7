/**
 * V8Flags: flags of V8 for a daemon, which is to hold little memory while it waits (HeapRest).
 *
 * Guarantees: set once, while the program has one thread, and before anything is collected. On the command line they
 * would make Node throw away the code of its own modules that it brings compiled, and keep what it compiles instead: 1.3 MB
 * and 20 ms. So a program loads the modules of Node first. Imports nothing of the program, which begins with it.
 */
import { setFlagsFromString } from "node:v8"

export const FLAGS = [
  "--expose-gc",
  // code that has not run for long goes, also where V8 has compiled it once more
  "--flush-baseline-code",
  // the heap is collected once it is half as large again as what it held: V8's own way lets it become four times as large
  "--heap-growing-percent=50",
  // of 400: the start of some hundred agents alone would have code optimised, which would stay: 3 MB
  "--invocation-count-for-maglev=1500"
]

export const set = (): void => {
  for (const flag of FLAGS) setFlagsFromString(flag)
}
