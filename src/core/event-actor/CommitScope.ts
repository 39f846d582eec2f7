/**
 * CommitScope: a group of actors (siblings) whose runes are appended to the log together.
 *
 *     message → macrostep: decide, tell siblings, decide … until no message is left   (pure, one call stack)
 *             → one atomic append of all its runes                                    (the log's thread)
 *             → durable: replies → actions → timers and activities
 *
 * Guarantees: a macrostep is applied completely or not at all. Before a macrostep is durable, the scope sends only mail
 * to other scopes; if the macrostep is undone, that mail is void. A message counts as handled only when its runes are
 * durable. Therefore a crash or a failed append loses no mail. The number of runes of one scope that can wait for the
 * log is limited (its share). A message that crashes the scope three times is dead-lettered, and the scope continues.
 * The cost of a crash does not depend on the amount of queued mail.
 *
 * A scope is a child of a supervisor, and implements `ChildSpec` itself. The states, mail and asks survive a restart of
 * the scope. A scope without mail consists of a few small objects and its states: it has no fiber and no queue.
 */
import type { Part } from "../supervision/Observation.ts"
import { Cause, Exit } from "effect"
import type { Log, Owner } from "../event-log/Log.ts"
import { StorageError } from "../event-log/EventLog.ts"
import { ActionQueue, MAX_ACTIONS } from "./ActionQueue.ts"
import type { Activities } from "./Activities.ts"
import { actorStopped, mailboxFull } from "./ActorError.ts"
import type { Reason } from "./DeadLetters.ts"
import type { Committed } from "./ActorHandle.ts"
import { type EventSourcedActor, LATER } from "./EventSourcedActor.ts"
import { refusalOf } from "./Macrostep.ts"
import { Ask, Mail } from "./Mail.ts"
import { MailQueue } from "./MailQueue.ts"
import { Member } from "./Member.ts"
import { SenderQueue } from "./SenderQueue.ts"
import { ScopeLifecycle } from "./ScopeLifecycle.ts"
import { added, type ScopeCommit } from "./ScopeCommit.ts"
import type { Turn } from "./TurnScheduler.ts"
import { Rollback } from "./Rollback.ts"

/** Number of crashes that one message can cause. After this number, the message is dead-lettered. */
export const POISON_AFTER = 3
/** Maximum number of messages that a scope handles in one turn, even if time is left in its time slice. */
export const TURN = 4_096

const NONE: ReadonlyArray<never> = []

/** Fields that few scopes need, allocated on first use. */
class Rare {
  room: SenderQueue<Member> | undefined = undefined
  /** Macrosteps without runes, which wait until earlier macrosteps are durable. */
  silent: Array<ScopeCommit> = []
  undone: Rollback | undefined = undefined
  actions: ActionQueue | undefined = undefined
  /** Activities that have not ended yet although their actor was removed, by the actor's name. */
  leftovers: Map<string, Activities> | undefined = undefined
}

export class CommitScope<R = never> extends ScopeLifecycle<R> implements Turn, Owner {
  /** The first actor of the scope, in its own field because most scopes have only one actor and then need no list. */
  private first: Member | undefined = undefined
  private others: ReadonlyArray<Member> = NONE
  /** Number of macrosteps of this scope that are not durable yet. The log changes this number. */
  ahead = 0
  private runesAhead = 0
  /** eventId of the scope's newest rune; used while that rune is not durable yet. */
  private lastAhead = 0
  /** True while the scope is in the scheduler's queue. */
  private isQueued = false
  private mail: MailQueue<Member> | undefined = undefined
  private rare: Rare | undefined = undefined

  /** Adds an actor to the scope. The scope can be running. */
  add<S, M, A, E>(
    name: string,
    definition: EventSourcedActor<S, M, A, E, R>,
    state: S = definition.initial
  ): Member<S, M, E> {
    if (this.find(name) !== undefined) throw new Error(`${this.stream}/${name} already exists`)
    const member = new Member(this.self, name, definition, state)
    if (this.first === undefined) this.first = member
    else this.others = this.others.concat(member)
    const leftover = this.rare?.leftovers?.get(name)
    if (leftover !== undefined) {
      this.rare!.leftovers!.delete(name)
      member.takeOver(leftover)
    }
    if (this.isRunning) this.system.scheduler.alone(() => member.settleIn())
    return member
  }

