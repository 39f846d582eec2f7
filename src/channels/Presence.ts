/**
 * Presence: what is known of the agents at this moment: who is there, who is at work, where
 * each has a seat, and in which channel the floor. Not durable: it is asked for again after
 * a restart.
 *
 * Guarantees: an agent that has the floor in one channel is idle for no other, from the
 * moment in which that is stepped, ahead of the log.
 */
import type { Member } from "../domain/AgentPort.ts"

/** A channel, as far as presence knows one. */
export interface Place {
  /** Something may have become possible. */
  look(): void
}

interface Known {
  online: boolean
  busy: boolean
  spent: boolean
  /** The last sign of life, on the monotonic clock; undefined where there was none. */
  heardAt: number | undefined
  /** The messages of the turn that is under way. */
  carries: ReadonlyArray<string>
  /** True where the agent took no message: it is left alone for a while. */
  shut: boolean
  /** Where it has the floor, as stepped: one, but for the moment in which a failed append is undone. */
  readonly floors: Set<Place>
  readonly places: Set<Place>
}

type Change = Partial<Pick<Known, "heardAt" | "busy" | "carries" | "online">>

const keyOf = (conversation: string, agent: string): string => `${conversation}/${agent}`

export class Presence {
  /** True once it is settled who is alive: before that no floor is given. */
  isSettled = false
  private readonly agents = new Map<string, Known>()

  private of(conversation: string, agent: string): Known {
    const key = keyOf(conversation, agent)
    const known = this.agents.get(key)
    if (known !== undefined) return known
    const fresh = {
      online: false,
      busy: false,
      spent: false,
      heardAt: undefined,
      carries: [],
      shut: false,
      floors: new Set<Place>(),
      places: new Set<Place>()
    }
    this.agents.set(key, fresh)
    return fresh
  }

  places(conversation: string, agent: string): ReadonlySet<Place> {
    return this.agents.get(keyOf(conversation, agent))?.places ?? new Set()
  }

  seat(conversation: string, agent: string, place: Place): void {
    this.of(conversation, agent).places.add(place)
  }

  /** The channel is gone. */
  leave(place: Place): void {
    for (const known of this.agents.values()) {
      known.places.delete(place)
      known.floors.delete(place)
    }
  }

  settle({ agent, busy, conversation, disconnected = false, online, spent }: Member): void {
    Object.assign(this.of(conversation, agent), { online: online && !disconnected, busy, spent })
  }

  set(conversation: string, agent: string, change: Change): void {
    const known = this.of(conversation, agent)
    Object.assign(known, change, { shut: false })
    if (change.online === true) known.spent = false
  }

  online(conversation: string, agent: string): boolean {
    return this.agents.get(keyOf(conversation, agent))?.online ?? false
  }

  busy(conversation: string, agent: string): boolean {
    return this.agents.get(keyOf(conversation, agent))?.busy ?? false
  }

  heardAt(conversation: string, agent: string): number | undefined {
    return this.agents.get(keyOf(conversation, agent))?.heardAt
  }

  carried(conversation: string, agent: string): ReadonlyArray<string> {
    return this.agents.get(keyOf(conversation, agent))?.carries ?? []
  }

  /** Found out after a start. */
  carry(conversation: string, agent: string, messageId: string): void {
    this.of(conversation, agent).carries = [messageId]
  }

  idle(conversation: string, agent: string, place: Place): boolean {
    const known = this.agents.get(keyOf(conversation, agent))
    if (known === undefined || !known.online || known.busy || known.spent || known.shut) return false
    return known.floors.size === 0 || (known.floors.size === 1 && known.floors.has(place))
  }

  /** Records whether the agent takes messages. */
  shut(conversation: string, agent: string, shut: boolean): void {
    this.of(conversation, agent).shut = shut
  }

  hold(conversation: string, agent: string, place: Place): void {
    this.of(conversation, agent).floors.add(place)
  }

  /** Takes the agent's floor; the other channels in which it sits look again. */
  release(conversation: string, agent: string, from: Place): void {
    const { floors, places } = this.of(conversation, agent)
    if (!floors.delete(from) || floors.size > 0) return
    for (const place of places) if (place !== from) place.look()
  }
}
