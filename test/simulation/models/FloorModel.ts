/**
 * FloorModel: the floor of one channel, with its agents, a person, time and a daemon that dies.
 *
 * The channel is the real one: `decide`, `apply`, the timers and the actions of `ChannelActor`
 * over the real `Presence`, and after a death `TurnRecovery.settle`. Played are the agents
 * (an inbox, a turn, whether the agent is there) and the way of their reports. What is on its
 * way (actions that are durable and not done, reports that are not heard) is part of a
 * state, so that everything may come between.
 *
 * Left out: times (a limit on time may run out whenever there is one) and all posts but those
 * that some agent has not dealt with.
 */
import { Clock, Effect, Exit, References, Scope } from "effect"
import { ChannelActor } from "../../../src/channels/ChannelActor.ts"
import type { ChannelRegistry } from "../../../src/channels/ChannelRegistry.ts"
import { type Channel, hasUnread, isResting, seatOf, seatsOf, unborn } from "../../../src/channels/ChannelState.ts"
import type { Act } from "../../../src/channels/ChannelTransaction.ts"
import type { FloorInput } from "../../../src/channels/FloorInput.ts"
import { Presence } from "../../../src/channels/Presence.ts"
import { settle } from "../../../src/channels/TurnRecovery.ts"
import { decodeChannel } from "../../../src/config/ChannelConfig.ts"
import type { AgentPort, Departure, Fate, Member, TurnOutcome } from "../../../src/domain/AgentPort.ts"
import { CommandRefused } from "../../../src/domain/Messages.ts"
import { type Context, type EventSourcedActor, Refuse } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { Manual } from "../../../src/core/event-actor/EventLoop.ts"
import { FORMAT, type Rune } from "../../../src/core/event-log/Rune.ts"
import { lab, MemoryLog } from "../../world/event-actor/Lab.ts"
import type { Model, Move } from "./Explore.ts"

const CONVERSATION = "web-1a2b3c4d"
const NAME = "c"
const T0 = Date.parse("2026-11-20T09:00:00Z")
const FAR = 10 * 86_400_000
export type Definition = EventSourcedActor<Channel, FloorInput, Act, CommandRefused>

interface Waiting {
  readonly id: string
  readonly alone: boolean
}

/** An agent as it is, and as the daemon has heard of it. */
interface Agent {
  readonly isOnline: boolean
  readonly inbox: ReadonlyArray<Waiting>
  readonly turn: { readonly id: string; readonly carries: ReadonlyArray<Waiting>; readonly isCut: boolean } | null
  readonly known: { readonly online: boolean; readonly busy: boolean; readonly shut: boolean }
}

type Report =
  | { readonly _tag: "Started"; readonly agent: string; readonly ids: ReadonlyArray<string> }
  | (Extract<FloorInput, { _tag: "Ended" }> & { readonly died: boolean })
  | { readonly _tag: "Idle"; readonly agent: string }
  | { readonly _tag: "Online"; readonly agent: string }
  | { readonly _tag: "Offline"; readonly agent: string; readonly how: Departure }

export interface State {
  readonly channel: Channel
  readonly agents: { readonly [agent: string]: Agent }
  readonly acts: ReadonlyArray<Act>
  readonly reports: ReadonlyArray<Report>
  /** Fates of messages of the turn that is under way. */
  readonly fates: { readonly [id: string]: Fate }
  readonly eventId: number
  readonly turns: number
  /** The mistake that a step has shown. */
  readonly wrong: string | null
}

export interface Options {
  readonly agents: ReadonlyArray<string>
  readonly settings?: object
  /** How an agent's turn may end, by what it answers. */
  readonly ends: ReadonlyArray<End>
  readonly leaves: ReadonlyArray<Departure>
  readonly person: ReadonlyArray<"post" | "grant" | "skip" | "requeue" | "assign" | "remove" | "pause">
  /** An agent speaks through its tools. */
  readonly tools: boolean
  /** The daemon dies. */
  readonly crash: boolean
  /** An agent may take no message. */
  readonly refuses: boolean
  /** A person writes while fewer posts than this are new to some agent. */
  readonly unread: number
  /** With so many actions on their way the next is done before anything else. */
  readonly acts: number
  /** Reports that may be on their way at once. */
  readonly reports: number
  readonly most: number
  /** Plants a mistake. */
  readonly plant?: (definition: Definition) => Definition
}