  /** Interrupts the actor's activities, dead-letters its mail, and fails its asks. */
  remove(name: string): void {
    const member = this.find(name)
    if (member === undefined) return
    member.isRemoved = true
    member.leave()
    const { leftover } = member
    if (leftover !== undefined) (this.the.leftovers ??= new Map<string, Activities>()).set(name, leftover)
    this.empty((other) => other === member, "stopped")
    this.system.putOff.stopped([member])
    const [first, ...others] = this.members.filter((other) => other !== member)
    this.first = first
    this.others = others
  }

  get parts(): ReadonlyArray<Part> {
    return this.members.map((member) => member.part)
  }

  get members(): ReadonlyArray<Member> {
    return this.first === undefined ? NONE : [this.first, ...this.others]
  }

  find(name: string): Member | undefined {
    if (this.first?.name === name) return this.first
    for (const member of this.others) if (member.name === name) return member
    return undefined
  }

  member(name: string): Member {
    const member = this.find(name)
    if (member === undefined) throw new Error(`${this.id} has no actor ${name}`)
    return member
  }

  /**
   * Puts a message into an actor's mailbox if there is room. `isFollowing`: the message results from mail that was
   * already accepted, so it is accepted even if the mailbox is full.
   */
  offer(member: Member, item: unknown, isFollowing: boolean): "taken" | "full" | "gone" {
    if (!this.isOpen || member.isRemoved) {
      this.bury(member, item, "closed")
      return "gone"
    }
    if (!isFollowing && !this.hasRoom(member)) return "full"
    this.push(member, item)
    return "taken"
  }

  /** Puts a message into an actor's mailbox even if the mailbox is full. */
  push(member: Member, item: unknown): void {
    member.waiting += 1
    if (this.mail === undefined) this.mail = new MailQueue<Member>([member, item])
    else this.mail.push(member, item)
    if (this.status === "running") this.wake()
    else this.wait()
  }

  /** Handles an ask. If no mail is queued, the ask runs on the asker's call stack, because the asker waits anyway. */
  ask(ask: Ask<Member>, isFollowing: boolean): void {
    const { member } = ask
    const { status } = this
    if (!this.isOpen || status === "stopped" || member.isRemoved) {
      return ask.fail(actorStopped(member.address, "stopped"))
    }
    if (!isFollowing && !this.hasRoom(member)) return ask.fail(mailboxFull(member.address, this.system.capacity))
    const { scheduler } = this.system
    if (scheduler.isBusy || this.mail !== undefined || status !== "running" || this.isBeyondShare) {
      return this.push(member, ask)
    }
    member.waiting += 1
    scheduler.alone(() => this.macrostep(member, ask))
  }

  /** Cancels an ask whose asker was interrupted. If the ask is still queued, its place in the mailbox becomes free. */
  giveUp(ask: Ask<Member>): void {
    ask.resume = undefined
    ask.end(Exit.interrupt())
    if (ask.isStepped || !ask.isCounted) return
    const { member } = ask
    ask.isCounted = false
    const index = member.postponed?.indexOf(ask) ?? -1
    if (index >= 0) member.postponed!.splice(index, 1)
    else this.mail?.spoil()
    this.settle(member)
  }

  private hasRoom(member: Member): boolean {
    return member.waiting < this.system.capacity && (this.rare === undefined || this.hasRoomForActions(this.rare))
  }

  private hasRoomForActions({ actions }: Rare): boolean {
    return actions === undefined || actions.size < MAX_ACTIONS
  }

  /** Makes a sender wait for room, even during a restart of the scope. The returned function ends the wait. */
  waitForRoom(member: Member, item: unknown, resume: () => void): () => void {
    const leave = (this.the.room ??= new SenderQueue<Member>()).wait(member, {
      item,
      taken: (ok) => {
        if (!ok) this.bury(member, item, "closed")
        resume()
      }
    })
    if (this.status !== "running") this.wait()
    return leave
  }

  private settle(member: Member): void {
    member.waiting -= 1
    if (this.rare?.room !== undefined) this.admit(this.rare, member)
  }

  private admit(rare: Rare, member: Member): void {
    rare.room!.admit(
      member,
      () => member.waiting < this.system.capacity && this.hasRoomForActions(rare),
      (item) => this.push(member, item)
    )
  }

  private wake(): void {
    if (this.isQueued || this.mail === undefined || this.status !== "running") return
    this.isQueued = true
    this.system.scheduler.schedule(this)
  }

  private get the(): Rare {
    return (this.rare ??= new Rare())
  }

  // removes `R` from the type, because members and helper objects do not use the services that the actors need
  private get self(): CommitScope<never> {
    return this as unknown as CommitScope<never>
  }

