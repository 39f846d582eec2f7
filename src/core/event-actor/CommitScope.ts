/**
 * CommitScope: a group of actors whose runes are appended to the log together.
 *
 *     mail → macrostep: decide, tell siblings, decide … until quiet   (pure, one stack)
 *          → one atomic append of all its runes                       (the log's thread)
 *          → durable: answers → actions → timers and activities
 *
 * Guarantees: a macrostep is applied completely or not at all. Before a macrostep is durable, only
 * mail to other scopes leaves the scope, and that is taken back if the macrostep is undone. Mail is
 * settled together with the append that it led to, so a crash or a failed append loses no mail. The
 * scope can be ahead of the log only by a limited number of runes, its share. A message that
 * crashes the scope three times is dead-lettered, and the scope continues. The cost of a crash does
 * not depend on how much mail is waiting.
 *
 * A scope is the child of a supervisor and is its own `ChildSpec`. Its states, mail and asks
 * outlive its incarnations. A scope without mail consists of some small objects and its states: it
 * has no fiber and no queue.
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
import { RoomQueue } from "./RoomQueue.ts"
import { ScopeLife } from "./ScopeLife.ts"
import { added, type ScopeUnit } from "./ScopeUnit.ts"
import type { Turn } from "./TurnScheduler.ts"
import { Undone } from "./Undone.ts"

/** Number of crashes on one message before it is dead-lettered. */
export const POISON_AFTER = 3
/** Maximum number of messages that a scope handles in one turn, however fast they are. */
export const TURN = 4_096

const NONE: ReadonlyArray<never> = []

/** Fields that few scopes need, allocated on first use. */
class Rare {
  room: RoomQueue<Member> | undefined = undefined
  /** Macrosteps without runes that wait until the macrosteps before them are durable. */
  silent: Array<ScopeUnit> = []
  undone: Undone | undefined = undefined
  actions: ActionQueue | undefined = undefined
  /** Activities of removed actors that have not ended, by the actor's name. */
  leftovers: Map<string, Activities> | undefined = undefined
}

export class CommitScope<R = never> extends ScopeLife<R> implements Turn, Owner {
  /** Most scopes have one actor, and need no list. */
  private first: Member | undefined = undefined
  private others: ReadonlyArray<Member> = NONE
  /** Number of macrosteps that are not durable yet; the log writes it. */
  ahead = 0
  private runesAhead = 0
  /** The newest eventId that is not durable yet. */
  private lastAhead = 0
  /** True while the scope is in the scheduler's queue. */
  private isQueued = false
  private mail: MailQueue<Member> | undefined = undefined
  private rare: Rare | undefined = undefined

  // --- actors