const ENDS = {
  done: ["completed", "TURN_COMPLETE", false],
  says: ["completed", "Yes.\nTURN_COMPLETE", false],
  silent: ["completed", "Yes.", false],
  waits: ["completed", "WAIT: for news, until message", false],
  "waits for a person": ["completed", "WAIT: for you, until person", false],
  "waits for a time": ["completed", "WAIT: for it, until 120s", false],
  fails: ["error", "", false],
  "fails and tries again": ["error", "", true],
  "is interrupted": ["interrupted", "", false]
} as const satisfies { readonly [end: string]: readonly [TurnOutcome, string, boolean] }
export type End = keyof typeof ENDS

/** Agents that talk among themselves are bounded soon. */
const SETTINGS = { turnConfig: { restAfterPosts: 2 } }

/** Nobody waits in real time. */
const still: Clock.Clock = {
  ...Effect.runSync(Clock.Clock),
  currentTimeMillisUnsafe: () => T0,
  currentTimeMillis: Effect.succeed(T0),
  sleep: () => Effect.never
}

const run = <A, E>(effect: Effect.Effect<A, E>): A => {
  const quiet = Effect.provideService(effect, References.MinimumLogLevel, "None")
  const exit = Effect.runSyncExit(Effect.provideService(quiet, Clock.Clock, still))
  if (Exit.isFailure(exit)) throw new Error(String(exit.cause))
  return exit.value
}

/** Remembers who took no message. */
class Watched extends Presence {
  readonly shuts = new Set<string>()
  override shut(conversation: string, agent: string, shut: boolean): void {
    super.shut(conversation, agent, shut)
    if (shut) this.shuts.add(agent)
    else this.shuts.delete(agent)
  }
  override set(...[conversation, agent, change]: Parameters<Presence["set"]>): void {
    super.set(conversation, agent, change)
    this.shuts.delete(agent)
  }
}

const { system } = lab(new MemoryLog(), { loop: new Manual() })

/** A move: the state, thawed. */
class Step {
  channel: Channel
  readonly agents: { [agent: string]: Agent }
  acts: Array<Act>
  reports: Array<Report>
  fates: { [id: string]: Fate }
  presence = new Watched()
  now = T0
  private made: { readonly actor: ChannelActor; readonly presence: Presence; readonly channel: Channel } | undefined
  private eventId: number
  private turns: number
  private wrong: string | null
  private readonly options: Options
  private readonly isRefusing: boolean

  constructor(state: State, options: Options, isRefusing = false) {
    const { acts, agents, channel, eventId, fates, reports, turns, wrong } = state
    this.channel = channel
    this.agents = { ...agents }
    this.acts = [...acts]
    this.reports = [...reports]
    this.fates = { ...fates }
    this.eventId = eventId
    this.turns = turns
    this.wrong = wrong
    this.options = options
    this.isRefusing = isRefusing
    this.presence.isSettled = true
    for (const [agent, { known }] of Object.entries(agents)) {
      this.presence.settle(this.member(agent, known))
      if (known.shut) this.presence.shut(CONVERSATION, agent, true)
    }
  }

  private member(agent: string, { busy, online }: { readonly online: boolean; readonly busy: boolean }): Member {
    return {
      conversation: CONVERSATION,
      agent,
      online,
      busy,
      spent: false,
      can: [],
      role: null,
      parent: null,
      cwd: null,
      branch: null
    }
  }

  // --- the channel

  /** Both of its clocks are the model's. */
  private get system(): typeof system {
    const now = () => this.now
    const clock = Object.assign(Object.create(system.clock), { currentTimeMillisUnsafe: now }) as typeof system.clock
    return Object.assign(Object.create(system), { clock, monotonic: now }) as typeof system
  }

