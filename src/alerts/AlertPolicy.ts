/**
 * AlertPolicy: which runes a person must hear of, and in which words.
 *
 * Pure and without any model: one table from a rune's kind to an alert or
 * nothing. Alerts with the same key are the same trouble and are told together.
 */
import { Schema } from "effect"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import { reader, type RuneOf, type Table } from "../core/event-log/EventKinds.ts"
import { budgetKinds } from "../budgets/BudgetKinds.ts"
import { nearWords, spentWords, turnWords } from "../domain/Allowance.ts"
import { putRight, warning, warnsAt } from "../domain/ErrorLimit.ts"
import { configKinds } from "../domain/ConfigKinds.ts"
import { ownKinds } from "../core/event-log/OwnKinds.ts"
import { DAEMON_STREAM, type Rune } from "../core/event-log/Rune.ts"
import { moveKinds } from "../goals/GoalKinds.ts"
import { nameOf as nameOfAccount, troubles } from "../domain/Weather.ts"
import { predicate } from "../domain/Words.ts"
import { Notice } from "./Notice.ts"
import { providerKinds } from "../providers/ProviderKinds.ts"

/** Longest headline and reason, in characters: an alert is a rune and a subject line. */
const MAX_HEADLINE = 120
const MAX_REASON = 2000

export const Alert = Schema.Struct({
  /** The kind of trouble: `agent.stopped`, else the kind of the rune. */
  kind: Schema.String,
  /** Equal keys are one trouble. */
  key: Schema.String,
  /** Of the rune that caused it. */
  stream: Schema.String,
  actor: Schema.String,
  /** The conversation whose mail section takes it, where that is not the rune's stream. */
  of: Schema.optionalKey(Schema.String),
  /** Of whom it tells, without its project: `builder`. */
  name: Schema.String,
  /** Fits a subject: `builder stopped: 5 errors in a row`. */
  headline: Schema.String,
  reason: Schema.String,
  remedy: Schema.NullOr(Schema.String),
  /** Counters, for those who have some. */
  errors: Schema.NullOr(Schema.Struct({ row: Schema.Int, all: Schema.Int })),
  runId: Schema.NullOr(Schema.String),
  /** The rune that caused it, the newest where it is there several times. */
  cause: Schema.Int,
  /** The cause's place in the stream; not there in alerts that an older agentd queued. */
  seq: Schema.optionalKey(Schema.Int),
  /** Of the cause, ms since the epoch. */
  at: Schema.Finite,
  /** So many equal ones. */
  count: Schema.Int,
  /** As channels tell it; not there in alerts that are mailed alone. */
  notice: Schema.optionalKey(Notice)
})
export type Alert = typeof Alert.Type

type Words = Pick<Alert, "headline" | "reason"> &
  Partial<Pick<Alert, "of" | "kind" | "key" | "remedy" | "errors" | "runId">>

/** As the board and `ps` say it. */
export const FAILED = predicate({ word: "failed" }, 0)
const NEEDS_YOU = predicate({ word: "needs you" }, 0)

const nameOf = (actor: string): string => actor.slice(actor.indexOf("/") + 1)

const told = {
  "worker.moved": agentKinds["worker.moved"],
  "session.suspended": agentKinds["session.suspended"],
  // an agent that has spent its budget stops for good: its worker says so, with what helps
  "agent.asked": agentKinds["agent.asked"],
  "agent.bound_reached": agentKinds["agent.bound_reached"],
  "plan.stopped": moveKinds["plan.stopped"],
  "plan.blocked": moveKinds["plan.blocked"],
  "config.waits": configKinds["config.waits"],
  "budget.near": budgetKinds["budget.near"],
  "budget.spent": budgetKinds["budget.spent"],
  "provider.lasting": providerKinds["provider.lasting"],
  "provider.recovered": providerKinds["provider.recovered"],
  "invariant.violated": ownKinds["invariant.violated"]
} satisfies Table

export const kinds: ReadonlyArray<string> = Object.keys(told)

