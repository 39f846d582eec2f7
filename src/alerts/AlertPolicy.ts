/**
 * AlertPolicy: decides which runes the user is notified about, and writes the notifications. One table maps each kind
 * of rune to its news.
 *
 * News has up to two forms: the alert that the project's mail section sends, and the notice that the channels of
 * `notify` send. The notice uses the facts at the moment when it is made. One function for each kind of rune makes both
 * forms. Notice.ts has the urgency of each kind of notice. Pure.
 *
 * Guarantees: a notice's title begins with its subject; a command works from any folder. A question that the user has
 * answered, and news that a later turn has made outdated, have no notice.
 */
import { Schema } from "effect"
import { agentKinds, toolKinds } from "../agents/machines/AgentKinds.ts"
import { budgetKinds } from "../budgets/BudgetKinds.ts"
import type { NoticeKind } from "../config/NotifyConfig.ts"
import { kind, reader, type RuneOf, type Table } from "../core/event-log/EventKinds.ts"
import { ownKinds } from "../core/event-log/OwnKinds.ts"
import { DAEMON_STREAM, type Rune } from "../core/event-log/Rune.ts"
import { nearWords, spentWords, turnWords } from "../domain/SpendingLimits.ts"
import { configKinds } from "../domain/ConfigKinds.ts"
import { putRight, warning, warnsAt } from "../domain/ErrorLimit.ts"
import type { GoalInfo } from "../domain/GoalMessages.ts"
import { nameOf as nameOfAccount, troubles } from "../domain/ProviderStatus.ts"
import { moment, predicate, span } from "../domain/StatusWords.ts"
import { moveKinds as goalKinds } from "../goals/GoalKinds.ts"
import { moveKinds as plateKinds } from "../plates/PlateKinds.ts"
import { providerKinds } from "../providers/ProviderKinds.ts"
import type { Alert } from "./Alert.ts"
import * as Asking from "./Asking.ts"
import * as AlertKinds from "./AlertKinds.ts"
import * as Notice from "./Notice.ts"
import { TELLS_AT } from "./Retry.ts"

/** Maximum lengths in characters. A headline is a mail's subject; a reason is stored in a rune. */
const MAX_HEADLINE = 120
const MAX_REASON = 2000
/** Maximum length of a quoted line, in characters: a stopped agent's last line, and any other line. */
const MAX_LAST = 160
const MAX_LINE = 200

type Words = Pick<Alert, "headline" | "reason"> &
  Partial<Pick<Alert, "of" | "kind" | "key" | "remedy" | "errors" | "runId">>

interface Said {
  readonly mail?: Words
  /** The notice's kind, if it does not depend on the facts. If no channel wants that kind, no facts are read. */
  readonly only?: NoticeKind
  readonly notice?: (facts: Notice.Facts) => Notice.Words | undefined
}

const table = {
  "worker.moved": agentKinds["worker.moved"],
  // agents that have exceeded their budget have no entry here: they stop permanently, and `worker.moved` reports that,
  // with a remedy
  "agent.asked": agentKinds["agent.asked"],
  "agent.bound_reached": agentKinds["agent.bound_reached"],
  "turn.completed": agentKinds["turn.completed"],
  "run.background": agentKinds["run.background"],
  "tool.approval_requested": toolKinds["tool.approval_requested"],
  "plate.moved": plateKinds["plate.moved"],
  "plan.created": goalKinds["plan.created"],
  "plan.updated": goalKinds["plan.updated"],
  "plan.goal_met": goalKinds["plan.goal_met"],
  "plan.stopped": goalKinds["plan.stopped"],
  "plan.blocked": goalKinds["plan.blocked"],
  "session.suspended": agentKinds["session.suspended"],
  "config.waits": configKinds["config.waits"],
  "budget.near": budgetKinds["budget.near"],
  "budget.spent": budgetKinds["budget.spent"],
  "provider.moved": providerKinds["provider.moved"],
  "provider.lasting": providerKinds["provider.lasting"],
  "provider.recovered": providerKinds["provider.recovered"],
  "invariant.violated": ownKinds["invariant.violated"],
  "alert.failed": AlertKinds.alertKinds["alert.failed"],
  // the payload of this kind is not read
  "daemon.started": kind(Schema.Unknown)
} satisfies Table

