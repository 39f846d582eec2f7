/**
 * ProviderMachine: the status of one provider and account: whether its models are available.
 *
 * A request that fails because of the provider makes it Degraded, the next one Unavailable; an answer makes it
 * Available. A usage limit lasts until it is lifted. While the provider is not Available, one request at a time probes
 * it: `until` says when, and the delay grows. Reported usage windows are stored in every state. A refused login may
 * have been renewed in the meantime: it is tried once more, then a user is notified.
 *
 * Guarantees: a result of a request that began before the newest failure is ignored. So requests that fail together
 * count as one failure, and a slow answer does not end an outage.
 */
import { Schema, Struct } from "effect"
import { define, on, stale, to } from "../core/event-actor/StateMachine.ts"
import { merged, type Noted } from "../domain/UsageWindow.ts"
import { type Sky, Window } from "../domain/ProviderStatus.ts"
import { MAX_WINDOWS } from "../runs/gateway/LimitHeaders.ts"
import * as Backoff from "../core/supervision/Backoff.ts"

export type State = Sky

const of = { provider: Schema.String, account: Schema.String }
const at = Schema.Finite

export const Event = Schema.Union([
  /** A request failed. `began`: when the request began. All times of events are in ms since the epoch. */
  Schema.TaggedStruct("failed", {
    ...of,
    at,
    began: Schema.Finite,
    message: Schema.String,
    /** Earliest time of a retry, according to the provider. */
    retryAt: Schema.optionalKey(Schema.Finite),
    /**
     * Age in ms at which an outage is reported to the user, from the config of the agent's project. Default: `LASTS`.
     */
    lasts: Schema.optionalKey(Schema.Finite),
    by: Schema.String
  }),
  Schema.TaggedStruct("refused", { ...of, at, began: Schema.Finite, message: Schema.String, by: Schema.String }),
  Schema.TaggedStruct("limited", { ...of, at, until: Schema.Finite, message: Schema.String, by: Schema.String }),
  Schema.TaggedStruct("answered", { at, began: Schema.Finite, by: Schema.String }),
  /** Usage windows with changes that are large enough for a rune. */
  Schema.TaggedStruct("used", { ...of, windows: Schema.Array(Window), by: Schema.String }),
  /** The delay is over: one request may probe. */
  Schema.TaggedStruct("retry_due", {})
])
export type Event = typeof Event.Type

/** Wakes the waiting agents: one of them probes, or all of them continue. */
export type Action = { readonly _tag: "Wake" }

export interface Data {
  readonly provider: string
  readonly account: string
  readonly since: number
  /** Time of the newest failure or limit; 0 before the first. */
  readonly failedAt: number
  /** Number of consecutive failed requests. */
  readonly failures: number
  /** How often the login was refused since the provider last answered; undefined if never. */
  readonly refusals?: number
  /** When the provider is probed again, ms since the epoch; 0 while it is available. */
  readonly until: number
  /** True once `until` has been reached, by a timer on the monotonic clock. */
  readonly isDue: boolean
  readonly message: string
  /** When a user was notified of the outage, ms since the epoch; 0 if not yet. */
  readonly toldAt: number
  /** The agent whose failure caused the notification. Its project's mail section also reports the end of the outage. */
  readonly toldBy: string
  /** The account's usage windows from its runes, newest last. */
  readonly windows: ReadonlyArray<Noted>
}

export const initial: Data = {
  provider: "",
  account: "",
  since: 0,
  failedAt: 0,
  failures: 0,
  until: 0,
  isDue: false,
  message: "",
  toldAt: 0,
  toldBy: "",
  windows: []
}

/** Default age at which an outage is reported to a user, ms. */
export const LASTS = 15 * 60_000

/** Delays between probes, ms. */
export const WAITS: Backoff.Policy = { base: 2_000, factor: 2, cap: 60_000, jitter: 0 }

/** Maximum time until the next probe, in ms, even if the provider names a later time, which may be wrong. */
const LONGEST = 24 * 3_600_000

export const kinds = ["provider.moved", "provider.lasting", "provider.recovered", "provider.used"] as const
export type Kind = (typeof kinds)[number]

const update = on<Event, Data>()

const bounded = (until: number, now: number): number => Math.min(Math.max(until, now), now + LONGEST)

/** Counts a failure. The first one begins an outage. */
const failed = (data: Data, event: Omit<Extract<Event, { _tag: "failed" }>, "_tag" | "began">): Data => {
  const { account, at, by, lasts = LASTS, message, provider, retryAt } = event
  const isFirst = data.until === 0
  const failures = data.failures + 1
  const since = isFirst ? at : Math.min(data.since, at)
  const toldAt = isFirst ? 0 : data.toldAt
  const isTold = toldAt === 0 && at - since >= lasts
  return {
    ...data,
    provider,
    account,
    since,
    failedAt: at,
    failures,
    until: bounded(Math.max(retryAt ?? 0, at + Backoff.wait(WAITS, failures)), at),
    isDue: false,
    // keep the message of a refused login: it says what to do
    message: isRefused(data) ? data.message : message,
    toldAt: isTold ? at : toldAt,
    toldBy: isTold ? by : data.toldBy
  }
}

