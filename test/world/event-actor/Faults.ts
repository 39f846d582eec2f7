/**
 * Faults: what could be wrong in the core, planted one at a time into its source as it is
 * loaded: the tests of actors must see each of them. `ALL=1` plants them all;
 * `PLANT=3 npx vitest run --config test/world/event-actor/planted.config.ts` plants one.
 */
export interface Fault {
  readonly what: string
  /** In src/core/event-actor. */
  readonly file: string
  readonly from: string
  readonly to: string
}

export const faults: ReadonlyArray<Fault> = [
  {
    what: "a refusal is told before what it speaks of is durable",
    file: "CommitScope.ts",
    from: "else if (unit.behind <= log.durable) this.landed(unit)",
    to: "else if (unit.behind >= 0) this.landed(unit)"
  },
  {
    what: "the states of a macrostep that was thrown away stay",
    file: "ScopeCommit.ts",
    from: "for (const { before, member } of this.touched ?? []) member.ahead = before",
    to: ""
  },
  {
    what: "mail of a macrostep that was undone is not taken back",
    file: "ScopeCommit.ts",
    from: "for (const mail of this.sent ?? []) mail.isGone = true",
    to: ""
  },
  {
    what: "what a sibling kept is not taken back",
    file: "ScopeCommit.ts",
    from: "for (const { mail } of this.kept ?? []) mail.isGone = true",
    to: ""
  },
  {
    what: "what a refused macrostep told others is sent",
    file: "ScopeCommit.ts",
    from: "    this.outbox = undefined\n",
    to: ""
  },
  {
    what: "mail comes back after a failed append in any order",
    file: "Rollback.ts",
    from: ".toSorted(([a], [b]) => a - b)",
    to: ".toReversed()"
  },
  {
    what: "the culprit's message comes back twice",
    file: "Rollback.ts",
    from: "unit === this.unit ? [] : [unit.member, unit.item]",
    to: "[unit.member, unit.item]"
  },
  {
    what: "an ask that was undone still counts as stepped",
    file: "Rollback.ts",
    from: "unit.item.isStepped = false",
    to: "unit.item.isStepped = true"
  },
  {
    what: "poison is tried four times",
    file: "CommitScope.ts",
    from: "mail.crashes >= POISON_AFTER",
    to: "mail.crashes > POISON_AFTER"
  },
  {
    what: "what comes back goes behind what waits",
    file: "CommitScope.ts",
    from: ";(this.mail ??= new MailQueue<Member>([])).putBack(pairs)",
    to: "for (let n = 0; n < pairs.length; n += 2) (this.mail ??= new MailQueue<Member>([])).push(pairs[n], pairs[n + 1])"
  },
  {
    what: "postponed mail does not come back",
    file: "CommitScope.ts",
    from: "if (back !== undefined) this.putBack(back)",
    to: ""
  },
  {
    what: "mail that was worked off keeps its place",
    file: "CommitScope.ts",
    from: "    this.settle(member)\n    if (unit.lost",
    to: "    if (unit.lost"
  },
  {
    what: "after a failed append the states stay ahead",
    file: "CommitScope.ts",
    from: "      member.ahead = member.state\n",
    to: ""
  },
  {
    what: "macrosteps without runes are forgotten by a failed append",
    file: "CommitScope.ts",
    from: "for (const unit of silent) undone.add(unit, unit.behind)",
    to: ""
  },
  {
    what: "a rune does not say whom it moves",
    file: "Macrostep.ts",
    from: "    moves.push(member.name)\n",
    to: ""
  },
  {
    what: "a sibling joins after later runes",
    file: "Macrostep.ts",
    from: "    if (acts !== undefined) {",
    to: "    if (this.nextId % 2 === 0) this.inner.reverse()\n    if (acts !== undefined) {"
  },
  {
    what: "an illegal message between siblings is passed over",
    file: "Macrostep.ts",
    from: 'if (why === "illegal") unit.refuse(refusalOf(member, message, why), why)',
    to: 'if (why === "illegal") continue'
  },
  {
    what: "a cycle of asks is not seen",
    file: "Macrostep.ts",
    from: "item instanceof Ask && item.isCycle",
    to: "item instanceof Ask && item.chain.length > 99"
  },
  {
    what: "an action that broke is done again",
    file: "ActionQueue.ts",
    from: "    } catch (defect) {\n",
    to: "    } catch (defect) {\n      this.next -= 1\n"
  },
  {
    what: "what stood behind an action that broke is lost",
    file: "ActionQueue.ts",
    from: "    } catch (defect) {\n",
    to: "    } catch (defect) {\n      this.next = this.waiting.length\n"
  },
  {
    what: "two actions run at once",
    file: "ActionQueue.ts",
    from: "    if (this.isBusy) return\n    this.isBusy = true",
    to: "    this.isBusy = true"
  },
  {
    what: "an ask that was given up keeps its place",
    file: "CommitScope.ts",
    from: "    else this.mail?.spoil()\n    this.settle(member)",
    to: "    else this.mail?.spoil()"
  },
  {
    what: "a scope stands in the row more than once",
    file: "CommitScope.ts",
    from: "if (this.isQueued || this.mail === undefined",
    to: "if (this.mail === undefined"
  },
  {
    what: "a scope steps ahead of the log without bound",
    file: "CommitScope.ts",
    from: "return this.runesAhead > 0 && this.runesAhead >= log.share(scheduler.waiting)",
    to: "return this.runesAhead > 100_000 && this.runesAhead >= log.share(scheduler.waiting)"
  },
  {
    what: "who waited last gets the room first",
    file: "SenderQueue.ts",
    from: "const waiter = line.shift()!",
    to: "const waiter = line.pop()!"
  },
  {
    what: "to close is a restart",
    file: "ScopeLifecycle.ts",
    from: "this.finish(Exit.fail(new Closed({ reason: `${this.id} is closed` })))",
    to: "this.finish(Exit.die(new Closed({ reason: `${this.id} is closed` })))"
  },
  {
    what: "an activity begins while the one before ends",
    file: "Activities.ts",
    from: "if (slot.fiber !== undefined) slot.fiber.interruptUnsafe()\n    else this.begin(slot)",
    to: "slot.fiber?.interruptUnsafe()\n    this.begin(slot)"
  },
  {
    what: "a timer that has fired is never void",
    file: "Mail.ts",
    from: "return !timers.some(",
    to: "return timers.length > 99 && !timers.some("
  },
  {
    what: "a timer fires again",
    file: "Timers.ts",
    from: "    entry.hasFired = true\n",
    to: ""
  },
  {
    what: "a timer follows the wall clock",
    file: "Timers.ts",
    from: "for (const entry of this.entries?.values() ?? []) if (entry.since === since) return entry.began",
    to: ""
  },
  {
    what: "a scope may have two supervisors",
    file: "ScopeLifecycle.ts",
    from: 'if (before !== undefined && before.exit === undefined && before.wanted !== "kill") throw this.taken',
    to: "if (before === undefined && this.isClosing) throw this.taken"
  },
  {
    what: "an end is reported while appends are on their way",
    file: "ScopeLifecycle.ts",
    from: 'if (incarnation.wanted !== "kill" && (this.isOnTheWay || !incarnation.isQuiet)) return',
    to: 'if (incarnation.wanted !== "kill" && !incarnation.isQuiet) return'
  },
  {
    what: "what is decided is folded in place of what is stored",
    file: "Macrostep.ts",
    from: "isExact &&= prepared.payload === full.payload",
    to: ""
  },
  {
    what: "a turn has no end",
    file: "CommitScope.ts",
    from: "if (count >= TURN || (count > 0 && loop.now() >= until)) break",
    to: "if (count < 0 && loop.now() >= until) break"
  }
]
