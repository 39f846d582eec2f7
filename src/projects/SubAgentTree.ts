/**
 * SubAgentTree: the parents and sub-agents of one conversation: which agents end together, and which messages a parent
 * gets.
 *
 * Guarantees: When an agent ends, its sub-agents end at once, in parallel, each within its grace period. When a reply
 * says that an agent is stopped, all processes of its sub-agents have ended. A parent is informed once about each event
 * of its sub-agents, even after crashes.
 */
import { Effect, type Scope } from "effect"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type * as ConfigFile from "../config/ConfigFile.ts"
import type { Caller, CommandRefused } from "../domain/Messages.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { AGENTS } from "../agents/machines/ConversationMachine.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import type { AgentScope } from "../agents/actors/AgentScope.ts"
import * as SubAgentReports from "./SubAgentReports.ts"
import type { ConversationActor, LivingAgent } from "./ConversationActor.ts"
import { hopsOf, MAX_WAITING, type Message } from "../agents/machines/Inbox.ts"
import { inboxName } from "../agents/machines/AgentStates.ts"
import type { ProjectRecord } from "./Recovery.ts"
import * as SubAgents from "./SubAgents.ts"
import { outputOf, troubleOf } from "../agents/actors/TurnActor.ts"

export interface Surroundings {
  readonly log: EventLog["Service"]
  readonly record: ProjectRecord
  readonly file: () => ConfigFile.Project
  readonly life: ConversationActor
  readonly agentScope: (agent: string) => AgentScope | undefined
  /** Live agents in the order in which they started. */
  readonly livingAgents: () => ReadonlyArray<LivingAgent>
  /** Waits until no agent is being added or removed. */
  readonly quiet: Effect.Effect<void>
  readonly scope: Scope.Scope
}

export class SubAgentTree {
  private readonly surroundings: Surroundings

  constructor(surroundings: Surroundings) {
    this.surroundings = surroundings
  }

  get isClosing(): boolean {
    const { state } = this.surroundings.life.snapshot
    return state === "closing" || state === "closed"
  }

  /**
   * The agent's entry in the current config. Users choose the names, so the lookup must be safe for names such as
   * "constructor".
   */
  named(agent: string): AgentConfig | undefined {
    const { agents } = this.surroundings.file()
    return Object.hasOwn(agents, agent) ? agents[agent] : undefined
  }

  parentOf(agent: string): string | undefined {
    return this.named(agent)?.parent ?? this.surroundings.record.life.spawned.get(agent)?.parent
  }

  stands(agent: string): SubAgents.SubAgent["stands"] {
    const { record } = this.surroundings
    const { ended, spawned } = record.life
    // the life of an agent ends before its worker
    if ((ended.get(agent) ?? 0) > this.begins(agent)) return "ended"
    const worker = this.surroundings.agentScope(agent)?.worker()
    // an earlier agent with this name may have left a worker behind
    const isOld = this.incarnationOf(agent) < (spawned.get(agent)?.eventId ?? 0)
    if (worker === undefined || isOld) return "queued"
    return worker.state === "Stopped" ? "ended" : "running"
  }

  /** Number of agents above the agent in the tree. Safe even if two agents in a file are each other's parent. */
  depthOf(agent: string): number {
    const above = new Set<string>()
    for (let at = agent, up = this.parentOf(at); up !== undefined && !above.has(at); at = up, up = this.parentOf(at))
      above.add(at)
    return above.size
  }

  /** Sub-agents that have been requested, oldest first. */
  get subAgents(): ReadonlyArray<SubAgents.SubAgent> {
    const { spawned } = this.surroundings.record.life
    // projects without sub-agents need no search, and this function is called for every view of the board
    if (spawned.size === 0) return []
    return this.surroundings.livingAgents().flatMap(({ name }) => {
      const parent = this.named(name) === undefined ? spawned.get(name)?.parent : undefined
      return parent === undefined ? [] : [{ name, parent, stands: this.stands(name) }]
    })
  }

  isQueued(agent: string): boolean {
    return (
      this.named(agent) === undefined &&
      this.surroundings.record.life.spawned.has(agent) &&
      this.stands(agent) === "queued"
    )
  }

