/**
 * Presence: what is known of the agents at this moment: who is there, who is at work,
 * and in which channel each has the floor. Not durable: it is asked for again
 * after a restart.
 *
 * Guarantees: an agent that has the floor in one channel is idle for no other,
 * from the moment in which that is decided.
 */
import type { Member } from "../domain/AgentPort.ts"

/** A channel, as far as the crowd knows one. */
export interface Place {
  /** Something may have become possible. */
  look(): void
}

interface Known {
  online: boolean
  busy: boolean
  spent: boolean
  aliveAt: number
  /** It took no message: it is left alone for a while. */
  shut: boolean
  floor: Place | undefined
  readonly places: Set<Place>
}

const keyOf = (conversation: string, agent: string): string => `${conversation}/${agent}`

export class Presence {
  private readonly agents = new Map<string, Known>()

  private of(conversation: string, agent: string): Known {
    const key = keyOf(conversation, agent)
    const known = this.agents.get(key)
    if (known !== undefined) return known
    const fresh = {
      online: false,
      busy: false,
      spent: false,
      aliveAt: 0,
      shut: false,
      floor: undefined,
      places: new Set<Place>()
    }
    this.agents.set(key, fresh)
    return fresh
  }

  /** Where it has a seat. */
  places(conversation: string, agent: string): ReadonlySet<Place> {
    return this.agents.get(keyOf(conversation, agent))?.places ?? new Set()
  }

  /** It has a seat there. */
  seat(conversation: string, agent: string, place: Place): void {
    this.of(conversation, agent).places.add(place)
  }

  /** The channel is gone. */
  leave(place: Place): void {
    for (const known of this.agents.values()) {
      known.places.delete(place)
      if (known.floor === place) known.floor = undefined
    }
  }

  settle({ agent, busy, conversation, online, spent }: Member): void {
    Object.assign(this.of(conversation, agent), { online, busy, spent })
  }

  set(conversation: string, agent: string, change: { online?: boolean; busy?: boolean; aliveAt?: number }): void {
    const known = this.agents.get(keyOf(conversation, agent)) ?? this.of(conversation, agent)
    Object.assign(known, change, { shut: false })
    if (change.online === true) known.spent = false
  }

  online(conversation: string, agent: string): boolean {
    return this.agents.get(keyOf(conversation, agent))?.online ?? false
  }

  busy(conversation: string, agent: string): boolean {
    return this.agents.get(keyOf(conversation, agent))?.busy ?? false
  }

  aliveAt(conversation: string, agent: string): number {
    return this.agents.get(keyOf(conversation, agent))?.aliveAt ?? 0
  }

  idle(conversation: string, agent: string, place: Place): boolean {
    const known = this.agents.get(keyOf(conversation, agent))
    if (known === undefined || !known.online || known.spent || known.shut) return false
    return !known.busy && (known.floor === undefined || known.floor === place)
  }

  /** It took no message, or may take one again. */
  shut(conversation: string, agent: string, shut: boolean): void {
    this.of(conversation, agent).shut = shut
  }

  /** From here on it is that one's; undefined: nobody's. Whoever else waits for it looks again. */
  floor(conversation: string, agent: string, from: Place | undefined, to: Place | undefined): void {
    const known = this.of(conversation, agent)
    if (known.floor !== from) return
    known.floor = to
    if (to === undefined) for (const place of known.places) if (place !== from) place.look()
  }
}