  /** Adds an actor with this state. Actors can be added while the scope runs. */
  add<S, M, A, E>(
    name: string,
    definition: EventSourcedActor<S, M, A, E, R>,
    state: S = definition.initial
  ): Member<S, M, E> {
    if (this.find(name) !== undefined) throw new Error(`${this.stream}/${name} is there already`)
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

  /** Removes an actor from the scope: its activities end, its mail is dead-lettered, its asks fail. */
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

  // --- mail

  /** `isFollowing`: the message follows from mail that was accepted, and is always accepted. */
  offer(member: Member, item: unknown, isFollowing: boolean): "taken" | "full" | "gone" {
    if (!this.isOpen || member.isRemoved) {
      this.bury(member, item, "closed")
      return "gone"
    }
    if (!isFollowing && !this.hasRoom(member)) return "full"
    this.push(member, item)
    return "taken"
  }

  /** Accepts the item even if the mailbox is full. */
  push(member: Member, item: unknown): void {
    member.waiting += 1
    if (this.mail === undefined) this.mail = new MailQueue<Member>([member, item])
    else this.mail.push(member, item)
    if (this.status === "running") this.wake()
    else this.wait()
  }

  /** The asker waits anyway, so its call stack is used: if nothing is queued before it, it is served immediately. */
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

  /** The asker was interrupted. If its turn has not come, its place in the mailbox becomes free. */
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

  /** Queues a sender that found the mailbox full. It waits through restarts. The returned function ends its wait. */
  waitForRoom(member: Member, item: unknown, resume: () => void): () => void {
    const leave = (this.the.room ??= new RoomQueue<Member>()).wait(member, {
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

  // Casts away `R`: the members and helpers of a scope do not need its actors' services.
  private get self(): CommitScope<never> {
    return this as unknown as CommitScope<never>
  }

  // --- a turn

  turn(until: number): boolean {
    const { loop } = this.system
    for (let count = 0; this.mail !== undefined && this.status === "running"; count++) {
      if (count >= TURN || (count > 0 && loop.now() >= until)) break
      // The scope is ahead of the log by its share: it waits for the disk, and other scopes continue.
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

  /** Handles a message, and all messages between siblings that follow from it. */
  private macrostep(member: Member, item: unknown): void {
    const { log, macrostep, metrics } = this.system
    let unit: ScopeUnit | undefined
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
      // The last call that can throw: after it the macrostep is valid.
      if (unit.runes.length > 0) isDurable = log.append(unit)
    } catch (defect) {
      unit?.drop()
      return this.poisoned(member, item, defect)
    }
    if (item instanceof Ask) item.isStepped = true
    this.stand(unit, isDurable, log)
  }

  /** Dead-letters a message that came back from the log after its actor had left the scope. */
  private lose(member: Member, item: unknown): void {
    this.settle(member)
    this.bury(member, item, "closed")
  }

  /** Accepts a macrostep: its runes are on their way to the log, and its mail is settled with them. */
  private stand(unit: ScopeUnit, isDurable: boolean, log: Log): void {
    const { item, kept, outbox, touched } = unit
    if (touched !== undefined || kept !== undefined) this.recall(unit)
    const count = unit.runes.length
    if (count > 0) {
      this.lastAhead = unit.behind = log.head
      this.runesAhead += count
      this.system.metrics.appends += 1
      this.system.metrics.runes += count
    } else {
      // A refusal can also depend on runes that are not durable yet, of this scope or of the sender's scope.
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
   * Puts postponed mail back in front of the queue, also mail that was postponed in this macrostep.
   * Calls `stepped` of actors that keep an index over the new states.
   */
  private recall({ kept, touched }: ScopeUnit): void {
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

  /** Puts messages in front of the waiting ones: member and message in pairs, oldest first. */
  private putBack(pairs: ReadonlyArray<unknown>): void {
    ;(this.mail ??= new MailQueue<Member>([])).putBack(pairs)
  }

  private postpone(member: Member, item: unknown): void {
    const kept = (member.postponed ??= [])
    // At most half of the capacity, so that there is room for the message that changes the state.
    if (kept.length < Math.max(1, Math.floor(this.system.capacity / 2))) return void kept.push(item)
    const message = item instanceof Mail ? item.message : item
    const refused = refusalOf(member, message, "postponed-limit")
    this.settle(member)
    if (item instanceof Ask) item.fail(refused)
    else this.bury(member, item, "postponed-limit", refused)
  }

  // --- durable

  durable(unit: ScopeUnit): void {
    this.system.scheduler.alone(() => this.landed(unit))
  }

  /** Called in the order of the ids. Order of the work: answers, actions, timers and activities. */
  private landed(unit: ScopeUnit): void {
    const count = unit.runes.length
    if (count > 0) {
      this.runesAhead -= count
      // Macrosteps without runes that were handled before this one come first.
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
   * Sends mail to other scopes before it is durable: their runes are appended later in the same
   * log, so the order holds.
   */
  private send(unit: ScopeUnit): void {
    for (const { cause, tell } of unit.outbox!) {
      const target = tell.to as Member
      const mail = new Mail(tell.message, cause)
      mail.behind = unit.behind
      unit.sent = added(unit.sent, mail)
      if (target.scope.isOpen && !target.isRemoved) target.scope.push(target, mail)
      else (unit.lost ??= []).push({ member: target, mail })
    }
  }

  private answer(unit: ScopeUnit, ask: Ask<Member>): void {
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

  private refused({ item, member, refused, why }: ScopeUnit): void {
    if (why === "stale") return this.system.stale(member, item)
    this.system.metrics.refused += 1
    this.bury(member, item, why, refused)
  }

  rest(): void {
    this.system.scheduler.alone(() => this.release(this.system.log.durable))
  }

  /** Completes macrosteps without runes, up to this durable eventId. */
  private release(upTo: number): void {
    const silent = this.rare?.silent
    if (silent === undefined) return
    while (silent.length > 0 && silent[0]!.behind <= upTo) this.landed(silent.shift()!)
    if (silent.length > 0 && this.ahead === 0) this.system.log.flight?.wait(silent[0]!.behind, this)
    if (this.status === "stopping") this.endIfQuiet()
  }

  /** An action that was an Effect has ended. */
  acted(): void {
    const { rare } = this
    if (rare?.room !== undefined) for (const member of rare.room.members) this.admit(rare, member)
    this.endWhenDone()
  }

  /** Ends the scope if a member's state says so (`ends`) and no action is left. */
  private endWhenDone(): void {
    if (this.status !== "running" || (this.rare?.actions?.size ?? 0) > 0) return
    try {
      if (ends(this.first) || this.others.some(ends)) this.finish(Exit.void)
    } catch (defect) {
      this.crashed(Cause.die(defect))
    }
  }

  // --- failures

  /** The log did not take the unit: its mail comes back, and `refold` resets the states. */
  failed(unit: ScopeUnit, error: unknown, culprit: boolean): void {
    const undone = (this.the.undone ??= new Undone())
    this.runesAhead -= unit.runes.length
    undone.add(unit, unit.runes.at(-1)!.eventId)
    if (culprit) undone.blame(unit, error)
  }

  refold(): void {
    this.system.scheduler.alone(() => this.undo(this.the))
  }

  private undo(rare: Rare): void {
    const { silent, undone = new Undone() } = rare
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
   * A message broke a step, or the log failed on its runes. A tell is retried, `POISON_AFTER` times
   * in total; an ask fails.
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

  // --- implementation of ScopeLife

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

  /** Removes the mail of these actors: tells are dead-lettered, asks fail, senders waiting for room are released. */
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

/** True if mail postponed in `before` is retried in `after`. */
const comesBack = ({ definition }: Member, before: unknown, after: unknown): boolean =>
  definition.comesBack === undefined ? after !== before : definition.comesBack(before, after)