  turn(until: number): boolean {
    const { loop } = this.system
    for (let count = 0; this.mail !== undefined && this.status === "running"; count++) {
      if (count >= TURN || (count > 0 && loop.now() >= until)) break
      // too many runes of this scope are waiting for the log: stop here, so that other scopes can continue
      if (this.isBeyondShare) {
        this.isQueued = false
        return false
      }
      const { mail } = this
      mail.take()
      const { item, member } = mail
      if (mail.size === 0) this.mail = undefined
      this.macrostep(member, item)
    }
    this.isQueued = this.mail !== undefined && this.status === "running"
    return this.isQueued
  }

  private get isBeyondShare(): boolean {
    const { log, scheduler } = this.system
    return this.runesAhead > 0 && this.runesAhead >= log.share(scheduler.waiting)
  }

  private macrostep(member: Member, item: unknown): void {
    const { log, macrostep, metrics } = this.system
    let unit: ScopeCommit | undefined
    let isDurable = false
    try {
      if (item instanceof Mail && item.isVoid(member)) {
        if (!(item instanceof Ask) || item.isCounted) this.settle(member)
        return
      }
      if (member.isRemoved) return this.lose(member, item)
      metrics.macrosteps += 1
      log.beforeAppend?.()
      unit = macrostep.run(this.self, member, item)
      if (unit === undefined) return this.postpone(member, item)
      // the last call that can throw: after it, the macrostep counts as accepted
      if (unit.runes.length > 0) isDurable = log.append(unit)
    } catch (defect) {
      unit?.drop()
      return this.poisoned(member, item, defect)
    }
    if (item instanceof Ask) item.isStepped = true
    this.stand(unit, isDurable, log)
  }

  /** Dead-letters a message of an undone macrostep, because its actor was removed in the meantime. */
  private lose(member: Member, item: unknown): void {
    this.settle(member)
    this.bury(member, item, "closed")
  }

  /** Accepts a macrostep whose runes were passed to the log. */
  private stand(unit: ScopeCommit, isDurable: boolean, log: Log): void {
    const { item, kept, outbox, touched } = unit
    if (touched !== undefined || kept !== undefined) this.recall(unit)
    const count = unit.runes.length
    if (count > 0) {
      this.lastAhead = unit.behind = log.head
      this.runesAhead += count
      this.system.metrics.appends += 1
      this.system.metrics.runes += count
    } else {
      // a refusal can depend on runes of this scope, or of the sender's scope, that are not durable yet
      unit.behind = Math.max(this.ahead > 0 ? this.lastAhead : 0, item instanceof Mail ? item.behind : 0)
    }
    if (outbox !== undefined) this.send(unit)
    if (count > 0) {
      if (isDurable) this.landed(unit)
    } else if (unit.behind <= log.durable) this.landed(unit)
    else {
      this.the.silent.push(unit)
      if (this.ahead === 0) log.flight?.wait(unit.behind, this)
    }
  }

  /**
   * Calls `stepped` of all actors that changed. If the new state allows a retry, moves their postponed messages to the
   * front of the queue, including messages that this macrostep postponed.
   */
  private recall({ kept, touched }: ScopeCommit): void {
    let back: Array<unknown> | undefined
    for (const { after, before, member } of touched ?? []) {
      try {
        member.definition.stepped?.(before, after)
        if (member.postponed === undefined || !comesBack(member, before, after)) continue
      } catch (defect) {
        this.crashed(Cause.die(defect))
      }
      for (const item of member.postponed ?? []) (back ??= []).push(member, item)
      member.postponed = undefined
    }
    for (const { mail, member, state } of kept ?? []) {
      member.waiting += 1
      if (comesBack(member, state, member.ahead)) (back ??= []).push(member, mail)
      else (member.postponed ??= []).push(mail)
    }
    if (back !== undefined) this.putBack(back)
  }

  /** `pairs`: members and their messages, alternating, oldest first. */
  private putBack(pairs: ReadonlyArray<unknown>): void {
    ;(this.mail ??= new MailQueue<Member>([])).putBack(pairs)
  }

  private postpone(member: Member, item: unknown): void {
    const kept = (member.postponed ??= [])
    // at most half of the capacity, so that the mailbox has room for the message that changes the state
    if (kept.length < Math.max(1, Math.floor(this.system.capacity / 2))) return void kept.push(item)
    const message = item instanceof Mail ? item.message : item
    const refused = refusalOf(member, message, "postponed-limit")
    this.settle(member)
    if (item instanceof Ask) item.fail(refused)
    else this.bury(member, item, "postponed-limit", refused)
  }

  durable(unit: ScopeCommit): void {
    this.system.scheduler.alone(() => this.landed(unit))
  }

