/** Noise: describes output of a program that is no message of its protocol, and stops after the first few lines. */
import { CONTINUED } from "../../config/LineSplitter.ts"

/** Maximum number of invalid lines that are reported. */
const NOISES = 10

/**
 * Returns a function that describes a line; undefined if the line is not reported. A long line arrives in pieces; only
 * its first piece is reported. `wrote`: how the report begins: `claude wrote`. `unit`: what a line should be: `record`.
 */
export const noise = (wrote: string, unit: string): ((line: string) => string | undefined) => {
  let [count, inLong] = [0, false]
  return (line) => {
    const first = !inLong
    inLong = line.endsWith(CONTINUED)
    if (!first || line.trim() === "" || count >= NOISES) return undefined
    count++
    const what = inLong ? "a line longer than agentd accepts" : `a line that is not a ${unit}`
    const last = count === NOISES ? "; further lines of this kind are not reported" : ""
    return `${wrote} ${what}: ${JSON.stringify(line.slice(0, 200))}${last}`
  }
}
