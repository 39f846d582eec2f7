/**
 * Budgets: enforces the budgets of agents, projects and the machine.
 *
 *     agent.usage ── used ──► Spending of its conversation ──► near: a rune ── alert
 *                                                         └──► spent: a rune, the running turns are interrupted
 *     agent with something to ask ── admits? ── no ──► it waits for the next day or month, or a file that allows more
 *
 * Guarantees: a limit applies to the sum of all agents that it covers. A waiting agent continues automatically when a
 * new day or month begins. A user is notified once when a limit is near and once when it is exceeded, even if the
 * daemon restarts. All sums are folds of the log, so that a restart loses none. Agents wait until their conversation
 * has been read. If the machine has a limit, they wait until all conversations have been read.
 */
import { Effect, Layer, type Scope } from "effect"
import type { BudgetConfig } from "../config/AgentConfig.ts"
import {
  SpendingLimits,
  type Allowances,
  type Cost,
  isNear,
  type Limited,
  type Reach,
  type Spender,
  spentWords,
  turnWords
} from "../domain/SpendingLimits.ts"
import type { Address } from "../domain/AgentPort.ts"
import * as Calendar from "../domain/Calendar.ts"
import * as ConversationId from "../domain/ConversationId.ts"
import { ActorSystem, type System } from "../core/event-actor/ActorSystem.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { DAEMON_STREAM, type RuneDraft } from "../core/event-log/Rune.ts"
import type { Told } from "./BudgetKinds.ts"
import { bars, isSpent, reaches, unusual } from "./Limits.ts"
import { type Read, recover } from "./Recovery.ts"
import {
  type Account,
  add,
  archivedOf,
  began,
  costsOf,
  empty,
  intoTurn,
  nothing,
  present,
  renewed,
  spent,
  type Sum,
  tell,
  use
} from "./SpendingTotals.ts"

/** Maximum time between two checks for waiting agents, in ms, because the clock may be set in between. */
const LOOK = 60_000

const keyOf = ({ agent, conversation }: Address): string => `${conversation}/${agent}`

/** Describes implausible spending. Very large amounts are shortened. */
const unlikelyWords = ({ tokens, usd }: { readonly tokens: number; readonly usd: number }): string =>
  `reports that it has spent ${[...(tokens > 0 ? [`${tokens.toPrecision(3)} tokens`] : []), ...(usd > 0 ? [`${usd.toPrecision(3)} USD`] : [])].join(", ")}, more than is possible in that time: this counts only against its own budget`

/** The key of a warning. Each key is used for only one warning. `agent`: the agent's name. */
const toldAs = ({ label, period, resource, whose }: Reach, agent: string, what: "near" | "spent"): string =>
  `${whose === "agent" ? `agent/${agent}` : whose}/${period}/${resource}/${label}/${what}`

interface Known extends Read {
  /** True if an agent of the conversation has run since the daemon's start, so that all rows are in memory. */
  isLive: boolean
}

export interface Options {
  readonly machine: BudgetConfig
}

class BudgetTable implements Allowances {
  readonly machine: BudgetConfig
  private readonly system: System
  private readonly log: EventLog["Service"]
  private readonly scope: Scope.Scope
  private readonly known = new Map<string, Known>()
  private readonly spenders = new Map<string, Spender>()
  private readonly waiting = new Map<string, () => void>()
  /** Keys of the warnings about the machine's limits that were given. */
  private readonly told = new Set<string>()
  private isRead = false
  private isTimed = false

  constructor(options: Options, system: System, log: EventLog["Service"], scope: Scope.Scope) {
    this.machine = options.machine
    this.system = system
    this.log = log
    this.scope = scope
  }

  private get now(): number {
    return this.system.clock.currentTimeMillisUnsafe()
  }

  private get isMachineLimited(): boolean {
    return Object.keys(this.machine).length > 0
  }

  private readonly read = Effect.fnUntraced({ self: this }, function* (this: BudgetTable, stream: string) {
    if (this.known.has(stream)) return
    const read = yield* Effect.provideService(recover(stream), EventLog, this.log)
    // another caller may have read the stream in the meantime, and counted more
    if (!this.known.has(stream)) this.known.set(stream, { ...read, isLive: false })
  })