export const kinds: ReadonlyArray<string> = Object.keys(table)

const read = reader(table)
type Told = RuneOf<typeof table>
type ToldOf<K extends Told["kind"]> = Extract<Told, { readonly kind: K }>

/** The verb for a failure, as the board and `ps` print it. */
export const FAILED = predicate({ word: "failed" }, 0)
const NEEDS_YOU = predicate({ word: "needs you" }, 0)

const nameOf = (actor: string): string => actor.slice(actor.indexOf("/") + 1)

/** The second part of an actor, which is an agent's name: `builder` in `tool/builder/c1`. */
const ownerOf = (actor: string): string => actor.split("/")[1] ?? actor

/** The address of the agent or goal that the rune is about, for commands that work from any folder. */
const addressOf = ({ actor, stream }: Told): string => `${stream}/${nameOf(actor)}`

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

const sentence = (text: string): string => (/[.!?]$/u.test(text.trim()) ? text.trim() : `${text.trim()}.`)

const lastWords = (last: string | undefined, most: number): string => Notice.fit(Notice.line(last ?? ""), most)

/** News of an agent that has stopped permanently. If the user stopped it, nobody is notified. */
const stopped = ({ actor, from, payload, stream, to }: ToldOf<"worker.moved">): Said | undefined => {
  const { consecutiveErrors: row = 0, event, fatal, totalErrors: all = 0 } = payload
  if (to !== "Stopped" || from === "Stopped" || fatal === undefined || fatal === null) return undefined
  const name = nameOf(actor)
  const reason = putRight(fatal.message)
  const runs = (count: number): string => (count === 0 ? "" : `It ran ${count === 1 ? "once" : `${count} times`}. `)
  return {
    mail: {
      kind: "agent.stopped",
      errors: { row, all },
      // only the first clause of the reason; the rest is in the mail
      headline: `${name} ${FAILED}: ${reason.split(";")[0]}`,
      reason,
      remedy: fatal.remedy,
      ...(event._tag === "SessionExited" ? { runId: event.runId } : {})
    },
    notice: ({ agent, last = "", project }) => ({
      kind: "failed",
      title: `${project}/${name} stopped permanently`,
      body: `${sentence(reason)}${last === "" ? "" : `\nIts last line: ${lastWords(last, MAX_LAST)}`}\n${runs(agent?.sessionSeq ?? 0)}Its inbox and its branch are kept.`,
      command: `agentd start ${project}/${name}`,
      about: Notice.agentOf(stream, name)
    })
  }
}

/** News of an error, if the agent stops permanently after only a few more errors. */
const nearing = ({ actor, from, payload, stream, to }: ToldOf<"worker.moved">): Said | undefined => {
  const { consecutiveErrors: row = 0, event, maxTotalErrors, totalErrors: all = 0 } = payload
  if (to !== "CoolingDown" || from === "Interrupting" || event._tag !== "SessionExited") return undefined
  const isCounted = event.outcome._tag === "Error" || event.outcome._tag === "Timeout"
  if (!isCounted || maxTotalErrors === undefined || all !== warnsAt(maxTotalErrors)) return undefined
  const name = nameOf(actor)
  return {
    mail: {
      kind: "agent.nearing_limit",
      errors: { row, all },
      headline: `${name} has ${all} of ${maxTotalErrors} errors`,
      reason: warning({ totalErrors: all, maxTotalErrors }),
      remedy: `See what goes wrong: agentd why ${stream}/${name}\nWhen that is fixed, reset the count: agentd restart ${stream}/${name}`,
      runId: event.runId
    }
  }
}

/** News of an agent's question. Each question has its own key, so that questions are not folded into one alert. */
const asked = (rune: ToldOf<"agent.asked">): Said => {
  const { actor, eventId, kind, payload, stream } = rune
  const name = nameOf(actor)
  const { question } = payload
  return {
    mail: {
      key: `${kind}:${stream}:${eventId}`,
      headline: `${name} asks: ${question}`,
      reason: question,
      remedy: `Answer it: agentd send ${addressOf(rune)} "…"`
    },
    notice: ({ project }) => ({
      kind: "question",
      title: `${project}/${name} asks: ${question}`,
      body: `${question}\nIt continues when you send it a message.`,
      command: "agentd waiting",
      about: `asked:${addressOf(rune)}`
    })
  }
}