  isRunning(agent: string): boolean {
    return this.surroundings.agentScope(agent) !== undefined && this.stands(agent) === "running"
  }

  get inOrder(): ReadonlyArray<LivingAgent> {
    const all = new Map(this.surroundings.livingAgents().map((livingAgent) => [livingAgent.name, livingAgent]))
    return SubAgents.leaving([...all.keys()], (name) => this.parentOf(name)).map((name) => all.get(name)!)
  }

  /** All descendants of an agent, in the order in which they must end. */
  offspring(agent: string): ReadonlyArray<LivingAgent> {
    const order = this.inOrder
    const descendants = new Set([agent])
    for (const { name } of order.toReversed()) if (descendants.has(this.parentOf(name) ?? "")) descendants.add(name)
    return order.filter(({ name }) => name !== agent && descendants.has(name))
  }

  /** Whether the agent is running or waits for a free slot. */
  lives(agent: string): boolean {
    return this.isRunning(agent) || this.isQueued(agent)
  }

  /** Event id of the first rune since the agent's newest start. */
  private incarnationOf(agent: string): number {
    return this.surroundings.agentScope(agent)?.began() ?? this.surroundings.record.agents.get(agent)?.worker.began ?? 0
  }

  begins(agent: string): number {
    return Math.max(this.surroundings.record.life.spawned.get(agent)?.eventId ?? 0, this.incarnationOf(agent))
  }

  /**
   * Ends the sub-agents of an agent, if they started before the event id `before`. Returns when all their processes
   * have ended.
   */
  endChildren(agent: string, before: number): Effect.Effect<void, StorageError> {
    return Effect.suspend(() => {
      const ends = ({ name }: LivingAgent) => this.lives(name) && this.begins(name) < before
      return Effect.forEach(
        this.isClosing ? [] : this.offspring(agent).filter(ends),
        (child) => {
          const parent = this.parentOf(child.name)
          return this.surroundings.life.end(child, `agent:${parent}`, `its parent ${parent} has ended`)
        },
        { concurrency: AGENTS.hard, discard: true }
      )
    })
  }

  /** Stops an agent and all its sub-agents. Returns when all their processes have ended. */
  readonly stop = Effect.fnUntraced(
    { self: this },
    function* (this: SubAgentTree, agent: AgentScope, caller: Caller, reason?: string) {
      const { name } = agent
      const count = this.offspring(name).filter((one) => this.lives(one.name)).length
      const children = this.endChildren(name, Infinity)
      const [done] = yield* Effect.all([agent.stop(caller, reason), children], { concurrency: 2 })
      // another sub-agent may have been spawned in the meantime
      yield* Effect.andThen(this.surroundings.quiet, children)
      yield* this.gone(name)
      if (count === 0) return done
      const ended = count === 1 ? "Its sub-agent has" : `Its ${count} sub-agents have`
      return { ...done, message: `${done.message} ${ended} ended with it.` }
    }
  )

  /** Waits for sub-agents that other callers are ending. */
  private gone(agent: string): Effect.Effect<void, CommandRefused | StorageError> {
    const over = this.offspring(agent).filter(({ name }) => !this.lives(name))
    const gone = ({ name }: LivingAgent) =>
      this.surroundings.agentScope(name)?.stop({ by: `agent:${agent}`, config: null })
    return Effect.forEach(over, (one) => gone(one) ?? Effect.succeed(undefined), {
      concurrency: AGENTS.hard,
      discard: true
    })
  }

  /** Handles the end of an agent: informs its parent, and ends its sub-agents. */
  afterEnd(agent: string): Effect.Effect<void, StorageError> {
    return Effect.suspend(() => {
      const { log, record } = this.surroundings
      const end = record.life.ended.get(agent) ?? 0
      const ofIt = { stream: record.conversation, actor: inboxName(agent), kinds: ["inbox.received"] }
      return Effect.all([log.tail({ ...ofIt, after: this.begins(agent) }, MAX_WAITING), log.get(end)]).pipe(
        Effect.flatMap(([asked, rune]) => {
          for (const one of asked) this.note(agent, one)
          return rune === undefined ? Effect.void : this.heard(agent, rune)
        }),
        Effect.andThen(this.endChildren(agent, end))
      )
    })
  }

