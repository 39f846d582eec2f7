/**
 * Macrostep: handles one message from outside the scope, then all messages that it causes between siblings, in order,
 * until none is left. It runs on one call stack, without an Effect.
 *
 * Guarantees: a macrostep is applied completely or not at all. If any code throws, the macrostep is undone and the
 * error is thrown again. If an actor refuses a message between siblings as illegal, the whole macrostep is refused. All
 * runes have the same time and consecutive ids. States are computed from the runes exactly as the log stores them. A
 * macrostep has at most `MAX_STEPS` steps. Only one macrostep runs at a time in a thread, so one object serves all
 * scopes of a system.
 */
import type { Log, Owner, Prepared } from "../event-log/Log.ts"
import { type Cause, FORMAT, type Rune, type RuneDraft } from "../event-log/Rune.ts"
import { RuneRefused } from "../event-log/EventLog.ts"
import { Act } from "./ActionQueue.ts"
import { actorStopped } from "./ActorError.ts"
import type { Ref } from "./ActorHandle.ts"
import { type Context, type Decision, type Draft, type Following, LATER, Refuse } from "./EventSourcedActor.ts"
import { Ask, Due, Mail } from "./Mail.ts"
import type { Member } from "./Member.ts"
import { compare, freeze } from "./PlainDataCheck.ts"
import { plainRefusal, type Refused } from "./Refused.ts"
import { added, ScopeCommit } from "./ScopeCommit.ts"

export interface Stepped extends Owner {
  readonly stream: string
  /** Returns the actor with this name. Throws if the scope has no such actor. */
  member(name: string): Member
  find(name: string): Member | undefined
}

/** The parts of the actor system that a macrostep uses. */
export interface Stepping {
  readonly log: Log
  readonly clock: { readonly currentTimeMillisUnsafe: () => number }
  readonly isStrict: boolean
  readonly putOff: { tokenOf(ask: Ask): number }
  stale(member: Member, message: unknown): void
}

/** Maximum number of steps in one macrostep. If it is exceeded, actors are sending messages in an endless cycle. */
export const MAX_STEPS = 1_000

const NO_MOVES: ReadonlyArray<string> = []

/** A message from one sibling to another within a macrostep. */
interface Told {
  readonly member: Member
  readonly message: unknown
  readonly cause: Cause | null
}

type Why = "postpone" | "stale" | "illegal"

export const refusalOf = (member: Member, message: unknown, why: Refused["why"]): Refused =>
  member.definition.refused?.(member.name, member.ahead, message, why) ?? plainRefusal(member.name, message, why)

export class Macrostep implements Context {
  private readonly system: Stepping
  private scope: Stepped = undefined as never
  private unit: ScopeCommit = undefined as never
  private inner: Array<Told> = []
  private steps = 0
  private firstId = 0
  private firstSeq = 0
  now = 0
  nextId = 0
  nextSeq = 0
  cause: Cause | null = null
  self: Ref<never> = undefined as never
  /** The ask whose message `decide` is handling now; undefined: the message is not an ask. */
  private asked: Ask | undefined = undefined
  readonly ref = <M>(actor: string): Ref<M> => this.scope.member(actor) as Ref<M>
  readonly read = <T>(actor: string): T => this.scope.member(actor).ahead as T
  readonly has = (actor: string): boolean => this.scope.find(actor) !== undefined

  constructor(system: Stepping) {
    this.system = system
  }

  get ask(): number {
    return this.asked === undefined ? 0 : this.system.putOff.tokenOf(this.asked)
  }

  /** Handles a message. Undefined: the message must be postponed. If `run` throws, the macrostep has been undone. */
  run(scope: Stepped, member: Member, item: unknown): ScopeCommit | undefined {
    const unit = new ScopeCommit(scope, member, item)
    const { log } = this.system
    const isMail = item instanceof Mail
    this.scope = scope
    this.unit = unit
    this.steps = 1
    const now = this.system.clock.currentTimeMillisUnsafe()
    // the wall clock can be behind the timers' clock, but the actor must not see a time before the timer's deadline
    this.now = item instanceof Due ? Math.max(now, item.since + item.after) : now
    this.firstId = log.head + 1
    this.firstSeq = log.seqOf(scope.stream) + 1
    this.asked = item instanceof Ask ? item : undefined
    let isOver = false
    try {
      const message = isMail ? item.message : item
      const why = this.decide(member, message, isMail ? item.cause : null)
      if (why === "postpone") return undefined
      this.asked = undefined
      // only an ask needs the complete error for a stale message
      if (why !== undefined)
        unit.refuse(why === "stale" && !(item instanceof Ask) ? why : refusalOf(member, message, why), why)
      else this.siblings()
      if (unit.reply === LATER && item instanceof Ask && item.isCycle) {
        unit.refuse(actorStopped(member.address, "cycle"))
      }
      if (!unit.isRefused && unit.runes.length > 0) {
        const refused = log.refuses(unit)
        if (refused !== undefined) unit.refuse(refused)
      }
      isOver = true
    } finally {
      if (this.inner.length > 0) this.inner = []
      // the macrostep was refused, or `run` is about to throw an error
      if (!isOver || unit.isRefused) unit.drop()
    }
    return unit
  }