/** News of a call that nobody answered in time. Other limits that an agent reaches notify nobody. */
const expired = (rune: ToldOf<"agent.bound_reached">): Said | undefined => {
  const { actor, eventId, payload, stream } = rune
  const name = nameOf(actor)
  const address = addressOf(rune)
  if (payload.call_id === undefined) return undefined
  return {
    mail: {
      kind: "call.expired",
      key: `call.expired:${stream}:${eventId}`,
      headline: `${name} ${NEEDS_YOU}: ${payload.text}`,
      reason: payload.text,
      remedy: `See what happened then: agentd why ${address}\nLet it try again: agentd send ${address} "…"\nOr dismiss it: agentd dismiss ${address}`
    },
    notice: ({ project }) => ({
      kind: "needsYou",
      title: `${project}/${name}: nobody answered its call in time`,
      body: payload.text,
      command: `agentd why ${project}/${name}`,
      about: `asked:${address}`
    })
  }
}

/** News of an agent whose turn has ended and that has no more work in progress: no shell, no sub-agent, no wake-up. */
const done = (rune: ToldOf<"turn.completed" | "run.background">): Said => ({
  only: "done",
  notice: ({ agent, last = "", project, turn, working = [] }) => {
    if (agent === undefined || turn === undefined || agent.word !== "idle" || agent.inbox > 0 || working.length > 0)
      return undefined
    if (rune.kind === "run.background" && rune.payload.works.length > 0) return undefined
    const name = `${project}/${agent.agent}`
    return {
      kind: "done",
      title: `${name} is done`,
      body: `${TURN_ENDED}${last === "" ? "" : `\n${lastWords(last, MAX_LINE)}`}`,
      command: `agentd why ${name}`,
      about: Notice.agentOf(agent.conversation, agent.agent),
      once: `done:${agent.conversation}/${agent.agent}/${turn}`
    }
  }
})

const TURN_ENDED = "Its turn has ended, and none of its work is running."

/** News of a session that the user runs by hand. Runs of agents have other kinds of runes, with their own news. */
const ofSession = ({ from, to }: ToldOf<"plate.moved">): Said | undefined => {
  const asks = to === "AwaitingInput" || to === "AwaitingApproval"
  // the status stays Running while the session's shells, sub-agents or wake-ups are active
  const isDone = to === "Idle" && from === "Running"
  if (from === to || (!asks && !isDone)) return undefined
  return {
    notice: ({ plate }) => {
      if (plate === undefined || plate.agent !== null || plate.status !== to) return undefined
      const of = { about: `plate:${plate.plateId}`, isWhole: true }
      if (asks) return { ...Asking.ofSession(plate, to === "AwaitingInput"), ...of }
      const command = `agentd focus ${Asking.shortId(plate.plateId)}`
      return { kind: "done", title: `${Asking.sessionName(plate)} is done`, body: TURN_ENDED, command, ...of }
    }
  }
}

const aboutGoal = (rune: Told): string => `goal:${addressOf(rune)}`

/** A sentence such as "3 of 9 tasks are done."; empty if the goal is unknown or has no tasks. */
const doneOf = (goal: GoalInfo | undefined): string => {
  if (goal === undefined || goal.total === 0) return ""
  return ` ${goal.tasks.completed} of ${counted(goal.total, "task")} ${goal.total === 1 ? "is" : "are"} done.`
}

const goalMet = (rune: ToldOf<"plan.goal_met">): Said => ({
  notice: ({ goal, now, project }) => {
    const name = `${project}/${nameOf(rune.actor)}`
    const { event } = rune.payload
    const summary = event._tag === "critique_passed" ? ` ${lastWords(event.summary, MAX_LINE)}` : ""
    const tasks =
      goal === undefined ? "" : `${counted(goal.total, "task")} in ${span(Math.max(0, now - goal.submittedAt))}.`
    return {
      kind: "goalMet",
      title: `Goal ${name} is met: ${goal?.goal ?? ""}`,
      body: `${tasks}${summary} Nothing is merged yet.`,
      command: `agentd goal merge ${name}`,
      about: aboutGoal(rune)
    }
  }
})

