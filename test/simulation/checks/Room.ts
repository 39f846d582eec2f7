/**
 * Room: a channel as its durable runes tell it to an outsider: who sits there, who has the
 * floor, what was posted, and what each agent was told of.
 */
import type { Rune } from "../../../src/core/event-log/Rune.ts"

type Json = { readonly [field: string]: any }

export interface Post {
  readonly seq: number
  readonly eventId: number
  readonly from: string
  readonly kind: "agent" | "notice" | "person"
  readonly words: ReadonlyArray<string>
}

export interface Seat {
  readonly agent: string
  state: string
  member: boolean
  /** When it got to where it is, or a person gave it the floor anew. */
  since: number
  /** How long its wait may take, ms. */
  wait: number
  /** The rune that gave it the floor. */
  floor: number
  /** True where the agent has answered in this floor. */
  answered: boolean
  /** Posts up to this one were news to it when it got the floor. */
  called: number
  /** Told with the floor that it has, by turn; told at all; told in a turn of its own that it has dealt with. */
  given: Map<string, ReadonlySet<number>>
  readonly ever: Set<number>
  readonly done: Set<number>
}

export const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\[(?:pm\d+|w\d+-\d+)\]/g) ?? []

/** To that agent: neither the channel's own notices nor its own words. */
export const isNews = ({ from, kind }: Post, agent: string): boolean =>
  kind !== "notice" && !(kind === "agent" && from === agent)

/** Posts that the seat has never been told; a post without a word of its own is not to be recognized. */
export const unread = (room: Room, seat: Seat): ReadonlyArray<Post> =>
  room.posts.filter((post) => post.words.length > 0 && isNews(post, seat.agent) && !seat.ever.has(post.seq))

export class Room {
  readonly stream: string
  readonly name: string
  readonly key: string
  readonly seats = new Map<string, Seat>()
  readonly posts: Array<Post> = []
  readonly byWord = new Map<string, Post>()
  head = 0
  amongAgents = 0
  paused = false
  closed = false
  restsOn = 0
  private settings: Json

  constructor(stream: string, name: string, settings: Json) {
    this.stream = stream
    this.name = name
    this.key = `${stream}/${name}`
    this.settings = settings
  }

  get order(): string {
    return this.settings["order"]
  }

  get restAfter(): number {
    return this.settings["turnConfig"]["restAfterPosts"]
  }

  /** Of silence, ms. */
  limitOf(agent: string): number {
    return 1_000 * (this.settings["timeouts"][agent] ?? this.settings["turnConfig"]["defaultTimeoutSeconds"])
  }

  get holder(): Seat | undefined {
    return [...this.seats.values()].find(({ state }) => state === "ACTIVE")
  }

  /** The message with which it is told that it has the floor. */
  promptOf({ floor }: Seat): string {
    return `channel:${this.name}:${floor}`
  }

  seat(agent: string): Seat {
    const known = this.seats.get(agent)
    if (known !== undefined) return known
    const seat: Seat = {
      agent,
      state: "OFFLINE",
      member: false,
      since: 0,
      wait: 0,
      floor: 0,
      answered: false,
      called: 0,
      given: new Map(),
      ever: new Set(),
      done: new Set()
    }
    this.seats.set(agent, seat)
    return seat
  }

  add(post: Post): void {
    this.posts.push(post)
    for (const word of post.words) this.byWord.set(word, post)
  }

  /** Records a rune of the channel itself. */
  record({ eventId, kind, payload }: Rune): void {
    const said = payload as Json
    switch (kind) {
      case "channel.configured":
        this.settings = said["settings"]
        return
      case "channel.ordered":
        this.settings = { ...this.settings, order: said["order"] }
        return
      case "channel.assigned":
        this.seat(said["agent"])
        return
      case "channel.notice":
        this.add({ seq: ++this.head, eventId, from: "", kind: "notice", words: [] })
        return
      case "channel.paused":
        this.paused = true
        return
      case "channel.resumed":
        this.paused = false
        this.amongAgents = 0
        return
      case "channel.stirred":
        this.amongAgents = 0
        return
      case "channel.closed":
        this.closed = true
    }
  }

  move(seat: Seat, rune: Rune, event: Json, now: number): void {
    if (rune.trigger === "Assigned") seat.member = true
    if (rune.trigger === "Removed" || rune.trigger === "AgentLeft") seat.member = false
    if (rune.to !== seat.state || rune.trigger === "HumanOverride") seat.since = now
    if (rune.trigger === "WaitRequested")
      seat.wait = event["timeout"] ?? 1_000 * this.settings["turnConfig"]["waitTimeoutSeconds"]
    if (rune.trigger === "WaitResolved") seat.wait = Infinity
    seat.state = rune.to ?? seat.state
  }

  begin(seat: Seat, eventId: number): void {
    seat.floor = eventId
    seat.answered = false
    seat.called = this.head
    seat.given = new Map()
  }
}
