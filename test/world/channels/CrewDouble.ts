/**
 * A AgentPort whose agents do what a test says: it keeps the contract (durable inboxes,
 * one turn at a time, idempotent posts, reports in order) without any agent behind
 * it. It outlives a daemon, as the agents' part of the log does.
 */
import { Clock, Deferred, Effect, Layer, PubSub, Stream } from "effect"
import {
  type Address,
  AgentPort,
  type AgentMessage,
  type AgentReport,
  type Departure,
  type Fate,
  type Member,
  type TurnOutcome
} from "../../../src/domain/AgentPort.ts"
import { CommandRefused } from "../../../src/domain/Messages.ts"

interface Turn {
  readonly turnId: string
  readonly messages: Array<AgentMessage>
}

class Agent {
  online = false
  turn: Turn | undefined = undefined
  inbox: Array<AgentMessage> = []
  readonly fates = new Map<string, Fate>()
  /** Messages that the agent was given, in order. */
  readonly heard: Array<AgentMessage> = []
  /** ms since the epoch */
  restsUntil: number | undefined = undefined
  /** Every open call of its turn waits for a person. */
  needs: Member["needs"] = undefined
}

/** How this crew's backends take a word in the middle of a turn. */
export type Steering =
  /** Into the turn itself. */
  | "live"
  /** The turn ends, and the next one begins with it. */
  | "turn"
  /** The post waits as the next message. */
  | "queue"

type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

export class CrewDouble {
  readonly conversation: string
  steering: Steering = "live"
  /** Answers at once, where it returns text. */
  auto: ((agent: string, message: AgentMessage) => string | undefined) | undefined = undefined
  /** Refuses posts to these. */
  readonly unreachable = new Set<string>()
  /** All posts and steers, also those that changed nothing. */
  readonly calls: Array<{
    readonly call: "post" | "steer" | "withdraw" | "interrupt"
    readonly agent: string
    readonly messageId: string
  }> = []
  recovered: Effect.Effect<void> = Effect.void
  private readonly agents = new Map<string, Agent>()
  private readonly reports: PubSub.PubSub<AgentReport>
  private turns = 0
  private eventId = 1000

  constructor(conversation: string, reports: PubSub.PubSub<AgentReport>) {
    this.conversation = conversation
    this.reports = reports
  }

  of(name: string): Agent {
    const known = this.agents.get(name)
    if (known !== undefined) return known
    const fresh = new Agent()
    this.agents.set(name, fresh)
    return fresh
  }

  private report(agent: string, report: Without<AgentReport, "eventId" | "cause" | "at" | "conversation" | "agent">) {
    return Effect.flatMap(Clock.currentTimeMillis, (at) => {
      this.eventId += 1
      const whole = {
        ...report,
        conversation: this.conversation,
        agent,
        eventId: this.eventId,
        cause: null,
        at
      } as AgentReport
      return Effect.asVoid(PubSub.publish(this.reports, whole))
    })
  }

  // --- what the agents do

  come(name: string): Effect.Effect<void> {
    this.of(name).online = true
    return Effect.andThen(this.report(name, { _tag: "Online" }), this.begin(name))
  }

  /** Lets the agent's process die in its turn, which is over with that; the agent is back when it comes. */
  readonly die = Effect.fnUntraced({ self: this }, function* (this: CrewDouble, name: string) {
    const reason = "exit code 1"
    yield* this.report(name, { _tag: "Offline", how: "disconnected", reason })
    yield* this.finish(name, "error", "half", reason, false)
  })

  /** A turn that is under way is lost with it, and its messages wait again. */
  readonly leave = Effect.fnUntraced({ self: this }, function* (this: CrewDouble, name: string, how: Departure) {
    const agent = this.of(name)
    agent.online = false
    if (agent.turn !== undefined) yield* this.finish(name, "error", "", "the run is gone", true)
    yield* this.report(name, { _tag: "Offline", how, reason: how })
  })