  private note(name: string, rune: Rune): void {
    const child = { name, parent: this.parentOf(name) ?? null, began: this.begins(name) }
    SubAgentReports.apply(this.surroundings.record.life.news, rune, child)
  }

  /** Checks whether a rune must be reported to the parent of a sub-agent. The message is sent in the background. */
  readonly heard = (name: string, rune: Rune): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.note(name, rune)
      return Effect.asVoid(Effect.forkIn(this.tellParents, this.surroundings.scope))
    })

  /**
   * The parent that receives a turn's answer. Undefined if the parent did not request the turn, or if the sub-agent has
   * already reported in it. Reads memory only.
   */
  hearer(name: string, turnId: string, asked: ReadonlyArray<Message>): string | undefined {
    const { news, spawned } = this.surroundings.record.life
    const parent = this.parentOf(name)
    if (parent === undefined || this.isClosing || news.told.get(name)?.turnId === turnId) return undefined
    const task = spawned.get(name)?.task ?? null
    return asked.some((one) => SubAgentReports.isAsked(one, parent, task)) ? parent : undefined
  }

  /** Informs the parent of an answer that is durable. */
  readonly answered = (name: string, eventId: number): Effect.Effect<void> =>
    Effect.catch(
      Effect.flatMap(this.surroundings.log.get(eventId), (rune) =>
        rune === undefined ? Effect.void : this.heard(name, rune)
      ),
      (error) => Effect.logWarning(error.message)
    )

  /**
   * Sends parents their pending messages. If an inbox rejects a message, it is sent again with the next message or by
   * the next daemon. An inbox accepts each message only once.
   */
  readonly tellParents: Effect.Effect<void> = Effect.suspend(() => {
    const { owed } = this.surroundings.record.life.news
    const telling = Effect.suspend(() =>
      Effect.forEach(
        this.isClosing ? [] : [...owed],
        ([messageId, one]) =>
          this.tellParent(messageId, one).pipe(
            Effect.matchEffect({
              onSuccess: () => Effect.sync(() => void owed.delete(messageId)),
              onFailure: ({ message }) => Effect.logWarning(`${one.to} has not heard of ${one.child} yet: ${message}`)
            })
          ),
        { discard: true }
      )
    )
    // after a restart, a child may be restored earlier than its parent
    return Effect.andThen(this.surroundings.quiet, telling)
  })

  private readonly tellParent = Effect.fnUntraced(
    { self: this },
    function* (this: SubAgentTree, messageId: string, { child, eventId, to }: SubAgentReports.Owed) {
      const { log, record, agentScope } = this.surroundings
      const rune = yield* log.get(eventId)
      const parent = agentScope(to)
      // if the parent started after this end or has ended itself, the end is not reported
      const isOver = !this.isRunning(to) || this.begins(to) > eventId
      if (rune === undefined || parent === undefined || (SubAgentReports.isEnd(rune) && isOver)) return
      const last = (agentScope(child)?.turn() ?? record.agents.get(child)?.turn)?.ended.at(-1)?.eventId ?? 0
      const said = SubAgentReports.isEnd(rune)
        ? yield* log.get(last)
        : rune.cause === null
          ? undefined
          : yield* log.find(rune.cause)
      const answer = said !== undefined && said.eventId > this.begins(child) ? outputOf(said) : ""
      const trouble = SubAgentReports.isEnd(rune) || said === undefined ? undefined : troubleOf(said)
      const text = SubAgentReports.text(rune, child, answer, trouble)
      const heard = agentScope(child)?.inbox().data
      const hops = SubAgentReports.isEnd(rune) || heard === undefined ? {} : { hops: hopsOf(heard) }
      yield* parent.hear({ messageId, from: SubAgentReports.sender(rune, child), text, ...hops })
    }
  )

  /** Parents that have ended, but whose sub-agents the previous daemon did not end. */
  get unfinishedEnds(): ReadonlyArray<string> {
    const { life } = this.surroundings.record
    const living = this.surroundings.livingAgents().filter(({ name }) => this.lives(name))
    return [...life.ended].flatMap(([parent, at]) =>
      living.some(({ name }) => this.parentOf(name) === parent && this.begins(name) < at) ? [parent] : []
    )
  }
}
