/**
 * ProviderMachine: the weather of one provider and account: whether its models can be had.
 *
 * One request that fails for the provider's own reasons makes it Degraded, the next one
 * Unavailable; an answer makes it Available. A limit on use lasts until it is lifted. While it
 * is not Available, one request at a time finds out: `until` says when, and the wait grows. What the
 * provider tells of the windows of its account's use is kept beside that, whatever the weather. A login
 * that is refused may have been renewed meanwhile: it is tried once more, then a person is told.
 *
 * Guarantees: a failure, and an answer, of a request that began before the newest failure says
 * nothing new: a herd that fails together counts once, and a long answer ends no outage.
 */
import { Schema, Struct } from "effect"
import { define, on, stale, to } from "../core/event-actor/StateMachine.ts"
import { merged, type Noted } from "../domain/UsageWindow.ts"
import { type Sky, Window } from "../domain/Weather.ts"
import { MAX_WINDOWS } from "../runs/gateway/LimitHeaders.ts"
import * as Backoff from "../core/supervision/Backoff.ts"

export type State = Sky

const of = { provider: Schema.String, account: Schema.String }
const at = Schema.Finite

export const Event = Schema.Union([
  /** `began`: when the request began, ms since the epoch, as all times here. */
  Schema.TaggedStruct("failed", {
    ...of,
    at,
    began: Schema.Finite,
    message: Schema.String,
    /** When it says itself that it is to be asked again. */
    retryAt: Schema.optionalKey(Schema.Finite),
    /** The age at which the outage is told to a person, as the agent's project has it, ms; left out: `LASTS`. */
    lasts: Schema.optionalKey(Schema.Finite),
    by: Schema.String
  }),
  Schema.TaggedStruct("refused", { ...of, at, began: Schema.Finite, message: Schema.String, by: Schema.String }),
  Schema.TaggedStruct("limited", { ...of, at, until: Schema.Finite, message: Schema.String, by: Schema.String }),
  Schema.TaggedStruct("answered", { at, began: Schema.Finite, by: Schema.String }),
  /** Windows of its use of which something worth a rune was told. */
  Schema.TaggedStruct("used", { ...of, windows: Schema.Array(Window), by: Schema.String }),
  /** The wait is over: one request finds out. */
  Schema.TaggedStruct("retry_due", {})
])
export type Event = typeof Event.Type

/** Tells those that wait: one of them finds out, or all go on. */
export type Action = { readonly _tag: "Wake" }

export interface Data {
  readonly provider: string
  readonly account: string
  readonly since: number
  /** The newest failure, or the word of a limit; 0 before the first. */
  readonly failedAt: number
  /** Requests that failed one after the other. */
  readonly failures: number
  /** How often its login was refused since it last answered; left out: never. */
  readonly refusals?: number
  /** When it is asked again; 0 while it is available. */
  readonly until: number
  /** Whether it is time for that, by a clock that nobody sets. */
  readonly isDue: boolean
  readonly message: string
  /** When a person was told that it lasts; 0: not yet. */
  readonly toldAt: number
  /** The agent whose failure that was: its project's mail says that the outage is over, too. */
  readonly toldBy: string
  /** The windows of its use, as its runes tell them; the newest last. */
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

/** ms: an outage that lasts longer is told to a person, where nothing else is said. */
export const LASTS = 15 * 60_000

/** From one request to the next. */
export const WAITS: Backoff.Policy = { base: 2_000, factor: 2, cap: 60_000, jitter: 0 }

/** A provider that asks to be left alone for longer is asked all the same by then, ms: words can be wrong. */
const LONGEST = 24 * 3_600_000

export const kinds = ["provider.moved", "provider.lasting", "provider.recovered", "provider.used"] as const
export type Kind = (typeof kinds)[number]

const update = on<Event, Data>()

const bounded = (until: number, now: number): number => Math.min(Math.max(until, now), now + LONGEST)

/** Counts a failure: an outage begins with the first. */
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
    // a login that is to be renewed says what is to be done
    message: isRefused(data) ? data.message : message,
    toldAt: isTold ? at : toldAt,
    toldBy: isTold ? by : data.toldBy
  }
}

/** Forgets the refusals of a login that answers. */
const renewed: (data: Data) => Data = Struct.omit(["refusals"])

/** Whether its login was tried once more, and refused again. */
const isRefused = ({ refusals = 0 }: Data): boolean => refusals > 1

/** Counts a refused login; a person is told of the second one. */
const refused = (data: Data, event: Extract<Event, { _tag: "refused" }>): Data => {
  const refusals = (data.refusals ?? 0) + 1
  const lasts = refusals === 2 ? 0 : Number.POSITIVE_INFINITY
  const next = failed({ ...data, toldAt: refusals === 2 ? 0 : data.toldAt }, { ...event, lasts })
  return { ...next, refusals, message: event.message }
}

/** A refused login in the midst of trouble. */
const refusal = {
  set: "refuse",
  then: [{ to: "LoginNeeded", when: "refused", rune: "provider.lasting" }, { to: "Degraded" }]
} as const

/** A failure in the midst of trouble. */
const worse = {
  set: "fail",
  then: [{ to: "Unavailable", when: "lasts", rune: "provider.lasting" }, { to: "Unavailable" }]
} as const

/** The windows of its use say nothing of whether it can be had. */
const uses = (state: State) => to(state, { set: "use", rune: "provider.used" })

/** An answer: all that wait go on. */
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
  // a failure of the future was told by a clock that has been set back since
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
      // who is under way may meet other trouble: the limit stands
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