const planReady = (rune: ToldOf<"plan.created" | "plan.updated">): Said => ({
  notice: ({ goal, project }) => {
    if (goal === undefined || goal.state !== "planning" || goal.word !== "needs you" || goal.behind !== undefined)
      return undefined
    const name = `${project}/${nameOf(rune.actor)}`
    return {
      kind: "planReady",
      title: `Goal ${name} has a plan of ${counted(goal.total, "task")}`,
      body: `${lastWords(goal.goal, MAX_LINE)}\nNothing runs until you approve it.`,
      command: `agentd goal approve ${name}`,
      about: aboutGoal(rune)
    }
  }
})

/** Headline and reason of an alert. If the reason is unknown, both have the same text. */
const cameTo = (name: string, what: string, reason: string | null | undefined) => {
  const whole = `${name} ${what}`
  return { headline: reason == null ? whole : `${whole}: ${reason}`, reason: reason ?? whole }
}

/** The reason in the rune's payload, or else in the payload's event. Undefined if neither contains one. */
const reasonOf = ({ payload: { event, reason } }: ToldOf<"plan.blocked" | "plan.stopped" | "session.suspended">) =>
  reason ?? ("reason" in event ? event.reason : undefined)

/** News of a goal that has failed. If the user cancelled the goal, nobody is notified. */
const planStopped = (rune: ToldOf<"plan.stopped">): Said | undefined => {
  const { event } = rune.payload
  if (event._tag === "user_cancel" && event.by !== "agentd") return undefined
  const name = nameOf(rune.actor)
  const goal = addressOf(rune)
  const words = cameTo(`goal ${name}`, FAILED, reasonOf(rune))
  return {
    mail: {
      ...words,
      remedy: `See what was done: agentd goal show ${goal}\nMerge it as it is: agentd goal merge ${goal} --unreviewed\nSubmit it again: agentd goal "…"`
    },
    notice: (facts) => ({
      kind: "goalStopped",
      title: `Goal ${facts.project}/${name} stopped`,
      body: `${sentence(words.reason)}${doneOf(facts.goal)} Its branches are kept.`,
      command: `agentd goal show ${facts.project}/${name}`,
      about: aboutGoal(rune)
    })
  }
}

const planBlocked = (rune: ToldOf<"plan.blocked">): Said => {
  const name = nameOf(rune.actor)
  const goal = addressOf(rune)
  const words = cameTo(`goal ${name}`, NEEDS_YOU, reasonOf(rune))
  return {
    mail: {
      ...words,
      remedy: `See what it needs: agentd goal show ${goal}\nResume it and retry failed tasks: agentd goal retry ${goal}\nCancel it: agentd goal cancel ${goal}`
    },
    notice: (facts) => ({
      kind: "goalBlocked",
      title: `Goal ${facts.project}/${name} is blocked`,
      body: `${sentence(words.reason)}${doneOf(facts.goal)}`,
      command: `agentd why ${facts.project}/${name}`,
      about: aboutGoal(rune)
    })
  }
}

const suspended = (rune: ToldOf<"session.suspended">): Said => {
  const words = cameTo(nameOf(rune.actor), NEEDS_YOU, reasonOf(rune))
  return {
    mail: {
      ...words,
      remedy: `See its agents, and how their last turns ended: agentd ps\nWhen that is fixed, or the budget is raised, resume it: agentd project resume ${rune.stream}`
    },
    notice: ({ project }) => ({
      kind: "budget",
      title: `${project} is suspended`,
      body: `${sentence(words.reason)} No work is lost.`,
      command: `agentd project resume ${project}`,
      about: Notice.projectOf(rune.stream)
    })
  }
}

