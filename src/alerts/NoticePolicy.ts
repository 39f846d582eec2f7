/**
 * NoticePolicy: which runes channels tell, and in which words: one table from a rune's kind, and the facts of the
 * moment, to a notice or nothing. Pure.
 *
 * Guarantees: a title begins with whom it tells of; a command works as it stands, from any folder; what a person has
 * answered or a turn has overtaken is told of no more.
 */
import { attempt } from "../config/Attempt.ts"
import { agentKinds, toolKinds } from "../agents/machines/AgentKinds.ts"
import type { NoticeKind } from "../config/NotifyConfig.ts"
import type { AgentInfo, CallInfo, PlateInfo } from "../domain/Messages.ts"
import type { GoalInfo } from "../domain/GoalMessages.ts"
import { moment, span } from "../domain/Words.ts"
import { reader, type RuneOf, type Table } from "../core/event-log/EventKinds.ts"
import { DAEMON_STREAM, type Rune } from "../core/event-log/Rune.ts"
import { moveKinds as goalKinds } from "../goals/GoalKinds.ts"
import { moveKinds as plateKinds } from "../plates/PlateKinds.ts"
import { providerKinds } from "../providers/ProviderKinds.ts"
import { nameOf as nameOfAccount, troubles } from "../domain/Weather.ts"
import * as AlertKinds from "./AlertKinds.ts"
import { type Alert, alertOf, kinds as mailed } from "./AlertPolicy.ts"
import * as Notice from "./Notice.ts"
import { TELLS_AT } from "./Retry.ts"

/** Facts of the moment, beside those that the rune says; what is not there is not known, or is over. */
export interface Facts {
  /** How commands name its project. */
  readonly project: string
  readonly now: number
  readonly host: string
  /** The call that it is about, while it waits. */
  readonly call?: CallInfo | undefined
  /** So many other calls wait for a person. */
  readonly waiting?: number
  readonly goal?: GoalInfo | undefined
  readonly plate?: PlateInfo | undefined
  readonly agent?: AgentInfo | undefined
  /** Of the agent, its sub-agents, and theirs: those that work or have work. */
  readonly working?: ReadonlyArray<string>
  /** The agent's newest turn that came to its end. */
  readonly turn?: string | undefined
  /** Agents that wait for the account. */
  readonly held?: number
  /** The last line that it has said. */
  readonly last?: string | undefined
  /** Effects of a changed config, the dangerous first. */
  readonly effects?: ReadonlyArray<string>
  /** The daemon before this one ended so, ms since the epoch; not there: there was none, or it was asked to. */
  readonly killed?: { readonly at: number } | undefined
}

/** Kinds besides those that are mailed. */
const told = {
  "tool.approval_requested": toolKinds["tool.approval_requested"],
  "plan.goal_met": goalKinds["plan.goal_met"],
  "plan.created": goalKinds["plan.created"],
  "plan.updated": goalKinds["plan.updated"],
  "provider.moved": providerKinds["provider.moved"],
  "plate.moved": plateKinds["plate.moved"],
  "turn.completed": agentKinds["turn.completed"],
  "run.background": agentKinds["run.background"],
  "alert.failed": AlertKinds.alertKinds["alert.failed"]
} satisfies Table

/** With `daemon.started`, whose payload is not read. */
export const kinds: ReadonlyArray<string> = [...mailed, ...Object.keys(told), "daemon.started"]

const read = reader(told)
type Told = RuneOf<typeof told>
type ToldOf<K extends Told["kind"]> = Extract<Told, { readonly kind: K }>

type Raw = Omit<Notice.Notice, "project">

const nameOf = (actor: string): string => actor.split("/")[1] ?? actor

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

/** Long enough to be unique, short enough to be typed. */
const shortId = (id: string): string => id.slice(0, 12)

const MAX_INPUT = 200

/** A command in its own words; else the arguments. */
const inputOf = (text: string): string => {
  const [, command] = /^\{"command":("(?:[^"\\]|\\.)*")/su.exec(text) ?? []
  return attempt(() => (command === undefined ? text : (JSON.parse(command) as string))) ?? text
}