  /**
   * Reads what each conversation has spent, one after the other. If one cannot be read, its spending counts as zero.
   */
  readonly readAll: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    const streams = yield* Effect.catch(this.log.streams, (error) =>
      Effect.as(Effect.logWarning(`the spending cannot be read: ${error.message}`), [])
    )
    // open conversations are read first, because their agents wait
    for (const { stream } of streams.toSorted((a, b) => Number(a.isSealed) - Number(b.isSealed))) {
      if (stream !== DAEMON_STREAM && !ConversationId.mayBe(stream)) continue
      yield* Effect.catch(this.read(stream), ({ message }) =>
        this.log.setAside({ stream, part: "its spending", message })
      )
      const known = this.known.get(stream)
      if (known?.isLive === false) {
        known.spending.rows.clear()
        known.spending.hours.clear()
      }
    }
    for (const key of this.known.get(DAEMON_STREAM)?.spending.told ?? []) tell(this.told, key)
    this.isRead = true
    this.wakeAll()
  })

  readonly join: Allowances["join"] = Effect.fnUntraced(
    { self: this },
    function* (this: BudgetTable, spender: Spender) {
      const key = keyOf(spender)
      yield* this.readAnew(spender.conversation)
      this.spenders.set(key, spender)
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          this.spenders.delete(key)
          this.waiting.delete(key)
        })
      )
    }
  )

  /** Reads a conversation again, including its rows. */
  private readonly readAnew = Effect.fnUntraced({ self: this }, function* (this: BudgetTable, conversation: string) {
    if (this.known.get(conversation)?.isLive === true) return
    this.known.delete(conversation)
    yield* Effect.catch(this.read(conversation), (error) =>
      Effect.logWarning(`the spending of ${conversation} cannot be read: ${error.message}`)
    )
    const known = this.known.get(conversation)
    if (known !== undefined) known.isLive = true
  })

  private machineAccount(day: string): Account {
    const month = Calendar.monthOf(day)
    const sums = { total: nothing, day: nothing, month: nothing }
    for (const { spending } of this.known.values()) {
      const { ever, project } = spending
      sums.total = add(sums.total, ever)
      sums.day = add(sums.day, present(project.day, day, day).sum)
      sums.month = add(sums.month, present(project.month, day, month).sum)
    }
    return {
      total: sums.total,
      turn: empty.turn,
      day: { label: day, sum: sums.day },
      month: { label: month, sum: sums.month }
    }
  }

  /** The spending of an agent since its last start that was not reported yet. */
  private unreported({ agent, conversation }: Address, spent: { readonly tokens: number; readonly usd: number }): Sum {
    const { total } = this.known.get(conversation)?.spending.agents.get(agent) ?? empty
    return {
      ...nothing,
      tokens: Math.max(0, spent.tokens - total.tokens),
      usd: Math.max(0, spent.usd - total.usd)
    }
  }

  /**
   * The limits that apply to an agent, and what is spent of each. `extra`: spending that was not reported yet. `turnId`:
   * the turn to which it belongs; if omitted, no limit of a turn includes it.
   */
  private reachesOf(who: Address, extra: Sum = nothing, turnId?: string): ReadonlyArray<Reach> {
    const spender = this.spenders.get(keyOf(who))
    const known = this.known.get(who.conversation)
    if (spender === undefined || known === undefined) return []
    const { now } = this
    const day = Calendar.dayOf(now)
    const { agent, project } = spender.limits()
    const own = known.spending.agents.get(who.agent) ?? empty
    const turn = turnId === undefined ? own.turn : intoTurn(own.turn, turnId, extra)
    const withTurn = (account: Account): Account => spent({ ...account, turn }, day, extra)
    return [
      ...reaches("agent", agent, withTurn(own), now),
      ...reaches("project", project, withTurn(known.spending.project), now),
      ...(this.isMachineLimited ? reaches("machine", this.machine, withTurn(this.machineAccount(day)), now) : [])
    ]
  }

  readonly admits: Allowances["admits"] = (who, spent, wake) => {
    const known = this.known.get(who.conversation)
    if (known === undefined || (this.isMachineLimited && !this.isRead)) {
      // an agent that has not joined, or whose conversation cannot be read, has no limits
      if (known === undefined && this.isRead) return undefined
      this.waiting.set(keyOf(who), wake)
      return "unread"
    }
    const reached = this.reachesOf(who, this.unreported(who, spent)).find((reach) => bars(reach) && isSpent(reach))
    if (reached === undefined) return undefined
    this.waiting.set(keyOf(who), wake)
    if (reached.until !== null) this.look(reached.until - this.now)
    return reached
  }

  readonly endsTurn: Allowances["endsTurn"] = (who, spent, turnId) =>
    this.reachesOf(who, this.unreported(who, spent), turnId).some(isSpent)

  /** Wakes the waiting agents after `ms` milliseconds, or sooner. */
  private look(ms: number): void {
    if (this.isTimed) return
    this.isTimed = true
    this.system.after(Math.max(1, Math.min(LOOK, ms)), () => {
      this.isTimed = false
      this.wakeAll()
    })
  }

  private wakeAll(): void {
    const all = [...this.waiting.values()]
    this.waiting.clear()
    for (const wake of all) wake()
  }

  readonly wake: Effect.Effect<void> = Effect.sync(() => this.wakeAll())

  readonly used: Allowances["used"] = (who, usage, ref) =>
    Effect.suspend(() => {
      const known = this.known.get(who.conversation)
      if (known === undefined) return Effect.void
      if (ref.eventId > known.eventId) use(known.spending, usage, this.now)
      return this.judge(who, usage.same)
    })

  /** Reports limits that are near or exceeded, and ends turns that exceed them. */
  private judge(who: Address, same: string | undefined): Effect.Effect<void> {
    const drafts: Array<RuneDraft> = []
    const acts: Array<Effect.Effect<void>> = []
    for (const mark of this.marksOf(who, same)) drafts.push(...this.news(who, mark, "near"))
    for (const reach of this.reachesOf(who)) {
      const isTurn = reach.period === "turn"
      if (isTurn && !this.isUnderWay(who, reach)) continue
      if (isSpent(reach) && (isTurn || bars(reach))) {
        drafts.push(...this.news(who, reach, "spent"))
        acts.push(...this.ends(who, reach))
      } else if (!isTurn && !isSpent(reach) && isNear(reach.spent, reach.limit)) {
        drafts.push(...this.news(who, reach, "near"))
      }
    }
    return Effect.andThen(
      this.write(drafts),
      Effect.forEach(acts, (act) => Effect.forkIn(act, this.scope), { discard: true })
    )
  }

  /** Whether the turn to which a limit applies is still in progress. If it is over, its limits no longer matter. */
  private isUnderWay(who: Address, { label }: Reach): boolean {
    const spender = this.spenders.get(keyOf(who))
    return spender?.turn === undefined || spender.turn() === label
  }

  /** Remarkable facts about the current turn. `same`: description of a call that the turn repeats. */
  private marksOf(who: Address, same?: string): ReadonlyArray<Reach> {
    const account = this.known.get(who.conversation)?.spending.agents.get(who.agent)
    const found = account === undefined ? undefined : unusual(account)
    if (account === undefined) return []
    const { turn, unlikely } = account
    const mark = unlikely?.turn === turn.label ? unlikelyWords(unlikely) : undefined
    const of = { whose: "agent", period: "turn", label: account.turn.label, until: null, stops: false } as const
    const { toolCalls: spent } = account.turn.sum
    return [
      ...(unlikely === undefined || mark === undefined
        ? []
        : [{ ...of, resource: "tokens" as const, spent: unlikely.tokens, limit: 0, mark }]),
      ...(mark === undefined && found !== undefined && this.isUnderWay(who, found) ? [found] : []),
      ...(same === undefined ? [] : [{ ...of, resource: "tool_calls" as const, spent, limit: spent, mark: same }])
    ]
  }

  private news({ agent, conversation }: Address, reach: Reach, what: "near" | "spent"): ReadonlyArray<RuneDraft> {
    const isMachine = reach.whose === "machine"
    const told = isMachine ? this.told : this.known.get(conversation)?.spending.told
    const key = toldAs(reach, agent, what)
    if (told === undefined || told.has(key)) return []
    tell(told, key)
    const name = isMachine ? "" : reach.whose === "project" ? conversation : agent
    const payload: Told = { key, ...reach, name }
    const actor = isMachine
      ? "budget/machine"
      : reach.whose === "project"
        ? `budget/${conversation}`
        : `budget/${agent}`
    return [{ stream: isMachine ? DAEMON_STREAM : conversation, kind: `budget.${what}`, actor, payload }]
  }

  private write(drafts: ReadonlyArray<RuneDraft>): Effect.Effect<void> {
    // append runes one by one: a closed conversation takes none, which must not prevent the others from being appended
    return Effect.forEach(
      drafts,
      (draft) =>
        Effect.catch(this.log.append([draft]), (error) => Effect.logWarning(`${draft.kind}: ${error.message}`)),
      { discard: true }
    )
  }

  private ends(who: Address, reach: Reach): ReadonlyArray<Effect.Effect<void>> {
    const isMeant = (spender: Spender) =>
      reach.whose === "machine" ||
      (spender.conversation === who.conversation && (reach.whose === "project" || spender.agent === who.agent))
    if (reach.period === "turn") {
      const spender = this.spenders.get(keyOf(who))
      return spender === undefined ? [] : [spender.interrupt(turnWords(reach), true, reach.label)]
    }
    return [...this.spenders.values()]
      .filter(isMeant)
      .map((spender) => (reach.stops ? spender.exhaust(reach) : spender.interrupt(spentWords(reach), true)))
  }

  readonly began: Allowances["began"] = ({ agent, conversation }, ref) =>
    Effect.sync(() => {
      const known = this.known.get(conversation)
      if (known !== undefined && ref.eventId > known.eventId) began(known.spending, agent)
    })

  readonly renewed: Allowances["renewed"] = (conversation, ref) =>
    Effect.sync(() => {
      const known = this.known.get(conversation)
      if (known !== undefined && ref.eventId > known.eventId) renewed(known.spending)
    })

  readonly standing: Allowances["standing"] = (who) => {
    const all = this.reachesOf(who).filter((reach) => reach.period !== "turn" || this.isUnderWay(who, reach))
    return {
      reached: all.find((reach) => bars(reach) && isSpent(reach)),
      near: [...this.marksOf(who), ...all.filter((reach) => !isSpent(reach) && isNear(reach.spent, reach.limit))]
    }
  }

  readonly limits: Allowances["limits"] = () => {
    const all = new Map<string, Limited>()
    for (const who of this.spenders.values())
      for (const reach of this.reachesOf(who)) {
        const { period, resource, whose } = reach
        if (period === "turn") continue
        const conversation = whose === "machine" ? "" : who.conversation
        const agent = whose === "agent" ? who.agent : ""
        all.set(JSON.stringify([whose, conversation, agent, period, resource]), { ...reach, conversation, agent })
      }
    return [...all.values()]
  }

  readonly costs: Allowances["costs"] = Effect.fnUntraced(
    { self: this },
    function* (this: BudgetTable, since: string, options?: { readonly hours: boolean }) {
      const streams = yield* this.log.streams
      const all: Array<Cost> = []
      for (const { stream } of streams) {
        if (stream !== DAEMON_STREAM && !ConversationId.mayBe(stream)) continue
        const read = yield* this.whole(stream)
        const costs = read === undefined ? [] : costsOf(read.spending, stream, since, options)
        // a conversation that was just archived is still in memory; do not count it twice
        all.push(...costs.filter((cost) => cost.conversation === stream || !this.isLive(cost.conversation)))
      }
      return all
    }
  )

  private isLive(conversation: string): boolean {
    return this.known.get(conversation)?.isLive === true
  }

  /** All spending in a stream, including its rows; undefined if the stream cannot be read. */
  private readonly whole = (stream: string): Effect.Effect<Read | undefined> =>
    Effect.suspend(() =>
      this.isLive(stream)
        ? Effect.succeed(this.known.get(stream))
        : Effect.catch(Effect.provideService(recover(stream), EventLog, this.log), (error) =>
            Effect.as(Effect.logWarning(`the spending of ${stream} cannot be read: ${error.message}`), undefined)
          )
    )

  readonly archived: Allowances["archived"] = (conversation) =>
    Effect.map(this.whole(conversation), (read) => (read === undefined ? undefined : archivedOf(read.spending)))
}

/** The layer is ready at once: a conversation's spending is read when one of its agents joins. */
export const layer = (options: Options) =>
  Layer.effect(
    SpendingLimits,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const table = new BudgetTable(options, yield* ActorSystem, yield* EventLog, scope)
      yield* Effect.forkScoped(table.readAll)
      return table
    })
  )
