/**
 * CrewDouble: agents that follow a script. It keeps AgentPort's promises: a message is
 * worked on once, its fate is known whoever asks and whenever, and it outlives those
 * who post to it, as the real one's log does.
 */
import { Effect, PubSub, Stream } from "effect"
import type {
  Address,
  AgentPort,
  AgentMessage,
  AgentReport,
  Fate,
  Member,
  TurnOutcome
} from "../../../src/domain/AgentPort.ts"
import type { Conversations, Standing } from "../../../src/domain/Conversations.ts"
import { CommandRefused, type Report } from "../../../src/domain/Messages.ts"

export interface Reply {
  readonly outcome?: TurnOutcome
  readonly output?: string
  readonly reports?: ReadonlyArray<Report>
}

/** The agent's work on the n-th message that it takes up; one that never ends is interrupted. */
export type Script = (message: AgentMessage, n: number) => Effect.Effect<Reply>

export const says =
  (output: string): Script =>
  () =>
    Effect.succeed({ output })

interface Kept {
  readonly to: Address
  readonly message: AgentMessage
  fate: Fate
  interrupted: boolean
}

class Agent {
  member: Member
  script: Script
  taken = 0
  constructor(member: Member, script: Script) {
    this.member = member
    this.script = script
  }
}

type Told = AgentReport extends infer R ? (R extends AgentReport ? Omit<R, "at" | "eventId" | "cause"> : never) : never

export class CrewDouble {
  readonly agents = new Map<string, Agent>()
  readonly messages = new Map<string, Kept>()
  /** Each turn, by the message that it carried. */
  readonly carried: Array<string> = []
  private readonly hub = Effect.runSync(PubSub.unbounded<AgentReport>())
  private readonly changes = Effect.runSync(PubSub.unbounded<Standing>())
  private standing: Standing = "working"
  private next = 1
  /** How long a turn takes to be interrupted, ms. */
  grace = 0

  add(agent: string, script: Script, more: Partial<Member> = {}): void {
    const member: Member = {
      conversation: "c",
      agent,
      online: true,
      busy: false,
      spent: false,
      can: [],
      role: null,
      parent: null,
      cwd: null,
      branch: null,
      ...more
    }
    this.agents.set(agent, new Agent(member, script))
  }

  set(agent: string, more: Partial<Member>): void {
    const found = this.agents.get(agent)!
    found.member = { ...found.member, ...more }
    if (more.online === true) this.tell({ _tag: "Online", conversation: "c", agent })
    if (more.online === false)
      this.tell({ _tag: "Offline", conversation: "c", agent, reason: "stopped", how: "stopped" })
    this.offer(agent)
  }

  /** Where their conversation stands from now on. */
  stand(standing: Standing): void {
    this.standing = standing
    PubSub.publishUnsafe(this.changes, standing)
  }

  private tell(report: Told): void {
    const full = { eventId: this.next++, cause: null, at: 0, ...report } as AgentReport
    PubSub.publishUnsafe(this.hub, full)
  }

  /** The agent takes up the oldest that waits, if it is free. */
  private offer(name: string): void {
    const agent = this.agents.get(name)!
    if (!agent.member.online || agent.member.busy) return
    const kept = [...this.messages.values()].find(({ fate, to }) => to.agent === name && fate._tag === "Waiting")
    if (kept === undefined) return
    Effect.runFork(this.turn(agent, kept))
  }

  private readonly turn = (agent: Agent, kept: Kept) =>
    Effect.gen({ self: this }, function* () {
      const { conversation } = kept.to
      const { messageId } = kept.message
      const name = agent.member.agent
      const turnId = `turn-${this.next++}`
      const about = { conversation, agent: name, turnId, messageIds: [messageId] }
      agent.member = { ...agent.member, busy: true }
      kept.fate = { _tag: "Carried", turnId, begun: true }
      this.carried.push(messageId)
      this.tell({ _tag: "TurnStarted", ...about })
      const stopped: Effect.Effect<Reply> = Effect.as(
        Effect.repeat(Effect.sleep("2 millis"), { until: () => kept.interrupted }),
        { outcome: "interrupted" as const }
      )
      const reply = yield* Effect.raceFirst(agent.script(kept.message, ++agent.taken), stopped)
      for (const report of reply.reports ?? [])
        this.tell({ _tag: "Reported", conversation, agent: name, turnId, ...report })
      const { outcome = "completed", output = "" } = reply
      kept.fate = { _tag: "Ended", turnId, outcome, output }
      agent.member = { ...agent.member, busy: false }
      this.tell({ _tag: "TurnEnded", ...about, outcome, reason: null, output, again: false })
      this.offer(name)
    })

  readonly conversations: Conversations["Service"] = {
    known: Effect.succeed(["c"]),
    standing: () => this.standing,
    changes: Stream.map(Stream.fromPubSub(this.changes), (standing) => ({ conversation: "c", standing }))
  }

  readonly service: AgentPort["Service"] = {
    post: (to, message) =>
      Effect.suspend(() => {
        if (!this.agents.has(to.agent)) return Effect.fail(unknown(to.agent))
        if (!this.messages.has(message.messageId)) {
          this.messages.set(message.messageId, { to, message, fate: { _tag: "Waiting" }, interrupted: false })
          this.offer(to.agent)
        }
        return Effect.succeed({ eventId: this.next++ })
      }),
    withdraw: (_, messageIds) =>
      Effect.sync(() => {
        const kept = messageIds.map((messageId) => this.messages.get(messageId))
        if (kept.some((one) => one?.fate._tag !== "Waiting")) return false
        for (const one of kept) one!.fate = { _tag: "Dropped" }
        return true
      }),
    fate: ({ agent }, messageId) =>
      Effect.suspend(() =>
        this.agents.has(agent)
          ? Effect.succeed<Fate>(this.messages.get(messageId)?.fate ?? { _tag: "Unknown" })
          : Effect.fail(unknown(agent))
      ),
    interrupt: (_, messageId) =>
      Effect.andThen(
        Effect.sleep(this.grace),
        Effect.sync(() => {
          const kept = this.messages.get(messageId)
          if (kept?.fate._tag === "Carried") kept.interrupted = true
        })
      ),
    steer: () => Effect.void,
    members: () => Effect.sync(() => [...this.agents.values()].map(({ member }) => member)),
    reports: Stream.fromPubSub(this.hub),
    recovered: Effect.void
  }
}

const unknown = (agent: string) =>
  new CommandRefused({ code: "not_found", message: `There is no agent "${agent}".`, remedy: "None." })