const left = (until: number | null, now: number): string =>
  until === null ? "" : ` It waits ${span(Math.max(0, until - now))} more; then the call is refused.`

const options = (questions: NonNullable<CallInfo["questions"]>): ReadonlyArray<string> =>
  questions.flatMap(({ options, question }) => [
    Notice.line(question),
    ...options.map(
      ({ description, label }, at) =>
        `  ${at + 1}  ${Notice.line(description === "" ? label : `${label}: ${description}`)}`
    )
  ])

const ofCall = (_: ToldOf<"tool.approval_requested">, { call, now, project, waiting = 0 }: Facts): Raw | undefined => {
  if (call === undefined || call.state !== "awaiting_approval") return undefined
  const who = `${project}/${call.agent}`
  const id = shortId(call.callId)
  const about = `call:${call.callId}`
  const others = waiting === 0 ? "" : `\n${waiting} more ${waiting === 1 ? "waits" : "wait"} for you.`
  const [first] = call.questions ?? []
  if (call.questions !== undefined && first !== undefined) {
    const answers = call.questions.map(() => "1").join(" ")
    return {
      kind: "question",
      title: `${who} asks: ${first.question}`,
      body: `${options(call.questions).join("\n")}${others}`,
      command: first.options.length === 0 ? "agentd waiting" : `agentd answer ${id} ${answers}`,
      urgency: "now",
      about
    }
  }
  const why = call.reason === null ? "" : `Why it asks: ${Notice.line(call.reason)}.`
  return {
    kind: "needsYou",
    title: `${who} asks to run ${call.tool}`,
    body: `${Notice.fit(Notice.line(inputOf(call.arguments)), MAX_INPUT)}\n\n${why}${left(call.until, now)}${others}\nThe whole call is shown before you approve it.`,
    command: `agentd approve ${id}`,
    urgency: "now",
    about
  }
}

const goalName = (rune: Pick<Rune, "actor">, project: string): string => `${project}/${nameOf(rune.actor)}`

/** "3 of 9 tasks are done." */
const doneOf = (goal: GoalInfo | undefined): string => {
  if (goal === undefined || goal.total === 0) return ""
  return ` ${goal.tasks.completed} of ${counted(goal.total, "task")} ${goal.total === 1 ? "is" : "are"} done.`
}

const goalMet = (rune: ToldOf<"plan.goal_met">, { goal, now, project }: Facts): Raw => {
  const name = goalName(rune, project)
  const { event } = rune.payload
  const summary = event._tag === "critique_passed" ? ` ${Notice.fit(Notice.line(event.summary), MAX_INPUT)}` : ""
  const tasks =
    goal === undefined ? "" : `${counted(goal.total, "task")} in ${span(Math.max(0, now - goal.submittedAt))}.`
  return {
    kind: "goalMet",
    title: `Goal ${name} is met: ${goal?.goal ?? ""}`,
    body: `${tasks}${summary} Nothing is merged yet.`,
    command: `agentd goal merge ${name}`,
    urgency: "soon",
    about: `goal:${rune.stream}/${nameOf(rune.actor)}`
  }
}

/** A plan that is whole, and that waits for a person. */
const planReady = (rune: ToldOf<"plan.created" | "plan.updated">, { goal, project }: Facts): Raw | undefined => {
  if (goal === undefined || goal.state !== "planning" || goal.word !== "needs you" || goal.behind !== undefined)
    return undefined
  const name = goalName(rune, project)
  return {
    kind: "planReady",
    title: `Goal ${name} has a plan of ${counted(goal.total, "task")}`,
    body: `${Notice.fit(Notice.line(goal.goal), MAX_INPUT)}\nNothing runs before you approve.`,
    command: `agentd goal approve ${name}`,
    urgency: "now",
    about: `goal:${rune.stream}/${nameOf(rune.actor)}`
  }
}

const held = (count: number | undefined): string =>
  count === undefined
    ? ""
    : ` ${counted(count, "agent")} ${count === 1 ? "waits" : "wait"} and ${count === 1 ? "goes" : "go"} on by ${count === 1 ? "itself" : "themselves"}.`