const read = reader(told)

type Told = RuneOf<typeof told>
type ToldOf<K extends Told["kind"]> = Extract<Told, { readonly kind: K }>

/** The error after which few are left until its agent stops for good. */
const nearing = ({ actor, from, payload, stream, to }: ToldOf<"worker.moved">): Words | undefined => {
  const { consecutiveErrors: row = 0, event, maxTotalErrors, totalErrors: all = 0 } = payload
  if (to !== "CoolingDown" || from === "Interrupting" || event._tag !== "SessionExited") return undefined
  const isCounted = event.outcome._tag === "Error" || event.outcome._tag === "Timeout"
  if (!isCounted || maxTotalErrors === undefined || all !== warnsAt(maxTotalErrors)) return undefined
  const name = nameOf(actor)
  return {
    kind: "agent.nearing_limit",
    errors: { row, all },
    headline: `${name} has ${all} of ${maxTotalErrors} errors`,
    reason: warning({ totalErrors: all, maxTotalErrors }),
    remedy: `See what goes wrong: agentd why ${stream}/${name}\nOnce that is mended, count anew: agentd restart ${stream}/${name}`,
    runId: event.runId
  }
}

/** A worker that stopped for good; one that an operator stopped has no fatal reason. */
const stopped = ({ actor, from, payload, to }: ToldOf<"worker.moved">): Words | undefined => {
  const { consecutiveErrors: row = 0, event, fatal, totalErrors: all = 0 } = payload
  if (to !== "Stopped" || from === "Stopped" || fatal === undefined || fatal === null) return undefined
  return {
    kind: "agent.stopped",
    errors: { row, all },
    // the reason's first clause; the rest is in the mail
    headline: `${nameOf(actor)} ${FAILED}: ${putRight(fatal.message).split(";")[0]}`,
    reason: putRight(fatal.message),
    remedy: fatal.remedy,
    ...(event._tag === "SessionExited" ? { runId: event.runId } : {})
  }
}

const violated = ({ kind, payload, stream }: ToldOf<"invariant.violated">): Words | undefined => {
  const { message, rule, severity } = payload
  if (severity === "WARN") return undefined
  if (rule === "INV-HASH-VALID" && payload.stream !== stream) {
    return {
      key: `${kind}:${rule}:${payload.stream}`,
      of: payload.stream,
      headline: `the log of ${payload.stream} is damaged`,
      reason: `${message}\nIt is set apart: nothing of it runs, and it takes no commands. All others go on.`,
      remedy: `See what is wrong: agentd verify\nMend it, once the daemon is stopped: agentd repair ${payload.stream}\nOr give it up, so that a new one can be begun: agentd project close ${payload.stream}`
    }
  }
  return {
    key: `${kind}:${rule}:${stream}`,
    headline: `${rule} violated`,
    reason: message,
    remedy: "This is a fault in agentd or a damaged log: run agentd verify, and report it with its output."
  }
}

/** Says that a subject came to a state, with the reason where it is known. */
const cameTo = (name: string, what: string, reason: string | null | undefined): Words => {
  const whole = `${name} ${what}`
  return { headline: reason == null ? whole : `${whole}: ${reason}`, reason: reason ?? whole }
}

/** The reason in the rune, else in its event. */
const reasonOf = ({ payload: { event, reason } }: ToldOf<"plan.blocked" | "plan.stopped" | "session.suspended">) =>
  reason ?? ("reason" in event ? event.reason : undefined)

/** From wherever it is typed. */
const goalOf = (rune: Told): string => `${rune.stream}/${nameOf(rune.actor)}`

/** A goal that came to no good end; a person who cancels it knows. */
const planStopped = (rune: ToldOf<"plan.stopped">): Words | undefined => {
  const { event } = rune.payload
  const goal = goalOf(rune)
  return event._tag === "user_cancel" && event.by !== "agentd"
    ? undefined
    : {
        ...cameTo(`goal ${nameOf(rune.actor)}`, FAILED, reasonOf(rune)),
        remedy: `See what was done: agentd goal show ${goal}\nTake it as it is: agentd goal merge ${goal} --unreviewed\nGive it anew: agentd goal "…"`
      }
}

