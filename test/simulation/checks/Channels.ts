/**
 * Channels: what agentd promises of channels, held against what happens: the floor, what is
 * posted, what agents are told, and when a turn or a wait ends.
 *
 * Each text in a channel holds a word of its own (`[pm3]` a person's, `[w7-2]` an agent's),
 * so that what an agent was told is known by reading it.
 */
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { ChannelView } from "../../../src/domain/ChannelMessages.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Seen } from "../world/Processes.ts"
import type { Check, Verdicts } from "./Check.ts"
import { isNews, type Post, Room, type Seat, unread, wordsOf } from "./Room.ts"

type Json = { readonly [field: string]: any }

/** Further knowledge of the world. */
export interface Known {
  /** The newest durable rune. */
  readonly head: () => number
  /** Since when the daemon is there; Infinity while it is not. */
  readonly upAt: () => number
  /** Whether clock and disk are such that waits can be measured. */
  readonly keepsTime: boolean
  /** A person stopped it, and nobody has asked for a start since. */
  readonly isStopped: (agent: string) => boolean
}

/** So much later than promised is late, ms: the report of a sign of life, a busy disk, an agent's pipe. */
const SLACK = 5_000
/** Signs of life are reported once a second. */
const REPORTED = 2_000
/** From an agent's pipe to its channel, ms: what is said meanwhile may come after the deadline. */
const ON_ITS_WAY = 50

/** The newest two signs of life of an agent, ms since the world began. */
interface Signs {
  readonly before: number
  readonly last: number
}

const FLOOR = /You have the floor in the channel #([a-z0-9_-]+)\./
const ASIDE = /In the channel #([a-z0-9_-]+), where you have the floor,/
const LEFT_OUT = /\(\d+ earlier ones are left out\)/
/** Events of a turn by which its agent shows that it lives. */
const SIGNS: ReadonlyArray<RunEvent["_tag"]> = ["Delta", "ToolCall", "ToolProgress", "ToolResult", "TurnStarted"]

/** Errors of a turn that cut its answer off. */
const CUT: ReadonlySet<string> = new Set(["max_tokens", "max_turns", "max_turn_requests"])

const keyOf = (stream: string, name: string): string => `${stream}/${name}`

export class Channels implements Check {
  private readonly verdicts: Verdicts
  private readonly known: Known
  private readonly rooms = new Map<string, Room>()
  private readonly streamOfRun = new Map<string, string>()
  private readonly posted = new Set<string>()
  /** Outputs of turns, as their agents said them. */
  private readonly outputs = new Map<string, string>()
  /** Words of turns so far. */
  private readonly parts = new Map<string, string>()
  private readonly messagesOf = new Map<string, ReadonlyArray<string>>()
  /** Answers of turns that are done: posted or withheld in the end. */
  private readonly owed = new Map<string, Room>()
  private readonly completedTurns = new Set<string>()
  /** Agents whose turn in a channel was cut off. */
  readonly recalled = new Set<string>()
  /** The rune by which a person's word took the floor from its holder last. */
  private readonly overridden = new Map<string, number>()
  /** Floors that people have asked for, by channel and agent. */
  private readonly grants = new Map<string, number>()
  private readonly lastSaid = new Map<string, number>()
  private readonly signs = new Map<string, Signs>()
  private isChanged = true
  private wasDone = true

  constructor(verdicts: Verdicts, known: Known) {
    this.verdicts = verdicts
    this.known = known
  }

  // People.

  granting(name: string, agent: string): void {
    const key = `${name} ${agent}`
    this.grants.set(key, (this.grants.get(key) ?? 0) + 1)
  }

  acked(what: string, eventId: number, text?: string): void {
    const { broken } = this.verdicts
    if (eventId > this.known.head())
      broken(
        "what a channel acknowledges is durable",
        `${what}: rune ${eventId}, the disk ends with ${this.known.head()}`
      )
    for (const word of wordsOf(text ?? ""))
      if (!this.posted.has(word)) broken("what a channel acknowledges is durable", `${what}: ${word} is in no rune`)
  }