const limited = (rune: ToldOf<"provider.moved">, facts: Facts): Raw | undefined => {
  const { event } = rune.payload
  if (event._tag !== "limited" || rune.to !== "LimitedUntil") return undefined
  const name = nameOfAccount(event)
  return {
    kind: "limit",
    title: `The limit of ${name} is used up until ${moment(event.until, facts.now)}`,
    body: `${Notice.line(event.message)}.${held(facts.held)} None counts an error.`,
    command: "agentd ps",
    urgency: "digest",
    about: `account:${rune.actor}`
  }
}

const FOLDER = /([^/]+)\/*$/u

/** A session by its title, else by its folder. */
const sessionName = ({ cwd, title }: PlateInfo): string =>
  title ?? `the session in ${FOLDER.exec(cwd ?? "")?.[1] ?? "an unknown folder"}`

/** A session that a person runs by hand; runs of agents tell for themselves. */
const ofSession = (rune: ToldOf<"plate.moved">, { plate }: Facts): Raw | undefined => {
  if (plate === undefined || plate.agent !== null || plate.status !== rune.to) return undefined
  const who = sessionName(plate)
  const id = shortId(plate.plateId)
  const about = `plate:${plate.plateId}`
  switch (rune.to) {
    case "AwaitingInput":
    case "AwaitingApproval": {
      const questions = plate.questions ?? []
      const asks = rune.to === "AwaitingInput"
      const answer = questions.length > 0 ? `answer ${id} ${questions.map(() => "1").join(" ")}` : `approve ${id}`
      return {
        kind: asks ? "question" : "needsYou",
        title: `${who} ${asks ? "asks you" : "asks for leave"}`,
        body: [
          plate.detail,
          ...options(questions),
          ...(plate.arguments === undefined ? [] : [Notice.fit(Notice.line(inputOf(plate.arguments)), MAX_INPUT)])
        ].join("\n"),
        command: `agentd ${plate.approval === null ? `focus ${id}` : answer}`,
        urgency: "now",
        about
      }
    }
    case "Idle":
      // its status says Running while shells, sub-agents or wake-ups of it are at work
      return rune.from === "Running"
        ? {
            kind: "done",
            title: `${who} is done`,
            body: "Its turn has ended, and nothing of it works on.",
            command: `agentd focus ${id}`,
            urgency: "soon",
            about
          }
        : undefined
    default:
      return undefined
  }
}

/** An agent whose turn has ended, and of which nothing works on: no shell, no sub-agent, no wake-up. */
const done = (
  rune: ToldOf<"turn.completed" | "run.background">,
  { agent, last, project, turn, working = [] }: Facts
) => {
  if (agent === undefined || turn === undefined || agent.word !== "idle" || agent.inbox > 0 || working.length > 0)
    return undefined
  if (rune.kind === "run.background" && rune.payload.works.length > 0) return undefined
  const name = `${project}/${agent.agent}`
  const raw: Raw = {
    kind: "done",
    title: `${name} is done`,
    body: `Its turn has ended, and nothing of it works on.${last === undefined || last === "" ? "" : `\n${Notice.fit(Notice.line(last), MAX_INPUT)}`}`,
    command: `agentd why ${name}`,
    urgency: "soon",
    about: Notice.agentOf(agent.conversation, agent.agent),
    once: `done:${agent.conversation}/${agent.agent}/${turn}`
  }
  return raw
}

/** Notices that a channel could not tell; what tells of that is told of no more. */
const unsent = ({ payload }: ToldOf<"alert.failed">): Raw | undefined => {
  const { alertIds, attempt, channel = "mail", error, nextAt } = payload
  const isFirst = payload.class === "setup" ? attempt === 1 : attempt === TELLS_AT
  if (payload.silent === true || (nextAt !== null && !isFirst)) return undefined
  return {
    kind: "unsent",
    title: `${counted(alertIds.length, "notice")} could not be sent by ${channel}`,
    body: `${error}. ${nextAt === null ? "They are given up; agentd alert ls has them." : "They are kept and tried again."}`,
    command: payload.channel === undefined ? "agentd alert test" : `agentd alert test ${channel}`,
    urgency: "soon",
    about: `channel:${channel}`
  }
}