  private get actor(): ChannelActor {
    if (this.made?.presence === this.presence && this.made.channel === this.channel) return this.made.actor
    const scope = Scope.makeUnsafe()
    const around = { system: this.system, agents: this.port, presence: this.presence, scope }
    const actor = new ChannelActor(around, this.channel)
    const { current } = this.channel.queue
    if (current !== null) this.presence.hold(CONVERSATION, current, actor)
    this.made = { actor, presence: this.presence, channel: this.channel }
    return actor
  }

  definitionOf(actor: ChannelActor): Definition {
    const definition = actor.scope.members[0]!.definition as Definition
    return this.options.plant?.(definition) ?? definition
  }

  /** Steps the channel; false where it refuses. */
  input(input: FloorInput): boolean {
    const { actor, channel, eventId } = this
    const definition = this.definitionOf(actor)
    const context: Context = {
      now: this.now,
      nextId: eventId + 1,
      nextSeq: eventId + 1,
      cause: null,
      ask: 0,
      self: actor.scope.members[0] as never,
      ref: () => actor.scope.members[0] as never,
      read: () => channel as never,
      has: () => false
    }
    const decided = definition.decide(channel, input, context)
    if (decided instanceof Refuse) return false
    if (typeof decided === "string") throw new Error(`${input._tag} is ${decided}`)
    for (const draft of decided.runes) {
      this.eventId += 1
      const rune: Rune = {
        format: FORMAT,
        eventId: this.eventId,
        seq: this.eventId,
        stream: CONVERSATION,
        at: this.now,
        kind: draft.kind,
        actor: draft.actor ?? "",
        from: draft.from ?? null,
        to: draft.to ?? null,
        trigger: draft.trigger ?? null,
        cause: null,
        moves: [],
        visibility: "internal",
        payload: draft.payload
      }
      this.channel = definition.apply(this.channel, rune, false)
    }
    this.acts.push(...(decided.acts ?? []))
    if (this.options.plant === undefined && decided.state !== undefined && decided.runes.length > 0) {
      const [live, fold] = [JSON.stringify(decided.state), JSON.stringify(this.channel)]
      if (live !== fold) this.wrong ??= `after ${input._tag} the channel is not the fold of its runes`
    }
    const alone = (decided.acts ?? []).flatMap((act) => (act._tag === "LeaveAlone" ? [act.agent] : []))
    this.wrong ??= wrongWith(channel, this.channel, input, this.presence, actor, alone)
    return true
  }

  timers(): ReadonlyArray<{ readonly key: string; readonly at: number }> {
    const timers = this.definitionOf(this.actor).timers!(this.channel, 0)
    return timers.map(({ after, key, since }) => ({ key, at: since + after }))
  }

  perform(): void {
    const act = this.acts.shift()!
    const { actor, channel } = this
    const told: Array<FloorInput> = []
    const self = { state: channel, tell: (input: FloorInput) => Effect.sync(() => void told.push(input)) }
    const done = this.definitionOf(actor).perform!(act, { self: self as never, state: channel, cause: null })
    if (done !== undefined) run(done as Effect.Effect<void>)
    for (const input of told) this.input(input)
  }

  // --- its agents

  change(agent: string, change: Partial<Agent>): void {
    this.agents[agent] = { ...this.agents[agent]!, ...change }
  }

  /** The port by which the channel asks agents. */
  private get port(): AgentPort["Service"] {
    const refused = new CommandRefused({ code: "conflict", message: "no", remedy: "none" })
    const receive = (agent: string, one: Waiting) => {
      const { inbox, turn } = this.agents[agent]!
      const isKnown = [...inbox, ...(turn?.carries ?? [])].some(({ id }) => id === one.id) || one.id in this.fates
      if (!isKnown) this.change(agent, { inbox: [...inbox, one] })
    }
    const withdraw = (agent: string, ...ids: ReadonlyArray<string>): boolean => {
      const { inbox } = this.agents[agent]!
      const left = ids.filter((id) => this.fates[id]?._tag !== "Dropped")
      if (left.some((id) => !inbox.some((one) => one.id === id))) return false
      this.change(agent, { inbox: inbox.filter((one) => !left.includes(one.id)) })
      for (const id of left) this.fates[id] = { _tag: "Dropped" }
      return true
    }
    const put = (
      { agent }: { readonly agent: string },
      { alone, messageId: id }: { messageId: string; alone: boolean }
    ) =>
      Effect.suspend(() => {
        if (this.isRefusing) return Effect.fail(refused)
        receive(agent, { id, alone })
        return Effect.succeed({ eventId: 0 })
      })
    return {
      post: put,
      steer: (to, message) => Effect.asVoid(put(to, message)),
      withdraw: ({ agent }, ids) => Effect.sync(() => withdraw(agent, ...ids)),
      fate: ({ agent }, id) => Effect.sync(() => this.fateOf(agent, id)),
      interrupt: ({ agent }, id) =>
        Effect.sync(() => {
          const { turn } = this.agents[agent]!
          if (turn?.carries.some((one) => one.id === id) === true)
            this.change(agent, { turn: { ...turn, isCut: true } })
          else withdraw(agent, id)
        }),
      members: () =>
        Effect.sync(() =>
          Object.entries(this.agents).map(([agent, { isOnline, turn }]) =>
            this.member(agent, { online: isOnline, busy: turn !== null })
          )
        ),
      reports: undefined as never,
      recovered: Effect.void
    }
  }