  /** Checks a shown channel against the fold of the durable runes. */
  shown({ channel, posts }: ChannelView): void {
    const room = this.rooms.get(keyOf(channel.conversation, channel.name))
    if (channel.restsOn > this.known.head())
      this.verdicts.broken("what is shown of a channel is durable", `#${channel.name} rests on ${channel.restsOn}`)
    if (room === undefined || room.restsOn !== channel.restsOn) return
    const seats = (of: ReadonlyArray<{ readonly agent: string; readonly state: string }>) =>
      of
        .map(({ agent, state }) => `${agent} ${state}`)
        .toSorted()
        .join()
    const differs = [
      channel.floor !== (room.holder?.agent ?? null) && `floor ${channel.floor}`,
      seats(channel.seats) !== seats([...room.seats.values()]) && `seats ${seats(channel.seats)}`,
      channel.posts !== room.head && `${channel.posts} posts`,
      channel.paused !== room.paused && `paused ${channel.paused}`,
      channel.closed !== room.closed && `closed ${channel.closed}`,
      posts.at(-1)?.seq !== room.posts.at(-1)?.seq && "the newest post"
    ].filter((one) => one !== false)
    this.verdicts.sometimes("a channel is shown")
    if (differs.length > 0)
      this.verdicts.broken("what is shown of a channel is what its runes say", `${room.key}: ${differs.join("; ")}`)
  }

  // The disk.

  rune(rune: Rune): void {
    this.isChanged = true
    this.late()
    const payload = rune.payload as Json
    if (rune.kind === "session.closed") {
      for (const [key, room] of this.rooms) if (room.stream === rune.stream) this.over(key, room)
      return
    }
    const event = (payload["event"] ?? {}) as Json
    if (rune.kind === "worker.moved" && typeof payload["runId"] === "string") {
      this.streamOfRun.set(payload["runId"], rune.stream)
      // the first turn of a run has the run's name
      if (event["_tag"] === "PromptReady") this.messagesOf.set(payload["runId"], event["messageIds"])
    }
    if (rune.kind === "turn.started") this.messagesOf.set(event["turnId"], event["messageIds"] ?? [])
    if (rune.kind === "turn.completed") this.completed(rune.stream, event["turnId"])
    if (rune.kind === "channel.created") {
      const key = keyOf(rune.stream, payload["name"])
      if (this.rooms.get(key)?.closed === false) this.verdicts.broken("a channel is made once", key)
      this.rooms.set(key, new Room(rune.stream, payload["name"], payload["settings"]))
    }
    const name = rune.kind === "seat.moved" ? payload["channel"] : rune.actor.slice(rune.actor.indexOf("/") + 1)
    const room = this.rooms.get(keyOf(rune.stream, name))
    if (room === undefined || !(rune.kind.startsWith("channel.") || rune.kind === "seat.moved")) return
    room.restsOn = rune.eventId
    if (rune.kind === "seat.moved") this.moved(room, rune, event)
    else if (rune.kind === "channel.posted") this.post(room, rune, payload)
    else if (rune.kind === "channel.withheld") this.withheld(room, payload)
    else room.record(rune)
    if (rune.kind === "channel.unsignalled" && room.holder !== undefined) room.holder.answered = true
    if (rune.kind === "channel.closed") this.over(room.key, room)
  }

  private over(key: string, room: Room): void {
    this.rooms.delete(key)
    for (const [turnId, of] of this.owed) if (of === room) this.owed.delete(turnId)
  }