const waitingWords = ({ payload, stream }: ToldOf<"config.waits">): Words => {
  const { config, name, problem, state } = payload
  const before = "The last usable version stays in force."
  if (stream === DAEMON_STREAM) {
    return {
      headline: `${name}: your own config.jsonc cannot be used`,
      reason: `${problem ?? config}\n${before}`,
      remedy: `Fix ${config}: it is read again when it changes. See what is wrong: agentd doctor`
    }
  }
  switch (state) {
    case "untrusted":
      return {
        headline: `${name}: agentd.jsonc has changed and waits for you`,
        reason: `${config} has changes that nobody has approved. ${before}`,
        remedy: `Review the change, and put it into force: agentd trust ${stream}`
      }
    case "broken":
      return {
        headline: `${name}: agentd.jsonc cannot be used`,
        reason: `${problem ?? config}\n${before}`,
        remedy: `Fix ${config}, then: agentd trust ${stream}`
      }
    case "missing":
      return {
        headline: `${name}: agentd.jsonc is gone`,
        reason: `${config} does not exist. ${before}`,
        remedy: `Restore it, or close the project: agentd project close ${stream}`
      }
  }
}

/** News of a project's or the user's own config file that is not in force, and for which the user must act. */
const configWaits = (rune: ToldOf<"config.waits">): Said => {
  const mail = waitingWords(rune)
  const isOwn = rune.stream === DAEMON_STREAM
  const of = { about: `config:${rune.stream}`, isWhole: isOwn }
  const { headline, reason } = mail
  if (isOwn || rune.payload.state !== "untrusted")
    return {
      mail,
      notice: () => ({ kind: "configBroken", title: headline, body: reason, command: "agentd doctor", ...of })
    }
  return {
    mail,
    notice: ({ effects = [], project }) => {
      const changes = effects.slice(0, 5).map((effect) => `\n  - ${Notice.line(effect)}`)
      return {
        kind: "configHeld",
        title: `${project}: a changed config waits for you`,
        body: `It is not in force.${changes.length === 0 ? "" : ` It would change:${changes.join("")}`}`,
        command: `agentd config diff ${project}`,
        ...of
      }
    }
  }
}

type Budget = ToldOf<"budget.near" | "budget.spent">

const budgetWords = ({ kind, payload }: Budget): Words => {
  const { name, period, until, whose } = payload
  const isSpent = kind === "budget.spent"
  const who = whose === "machine" ? "agentd" : name
  const isTurn = period === "turn"
  const words = isSpent ? (isTurn ? turnWords(payload) : spentWords(payload)) : nearWords(payload)
  const next = isTurn || until === null ? "" : ` They continue by themselves when the next ${period} begins.`
  const what = isTurn
    ? "The turn was interrupted, none of its work is lost, and the agent waits for you."
    : payload.stops
      ? "The agents with this budget have ended."
      : `The agents with this budget wait.${next}`
  return {
    headline: `${who}: ${words}`,
    reason: isSpent ? `${words}.\n${what}` : `${words}.`,
    remedy: isTurn
      ? `See what it does: agentd why ${name}\n${isSpent ? `Resume it: agentd retry ${name}, or a message. Or stop it: agentd stop ${name}\n` : ""}The limits of a turn: "budget.perTurn" in agentd.jsonc`
      : `See what it was spent for: agentd cost --by agent,model\nRaise it: "budget" in ${whose === "machine" ? "agentd's own config.jsonc, then agentd restart" : "agentd.jsonc"}`
  }
}

/** News of a budget that is nearly or completely spent. */
const ofBudget = (rune: Budget): Said => {
  const about = `${rune.stream}:${rune.payload.key}`
  const mail = { ...budgetWords(rune), key: about }
  const words = { title: mail.headline, body: mail.reason, about }
  const isSpent = rune.kind === "budget.spent"
  return {
    mail,
    notice: () =>
      isSpent && rune.payload.period === "turn"
        ? { ...words, kind: "needsYou", command: "agentd waiting" }
        : { ...words, kind: isSpent ? "budget" : "budgetNear", command: "agentd cost" }
  }
}