  private siblings(): void {
    const { inner, unit } = this
    for (let index = 0; index < inner.length && !unit.isRefused; index++) {
      const { cause, member, message } = inner[index]!
      this.count(member)
      const why = this.decide(member, message, cause)
      if (why === undefined) continue
      if (why === "illegal") unit.refuse(refusalOf(member, message, why), why)
      else if (why === "postpone")
        (unit.kept ??= []).push({ member, mail: new Mail(message, cause), state: member.ahead })
      else this.system.stale(member, message)
    }
  }

  private count({ address }: Member): void {
    if (this.steps++ < MAX_STEPS) return
    throw new Error(
      `${address}: a macrostep has more than ${MAX_STEPS} steps: actors send messages in a cycle; use later in cycles`
    )
  }

  private decide(member: Member, message: unknown, cause: Cause | null): Why | undefined {
    const { definition } = member
    const { unit } = this
    const first = unit.runes.length
    this.nextId = this.firstId + first
    this.nextSeq = this.firstSeq + first
    this.cause = cause
    this.self = member
    member.took(message, this.now)
    const decided: Decision<unknown, unknown> | Why | Refuse = definition.decide(member.ahead, message, this)
    if (typeof decided === "string") return decided
    if (decided instanceof Refuse) {
      unit.refuse(decided.error)
      return undefined
    }
    if (!this.write(member, decided, cause)) return undefined
    if (hasFollowing(decided)) {
      const last = unit.runes.length - 1
      this.follow(member, decided, last < first ? cause : causeOf(unit.runes[last]!))
    }
    for (let index = first; index < unit.runes.length && !unit.isRefused; index++) {
      const { moves } = decided.runes[index - first]!
      if (moves !== undefined && moves.length > 0) this.join(member, unit.runes[index]!, moves)
    }
    return undefined
  }

  /** Adds the runes of a decision and sets the actor's new state. Returns false if the log refused a rune. */
  private write(member: Member, decided: Decision<unknown, unknown>, cause: Cause | null): boolean {
    const { unit } = this
    const { runes: drafts } = decided
    const before = member.ahead
    if (drafts.length === 0) {
      if (decided.state === undefined || decided.state === before) return true
      throw new Error(`${member.address}: a new state was returned without a rune; it would be lost in a crash`)
    }
    const first = unit.runes.length
    let isExact = true
    for (let index = 0; index < drafts.length; index++) {
      const draft = drafts[index]!
      const full = this.placed(this.draft(member, draft, cause))
      const prepared = this.system.log.prepare(full)
      if (prepared instanceof RuneRefused) {
        unit.refuse(prepared)
        return false
      }
      isExact &&= prepared.payload === full.payload
      unit.add(this.rune(full, prepared), prepared.text)
    }
    this.arrive(member, isExact ? decided.state : undefined, first, unit.runes.length, false)
    return true
  }

  /**
   * Sets the actor's next state: `handed` (the state that the actor returned), or the state computed from the
   * macrostep's runes `from` to `to`.
   */
  private arrive(member: Member, handed: unknown, from: number, to: number, isJoined: boolean): void {
    const { isStrict } = this.system
    const after = handed === undefined ? this.fold(member, from, to, isJoined) : handed
    if (isStrict) {
      if (handed !== undefined) compare(member.address, handed, this.fold(member, from, to, isJoined))
      freeze(member.address, after)
    }
    this.unit.touch(member, after)
  }

  private fold({ ahead, definition }: Member, from: number, to: number, isJoined: boolean): unknown {
    let state: unknown = ahead
    for (let index = from; index < to; index++) state = definition.apply(state, this.unit.runes[index]!, isJoined)
    return state
  }