  private post(room: Room, { eventId }: Rune, payload: Json): void {
    const { broken, sometimes } = this.verdicts
    const { by, from, text, turnId } = payload
    const post: Post = { seq: ++room.head, eventId, from, kind: by, words: wordsOf(text) }
    for (const word of post.words) {
      if (this.posted.has(word)) broken("what is said is posted once", `${word} in ${room.key}, rune ${eventId}`)
      this.posted.add(word)
    }
    room.add(post)
    room.amongAgents = by === "agent" ? room.amongAgents + 1 : 0
    // its last answer may come when it rests already
    if (room.amongAgents > room.restAfter + 1)
      broken("agents alone come to rest", `${room.key}: ${room.amongAgents} posts, rune ${eventId}`)
    if (by !== "agent") return sometimes("a person's post")
    const seat = room.seats.get(from)
    if (seat?.state !== "ACTIVE") broken("only who has the floor is heard", `${from} in ${room.key}, rune ${eventId}`)
    if (typeof turnId !== "string") return sometimes("an agent's post through its tools")
    sometimes("an agent's answer")
    if (seat !== undefined) seat.answered = true
    this.owed.delete(turnId)
    const output = this.outputs.get(turnId)
    if (output === undefined || !post.words.every((word) => output.includes(word)))
      broken("what is posted is what its agent said", `${from} in ${room.key}, rune ${eventId}: ${text}`)
    if (/TURN_COMPLETE\s*$|^WAIT:/m.test(text)) broken("a signal is no part of a post", `${room.key}, rune ${eventId}`)
  }

  private withheld(room: Room, { agent, turnId, why }: Json): void {
    this.verdicts.sometimes(`withheld: ${why}`)
    this.owed.delete(turnId)
    const seat = room.seats.get(agent)
    const isOf = (this.messagesOf.get(turnId) ?? []).some((id) => seat !== undefined && id === room.promptOf(seat))
    if (why === "the floor had gone" && seat?.state === "ACTIVE" && isOf)
      this.verdicts.broken("who has the floor is heard", `${agent} in ${room.key}: turn ${turnId}`)
  }

  /** Takes a durable answer of an agent, which comes to the channel. */
  private completed(stream: string, turnId: string): void {
    this.completedTurns.add(turnId)
    const name = /^channel:([^:]+):/.exec((this.messagesOf.get(turnId) ?? []).join())?.[1]
    const room = name === undefined ? undefined : this.rooms.get(keyOf(stream, name))
    if (room !== undefined && wordsOf(this.outputs.get(turnId) ?? "").length > 0) this.owed.set(turnId, room)
  }

  private moved(room: Room, rune: Rune, event: Json): void {
    const { agentId } = rune.payload as Json
    const seat = room.seat(agentId)
    const from = seat.state
    if (rune.from !== from)
      this.verdicts.broken("a seat moves from where it is", `${agentId}: ${from}, rune ${rune.eventId}`)
    if (rune.trigger === "TurnTimedOut") this.timedOut(room, seat, rune)
    if (from === "ACTIVE" && rune.to !== "ACTIVE") this.ends(room, seat, event)
    if (from === "ACTIVE" && rune.trigger === "HumanOverride")
      this.overridden.set(`${room.key} ${seat.agent}`, rune.eventId)
    room.move(seat, rune, event, this.verdicts.now)
    // it is called for the same again
    if (rune.trigger === "AgentLeft" || rune.trigger === "Removed" || event["untold"] === true) seat.called = 0
    if (from !== "ACTIVE" && rune.to === "ACTIVE") this.begins(room, seat, rune)
  }