  /** The conversation takes no work any more: that holds for all at once, and is told of one after the other. */
  readonly leaveAll = Effect.suspend(() => {
    const here = [...this.agents].filter(([, { online }]) => online)
    for (const [, agent] of here) agent.online = false
    const moment = Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 5)))
    return Effect.forEach(here, ([name]) => Effect.andThen(this.leave(name, "stopped"), moment), { discard: true })
  })

  active(name: string): Effect.Effect<void> {
    return this.report(name, { _tag: "Active", turnId: this.of(name).turn?.turnId ?? "" })
  }

  /** Ends the agent's turn with this answer. */
  readonly answer = Effect.fnUntraced({ self: this }, function* (this: CrewDouble, name: string, output: string) {
    yield* this.finish(name, "completed", output, null, false)
    yield* this.begin(name)
  })

  readonly error = Effect.fnUntraced(
    { self: this },
    function* (this: CrewDouble, name: string, reason: string, again: boolean, output: string = "") {
      yield* this.finish(name, "error", output, reason, again)
      if (!again) yield* this.begin(name)
    }
  )

  /** A message of somebody else's, as `agentd send` puts one there. */
  readonly send = Effect.fnUntraced({ self: this }, function* (this: CrewDouble, name: string, messageId: string) {
    this.of(name).inbox.push({ messageId, from: "ada", text: messageId, alone: true })
    this.of(name).fates.set(messageId, { _tag: "Waiting" })
    yield* this.begin(name)
  })

  private readonly begin = Effect.fnUntraced({ self: this }, function* (this: CrewDouble, name: string): Generator<
    Effect.Effect<void>,
    void
  > {
    const agent = this.of(name)
    if (agent.turn !== undefined || !agent.online) return
    const message = agent.inbox.shift()
    if (message === undefined) return yield* this.report(name, { _tag: "Idle" })
    this.turns += 1
    const turn = { turnId: `t${this.turns}`, messages: [message] }
    agent.turn = turn
    agent.heard.push(message)
    agent.fates.set(message.messageId, { _tag: "Carried", turnId: turn.turnId, begun: true })
    yield* this.report(name, { _tag: "TurnStarted", turnId: turn.turnId, messageIds: [message.messageId] })
    const answer = this.auto?.(name, message)
    if (answer !== undefined) yield* this.answer(name, answer)
  })

  private readonly finish = Effect.fnUntraced(
    { self: this },
    function* (
      this: CrewDouble,
      name: string,
      outcome: TurnOutcome,
      output: string,
      reason: string | null,
      again: boolean
    ) {
      const agent = this.of(name)
      const turn = agent.turn
      if (turn === undefined) throw new Error(`${name} is in no turn`)
      agent.turn = undefined
      const { turnId } = turn
      const messageIds = turn.messages.map(({ messageId }) => messageId)
      for (const id of messageIds) {
        agent.fates.set(id, again ? { _tag: "Waiting" } : { _tag: "Ended", turnId, outcome, output })
      }
      if (again) agent.inbox.unshift(...turn.messages)
      yield* this.report(name, { _tag: "TurnEnded", turnId, messageIds, outcome, reason, output, again })
    }
  )

  // --- the contract

  private readonly post = Effect.fnUntraced(
    { self: this },
    function* (this: CrewDouble, { agent: name }: Address, message: AgentMessage) {
      this.calls.push({ call: "post", agent: name, messageId: message.messageId })
      if (this.unreachable.has(name)) {
        return yield* new CommandRefused({
          code: "closed",
          message: `${name} takes no messages.`,
          remedy: "Ask later."
        })
      }
      const agent = this.of(name)
      if (!agent.fates.has(message.messageId)) {
        agent.inbox.push(message)
        agent.fates.set(message.messageId, { _tag: "Waiting" })
        yield* this.begin(name)
      }
      return { eventId: this.eventId }
    }
  )

  private readonly steer = Effect.fnUntraced(
    { self: this },
    function* (this: CrewDouble, { agent: name }: Address, message: AgentMessage) {
      this.calls.push({ call: "steer", agent: name, messageId: message.messageId })
      const agent = this.of(name)
      if (agent.fates.has(message.messageId)) return
      if (agent.turn !== undefined && this.steering === "live") {
        agent.turn.messages.push(message)
        agent.heard.push(message)
        agent.fates.set(message.messageId, { _tag: "Carried", turnId: agent.turn.turnId, begun: true })
        return
      }
      agent.inbox.unshift(message)
      agent.fates.set(message.messageId, { _tag: "Waiting" })
      if (agent.turn !== undefined && this.steering === "turn")
        yield* this.finish(name, "interrupted", "half", "steered", false)
      if (agent.turn === undefined) yield* this.begin(name)
    }
  )

  private readonly withdraw = ({ agent: name }: Address, messageIds: ReadonlyArray<string>) =>
    Effect.sync(() => {
      for (const messageId of messageIds) this.calls.push({ call: "withdraw", agent: name, messageId })
      const agent = this.of(name)
      const left = messageIds.filter((messageId) => agent.fates.get(messageId)?._tag !== "Dropped")
      if (left.some((messageId) => !agent.inbox.some((message) => message.messageId === messageId))) return false
      agent.inbox = agent.inbox.filter((message) => !left.includes(message.messageId))
      for (const messageId of left) agent.fates.set(messageId, { _tag: "Dropped" })
      return true
    })

  private readonly interrupt = Effect.fnUntraced(
    { self: this },
    function* (this: CrewDouble, { agent: name }: Address, messageId: string, reason: string) {
      this.calls.push({ call: "interrupt", agent: name, messageId })
      const agent = this.of(name)
      if (agent.turn?.messages.some((message) => message.messageId === messageId) !== true) return
      yield* this.finish(name, "interrupted", "half", reason, false)
      yield* this.begin(name)
    }
  )

  private members(): ReadonlyArray<Member> {
    return [...this.agents].map(([agent, { needs, online, restsUntil, turn }]) => ({
      conversation: this.conversation,
      agent,
      online,
      busy: turn !== undefined,
      spent: false,
      restsUntil,
      needs,
      can: [],
      role: null,
      parent: null,
      cwd: null,
      branch: null
    }))
  }

  get service(): AgentPort["Service"] {
    return AgentPort.of({
      post: this.post,
      withdraw: this.withdraw,
      fate: ({ agent }, messageId) => Effect.sync(() => this.of(agent).fates.get(messageId) ?? { _tag: "Unknown" }),
      interrupt: this.interrupt,
      steer: this.steer,
      waits: ({ agent }) => this.of(agent).needs !== undefined,
      members: (conversation) => Effect.sync(() => (conversation === this.conversation ? this.members() : [])),
      reports: Stream.fromPubSub(this.reports),
      recovered: Effect.suspend(() => this.recovered)
    })
  }

  get layer(): Layer.Layer<AgentPort> {
    return Layer.succeed(AgentPort, this.service)
  }
}

export const make = (conversation: string): Effect.Effect<CrewDouble> =>
  Effect.map(PubSub.unbounded<AgentReport>(), (reports) => new CrewDouble(conversation, reports))

/** Recovery that takes until it is said to be over. */
export const slowRecovery = (crew: CrewDouble) =>
  Effect.map(Deferred.make<void>(), (over) => {
    crew.recovered = Deferred.await(over)
    return Deferred.succeed(over, undefined)
  })
