/**
 * ScopeFold: from runes to the states of a scope's actors: how a scope is built when the
 * process starts. Pure.
 *
 * Guarantees: each rune goes to the actor that wrote it (or whose part did) and then to
 * each actor that it names in `moves`, in that order; a rune of an older log, which names
 * one machine, folds as it did; runes of actors that are not asked for are passed over.
 * What is folded is what live actors of the same definitions had.
 */
import type { Rune } from "../event-log/Rune.ts"

/** The part of an actor that a fold uses. */
export interface Folding<S> {
  readonly initial: S
  // A method, so that a table of actors can hold them whatever their states are.
  apply(state: S, rune: Rune, isJoined: boolean): S
  readonly parts?: (actor: string) => boolean
}

/** A fold under way, for a stream that is read once by all that fold it. */
export class ScopeFold {
  /** By name. */
  readonly states = new Map<string, unknown>()
  private readonly actors = new Map<string, Folding<unknown>>()
  private readonly withParts: Array<readonly [name: string, parts: (actor: string) => boolean]> = []

  /** `state`: where a snapshot left the actor. */
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

  /** The actor itself, or the one that it is a part of. */
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
 * The tells that a receiver in another scope has not heard of. A tell that crosses scopes is lost
 * where the process dies behind the append: at start it is told again, with the rune as
 * its cause. The acknowledgement is the newest of the sender's runes that a rune of the
 * receiver names as its cause. A repetition that the receiver knows already is stale.
 * `sent`: the sender's runes that it tells of, oldest first. `received`: the receiver's.
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