  /**
   * Completes a macrostep whose runes are durable: sends its replies, performs its actions, and then sets timers and
   * activities. Called for macrosteps in the order of their eventIds.
   */
  private landed(unit: ScopeCommit): void {
    const count = unit.runes.length
    if (count > 0) {
      this.runesAhead -= count
      // first complete the macrosteps without runes that were handled before this one
      if (this.rare !== undefined && this.rare.silent.length > 0) this.release(unit.runes[0]!.eventId - 1)
    }
    const { acts, item, member, settles, touched } = unit
    if (touched !== undefined) for (const moved of touched) moved.member.state = moved.after
    if (item instanceof Ask) this.answer(unit, item)
    else if (unit.isRefused) this.refused(unit)
    if (settles !== undefined) {
      for (const { ask, member, reply } of settles) this.system.putOff.settle(member, ask, reply)
    }
    this.settle(member)
    if (unit.lost !== undefined) for (const { mail, member } of unit.lost) member.scope.bury(member, mail, "closed")
    if (acts !== undefined) {
      if (unit.reply === LATER && item instanceof Ask) for (const act of acts) act.ask = item
      ;(this.the.actions ??= new ActionQueue(this.self)).add(acts)
    }
    if (touched !== undefined) {
      for (const moved of touched) moved.member.settleIn()
      this.endWhenDone()
    }
    if (count > 0 && this.rare !== undefined && this.rare.silent.length > 0) this.release(this.system.log.durable)
    if (this.mail !== undefined) this.wake()
    if (this.status === "stopping") this.endIfQuiet()
  }

  /**
   * Sends the macrostep's mail to other scopes before the macrostep is durable. The order in the log is still correct,
   * because the receivers append their runes to the same log later.
   */
  private send(unit: ScopeCommit): void {
    for (const { cause, tell } of unit.outbox!) {
      const target = tell.to as Member
      const mail = new Mail(tell.message, cause)
      mail.behind = unit.behind
      unit.sent = added(unit.sent, mail)
      if (target.scope.isOpen && !target.isRemoved) target.scope.push(target, mail)
      else (unit.lost ??= []).push({ member: target, mail })
    }
  }

  private answer(unit: ScopeCommit, ask: Ask<Member>): void {
    if (unit.isRefused) {
      this.system.metrics.refused += 1
      ask.fail(unit.refused)
    } else if (unit.reply === LATER) this.system.putOff.add(ask)
    else if (unit.reply !== undefined) ask.succeed(unit.reply)
    else {
      const last = unit.runes.at(-1)
      const committed: Committed<unknown> = {
        eventId: last?.eventId ?? 0,
        cause: last === undefined ? null : { stream: last.stream, seq: last.seq },
        state: unit.member.state
      }
      ask.succeed(committed)
    }
  }

  private refused({ item, member, refused, why }: ScopeCommit): void {
    if (why === "stale") return this.system.stale(member, item)
    this.system.metrics.refused += 1
    this.bury(member, item, why, refused)
  }

  rest(): void {
    this.system.scheduler.alone(() => this.release(this.system.log.durable))
  }

  /** Completes the macrosteps without runes that waited for the rune `upTo`, or an earlier rune, to be durable. */
  private release(upTo: number): void {
    const silent = this.rare?.silent
    if (silent === undefined) return
    while (silent.length > 0 && silent[0]!.behind <= upTo) this.landed(silent.shift()!)
    if (silent.length > 0 && this.ahead === 0) this.system.log.flight?.wait(silent[0]!.behind, this)
    if (this.status === "stopping") this.endIfQuiet()
  }

  acted(): void {
    const { rare } = this
    if (rare?.room !== undefined) for (const member of rare.room.members) this.admit(rare, member)
    this.endWhenDone()
  }

  /** Ends the scope normally if `ends` returns true for an actor's state and no action is left. */
  private endWhenDone(): void {
    if (this.status !== "running" || (this.rare?.actions?.size ?? 0) > 0) return
    try {
      if (ends(this.first) || this.others.some(ends)) this.finish(Exit.void)
    } catch (defect) {
      this.crashed(Cause.die(defect))
    }
  }

  /** Called when the log could not append the runes. `refold` then resets the states and queues the messages again. */
  failed(unit: ScopeCommit, error: unknown, culprit: boolean): void {
    const undone = (this.the.undone ??= new Rollback())
    this.runesAhead -= unit.runes.length
    undone.add(unit, unit.runes.at(-1)!.eventId)
    if (culprit) undone.blame(unit, error)
  }

  refold(): void {
    this.system.scheduler.alone(() => this.undo(this.the))
  }