  private fateOf(agent: string, id: string): Fate {
    const { inbox, turn } = this.agents[agent]!
    if (turn?.carries.some((one) => one.id === id) === true) return { _tag: "Carried", turnId: turn.id, begun: true }
    if (inbox.some((one) => one.id === id)) return { _tag: "Waiting" }
    return this.fates[id] ?? { _tag: "Unknown" }
  }

  take(agent: string): void {
    const { inbox } = this.agents[agent]!
    const [first, ...rest] = inbox
    const together = rest.findIndex(({ alone }) => alone)
    const carries = first!.alone ? [first!] : [first!, ...(together === -1 ? rest : rest.slice(0, together))]
    this.turns += 1
    this.change(agent, {
      inbox: inbox.slice(carries.length),
      turn: { id: `turn-${this.turns}`, carries, isCut: false }
    })
    this.reports.push({ _tag: "Started", agent, ids: carries.map(({ id }) => id) })
  }

  end(agent: string, outcome: TurnOutcome, output: string, again: boolean, died = false): void {
    const { inbox, turn } = this.agents[agent]!
    const { carries, id: turnId } = turn!
    const messageIds = carries.map(({ id }) => id)
    this.change(agent, { turn: null, ...(again ? { inbox: [...carries, ...inbox] } : {}) })
    if (!again) for (const id of messageIds) this.fates[id] = { _tag: "Ended", turnId, outcome, output, died }
    this.reports.push({ _tag: "Ended", agent, turnId, messageIds, outcome, reason: null, output, again, died })
  }

  leave(agent: string, how: Departure): void {
    const isAtWork = this.agents[agent]!.turn !== null
    // its process died in its turn: that is said first; else its turn ends first
    if (how !== "stopped") this.reports.push({ _tag: "Offline", agent, how })
    if (isAtWork) this.end(agent, how === "stopped" ? "interrupted" : "error", "", how !== "crashed", how !== "stopped")
    if (how === "stopped") this.reports.push({ _tag: "Offline", agent, how })
    this.change(agent, { isOnline: false })
  }

  /** As `hear` of Channels does. */
  hear(): void {
    const report = this.reports.shift()!
    const { agent } = report
    switch (report._tag) {
      case "Started":
        this.presence.set(CONVERSATION, agent, { busy: true })
        return void this.input({ _tag: "Carried", agent, messageIds: report.ids })
      case "Ended": {
        const { died: _, ...input } = report
        this.presence.set(CONVERSATION, agent, { busy: false })
        this.input(input)
        if (this.agents[agent]!.isOnline) this.reports.push({ _tag: "Idle", agent })
        return
      }
      case "Idle":
        this.presence.set(CONVERSATION, agent, { busy: false })
        return void this.input({ _tag: "Look" })
      case "Online":
        this.presence.set(CONVERSATION, agent, { online: true, busy: false })
        return void this.input({ _tag: "Came", agent })
      case "Offline":
        this.presence.set(CONVERSATION, agent, { online: false, busy: false })
        return void this.input({ _tag: "Left", agent, how: report.how })
    }
  }

