/** Strikes: a part of the world tells that something goes wrong there now. */
import type { Mishap } from "../Swarm.ts"

export type Strikes = (fault: Mishap) => void

/** Nobody counts. */
export const unseen: Strikes = () => {}

/** A part of the world asks whether this goes wrong there now, besides what goes wrong by chance. */
export type Lurks = (mishap: Mishap) => boolean

/** For a part whose world has nothing that lurks. */
export const never: Lurks = () => false