const planBlocked = (rune: ToldOf<"plan.blocked">): Words => {
  const goal = goalOf(rune)
  return {
    ...cameTo(`goal ${nameOf(rune.actor)}`, NEEDS_YOU, reasonOf(rune)),
    remedy: `See what it needs: agentd goal show ${goal}\nLet it go on, with what failed tried again: agentd goal retry ${goal}\nGive it up: agentd goal cancel ${goal}`
  }
}

const suspended = (rune: ToldOf<"session.suspended">): Words => ({
  ...cameTo(nameOf(rune.actor), NEEDS_YOU, reasonOf(rune)),
  remedy: `See its agents, and what their last turns came to: agentd ps\nOnce that is mended, or the budget raised, let it go on: agentd project resume ${rune.stream}`
})

/** An agent has a question; each is a trouble of its own. */
const asked = ({ actor, eventId, kind, payload, stream }: ToldOf<"agent.asked">): Words => {
  const name = nameOf(actor)
  const { question } = payload
  return {
    key: `${kind}:${stream}:${eventId}`,
    headline: `${name} asks: ${question}`,
    reason: question,
    remedy: `Answer it: agentd send ${stream}/${name} "…"`
  }
}

/** A call that nobody answered in time; other bounds are on the lists alone. */
const expired = ({ actor, eventId, payload, stream }: ToldOf<"agent.bound_reached">): Words | undefined => {
  const name = nameOf(actor)
  if (payload.call_id === undefined) return undefined
  return {
    kind: "call.expired",
    key: `call.expired:${stream}:${eventId}`,
    headline: `${name} ${NEEDS_YOU}: ${payload.text}`,
    reason: payload.text,
    remedy: `See what came of it: agentd why ${stream}/${name}\nLet it try again: agentd send ${stream}/${name} "…"\nLet it be: agentd dismiss ${stream}/${name}`
  }
}

/** A project's file is not the config in force, and nobody has seen to it. */
const configWaits = ({ payload, stream }: ToldOf<"config.waits">): Words => {
  const { config, name, problem, state } = payload
  const before = "What was in force before stays in force."
  if (stream === DAEMON_STREAM) {
    return {
      headline: `${name}: your own config.jsonc cannot be used`,
      reason: `${problem ?? config}\n${before}`,
      remedy: `Mend ${config}: it is read again when it changes. See what is wrong: agentd doctor`
    }
  }
  switch (state) {
    case "untrusted":
      return {
        headline: `${name}: agentd.jsonc has changed and waits for you`,
        reason: `${config} has a text that nobody has agreed to. ${before}`,
        remedy: `See what the change does, and put it into force: agentd trust ${stream}`
      }
    case "broken":
      return {
        headline: `${name}: agentd.jsonc cannot be used`,
        reason: `${problem ?? config}\n${before}`,
        remedy: `Mend ${config}, then: agentd trust ${stream}`
      }
    case "missing":
      return {
        headline: `${name}: agentd.jsonc is gone`,
        reason: `${config} is not there. ${before}`,
        remedy: `Put it back, or close the project: agentd project close ${stream}`
      }
  }
}

/** The conversation of an agent that a provider's rune names. */
const homeOf = (agent: string | undefined): Pick<Words, "of"> => {
  const conversation = agent?.slice(0, agent.lastIndexOf("/")) ?? ""
  return conversation === "" ? {} : { of: conversation }
}

/** A provider that has been away for a while; its agents wait, and go on by themselves. */
const lasting = ({ payload: { event } }: ToldOf<"provider.lasting">): Words | undefined =>
  event._tag === "failed" || event._tag === "refused"
    ? {
        ...homeOf(event.by),
        headline: `${nameOfAccount(event)} ${troubles[event._tag === "failed" ? "Unavailable" : "LoginNeeded"]}`,
        reason: `${event.message}\nIts agents wait, and go on by themselves once it answers. Nothing counts against them.`,
        remedy: "See who waits: agentd ps"
      }
    : undefined

