/**
 * HeapRest: gives back the memory that a start has used, of the thread that calls: by full collections, after which
 * its heap is as small as what it holds, and the code that only a start needs is gone. What is needed again is compiled
 * again.
 *
 * Guarantees: none collects unless it is called, and each call stops its thread alone, for as long as its heap is large:
 * some 10 ms for 10 MB.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** Collections after which another finds nothing more. */
export const ROUNDS = 4
/** Code goes that has not run between so many collections; V8's own number is for collections that lie far apart. */
const [OLD, V8_OLD] = [2, 6]

const WHOLE = { type: "major", execution: "sync", flavor: "last-resort" } as const

/** `keepsCode`: code goes as V8 lets it go by itself. */
export type Collect = (keepsCode: boolean) => void

export const collector = (): Collect => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as (how: typeof WHOLE) => void
  return (keepsCode) => {
    if (keepsCode) return collect(WHOLE)
    setFlagsFromString(`--bytecode-old-age=${OLD}`)
    setFlagsFromString("--flush-baseline-code")
    collect(WHOLE)
    setFlagsFromString(`--bytecode-old-age=${V8_OLD}`)
    setFlagsFromString("--no-flush-baseline-code")
  }
}
