/**
 * Providers: the status of every provider and account, with one actor each.
 *
 *     run ── failed, limited, answered ──► ProviderActor ── Wake ──► Queue ── wake ──► waiting agents
 *     agent that wants to start a turn ── admits? ──► Queue
 *
 * Guarantees: an agent that is not admitted waits, and continues automatically later. While a provider is not available,
 * one agent at a time probes it. A reported failure or limit is durable when `tell` returns, unless the log fails. While
 * the provider is available, a check costs one look-up. No agent is admitted before the log has been read. A provider
 * without a reported failure, limit or usage has no actor.
 */
import { Effect, Layer, type Scope } from "effect"
import { isNear, isNews, merged, type Noted } from "../domain/UsageWindow.ts"
import {
  type Account,
  type AccountStanding,
  type Forecast,
  type News,
  type Standing,
  ProviderStatus
} from "../domain/ProviderStatus.ts"
import { ActorSystem, type System } from "../core/event-actor/ActorSystem.ts"
import type { ActorHandle } from "../core/event-actor/ActorHandle.ts"
import { CommitScope } from "../core/event-actor/CommitScope.ts"
import { stateMachineActor } from "../core/event-actor/StateMachineActor.ts"
import { MAX_WINDOWS, type UsageWindow } from "../runs/gateway/LimitHeaders.ts"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import * as ProviderId from "./ProviderId.ts"
import * as ProviderMachine from "./ProviderMachine.ts"
import { LEASE, Queue } from "./Queue.ts"
import { fresh, recover, type Stand, type Stands } from "./Recovery.ts"

/** Maximum number of providers in memory. Only providers with a reported failure, limit or usage are in memory. */
const MAX_PROVIDERS = 1_000
const MAX_MESSAGE = 500

interface Provider {
  readonly actor: ActorHandle<Stand, ProviderMachine.Event, never>
  readonly queue: Queue
  /** The usage windows as last reported. Changes that are too small for a rune are only in memory. */
  live: ReadonlyArray<Noted>
}

const actorName = (stream: string): string => `provider/${stream.slice(stream.indexOf(":") + 1)}`

export interface Options {
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
}

class ProviderTable implements Forecast {
  private readonly system: System
  private readonly supervisor: DynamicSupervisor.DynamicSupervisor
  private readonly scope: Scope.Scope
  private readonly providers = new Map<string, Provider>()
  private readonly streams = new WeakMap<Account, string>()
  /** Streams that cannot be read: their content is unknown, and nothing is appended. */
  private readonly unreadable = new Set<string>()
  /** The agents that asked before the log had been read; undefined afterwards. */
  private early: Map<string, () => void> | undefined = new Map()

  constructor(system: System, supervisor: DynamicSupervisor.DynamicSupervisor, scope: Scope.Scope) {
    this.system = system
    this.supervisor = supervisor
    this.scope = scope
  }