const recovered = ({ payload }: ToldOf<"provider.recovered">): Words => ({
  ...homeOf(payload.told_by),
  headline: `${nameOfAccount(payload)} answers again`,
  reason: "Its agents have gone on."
})

/** A limit of a day, a month, a turn or the machine; those of an agent's and a project's whole end them, which is told as such. */
const ofBudget = ({ kind, payload, stream }: ToldOf<"budget.near" | "budget.spent">): Words => {
  const { key, name, period, until, whose } = payload
  const isSpent = kind === "budget.spent"
  const who = whose === "machine" ? "agentd" : name
  const isTurn = period === "turn"
  const words = isSpent ? (isTurn ? turnWords(payload) : spentWords(payload)) : nearWords(payload)
  const next =
    period === "turn" ? "" : until === null ? "" : ` They go on by themselves when the next ${period} begins.`
  const what =
    period === "turn"
      ? "The turn was interrupted, nothing of it is lost, and the agent waits for you."
      : payload.stops
        ? "The agents that it is of have ended."
        : `The agents that it is of wait.${next}`
  return {
    key: `${stream}:${key}`,
    headline: `${who}: ${words}`,
    reason: isSpent ? `${words}.\n${what}` : `${words}.`,
    remedy: isTurn
      ? `See what it does: agentd why ${name}\n${isSpent ? `Let it go on: agentd retry ${name}, or a message. Or stop it: agentd stop ${name}\n` : ""}The limits of a turn: "budget.perTurn" in agentd.jsonc`
      : `See what it was spent for: agentd cost --by agent,model\nRaise it: "budget" in ${whose === "machine" ? "agentd's own config.jsonc, then agentd restart" : "agentd.jsonc"}`
  }
}

const wordsOf = (rune: Told): Words | undefined => {
  switch (rune.kind) {
    case "worker.moved":
      return stopped(rune) ?? nearing(rune)
    case "invariant.violated":
      return violated(rune)
    case "plan.stopped":
      return planStopped(rune)
    case "plan.blocked":
      return planBlocked(rune)
    case "session.suspended":
      return suspended(rune)
    case "agent.asked":
      return asked(rune)
    case "agent.bound_reached":
      return expired(rune)
    case "config.waits":
      return configWaits(rune)
    case "budget.near":
    case "budget.spent":
      return ofBudget(rune)
    case "provider.lasting":
      return lasting(rune)
    case "provider.recovered":
      return recovered(rune)
  }
}

const cut = (value: string, length: number): string =>
  value.length <= length ? value : `${value.slice(0, length - 1).toWellFormed()}…`

const line = (value: string): string => value.replaceAll(/\s+/g, " ").trim()

export const alertOf = (any: Rune): Alert | undefined => {
  const rune = read(any)
  const words = rune === undefined ? undefined : wordsOf(rune)
  if (rune === undefined || words === undefined) return undefined
  const kind = words.kind ?? rune.kind
  return {
    kind,
    key: words.key ?? `${kind}:${rune.stream}/${rune.actor}`,
    stream: rune.stream,
    actor: rune.actor,
    ...(words.of === undefined ? {} : { of: words.of }),
    name: nameOf(rune.actor),
    headline: cut(line(words.headline), MAX_HEADLINE),
    reason: cut(words.reason, MAX_REASON),
    remedy: words.remedy == null ? null : cut(words.remedy, MAX_REASON),
    errors: words.errors ?? null,
    runId: words.runId ?? null,
    cause: rune.eventId,
    seq: rune.seq,
    at: rune.at,
    count: 1
  }
}

/** Two of one key: the newer one's words, both counted. */
export const together = (older: Alert, newer: Alert): Alert => ({ ...newer, count: older.count + newer.count })