  private begins(room: Room, seat: Seat, rune: Rune): void {
    const { broken, sometimes } = this.verdicts
    const { agent } = seat
    const where = `${agent} in ${room.key}, rune ${rune.eventId}`
    sometimes(`the floor by ${rune.trigger}`)
    for (const other of this.rooms.values()) {
      if (other.stream !== room.stream) continue
      for (const one of other.seats.values()) {
        if (one === seat || one.state !== "ACTIVE") continue
        if (other === room) broken("one floor of a channel", `${where}: beside ${one.agent}`)
        if (one.agent === agent) broken("an agent has one floor at a time", `${where}: beside ${other.key}`)
      }
    }
    if (this.known.isStopped(agent)) broken("a stopped agent is not given the floor", where)
    // a person's word interrupts the holder, who goes on with it at once
    const isInterrupted = this.overridden.get(`${room.key} ${agent}`) === rune.eventId - 1
    const isAsked = isInterrupted || rune.trigger === "HumanOverride" || this.isGranted(room.name, agent)
    if (rune.from === "QUEUED" && !isAsked) {
      if (room.paused) broken("a paused channel gives no floor", where)
      if (room.order === "manual") broken("a person gives the floor of a manual channel", where)
      if (room.amongAgents >= room.restAfter) broken("a channel at rest gives no floor", where)
      if (!room.posts.some((post) => isNews(post, agent) && post.seq > seat.called && !seat.done.has(post.seq)))
        broken("a channel is silent where nothing is new", where)
    }
    room.begin(seat, rune.eventId)
  }

  private isGranted(name: string, agent: string): boolean {
    const key = `${name} ${agent}`
    const count = this.grants.get(key) ?? 0
    if (count > 0) this.grants.set(key, count - 1)
    return count > 0
  }

  private ends(room: Room, seat: Seat, event: Json): void {
    const { _tag } = event
    if (_tag === "TURN_COMPLETE" || _tag === "WaitRequested" || seat.answered) {
      for (const [turnId, told] of seat.given)
        if (this.completedTurns.has(turnId)) for (const seq of told) seat.done.add(seq)
    }
    if (_tag !== "TURN_COMPLETE" && _tag !== "WaitRequested" && _tag !== "TurnFailed") this.recalled.add(seat.agent)
    const untold = unread(room, seat).filter(({ seq }) => seq <= seat.called)
    if (untold.length > 0) this.verdicts.sometimes(`a floor is over before its agent is told: ${_tag}`)
    // a person took it away, or the turn that was to tell it
    if (_tag === "HumanOverride" || (_tag === "TurnFailed" && event["untold"] !== true))
      for (const { seq } of untold) seat.ever.add(seq)
  }

  // Time.

  private signed(agent: string, at: number): Signs {
    const { last } = this.signs.get(agent) ?? { last: 0 }
    return { before: last, last: at }
  }

  /** The agent's newest sign of life but one that is still on its way. */
  private heard(agent: string): number {
    const { before, last } = this.signs.get(agent) ?? { before: 0, last: 0 }
    return this.verdicts.now - last < ON_ITS_WAY ? before : last
  }

  private timedOut(room: Room, seat: Seat, rune: Rune): void {
    if (!this.known.keepsTime) return
    const limit = room.limitOf(seat.agent)
    const silent = this.verdicts.now - Math.max(this.heard(seat.agent), seat.since)
    if (silent < limit - REPORTED)
      this.verdicts.broken(
        "who gives signs of life keeps the floor",
        `${seat.agent} in ${room.key}, rune ${rune.eventId}: silent for ${silent.toFixed(0)} of ${limit} ms`
      )
  }

  /** Checks that no agent is silent, or waits, for longer than is allowed. */
  private late(): void {
    if (!this.known.keepsTime) return
    const { now } = this.verdicts
    for (const room of this.rooms.values()) {
      for (const seat of room.seats.values()) {
        if (seat.state !== "ACTIVE" && seat.state !== "WAITING") continue
        const since = Math.max(seat.since, this.known.upAt())
        const isActive = seat.state === "ACTIVE"
        const silent = now - (isActive ? Math.max(since, this.lastSaid.get(seat.agent) ?? 0) : since)
        const limit = (isActive ? room.limitOf(seat.agent) : seat.wait) + SLACK
        if (silent <= limit) continue
        const what = isActive ? "who is silent loses the floor" : "a wait ends in time"
        this.verdicts.broken(what, `${seat.agent} in ${room.key}: ${silent.toFixed(0)} of ${limit} ms`)
      }
    }
  }

  // The agents.