  readonly restore = (stands: Stands): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      for (const [stream, stand] of stands)
        if (stand === null) this.unreadable.add(stream)
        else yield* this.enter(stream, stand)
      const early = this.early ?? new Map<string, () => void>()
      this.early = undefined
      for (const wake of early.values()) wake()
    })

  /** The provider of a stream; created if it does not exist yet. */
  private readonly enter = Effect.fnUntraced(
    { self: this },
    function* (this: ProviderTable, stream: string, stand: Stand) {
      const known = this.providers.get(stream)
      if (known !== undefined) return known
      const queue = new Queue()
      const commits = new CommitScope(this.system, { id: stream, stream })
      const definition = stateMachineActor({
        machine: ProviderMachine.Provider,
        data: ProviderMachine.initial,
        perform: () => queue.wake()
      })
      const provider: Provider = { actor: commits.add(actorName(stream), definition, stand), queue, live: [] }
      this.providers.set(stream, provider)
      yield* Effect.forkIn(this.supervisor.add(commits), this.scope)
      return provider
    }
  )

  private streamOf(account: Account): string {
    const known = this.streams.get(account)
    if (known !== undefined) return known
    const stream = ProviderId.of(account)
    this.streams.set(account, stream)
    return stream
  }

  readonly admits: Forecast["admits"] = (account, who, wake) => {
    if (this.early !== undefined) {
      this.early.set(who, wake)
      return false
    }
    const provider = this.providers.get(this.streamOf(account))
    if (provider === undefined) return true
    const { actor, queue } = provider
    const { data, state } = actor.state
    if (state === "Available") return true
    if (!data.isDue) {
      queue.wait(who, wake)
      return false
    }
    const isLet = queue.enter(who, wake, this.system.monotonic())
    if (isLet) this.system.after(LEASE, () => queue.wake())
    return isLet
  }

  readonly tell: Forecast["tell"] = Effect.fnUntraced(
    { self: this },
    function* (this: ProviderTable, account: Account, who: string, news: News) {
      const stream = this.streamOf(account)
      const known = this.providers.get(stream)
      const isNew = news._tag !== "answered" && !this.unreadable.has(stream) && this.providers.size < MAX_PROVIDERS
      if (known === undefined && !isNew) return
      if (known?.actor.state.state === "Available" && news._tag === "answered") return
      const provider = known ?? (yield* this.enter(stream, fresh))
      if (news._tag === "used") return yield* this.note(provider, account, who, news.windows)
      const { actor, queue } = provider
      const at = this.now
      const event = eventOf(account, who, news, at)
      // the probe is released only when the event is durable, so that no other agent probes before that
      if (news._tag !== "answered") yield* Effect.catch(Effect.asVoid(actor.ask(event)), () => actor.tell(event))
      queue.release(who)
      if (news._tag === "answered") yield* actor.tell(event)
    }
  )

  private get now(): number {
    return this.system.clock.currentTimeMillisUnsafe()
  }

  /** Stores reported windows in memory. Changes that are large enough are also logged in a rune. */
  private note(
    provider: Provider,
    account: Account,
    by: string,
    windows: ReadonlyArray<UsageWindow>
  ): Effect.Effect<void> {
    return Effect.suspend(() => {
      const at = this.now
      const told = windows.slice(0, MAX_WINDOWS).map((window) => ({ ...window, at }))
      provider.live = merged(provider.live, told, MAX_WINDOWS)
      const known = new Map(provider.actor.state.data.windows.map((window) => [window.name, window]))
      const news = told.filter((window) => isNews(known.get(window.name), window, at))
      return news.length === 0 ? Effect.void : provider.actor.tell({ _tag: "used", ...account, windows: news, by })
    })
  }

  readonly near: Forecast["near"] = (account) => {
    const provider = this.providers.get(this.streamOf(account))
    return provider === undefined ? [] : windowsOf(provider).filter((window) => isNear(window, this.now))
  }

  readonly accounts: Forecast["accounts"] = () =>
    [...this.providers.values()].map((provider): AccountStanding => ({
      ...standingOf(provider.actor.state),
      windows: windowsOf(provider)
    }))

  readonly standing: Forecast["standing"] = (account) => {
    const provider = this.providers.get(this.streamOf(account))
    return provider === undefined ? undefined : standingOf(provider.actor.state)
  }

  readonly lasting: Forecast["lasting"] = () =>
    [...this.providers.values()]
      .map(({ actor }) => actor.state)
      .filter(({ data, state }) => state !== "Available" && data.toldAt > 0)
      .map(standingOf)
}

const windowsOf = ({ actor, live }: Provider): ReadonlyArray<Noted> =>
  merged(actor.state.data.windows, live, MAX_WINDOWS).toSorted((a, b) => (a.name < b.name ? -1 : 1))

const standingOf = ({ data, entered, state }: Stand): Standing => ({
  provider: data.provider,
  account: data.account,
  state,
  since: data.since,
  until: data.until,
  message: data.message,
  restsOn: entered
})

const eventOf = (
  account: Account,
  by: string,
  news: Exclude<News, { readonly _tag: "used" }>,
  at: number
): ProviderMachine.Event => {
  switch (news._tag) {
    case "answered":
      return { _tag: "answered", at, began: news.began, by }
    case "limited": {
      const message = news.message.slice(0, MAX_MESSAGE)
      return { _tag: "limited", ...account, at, until: news.until, message, by }
    }
    case "refused":
      return { _tag: "refused", ...account, at, began: news.began, message: news.message.slice(0, MAX_MESSAGE), by }
    case "failed": {
      const { began, lasts, retryAt } = news
      const message = news.message.slice(0, MAX_MESSAGE)
      const said = { ...(retryAt === undefined ? {} : { retryAt }), ...(lasts === undefined ? {} : { lasts }) }
      return { _tag: "failed", ...account, at, began, message, ...said, by }
    }
  }
}

/** The layer is ready at once. Agents wait until the log has been read. */
export const layer = ({ supervisor }: Options) =>
  Layer.effect(
    ProviderStatus,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const table = new ProviderTable(yield* ActorSystem, supervisor, scope)
      yield* recover.pipe(
        Effect.catch((error) =>
          Effect.as(Effect.logError(`the status of providers could not be read: ${error.message}`), new Map() as Stands)
        ),
        Effect.flatMap(table.restore),
        Effect.forkScoped
      )
      return table
    })
  )