/** The conversation of the agent that a provider's rune names. */
const homeOf = (agent: string | undefined): Pick<Words, "of"> => {
  const conversation = agent?.slice(0, agent.lastIndexOf("/")) ?? ""
  return conversation === "" ? {} : { of: conversation }
}

const aboutAccount = ({ actor }: Told) => ({ about: `account:${actor}`, isWhole: true })

const held = (count: number | undefined): string =>
  count === undefined
    ? ""
    : ` ${counted(count, "agent")} ${count === 1 ? "waits" : "wait"} and ${count === 1 ? "continues" : "continue"} by ${count === 1 ? "itself" : "themselves"}.`

const limited = (rune: ToldOf<"provider.moved">): Said | undefined => {
  const { event } = rune.payload
  if (event._tag !== "limited" || rune.to !== "LimitedUntil") return undefined
  return {
    notice: (facts) => ({
      kind: "limit",
      title: `The limit of ${nameOfAccount(event)} is used up until ${moment(event.until, facts.now)}`,
      body: `${Notice.line(event.message)}.${held(facts.held)} No error is counted.`,
      command: "agentd ps",
      ...aboutAccount(rune)
    })
  }
}

/** News of a provider that has been unavailable for a while. Its agents wait, and continue by themselves. */
const lasting = (rune: ToldOf<"provider.lasting">): Said | undefined => {
  const { event } = rune.payload
  if (event._tag !== "failed" && event._tag !== "refused") return undefined
  const isLogin = event._tag === "refused"
  const headline = `${nameOfAccount(event)} ${troubles[isLogin ? "LoginNeeded" : "Unavailable"]}`
  return {
    mail: {
      ...homeOf(event.by),
      headline,
      reason: `${event.message}\nIts agents wait, and continue by themselves when it answers. No error is counted.`,
      remedy: "See who waits: agentd ps"
    },
    notice: (facts) => ({
      kind: isLogin ? "needsYou" : "outage",
      title: headline,
      body: `${sentence(event.message.split("\n")[0]!)}${held(facts.held)}`,
      command: isLogin ? "agentd accounts" : "agentd ps",
      ...aboutAccount(rune)
    })
  }
}

const recovered = (rune: ToldOf<"provider.recovered">): Said => {
  const headline = `${nameOfAccount(rune.payload)} answers again`
  const reason = "Its agents have continued."
  return {
    mail: { ...homeOf(rune.payload.told_by), headline, reason },
    notice: () => ({ kind: "recovered", title: headline, body: reason, command: "agentd ps", ...aboutAccount(rune) })
  }
}

/** News of a violated invariant of agentd itself, or of a damaged log. */
const violated = ({ kind, payload, stream }: ToldOf<"invariant.violated">): Said | undefined => {
  const { message, rule, severity } = payload
  if (severity === "WARN") return undefined
  const isLog = rule === "INV-HASH-VALID" && payload.stream !== stream
  const key = `${kind}:${rule}:${isLog ? payload.stream : stream}`
  const mail: Words = isLog
    ? {
        of: payload.stream,
        headline: `the log of ${payload.stream} is damaged`,
        reason: `${message}\nIt is set apart: nothing in it runs, and it accepts no commands. Everything else continues.`,
        remedy: `See what is wrong: agentd verify\nStop the daemon, then repair it: agentd repair ${payload.stream}\nOr close it, so that a new one can be started: agentd project close ${payload.stream}`
      }
    : {
        headline: `${rule} violated`,
        reason: message,
        remedy: "This is a fault in agentd or a damaged log: run agentd verify, and report it with its output."
      }
  return {
    mail: { ...mail, key },
    notice: () => ({
      kind: "invariant",
      title: `agentd has found an internal error: ${isLog ? "a damaged log" : rule}`,
      body: `${sentence(mail.reason)} Please report it with the output of this command.`,
      command: "agentd verify",
      about: key
    })
  }
}

