/**
 * Dice: random numbers that a seed repeats. It uses neither the clock nor Effect's random numbers: a fiber that is
 * killed must not change the next throws.
 */

/** Returns a random integer from 0 to `below` - 1. */
export type Dice = (below: number) => number

export const dice = (seed: number): Dice => {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