  /** The daemon dies, and every run with it; a new one has the log, and asks the agents. */
  crash(): void {
    this.acts = []
    this.reports = []
    for (const [agent, { inbox, turn }] of Object.entries(this.agents)) {
      // lost: offered again, under the same ids
      this.change(agent, { turn: null, inbox: [...(turn?.carries ?? []), ...inbox] })
    }
    this.presence = new Watched()
    const { actor: first } = this
    // What recovery reads of the channel is as committed; the mail is stepped as it comes.
    const tell = (input: FloorInput) => Effect.sync(() => void this.input(input))
    const current = () => this.channel
    const actor = {
      get channel() {
        return current()
      },
      conversation: CONVERSATION,
      tell,
      ask: tell
    }
    const registry = {
      presence: this.presence,
      conversations: [CONVERSATION],
      of: () => [actor],
      settle: () => {
        this.presence.isSettled = true
        if (this.channel.queue.line.length > 0) this.input({ _tag: "Look" })
      }
    }
    this.presence.seat(CONVERSATION, first.name, first)
    run(settle(this.port, registry as unknown as ChannelRegistry))
  }

  get state(): State {
    const { acts, agents, channel, eventId, presence, reports, turns, wrong } = this
    const { current } = channel.queue
    const prompt = current === null ? null : (seatOf(channel, current)?.prompt ?? null)
    const isKept = (id: string) => id === prompt || channel.floor?.sent.includes(id) === true
    const fates = Object.fromEntries(Object.entries(this.fates).filter(([id]) => isKept(id)))
    const known = (agent: string) => ({
      online: presence.online(CONVERSATION, agent),
      busy: presence.busy(CONVERSATION, agent),
      shut: presence.shuts.has(agent)
    })
    const all = Object.entries(agents).map(([agent, is]) => [agent, { ...is, known: known(agent) }] as const)
    return { channel, agents: Object.fromEntries(all), acts, reports, fates, eventId, turns, wrong }
  }
}

// --- what must hold

const same = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): boolean =>
  one.length === other.length && one.every((name) => other.includes(name))

/** Says what is wrong after a step of the channel; `alone`: agents that it gives no floor for a while. */
const wrongWith = (
  before: Channel,
  after: Channel,
  { _tag }: FloorInput,
  presence: Presence,
  actor: ChannelActor,
  alone: ReadonlyArray<string>
): string | null => {
  const answers = after.posts.map(({ messageId }) => messageId).filter((id) => id !== "")
  if (new Set(answers).size < answers.length) return `after ${_tag} a post stands twice`
  if (after.posts.some(({ kind, seq, from }) => seq > before.head && kind === "agent" && before.queue.current !== from))
    return `after ${_tag} an agent has spoken without the floor`
  const { closed, paused, queue } = after
  if (closed || paused || isResting(after) || !presence.isSettled || queue.current !== null) return null
  const waiting = seatsOf(after).find(
    (seated) =>
      seated.stand.state === "QUEUED" &&
      !alone.includes(seated.agent) &&
      presence.idle(CONVERSATION, seated.agent, actor) &&
      hasUnread(after, seated)
  )
  return waiting === undefined ? null : `after ${_tag} ${waiting.agent} waits though the floor is free`
}

const invariant = ({ channel, wrong }: State): string | undefined => {
  if (wrong !== null) return wrong
  const { floor, queue, registered } = channel
  const of = (...states: ReadonlyArray<string>) =>
    seatsOf(channel)
      .filter(({ stand }) => states.includes(stand.state))
      .map(({ agent }) => agent)
  const active = of("ACTIVE")
  if (active.length > 1) return `${active.join(" and ")} have the floor`
  if ((active[0] ?? null) !== queue.current) return `${active[0]} is ACTIVE, and the queue says ${queue.current}`
  if ((floor?.agent ?? null) !== queue.current)
    return `the floor is ${floor?.agent}'s, and the queue says ${queue.current}`
  if (new Set(queue.line).size < queue.line.length) return "an agent stands in the queue twice"
  if (!same(queue.line, of("QUEUED", "ACTIVE", "WAITING"))) return `the queue is ${queue.line}`
  if (!same(queue.paused, of("WAITING"))) return `the paused ones are ${queue.paused}`
  if (!queue.claims.every((agent) => queue.paused.includes(agent))) return "one that is not paused claims the floor"
  if (!same(registered, of("IDLE", "QUEUED", "ACTIVE", "WAITING"))) return `registered are ${registered}`
  const stranger = seatsOf(channel).find(({ agent, stand }) => queue.line.includes(agent) && !stand.data.member)
  if (stranger !== undefined) return `${stranger.agent} stands in the queue and is no member`
  const unborn = active.find((agent) => seatOf(channel, agent)?.prompt === null)
  return unborn === undefined ? undefined : `${unborn} has the floor without a turn`
}

