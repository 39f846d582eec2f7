/**
 * ScopeFold: computes the states of a scope's actors from the runes in the log, when the process starts. Pure.
 *
 * Guarantees: each rune is first applied to the actor that wrote it (or to the actor whose part wrote it), then to each
 * actor named in `moves`. Runes of older logs, which name only one machine, give the same states as before. Runes of
 * actors that were not added are skipped. The result equals the states of the live actors if their definitions are the
 * same.
 */
import type { Rune } from "../event-log/Rune.ts"

/** The part of an actor's definition that a fold uses. */
export interface Folding<S> {
  readonly initial: S
  // declared as a method instead of a property, so that one table can contain actors with different state types
  apply(state: S, rune: Rune, isJoined: boolean): S
  readonly parts?: (actor: string) => boolean
}

/** A fold that receives one rune at a time, so that several folds can share one pass over a stream. */
export class ScopeFold {
  /** States of the actors, by actor name. */
  readonly states = new Map<string, unknown>()
  private readonly actors = new Map<string, Folding<unknown>>()
  private readonly withParts: Array<readonly [name: string, parts: (actor: string) => boolean]> = []

  /** Adds an actor to the fold. `state`: the actor's state in a snapshot, if the fold begins with a snapshot. */
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

  /** Returns `actor` unchanged or, if it names a part of an actor, the name of that actor. */
  private ownerOf(actor: string): string {
    if (this.actors.has(actor)) return actor
    return this.withParts.find(([, parts]) => parts(actor))?.[0] ?? actor
  }
}

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
 * Returns those of the sender's runes whose tells have not reached their receiver in another scope. If the process dies
 * after the append, such a tell is lost. Therefore these tells are sent again when the process starts, with the rune as
 * their cause.
 *
 * The receiver has no separate acknowledgements. If one of the receiver's runes names a rune of the sender as its
 * cause, the receiver has received the tells of that rune and of all earlier ones. A tell that arrives a second time is
 * stale. `sent`: the sender's runes that have tells, oldest first. `received`: the receiver's runes.
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
