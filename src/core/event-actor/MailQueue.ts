/**
 * MailQueue: the queued mail of a scope, as pairs of actor (member) and message.
 *
 * Guarantees: first in, first out. Mail that is put back goes to the front, oldest first. The cost of putting mail back
 * does not depend on the length of the queue. Void mail is removed before it can accumulate.
 */
import { Ask } from "./Mail.ts"

/** Minimum number of array entries that are freed together: used entries, or entries of void mail. */
const COMPACT_FROM = 2_048

/** Type parameter `M`: the actors that receive the mail. */
export class MailQueue<M> {
  /** Mail in order of arrival: members and their messages, alternating. */
  private back: Array<unknown>
  private first = 0
  /** Mail that was put back: messages and their members, alternating, with the next message at the end of the array. */
  private front: Array<unknown> = []
  /** Number of cancelled asks that are still in the queue. */
  private voids = 0
  /** The actor that receives the message which `take` last removed; `item` is that message. */
  member: M = undefined as never
  item: unknown = undefined

  /** `pairs`: the initial mail, members and messages alternating. The caller must not use the array afterwards. */
  constructor(pairs: Array<unknown>) {
    this.back = pairs
  }

  get size(): number {
    return (this.back.length - this.first + this.front.length) / 2
  }

  push(member: M, item: unknown): void {
    this.back.push(member, item)
  }

  /** Removes the next message and stores it in `member` and `item`. The queue must not be empty. */
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

  /** Puts mail back at the front of the queue. `pairs`: members and their messages, alternating, oldest first. */
  putBack(pairs: ReadonlyArray<unknown>): void {
    for (let index = pairs.length - 2; index >= 0; index -= 2) this.front.push(pairs[index + 1], pairs[index])
  }

  /** Counts an ask in the queue that was cancelled. If there are many cancelled asks, removes them. */
  spoil(): void {
    this.voids += 1
    if (this.voids * 2 >= COMPACT_FROM && this.voids * 2 > this.size) this.keep((_, item) => isCounted(item))
  }

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

  /** All queued mail: members and their messages, alternating, in queue order. */
  all(): ReadonlyArray<unknown> {
    return [...this.front.toReversed(), ...this.back.slice(this.first)]
  }
}

const isCounted = (item: unknown): boolean => !(item instanceof Ask) || item.isCounted