  private undo(rare: Rare): void {
    const { silent, undone = new Rollback() } = rare
    for (const unit of silent) undone.add(unit, unit.behind)
    rare.silent = []
    rare.undone = undefined
    for (const member of this.members) {
      if (member.ahead === member.state) continue
      const { ahead } = member
      member.ahead = member.state
      try {
        member.definition.stepped?.(ahead, member.state)
      } catch (defect) {
        this.crashed(Cause.die(defect))
      }
    }
    const { culprit, mail } = undone
    if (mail.length > 0) this.putBack(mail)
    if (culprit !== undefined) this.poisoned(culprit.member, culprit.item, culprit.error)
    if (this.status === "running") this.wake()
    else if (this.status === "stopping") this.endIfQuiet()
    else this.wait()
  }

  /**
   * Handles a message that crashed its actor, or whose runes the log could not store. An ask fails. A tell is retried,
   * and is dead-lettered when it has failed `POISON_AFTER` times. The scope crashes.
   */
  private poisoned(member: Member, item: unknown, defect: unknown): void {
    const isStorage = defect instanceof StorageError
    if (item instanceof Ask) {
      this.settle(member)
      item.fail(isStorage ? defect : actorStopped(member.address, "crashed"))
    } else {
      const mail = item instanceof Mail ? item : new Mail(item, null)
      mail.crashes += 1
      if (mail.crashes >= POISON_AFTER) {
        this.settle(member)
        this.bury(member, mail, "poison", defect)
      } else this.putBack([member, mail])
    }
    this.crashed(isStorage ? Cause.fail(defect) : Cause.die(defect))
  }

  bury(member: Member, item: unknown, reason: Reason, why?: unknown): void {
    if (item instanceof Ask) return item.fail(actorStopped(member.address, this.downReason))
    const isMail = item instanceof Mail
    this.system.metrics.deadLetters += 1
    this.system.deadLetters.post({
      address: member.address,
      reason,
      message: isMail ? item.message : item,
      ...(why !== undefined && { why }),
      ...(isMail && item.cause !== null && { cause: item.cause })
    })
  }

  protected override begun(): void {
    this.system.scheduler.alone(() => {
      this.rare?.actions?.go()
      for (const member of this.members) member.settleIn()
      this.endWhenDone()
      this.wake()
    })
  }

  protected override leave(): void {
    for (const member of this.members) member.leave()
  }

  protected override get isOnTheWay(): boolean {
    return this.ahead > 0 || (this.rare?.silent.length ?? 0) > 0
  }

  protected override get hasMail(): boolean {
    return (
      this.mail !== undefined ||
      this.rare?.room?.isEmpty === false ||
      this.members.some(({ postponed }) => postponed !== undefined && postponed.length > 0)
    )
  }

  protected override failAsks(reason: "unstarted" | "stopped"): void {
    const waiting = [...(this.mail?.all() ?? []), ...this.members.flatMap(({ postponed }) => postponed ?? [])]
    for (const item of waiting) {
      if (!(item instanceof Ask) || !item.isCounted) continue
      item.fail(actorStopped(item.member.address, reason))
      this.giveUp(item)
    }
    this.system.putOff.stopped(this.members)
  }

  protected override giveUpMail(reason: "restarting" | "stopped"): void {
    this.empty(() => true, reason)
  }

  /** If `isOne` is true for an actor: dead-letters its tells, fails its asks, and ends the waits of its senders. */
  private empty(isOne: (member: Member) => boolean, reason: "restarting" | "stopped"): void {
    const lost = this.mail?.takeOut(isOne) ?? []
    if (this.mail?.size === 0) this.mail = undefined
    for (const member of this.members) {
      if (!isOne(member)) continue
      for (const item of member.postponed ?? []) lost.push([member, item])
      member.postponed = undefined
    }
    for (const [member, item] of lost) {
      if (!(item instanceof Ask) || item.isCounted) member.waiting -= 1
      if (item instanceof Ask) {
        item.isCounted = false
        item.fail(actorStopped(member.address, reason))
      } else if (!(item instanceof Mail) || !item.isVoid(member)) this.bury(member, item, "closed")
    }
    this.rare?.room?.refuse(isOne)
  }
}

const ends = (member: Member | undefined): boolean => member?.definition.ends?.(member.state) === true

/** Returns true if mail that was postponed in the state `before` is retried in the state `after`. */
const comesBack = ({ definition }: Member, before: unknown, after: unknown): boolean =>
  definition.comesBack === undefined ? after !== before : definition.comesBack(before, after)
