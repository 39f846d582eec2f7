/** Strikes: a part of the world tells that something goes wrong there now. */
import type { Mishap } from "../Swarm.ts"

export type Strikes = (fault: Mishap) => void

/** Nobody counts. */
export const unseen: Strikes = () => {}