/** Nothing is on its way, and nobody waits while the floor is free. */
const isQuiet = ({ acts, agents, channel, reports }: State): boolean => {
  if (acts.length + reports.length > 0 || channel.queue.current !== null) return false
  if (channel.paused || isResting(channel)) return true
  if (channel.queue.paused.length > 0) return false
  return !seatsOf(channel).some(
    (seated) => seated.stand.state === "QUEUED" && agents[seated.agent]?.isOnline === true && hasUnread(channel, seated)
  )
}

// --- keys

/** Posts after that one; what the channel itself says is news to no one. */
const newsSince = ({ posts }: Channel, seq: number): number =>
  posts.filter((post) => post.seq > seq && post.kind !== "notice").length

/** The part of a state that decides what follows: without times and ids, and without posts that all have dealt with. */
const keyOf = ({ acts, agents, channel, fates, reports, wrong }: State): string => {
  const { amongAgents, assigned, floor, paused, posts, queue, registered } = channel
  const since = (seq: number) => newsSince(channel, seq)
  const seats = seatsOf(channel).map(({ agent, prompt, spoke, stand: { data, state }, told }) => {
    const { member, turnId, wait } = data
    return [agent, state, member, turnId, wait && [wait.until._tag, wait.resolved], since(told), since(spoke), prompt]
  })
  const oldest = Math.min(...seatsOf(channel).map(({ spoke, told }) => Math.min(spoke, told)))
  const unread = posts
    .filter(({ kind, seq }) => seq > oldest && kind !== "notice")
    .map(({ from, kind }) => [kind, from])
  const at = floor && {
    ...floor,
    answeredAt: floor.answeredAt !== null,
    injected: floor.injected.map(({ messageId, seq }) => [messageId, since(seq)])
  }
  const all = [amongAgents, assigned, paused, queue, registered, seats, unread, at, agents, acts, reports, fates, wrong]
  const names = new Map<string, string>()
  return JSON.stringify(all).replaceAll(/channel:c:\d+(?:\/\d+)?|turn-\d+|"\d+\.\d+"/g, (id) => {
    const known = names.get(id)
    if (known !== undefined) return known
    names.set(id, `#${names.size}`)
    return names.get(id)!
  })
}

// --- moves

/** Count of posts that some agent has not dealt with. */
const unreadOf = (channel: Channel): number =>
  newsSince(channel, Math.min(channel.head, ...seatsOf(channel).map(({ spoke, told }) => Math.min(spoke, told))))

const agentMoves = function* (state: State, options: Options): Generator<readonly [string, (step: Step) => void]> {
  const room = state.reports.length < options.reports
  for (const [agent, { inbox, isOnline, known, turn }] of Object.entries(state.agents)) {
    if (known.shut)
      yield [
        `${agent} is tried again`,
        (step) => {
          step.presence.shut(CONVERSATION, agent, false)
          step.input({ _tag: "Look" })
        }
      ]
    if (options.tools && turn !== null) {
      const say = { _tag: "Say" as const, agent, messageId: `say-${state.eventId}` }
      yield [`${agent} signals`, (step) => void step.input({ ...say, utterance: { _tag: "TurnComplete" } })]
      if (unreadOf(state.channel) < options.unread)
        yield [`${agent} posts`, (step) => void step.input({ ...say, utterance: { _tag: "Post", text: "So." } })]
    }
    if (!room) continue
    if (!isOnline) {
      yield [
        `${agent} comes`,
        (step) => {
          step.change(agent, { isOnline: true })
          step.reports.push({ _tag: "Online", agent })
        }
      ]
      continue
    }
    if (turn === null && inbox.length > 0) yield [`${agent} takes it`, (step) => step.take(agent)]
    if (turn !== null) {
      for (const end of turn.isCut ? (["is interrupted", "says"] as const) : options.ends) {
        const [outcome, output, again] = ENDS[end]
        yield [`${agent} ${end}`, (step) => step.end(agent, outcome, output, again)]
      }
    }
    for (const how of options.leaves) {
      // only in its turn is its process missed
      if (how !== "disconnected" || turn !== null) yield [`${agent} is ${how}`, (step) => step.leave(agent, how)]
    }
  }
}