  /** Calls `join` of each sibling that the rune names, before the macrostep's later runes are written. */
  private join(mover: Member, rune: Rune, names: ReadonlyArray<string>): void {
    const { unit } = this
    const moves = rune.moves as Array<string>
    const queue = [...names]
    for (let index = 0; index < queue.length && !unit.isRefused; index++) {
      const member = this.scope.member(queue[index]!)
      if (member === mover || moves.includes(member.name)) {
        throw new Error(
          `${member.address}: ${rune.kind} already changes this actor; a rune can change an actor only once`
        )
      }
      this.count(member)
      queue.push(...this.joinOne(member, rune, moves))
    }
  }

  /** Returns the names of further siblings whose state the rune can change. */
  private joinOne(member: Member, rune: Rune, moves: Array<string>): ReadonlyArray<string> {
    const { definition } = member
    if (definition.join === undefined)
      throw new Error(`${member.address}: has no join function, but ${rune.kind} names it in moves`)
    this.nextId = rune.eventId
    this.nextSeq = rune.seq
    this.cause = causeOf(rune)
    this.self = member
    const { cause, unit } = this
    const joined = definition.join(member.ahead, rune, this)
    if (joined === undefined) return NO_MOVES
    if (joined instanceof Refuse) {
      unit.refuse(joined.error)
      return NO_MOVES
    }
    if (typeof joined === "string") {
      // the sibling cannot postpone a rune that is already being written, so "too early" counts as illegal, too
      if (joined === "stale") this.system.stale(member, rune)
      else unit.refuse(refusalOf(member, { _tag: rune.trigger ?? rune.kind }, "illegal"), "illegal")
      return NO_MOVES
    }
    moves.push(member.name)
    const at = rune.eventId - this.firstId
    this.arrive(member, joined.state, at, at + 1, true)
    this.follow(member, joined, cause)
    return joined.moves ?? NO_MOVES
  }

  private follow(member: Member, following: Following<unknown>, cause: Cause | null): void {
    const { unit } = this
    const { acts, reply, settles, tells } = following
    if (reply !== undefined) unit.reply ??= reply
    if (settles !== undefined) for (const settled of settles) unit.settles = added(unit.settles, { ...settled, member })
    if (tells !== undefined) {
      for (const told of tells) {
        const to = told.to as Member
        if ((to.scope as unknown) === this.scope && !told.later)
          this.inner.push({ member: to, message: told.message, cause })
        else unit.outbox = added(unit.outbox, { tell: told, cause })
      }
    }
    if (acts !== undefined) {
      for (const action of acts) unit.acts = added(unit.acts, new Act(action, member, member.ahead, cause))
    }
  }

  private draft(member: Member, draft: Draft, cause: Cause | null): RuneDraft {
    const { actor } = draft
    if (actor !== undefined && actor !== member.name && member.definition.parts?.(actor) !== true) {
      throw new Error(`${member.address}: ${actor} is not a part of this actor, so no fold would find its rune`)
    }
    const full: RuneDraft = {
      stream: this.scope.stream,
      kind: draft.kind,
      actor: actor ?? member.name,
      from: draft.from ?? null,
      to: draft.to ?? null,
      trigger: draft.trigger ?? null,
      cause,
      moves: draft.moves === undefined ? NO_MOVES : [],
      payload: draft.payload
    }
    return draft.visibility === undefined ? full : { ...full, visibility: draft.visibility }
  }

  /** Copies the message's field `heard` (how far the sender had read its input) to the first rune of the macrostep. */
  private placed(draft: RuneDraft): RuneDraft {
    const { item, runes } = this.unit
    if (runes.length > 0) return draft
    const heard = heardOf(item instanceof Mail ? item.message : item)
    return heard === undefined ? draft : { ...draft, payload: { ...draft.payload, heard } }
  }

  private rune(draft: RuneDraft, { payload, visibility }: Prepared): Rune {
    const { actor, cause, from, kind, moves, stream, to, trigger } = draft
    const count = this.unit.runes.length
    return {
      format: FORMAT,
      eventId: this.firstId + count,
      seq: this.firstSeq + count,
      stream,
      at: this.now,
      kind,
      actor,
      from: from!,
      to: to!,
      trigger: trigger!,
      cause: cause!,
      moves: moves!,
      visibility,
      payload
    }
  }
}

/** Returns the message's field `heard`; undefined if the message has no such field. */
const heardOf = (message: unknown): unknown =>
  typeof message === "object" && message !== null && "heard" in message ? message.heard : undefined

const hasFollowing = ({ acts, reply, settles, tells }: Following<unknown>): boolean =>
  (acts !== undefined && acts.length > 0) || tells !== undefined || reply !== undefined || settles !== undefined

const causeOf = ({ seq, stream }: Rune): Cause => ({ stream, seq })
