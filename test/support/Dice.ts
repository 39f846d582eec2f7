/**
 * Dice: chance that a number plays again. Not the clock's, and not effect's: a fiber that is
 * killed on the way must not change what the next throws are.
 */

/** A whole number from 0, below the one that is given. */
export type Dice = (below: number) => number

export const dice = (seed: number): Dice => {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