const personMoves = function* ({ channel, eventId }: State, { agents, person, unread }: Options) {
  const by = "ada"
  const inputs: Array<readonly [string, FloorInput]> = []
  for (const what of person) {
    if (what === "post") {
      if (unreadOf(channel) >= unread || (channel.floor?.sent.length ?? 0) >= unread) continue
      inputs.push(["writes", { _tag: "Post", messageId: `post-${eventId}`, from: by, text: "Well?" }])
    } else if (what === "skip") inputs.push(["skips", { _tag: "Skip", by }])
    else if (what === "pause") inputs.push(["pauses or resumes", { _tag: "Pause", paused: !channel.paused, by }])
    else {
      const tag = { grant: "Grant", requeue: "Requeue", assign: "Assign", remove: "Remove" } as const
      for (const agent of agents) inputs.push([`${what}s ${agent}`, { _tag: tag[what], agent, by }])
    }
  }
  for (const [name, input] of inputs) yield [`ada ${name}`, (step: Step) => void step.input(input)] as const
}

const allMoves = function* (state: State, options: Options): Generator<readonly [string, (step: Step) => void]> {
  const [act] = state.acts
  if (act !== undefined) {
    yield [`it is done: ${act._tag}`, (step) => step.perform()]
    if (state.acts.length >= options.acts) return
  }
  if (state.reports.length > 0) yield [`it is heard: ${state.reports[0]!._tag}`, (step) => step.hear()]
  yield* agentMoves(state, options)
  yield* personMoves(state, options)
  for (const { at, key } of new Step(state, options).timers()) {
    yield [
      `the time of ${key} is over`,
      (step) => {
        step.now = at
        step.input({ _tag: "Due", key })
      }
    ]
  }
  if (state.channel.queue.current !== null)
    yield [
      "it is looked late",
      (step) => {
        step.now = T0 + FAR
        step.input({ _tag: "Look" })
      }
    ]
  if (options.crash) yield ["the daemon dies", (step) => step.crash()]
}

/** All that may follow but what a person does, a departure and a death. */
const HELPS = /^(?:it is (?:done|heard)|the time of|\w+ (?:takes it|done|is tried again|is interrupted))/

const first = (options: Options): State => {
  const settings = decodeChannel({ agents: options.agents, ...SETTINGS, ...options.settings })
  const known = { online: true, busy: false, shut: false }
  const agents = options.agents.map((agent) => [agent, { isOnline: true, inbox: [], turn: null, known }] as const)
  const channel = unborn(CONVERSATION, NAME, settings)
  const none = { acts: [], reports: [], fates: {}, eventId: 0, turns: 0, wrong: null }
  const step = new Step({ channel, agents: Object.fromEntries(agents), ...none }, options)
  step.input({ _tag: "Create", settings, origin: "config", by: "config" })
  return step.state
}

export const floorModel = (options: Options): Model<State> => ({
  initial: first(options),
  key: keyOf,
  invariant,
  isGoal: isQuiet,
  helps: (move) => HELPS.test(move),
  most: options.most,
  *moves(state): Generator<Move<State>> {
    for (const [name, act] of allMoves(state, options)) {
      yield {
        name,
        next: () => {
          const step = new Step(state, options)
          act(step)
          return step.state
        }
      }
    }
    if (!options.refuses || state.acts[0]?._tag !== "Prompt") return
    yield {
      name: "it is refused: Prompt",
      next: () => {
        const step = new Step(state, options, true)
        step.perform()
        return step.state
      }
    }
  }
})