const noticeOf = (rune: Told, facts: Facts): Raw | undefined => {
  switch (rune.kind) {
    case "tool.approval_requested":
      return ofCall(rune, facts)
    case "plan.goal_met":
      return goalMet(rune, facts)
    case "plan.created":
    case "plan.updated":
      return planReady(rune, facts)
    case "provider.moved":
      return limited(rune, facts)
    case "plate.moved":
      return ofSession(rune, facts)
    case "turn.completed":
    case "run.background":
      return done(rune, facts)
    case "alert.failed":
      return unsent(rune)
  }
}

/** The daemon is back after it was killed; one that was asked to end is no news. */
const daemonBack = ({ host, killed, now }: Facts): Raw | undefined =>
  killed === undefined
    ? undefined
    : {
        kind: "daemonBack",
        title: `agentd on ${host} is back after ${span(Math.max(0, now - killed.at))}`,
        body: "The daemon before it was killed. Agents go on; the messages of runs that were lost are offered again.",
        command: "agentd status",
        urgency: "soon",
        about: "daemon"
      }

const sentence = (text: string): string => (/[.!?]$/u.test(text.trim()) ? text.trim() : `${text.trim()}.`)

/** An alert that is mailed, for channels. */
const ofAlert = (alert: Alert, facts: Facts): Raw | undefined => {
  const { project } = facts
  const name = `${project}/${alert.name}`
  const words = { title: Notice.line(alert.headline), body: alert.reason, urgency: "soon" as const }
  const goal = { about: `goal:${alert.stream}/${alert.name}` }
  switch (alert.kind) {
    case "agent.stopped": {
      const { agent, last = "" } = facts
      const line = last === "" ? "" : `\nIts last line: ${Notice.fit(Notice.line(last), 160)}`
      const runs =
        agent === undefined || agent.sessionSeq === 0
          ? ""
          : `It ran ${agent.sessionSeq === 1 ? "once" : `${agent.sessionSeq} times`}. `
      return {
        ...words,
        kind: "failed",
        title: `${name} stopped for good`,
        body: `${sentence(alert.reason)}${line}\n${runs}Its inbox and its branch are kept.`,
        command: `agentd start ${name}`,
        about: Notice.agentOf(alert.stream, alert.name)
      }
    }
    case "agent.asked":
      return {
        kind: "question",
        title: `${name} asks: ${alert.reason}`,
        body: `${alert.reason}\nIt goes on once you send it a message.`,
        command: "agentd waiting",
        urgency: "now",
        about: `asked:${alert.stream}/${alert.name}`
      }
    case "call.expired":
      return {
        ...words,
        kind: "needsYou",
        title: `${name}: nobody answered its call in time`,
        command: `agentd why ${name}`,
        about: `asked:${alert.stream}/${alert.name}`
      }
    case "plan.stopped":
      return {
        ...words,
        ...goal,
        kind: "goalStopped",
        title: `Goal ${name} stopped`,
        body: `${sentence(alert.reason)}${doneOf(facts.goal)} Its branches stay.`,
        command: `agentd goal show ${name}`
      }
    case "plan.blocked":
      return {
        ...goal,
        kind: "goalBlocked",
        title: `Goal ${name} is blocked`,
        body: `${sentence(alert.reason)}${doneOf(facts.goal)}`,
        command: `agentd why ${name}`,
        urgency: "now"
      }
    default:
      return ofWhole(alert, facts)
  }
}