  given({ agent, runId }: Seen, turnId: string, text: string): void {
    this.isChanged = true
    const name = FLOOR.exec(text)?.[1] ?? ASIDE.exec(text)?.[1]
    const room = this.rooms.get(keyOf(this.streamOfRun.get(runId) ?? "", name ?? ""))
    const seat = room?.seats.get(agent)
    if (room === undefined || seat === undefined) return
    const isFloor = FLOOR.test(text)
    this.verdicts.sometimes(isFloor ? "an agent is told that it has the floor" : "an agent is told a post in its turn")
    const ids = this.messagesOf.get(turnId) ?? []
    const prompt = room.promptOf(seat)
    const isOfFloor = seat.state === "ACTIVE" && ids.some((id) => id === prompt || id.startsWith(`${prompt}/`))
    // one that has answered in this floor has been told
    if (isOfFloor && !isFloor && seat.given.size === 0 && !seat.answered)
      this.verdicts.broken(
        "who hears a post in its turn knows that it has the floor",
        `${agent} in ${room.key}: ${text}`
      )
    const told = wordsOf(text).flatMap((word) => room.byWord.get(word) ?? [])
    for (const { from, kind, seq, words } of told) {
      if (kind === "agent" && from === agent) continue
      if (seat.done.has(seq))
        this.verdicts.broken("what was answered is not told again", `${words.join()} to ${agent} in ${room.key}`)
      seat.ever.add(seq)
    }
    if (isOfFloor) seat.given.set(turnId, new Set(told.map(({ seq }) => seq)))
    if (!isFloor) return
    if (LEFT_OUT.test(text)) {
      const first = Math.min(...told.map(({ seq }) => seq))
      for (const { seq } of room.posts) if (seq < first) seat.ever.add(seq)
    }
    if (seat.state !== "ACTIVE" || !ids.includes(prompt)) return
    const missing = unread(room, seat).filter(({ seq }) => seq <= seat.called)
    if (missing.length > 0)
      this.verdicts.broken(
        "what is new is told with the floor",
        `${agent} in ${room.key}: not ${missing.map(({ words }) => words.join()).join()}`
      )
  }

  said({ agent, turnId }: Seen, event: RunEvent): void {
    this.lastSaid.set(agent, this.verdicts.now)
    if (turnId !== undefined && SIGNS.includes(event._tag)) this.signs.set(agent, this.signed(agent, this.verdicts.now))
    if (turnId !== undefined && event._tag === "Delta" && event.stream === "assistant")
      this.parts.set(turnId, (this.parts.get(turnId) ?? "") + event.text)
    if (event._tag === "TurnCompleted") this.outputs.set(event.turnId, event.output)
    // what came of an answer that was cut off is posted as half of one
    if (event._tag === "TurnError" && CUT.has(event.errorType))
      this.outputs.set(event.turnId, this.parts.get(event.turnId) ?? "")
  }

  // The end.

  isDone(): boolean {
    if (!this.isChanged) return this.wasDone
    this.isChanged = false
    this.wasDone = this.open().length === 0
    return this.wasDone
  }

  atRest(): void {
    for (const [promise, detail] of this.open()) this.verdicts.broken(promise, detail)
  }

  private open(): ReadonlyArray<readonly [promise: string, detail: string]> {
    const open: Array<readonly [string, string]> = []
    for (const [turnId, { key }] of this.owed)
      open.push(["an answer is posted or withheld", `turn ${turnId} in ${key}`])
    for (const room of this.rooms.values()) {
      for (const seat of room.seats.values()) {
        if (seat.state === "ACTIVE") open.push(["the floor is free in the end", `${seat.agent} in ${room.key}`])
        if (!seat.member) continue
        const [post] = unread(room, seat)
        if (post !== undefined)
          open.push([
            "what is posted is read by each seat in the end",
            `${post.words.join()} by ${seat.agent} (${seat.state}) in ${room.key}`
          ])
      }
    }
    return open
  }
}
