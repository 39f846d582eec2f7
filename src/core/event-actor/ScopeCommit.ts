/**
 * ScopeCommit: the result of one macrostep, until the macrostep is durable. It has the runes of all actors that
 * changed, and the work to do when the runes are on disk.
 */
import type { Owner, Unit } from "../event-log/Log.ts"
import type { Cause, Rune } from "../event-log/Rune.ts"
import type { Act } from "./ActionQueue.ts"
import type { Following, Tell } from "./EventSourcedActor.ts"
import type { Mail } from "./Mail.ts"
import type { Member } from "./Member.ts"

export class Touched {
  readonly member: Member
  readonly before: unknown
  after: unknown

  constructor(member: Member, before: unknown, after: unknown) {
    this.member = member
    this.before = before
    this.after = after
  }
}

/** A tell that leaves the macrostep (to another scope, or to be handled later), with the rune that caused it. */
export interface Leaving {
  readonly tell: Tell
  readonly cause: Cause | null
}

export interface Kept {
  readonly member: Member
  readonly mail: Mail
}

/** A message between siblings that came too early and was postponed. */
export interface Postponed extends Kept {
  /** The state of the receiving actor when it postponed the message. */
  readonly state: unknown
}

const NONE: ReadonlyArray<never> = []

/**
 * Appends to a list, and creates the list if it is undefined. A new list is a one-element literal, because pushing to
 * an empty array allocates capacity for 17 entries.
 */
export const added = <A>(list: Array<A> | undefined, item: A): Array<A> => {
  if (list === undefined) return [item]
  list.push(item)
  return list
}

export class ScopeCommit implements Unit {
  readonly owner: Owner
  runes: ReadonlyArray<Rune> = NONE
  texts: ReadonlyArray<string> = NONE
  /** The actor that received the message from outside the scope. */
  readonly member: Member
  readonly item: unknown
  touched: Array<Touched> | undefined = undefined
  reply: unknown = undefined
  settles: Array<NonNullable<Following<never>["settles"]>[number] & { readonly member: Member }> | undefined = undefined
  outbox: Array<Leaving> | undefined = undefined
  sent: Array<Mail> | undefined = undefined
  /** Mail in the outbox whose receivers no longer exist. */
  lost: Array<Kept> | undefined = undefined
  kept: Array<Postponed> | undefined = undefined
  acts: Array<Act> | undefined = undefined
  /**
   * Set if the macrostep was refused and writes nothing. `why` decides whether a tell is discarded or dead-lettered.
   */
  refused: unknown = undefined
  why: "stale" | "illegal" | "refused" = "refused"
  /** The eventId that must be durable before the macrostep is completed and answered. */
  behind = 0

  constructor(owner: Owner, member: Member, item: unknown) {
    this.owner = owner
    this.member = member
    this.item = item
  }

  get isRefused(): boolean {
    return this.refused !== undefined
  }

  refuse(error: unknown, why: ScopeCommit["why"] = "refused"): void {
    this.refused = error
    this.why = why
  }

  /** Adds a rune. `text`: the payload as the log stores it. */
  add(rune: Rune, text: string): void {
    const isFirst = this.runes.length === 0
    this.runes = added(isFirst ? undefined : (this.runes as Array<Rune>), rune)
    this.texts = added(isFirst ? undefined : (this.texts as Array<string>), text)
  }

  touch(member: Member, after: unknown): void {
    const known = this.touched === undefined ? undefined : touchedOf(this.touched, member)
    if (known !== undefined) known.after = after
    else if (after !== member.ahead) this.touched = added(this.touched, new Touched(member, member.ahead, after))
    member.ahead = after
  }

  /** Restores the states that the actors had before the macrostep, and discards all its results except the refusal. */
  drop(): void {
    for (const { before, member } of this.touched ?? []) member.ahead = before
    this.runes = NONE
    this.texts = NONE
    this.touched = undefined
    this.settles = undefined
    this.outbox = undefined
    this.kept = undefined
    this.acts = undefined
  }

  /** Marks all mail of this macrostep as void, because the macrostep is undone. */
  takeBack(): void {
    for (const mail of this.sent ?? []) mail.isGone = true
    // postponed messages between siblings are sent again when the macrostep runs again
    for (const { mail } of this.kept ?? []) mail.isGone = true
  }
}

const touchedOf = (all: ReadonlyArray<Touched>, member: Member): Touched | undefined => {
  for (const touched of all) if (touched.member === member) return touched
  return undefined
}