/** Forgets earlier rejections when the login works again. */
const renewed: (data: Data) => Data = Struct.omit(["refusals"])

/** Whether the login was tried once more, and refused again. */
const isRefused = ({ refusals = 0 }: Data): boolean => refusals > 1

/** Counts a refused login. A user is notified at the second one. */
const refused = (data: Data, event: Extract<Event, { _tag: "refused" }>): Data => {
  const refusals = (data.refusals ?? 0) + 1
  const lasts = refusals === 2 ? 0 : Number.POSITIVE_INFINITY
  const next = failed({ ...data, toldAt: refusals === 2 ? 0 : data.toldAt }, { ...event, lasts })
  return { ...next, refusals, message: event.message }
}

/** A refused login during an outage. */
const refusal = {
  set: "refuse",
  then: [{ to: "LoginNeeded", when: "refused", rune: "provider.lasting" }, { to: "Degraded" }]
} as const

/** Transitions for a failure during an outage. */
const worse = {
  set: "fail",
  then: [{ to: "Unavailable", when: "lasts", rune: "provider.lasting" }, { to: "Unavailable" }]
} as const

/** Stores usage windows. They do not affect the state. */
const uses = (state: State) => to(state, { set: "use", rune: "provider.used" })

/** Transitions for an answer of the provider: all waiting agents continue. */
const better = {
  set: "clear",
  then: [
    { to: "Available", when: "told", rune: "provider.recovered", act: ["Wake"] },
    { to: "Available", act: ["Wake"] }
  ]
} as const

export const Provider = define<State, Event, Data, Action, Kind>()({
  name: "provider",
  initial: "Available",
  final: [],
  rune: "provider.moved",
  // a failure in the future was recorded before the clock was set back
  fenced: ({ failedAt }, event) => "began" in event && event.began < failedAt && failedAt <= event.at,
  guards: {
    lasts: ({ toldAt }, event) => event._tag === "failed" && event.at === toldAt,
    refused: isRefused,
    told: ({ toldAt }) => toldAt !== 0
  },
  updates: {
    fail: update("failed", failed),
    refuse: update("refused", refused),
    limit: update("limited", (data, { account, at, message, provider, until }) => ({
      ...data,
      provider,
      account,
      since: data.until === 0 ? at : data.since,
      failedAt: at,
      failures: 0,
      until: bounded(until, at),
      isDue: false,
      message,
      toldAt: data.until === 0 ? 0 : data.toldAt
    })),
    clear: (data) => ({ ...renewed(data), failures: 0, until: 0, isDue: false }),
    use: update("used", (data, { account, provider, windows }) => ({
      ...data,
      provider,
      account,
      windows: merged(data.windows, windows, MAX_WINDOWS)
    })),
    due: (data) => ({ ...data, isDue: true })
  },
  actions: { Wake: () => ({ _tag: "Wake" }) },
  timers: {
    retry: {
      after: ({ isDue, until }, since) => (isDue ? Number.POSITIVE_INFINITY : Math.max(0, until - since)),
      fires: () => ({ _tag: "retry_due" })
    }
  },
  fields: { "provider.recovered": ({ account, provider, toldBy }) => ({ provider, account, told_by: toldBy }) },
  states: {
    Available: {},
    Degraded: { timeout: "retry" },
    Unavailable: { timeout: "retry" },
    LimitedUntil: { timeout: "retry" },
    LoginNeeded: { timeout: "retry" }
  },
  table: {
    Available: {
      ...stale("answered", "retry_due"),
      failed: to("Degraded", { set: "fail" }),
      refused: to("Degraded", { set: "refuse" }),
      limited: to("LimitedUntil", { set: "limit" }),
      used: uses("Available")
    },
    Degraded: {
      failed: worse,
      refused: refusal,
      limited: to("LimitedUntil", { set: "limit" }),
      answered: better,
      retry_due: to("Degraded", { set: "due", act: ["Wake"] }),
      used: uses("Degraded")
    },
    Unavailable: {
      failed: worse,
      refused: refusal,
      limited: to("LimitedUntil", { set: "limit" }),
      answered: better,
      retry_due: to("Unavailable", { set: "due", act: ["Wake"] }),
      used: uses("Unavailable")
    },
    LimitedUntil: {
      // requests in progress may fail for other reasons, which do not change the limit
      ...stale("failed", "refused"),
      limited: to("LimitedUntil", { set: "limit" }),
      answered: better,
      retry_due: to("Degraded", { set: "due", act: ["Wake"] }),
      used: uses("LimitedUntil")
    },
    LoginNeeded: {
      failed: to("LoginNeeded", { set: "fail" }),
      refused: to("LoginNeeded", { set: "refuse" }),
      limited: to("LimitedUntil", { set: "limit" }),
      answered: better,
      retry_due: to("LoginNeeded", { set: "due", act: ["Wake"] }),
      used: uses("LoginNeeded")
    }
  }
})
