/**
 * Presence: the current state of the agents: whether each is online and busy, in which channels it has a seat, and in
 * which it has the floor. This state is not durable: it is queried again after a restart.
 *
 * Guarantees: an agent with the floor in one channel is not idle for any other. This holds from the moment of the
 * channel's decision, even before its runes are durable.
 */
import type { Member } from "../domain/AgentPort.ts"

/** The part of a channel that this module uses. */
export interface Place {
  /** Makes the channel check whether it can give the floor to an agent. */
  look(): void
}

interface Known {
  online: boolean
  busy: boolean
  spent: boolean
  /** The agent's last sign of life, on the monotonic clock; undefined if there was none. */
  heardAt: number | undefined
  /** Ids of the messages that the agent's current turn is processing. */
  carries: ReadonlyArray<string>
  /** True if the agent accepted no message, so that it gets no floor for a while. */
  shut: boolean
  /**
   * Channels in which the agent has the floor, including decisions that are not durable yet. Usually one channel; two
   * only while a failed append is undone.
   */
  readonly floors: Set<Place>
  readonly places: Set<Place>
}

type Change = Partial<Pick<Known, "heardAt" | "busy" | "carries" | "online">>

const keyOf = (conversation: string, agent: string): string => `${conversation}/${agent}`

export class Presence {
  /** True when the agents' state is known. After a start, no floor is given until then. */
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

  leave(place: Place): void {
    for (const known of this.agents.values()) {
      known.places.delete(place)
      known.floors.delete(place)
    }
  }

  settle({ agent, busy, conversation, disconnected, online, spent }: Member): void {
    Object.assign(this.of(conversation, agent), { online: online && disconnected === undefined, busy, spent })
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

  /** Records, after a start, which message an agent's turn is processing. */
  carry(conversation: string, agent: string, messageId: string): void {
    this.of(conversation, agent).carries = [messageId]
  }

  idle(conversation: string, agent: string, place: Place): boolean {
    const known = this.agents.get(keyOf(conversation, agent))
    if (known === undefined || !known.online || known.busy || known.spent || known.shut) return false
    return known.floors.size === 0 || (known.floors.size === 1 && known.floors.has(place))
  }

  /** Records that the agent accepts no messages, or accepts them again. */
  shut(conversation: string, agent: string, shut: boolean): void {
    this.of(conversation, agent).shut = shut
  }

  hold(conversation: string, agent: string, place: Place): void {
    this.of(conversation, agent).floors.add(place)
  }

  /**
   * Takes the floor from the agent. The other channels in which it has a seat then check whether to give it the floor.
   */
  release(conversation: string, agent: string, from: Place): void {
    const { floors, places } = this.of(conversation, agent)
    if (!floors.delete(from) || floors.size > 0) return
    for (const place of places) if (place !== from) place.look()
  }
}