/** News of a message that could not be sent. If that message was itself such news, nobody is notified. */
const unsent = ({ payload }: ToldOf<"alert.failed">): Said | undefined => {
  const { alertIds, attempt, channel = "mail", error, nextAt } = payload
  const isFirst = payload.class === "setup" ? attempt === 1 : attempt === TELLS_AT
  if (payload.silent === true || (nextAt !== null && !isFirst)) return undefined
  return {
    notice: () => ({
      kind: "unsent",
      title: `${counted(alertIds.length, "notice")} could not be sent by ${channel}`,
      body: `${error}. ${nextAt === null ? "They are given up. See: agentd alert ls" : "They are kept and will be retried."}`,
      command: payload.channel === undefined ? "agentd alert test" : `agentd alert test ${channel}`,
      about: `channel:${channel}`,
      isWhole: true
    })
  }
}

/** News that the daemon has started again after it was killed. Nobody is notified of a start after a normal stop. */
const daemonBack = ({ host, killed, now }: Notice.Facts): Notice.Words | undefined =>
  killed && {
    kind: "daemonBack",
    title: `agentd on ${host} is back after ${span(Math.max(0, now - killed.at))}`,
    body: "The previous daemon was killed. Agents continue; the messages of lost runs are queued again.",
    command: "agentd status",
    about: "daemon",
    isWhole: true
  }

const said: { readonly [K in Told["kind"]]: (rune: ToldOf<K>) => Said | undefined } = {
  "worker.moved": (rune) => stopped(rune) ?? nearing(rune),
  "agent.asked": asked,
  "agent.bound_reached": expired,
  "turn.completed": done,
  "run.background": done,
  "tool.approval_requested": () => ({ notice: Asking.ofCall }),
  "plate.moved": ofSession,
  "plan.created": planReady,
  "plan.updated": planReady,
  "plan.goal_met": goalMet,
  "plan.stopped": planStopped,
  "plan.blocked": planBlocked,
  "session.suspended": suspended,
  "config.waits": configWaits,
  "budget.near": ofBudget,
  "budget.spent": ofBudget,
  "provider.moved": limited,
  "provider.lasting": lasting,
  "provider.recovered": recovered,
  "invariant.violated": violated,
  "alert.failed": unsent,
  "daemon.started": () => ({ notice: daemonBack })
}

const cut = (value: string, length: number): string =>
  value.length <= length ? value : `${value.slice(0, length - 1).toWellFormed()}…`

const alertOf = (rune: Rune, words: Words): Alert => {
  const kind = words.kind ?? rune.kind
  return {
    kind,
    key: words.key ?? `${kind}:${rune.stream}/${rune.actor}`,
    stream: rune.stream,
    actor: rune.actor,
    ...(words.of === undefined ? {} : { of: words.of }),
    name: nameOf(rune.actor),
    headline: cut(words.headline.replaceAll(/\s+/g, " ").trim(), MAX_HEADLINE),
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

const noticed = (rune: Rune, mail: Alert | undefined, raw: Notice.Words, project: string): Alert => {
  const { isWhole = false, ...words } = raw
  const { urgency } = Notice.kinds[raw.kind]
  const notice = Notice.of({ ...words, urgency, project: isWhole ? null : project })
  const { body: reason, command: remedy, title: headline } = notice
  const alert = mail ?? { ...alertOf(rune, { headline, reason, remedy }), name: ownerOf(rune.actor) }
  return { ...alert, key: `${notice.kind}:${notice.about}`, notice }
}

export interface News {
  readonly mail: Alert | undefined
  /** The notice's kind, if it does not depend on the facts. If no channel wants that kind, no facts are read. */
  readonly only: NoticeKind | undefined
  /** Makes the notice; returns undefined if the facts show no news. If absent, only a mail section sends the news. */
  readonly notice: ((facts: Notice.Facts) => Alert | undefined) | undefined
}

/** The news in a rune; undefined if the user is not notified about it. */
export const newsOf = (any: Rune): News | undefined => {
  const rune = read(any)
  const found = rune && (said[rune.kind] as (rune: Told) => Said | undefined)(rune)
  if (found === undefined) return undefined
  const { notice: rawOf, only } = found
  const mail = found.mail && alertOf(any, found.mail)
  const notice =
    rawOf &&
    ((facts: Notice.Facts): Alert | undefined => {
      const raw = rawOf(facts)
      return raw && noticed(any, mail, raw, facts.project)
    })
  return { mail, only, notice }
}
