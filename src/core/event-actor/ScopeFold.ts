/**
 * ScopeFold: computes the states of a scope's actors from runes, when the process starts. Pure.
 *
 * Guarantees: each rune goes to the actor that wrote it (or whose part wrote it), then to each
 * actor named in `moves`, in that order. A rune of an older log, which names one machine, folds as
 * it always did. Runes of actors that were not added are skipped. The result equals the states that
 * live actors with the same definitions had.
 */
import type { Rune } from "../event-log/Rune.ts"

/** The part of an actor that a fold uses. */
export interface Folding<S> {
  readonly initial: S
  // A method and not a property, so that a table can contain actors with different state types.
  apply(state: S, rune: Rune, isJoined: boolean): S
  readonly parts?: (actor: string) => boolean
}

/** A fold in progress, so that one pass over a stream can serve all folds. */
export class ScopeFold {
  /** The states by actor name. */
  readonly states = new Map<string, unknown>()
  private readonly actors = new Map<string, Folding<unknown>>()
  private readonly withParts: Array<readonly [name: string, parts: (actor: string) => boolean]> = []

  /** `state`: the state of the actor in a snapshot. */
  add<S>(name: string, actor: Folding<S>, state: S = actor.initial): this {
    this.actors.set(name, actor)
    this.states.set(name, state)
    if (actor.parts !== undefined) this.withParts.push([name, actor.parts])
    return this
  }

  apply(rune: Rune): void {
    this.hand(this.ownerOf(rune.actor), rune, false)
    for (const name of rune.moves) this.hand(name, rune, true)
  }

  private hand(name: string, rune: Rune, isJoined: boolean): void {
    const actor = this.actors.get(name)
    if (actor !== undefined) this.states.set(name, actor.apply(this.states.get(name), rune, isJoined))
  }

  /** The actor itself, or the actor of which `actor` is a part. */
  private ownerOf(actor: string): string {
    if (this.actors.has(actor)) return actor
    return this.withParts.find(([, parts]) => parts(actor))?.[0] ?? actor
  }
}

/** The states of these actors after these runes. */
export const fold = <const F extends { readonly [name: string]: Folding<unknown> }>(
  actors: F,
  runes: Iterable<Rune>
): { readonly [N in keyof F]: F[N]["initial"] } => {
  const folding = new ScopeFold()
  for (const [name, actor] of Object.entries(actors)) folding.add(name, actor)
  for (const rune of runes) folding.apply(rune)
  return Object.fromEntries(folding.states) as never
}

/**
 * The sender's runes whose tells a receiver in another scope has not received. A tell to another
 * scope is lost if the process dies after the append. So at start it is sent again, with the rune
 * as its cause. The newest of the sender's runes that a rune of the receiver names as its cause is
 * the acknowledgement. A repetition that the receiver already knows is stale. `sent`: the sender's
 * runes with tells, oldest first. `received`: the receiver's runes.
 */
export const unheard = (sent: Iterable<Rune>, received: Iterable<Rune>): ReadonlyArray<Rune> => {
  const all = [...sent]
  const stream = all[0]?.stream
  const seqs = new Set(all.map(({ seq }) => seq))
  let heard = 0
  for (const { cause } of received) {
    if (cause !== null && cause.stream === stream && seqs.has(cause.seq)) heard = Math.max(heard, cause.seq)
  }
  return all.filter(({ seq }) => seq > heard)
}
