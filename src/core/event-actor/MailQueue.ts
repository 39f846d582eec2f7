/**
 * MailQueue: the mail of a scope in order of arrival, as pairs of member and message.
 *
 * Guarantees: first in, first out. Mail that is put back goes to the front, oldest first, and costs
 * only its own length, however much mail is waiting. Void mail does not accumulate.
 */
import { Ask } from "./Mail.ts"

/** Number of entries from which on the used front is freed and void mail is removed. */
const COMPACT_FROM = 2_048

/** `M` is the type of the owners of mail (members). */
export class MailQueue<M> {
  /** Member and message, in pairs. */
  private back: Array<unknown>
  private first = 0
  /** Mail that was put back: message and member in pairs, the next one last. */
  private front: Array<unknown> = []
  /** Number of asks in the queue that were given up. */
  private voids = 0
  /** The member of the message that `take` took last. */
  member: M = undefined as never
  item: unknown = undefined

  /** `pairs`: the initial mail, member and message in turn. The queue owns this array from now on. */
  constructor(pairs: Array<unknown>) {
    this.back = pairs
  }

  get size(): number {
    return (this.back.length - this.first + this.front.length) / 2
  }

  push(member: M, item: unknown): void {
    this.back.push(member, item)
  }

  /** Takes the next message into `member` and `item`. The queue must not be empty. */
  take(): void {
    const { back, front } = this
    if (front.length > 0) {
      this.member = front.pop() as M
      this.item = front.pop()
      return
    }
    this.member = back[this.first] as M
    this.item = back[this.first + 1]
    back[this.first] = back[this.first + 1] = undefined
    this.first += 2
    if (this.first >= COMPACT_FROM && this.first * 2 >= back.length) {
      this.back = back.slice(this.first)
      this.first = 0
    }
  }

  /** Puts mail in front of the waiting mail: member and message in pairs, oldest first. */
  putBack(pairs: ReadonlyArray<unknown>): void {
    for (let index = pairs.length - 2; index >= 0; index -= 2) this.front.push(pairs[index + 1], pairs[index])
  }

  /** Counts an ask that was given up. When there are many, they are removed from the queue. */
  spoil(): void {
    this.voids += 1
    if (this.voids * 2 >= COMPACT_FROM && this.voids * 2 > this.size) this.keep((_, item) => isCounted(item))
  }

  /** Keeps only the mail for which `test` returns true. */
  private keep(test: (member: M, item: unknown) => boolean): void {
    const pairs = this.all()
    this.back = []
    this.front = []
    this.first = 0
    this.voids = 0
    for (let index = 0; index < pairs.length; index += 2) {
      if (test(pairs[index] as M, pairs[index + 1])) this.back.push(pairs[index], pairs[index + 1])
    }
  }

  takeOut(isOne: (member: M) => boolean): Array<readonly [M, unknown]> {
    const out: Array<readonly [M, unknown]> = []
    this.keep((member, item) => {
      if (!isOne(member)) return true
      out.push([member, item])
      return false
    })
    return out
  }

  /** Member and message in pairs, the next one first. */
  all(): ReadonlyArray<unknown> {
    return [...this.front.toReversed(), ...this.back.slice(this.first)]
  }
}

const isCounted = (item: unknown): boolean => !(item instanceof Ask) || item.isCounted