/** Of projects, accounts, budgets and agentd itself. */
const ofWhole = (alert: Alert, { effects = [], held: waiting, project }: Facts): Raw | undefined => {
  const words = { title: Notice.line(alert.headline), body: alert.reason }
  switch (alert.kind) {
    case "session.suspended":
      return {
        kind: "budget",
        title: `${project} is suspended`,
        body: `${sentence(alert.reason)} No work is lost.`,
        command: `agentd project resume ${project}`,
        urgency: "now",
        about: Notice.projectOf(alert.stream)
      }
    case "budget.spent":
      if (alert.key.includes("/turn/"))
        return { ...words, kind: "needsYou", command: "agentd waiting", urgency: "now", about: alert.key }
      return { ...words, kind: "budget", command: "agentd cost", urgency: "now", about: alert.key }
    case "budget.near":
      return { ...words, kind: "budgetNear", command: "agentd cost", urgency: "digest", about: alert.key }
    case "provider.lasting": {
      const isLogin = alert.headline.endsWith(troubles.LoginNeeded)
      return {
        kind: isLogin ? "needsYou" : "outage",
        title: words.title,
        body: `${sentence(alert.reason.split("\n")[0]!)}${held(waiting)}`,
        command: isLogin ? "agentd accounts" : "agentd ps",
        urgency: isLogin ? "soon" : "digest",
        about: `account:${alert.actor}`
      }
    }
    case "provider.recovered":
      return { ...words, kind: "recovered", command: "agentd ps", urgency: "digest", about: `account:${alert.actor}` }
    case "config.waits": {
      const about = `config:${alert.stream}`
      const isBroken = !alert.headline.includes("waits for you")
      if (isBroken) return { ...words, kind: "configBroken", command: "agentd doctor", urgency: "soon", about }
      const changes = effects.slice(0, 5).map((effect) => `\n  - ${Notice.line(effect)}`)
      return {
        kind: "configHeld",
        title: `${project}: a changed config waits for you`,
        body: `It is not in force.${changes.length === 0 ? "" : ` It would change:${changes.join("")}`}`,
        command: `agentd config diff ${project}`,
        urgency: "soon",
        about
      }
    }
    case "invariant.violated":
      return {
        kind: "invariant",
        title: `agentd has found a fault of its own: ${alert.headline.split(" ")[0] === "the" ? "a damaged log" : alert.headline.replace(" violated", "")}`,
        body: `${sentence(alert.reason)} Please report it with the output of this command.`,
        command: "agentd verify",
        urgency: "now",
        about: alert.key
      }
    default:
      return undefined
  }
}

/** An alert that is told by channels alone. */
const alone = (rune: Rune, notice: Notice.Notice): Alert => ({
  kind: rune.kind,
  key: `${notice.kind}:${notice.about}`,
  stream: rune.stream,
  actor: rune.actor,
  name: nameOf(rune.actor),
  headline: notice.title,
  reason: notice.body,
  remedy: notice.command,
  errors: null,
  runId: null,
  cause: rune.eventId,
  seq: rune.seq,
  at: rune.at,
  count: 1,
  notice
})

const isTold = (rune: Told): boolean => {
  if (rune.kind !== "plate.moved") return true
  return rune.from !== rune.to && ["AwaitingInput", "AwaitingApproval", "Idle"].includes(rune.to ?? "")
}

/** The only kind of notice that a rune can be, where that is known before its facts are. */
export const onlyKind = (kind: string): NoticeKind | undefined =>
  kind === "turn.completed" || kind === "run.background" ? "done" : undefined

/** The alert that a rune is for channels, once its facts are known; undefined: none, whatever they are. */
export const noticed = (rune: Rune): ((facts: Facts) => Alert | undefined) | undefined => {
  const alert = alertOf(rune)
  const known = read(rune)
  const isStart = rune.kind === "daemon.started"
  if (alert === undefined && !isStart && (known === undefined || !isTold(known))) return undefined
  return (facts) => {
    const raw =
      alert !== undefined ? ofAlert(alert, facts) : known !== undefined ? noticeOf(known, facts) : daemonBack(facts)
    if (raw === undefined) return undefined
    const isWhole =
      raw.about === "daemon" ||
      raw.about === `config:${DAEMON_STREAM}` ||
      raw.about.startsWith("channel:") ||
      raw.about.startsWith("account:") ||
      raw.about.startsWith("plate:")
    const notice = Notice.of({ ...raw, project: isWhole ? null : facts.project })
    return alert === undefined ? alone(rune, notice) : { ...alert, key: `${notice.kind}:${notice.about}`, notice }
  }
}
