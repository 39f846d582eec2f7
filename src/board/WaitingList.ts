/**
 * WaitingList: the one list of everything that needs the user. It contains approvals, questions, dropped and queued
 * work, suspended conversations, blocked goals, paused channels, configs that wait for trust, and trouble with mails
 * and logins. Pure. `agentd waiting`, `ps` and every other view use this list.
 *
 * Guarantees: each matter is one row with the remedy and a command that can be run unchanged, from any folder. Damaged
 * logs come first, then questions, then the longest waits, and the many rows of one agent do not hide others. The list
 * and each row are bounded and say what they leave out. Text from outside agentd is unchanged: every view must make it
 * harmless.
 */
import { GONE } from "../config/FileTrouble.ts"
import { causeFirst, putRight } from "../domain/ErrorLimit.ts"
import type { Question } from "../runs/Question.ts"
import type { ChannelInfo } from "../domain/ChannelMessages.ts"
import type { GoalInfo } from "../domain/GoalMessages.ts"
import { inForce } from "../domain/ConfigInForce.ts"
import type { AgentInfo, BacklogInfo, CallInfo, ConversationInfo, PlateInfo, ProjectInfo } from "../domain/Messages.ts"
import { nameOf, type Standing, troubles } from "../domain/ProviderStatus.ts"
import { shown } from "../config/ByteCount.ts"
import type { DaemonStatus } from "./DaemonMessages.ts"
import * as BoardRow from "../domain/BoardRow.ts"
import { fairly } from "./FairRows.ts"
import * as DiskRoom from "./DiskRoom.ts"
import type { WaitingReply, WaitingRow } from "./WaitingMessages.ts"
import { shellWord } from "../config/ShellWord.ts"

export interface Given {
  readonly agents: ReadonlyArray<AgentInfo>
  readonly backlog: ReadonlyArray<BacklogInfo>
  readonly calls: ReadonlyArray<CallInfo>
  readonly channels: ReadonlyArray<ChannelInfo>
  readonly conversations: ReadonlyArray<ConversationInfo>
  readonly goals: ReadonlyArray<GoalInfo>
  readonly outbox: Pick<DaemonStatus["outbox"], "failed" | "failsSince" | "lastError" | "lastSentAt" | "waiting">
  /** When the daemon started, ms since the epoch. */
  readonly startedAt?: number
  readonly log: DaemonStatus["log"]
  /** Outages about which the user was notified, and rejected logins that the user must renew. */
  readonly outages: ReadonlyArray<Standing>
  readonly plates: ReadonlyArray<PlateInfo>
  readonly http?: DaemonStatus["http"] | undefined
  /** True if the daemon's program was replaced by another version. */
  readonly replaced?: boolean
  readonly ownConfig?: DaemonStatus["ownConfig"] | undefined
  readonly keeper?: DaemonStatus["keeper"] | undefined
  /** The reason why the machine's time zone is a guess; null or undefined if the zone is certain. */
  readonly doubt?: string | null
  /** Description of acknowledged runes that are missing from the log; undefined if none is. */
  readonly behind?: string | undefined
  /** Archives of an older agentd that could not be restored into the log; undefined if there are none. */
  readonly archives?: string | undefined
  /** Parts of streams that could not be read and were left out. */
  readonly aside?: NonNullable<NonNullable<DaemonStatus["reading"]>["aside"]>
  readonly projects: ReadonlyArray<ProjectInfo>
}

type Row = WaitingRow
type Commands = Row["commands"]

/** Makes a row. By default it has no details, an unknown age, and no end. */
const matter = (of: Omit<Row, "details" | "since" | "until"> & Partial<Row>): Row => ({
  details: [],
  since: 0,
  until: null,
  ...of
})

const MAX_ROWS = 1_000
/** Maximum number of dropped messages of one agent that are listed. */
const MAX_NAMED = 5
/** Maximum length of a row's text, in characters. */
const MAX_LINE = 200
/** Maximum length of a call's arguments in a row, in characters. The row says how many characters are left out. */
const ARGUMENTS = 2_400
/** Minimum length of a shortened id, in characters. A shorter one is rarely unique. */
const SHORTEST = 12

const cut = (text: string, most: number = MAX_LINE): string =>
  text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`

/** Returns a function that shortens ids to the shortest prefix that is unique among `ids`. */
export const shorten = (ids: ReadonlyArray<string>): ((id: string) => string) => {
  const longest = Math.max(0, ...ids.map((id) => id.length))
  let length = SHORTEST
  while (length < longest && new Set(ids.map((id) => id.slice(0, length))).size < new Set(ids).size) length++
  return (id) => id.slice(0, length)
}

export const argumentsOf = (text: string): string =>
  text.length <= ARGUMENTS ? text : `${text.slice(0, ARGUMENTS)} … and ${text.length - ARGUMENTS} more characters`

/** The plan in a call's arguments, which can be truncated; undefined if they contain no plan. */
const planIn = (text: string): string | undefined => {
  const [, plan] = /^\{"plan":("(?:[^"\\]|\\.)*")/su.exec(text) ?? []
  if (plan === undefined) return undefined
  try {
    // if text was cut from the middle, the note about it is on a separate line
    return JSON.parse(plan.replaceAll("\n", "\\n")) as string
  } catch {
    return undefined
  }
}

/** The plan in the arguments if there is one; otherwise the arguments. Nothing if the arguments are empty. */
export const shownArguments = (text: string): ReadonlyArray<string> =>
  text === "{}" || text === "null" ? [] : [argumentsOf(planIn(text) ?? text)]

/** Each question with its options, with the numbers that the command `answer` expects. */
const choicesOf = (questions: ReadonlyArray<Question>): ReadonlyArray<string> =>
  questions.flatMap(({ options, question, several }) => [
    `${question}${several ? " (one or more)" : ""}`,
    ...options.map(
      ({ description, label }, at) => `  ${at + 1}  ${label}${description === "" ? "" : `: ${description}`}`
    )
  ])

/** A command that the user can type, and a description of its effect. */
const run = (does: string, ...words: ReadonlyArray<string>) => ({
  does,
  command: ["agentd", ...words.map(shellWord)].join(" ")
})

/** Names conversations in commands: by project, or by the conversation's id if several share a project name. */
export const namesOf = ({ agents, conversations, projects }: Given) => {
  const of = new Map<string, Set<string>>()
  const add = (name: string, conversation: string) => of.set(name, (of.get(name) ?? new Set()).add(conversation))
  for (const { conversation, name } of projects) add(name, conversation)
  // agents of the same project follow each other
  let last: AgentInfo | undefined
  for (const agent of agents) {
    if (agent.conversation !== last?.conversation || agent.project !== last.project)
      add(agent.project, agent.conversation)
    last = agent
  }
  for (const { conversation, project, state } of conversations) if (!OVER.has(state)) add(project, conversation)
  return ({ conversation, project }: { readonly conversation: string; readonly project: string }): string =>
    (of.get(project)?.size ?? 0) > 1 ? conversation : project
}

const OVER: ReadonlySet<string> = new Set(["closed", "archived"])
const HELD: ReadonlySet<string> = new Set(["paused", "suspended"])

type Named = (of: { readonly conversation: string; readonly project: string }) => string

/** An answer that chooses the first option of every question. */
const firstOf = (questions: ReadonlyArray<Question>): ReadonlyArray<string> =>
  questions.map(({ options }) => (options.length === 0 ? "a text" : "1"))

const answers = (id: string, questions: ReadonlyArray<Question> | undefined): Commands =>
  questions === undefined
    ? [run("allow it", "approve", id), run("deny it", "deny", id)]
    : [run("choose the first option, or type a text", "answer", id, ...firstOf(questions))]

const ofCall = (call: CallInfo, id: string): Row => {
  const { agent, arguments: input, callId, conversation, project, questions, reason, since, tool, until } = call
  return {
    id: `call/${callId}`,
    of: BoardRow.ofAgent({ agent, conversation }),
    kind: questions === undefined ? "approval" : "question",
    who: `${project}/${agent}`,
    text: questions === undefined ? `wants to use ${tool}` : "asks you to choose",
    details:
      questions === undefined
        ? [...shownArguments(input), ...(reason === null ? [] : [cut(reason)])]
        : choicesOf(questions),
    since,
    until,
    commands: answers(id, questions)
  }
}

export const isAsking = ({ status }: PlateInfo): boolean => status === "AwaitingInput" || status === "AwaitingApproval"

const ofPlate = (plate: PlateInfo, id: string): Row => {
  const { agent, approval, cwd, detail, plateId, questions, since } = plate
  const isOurs = approval !== null
  return matter({
    id: `plate/${plateId}/${since}`,
    of: BoardRow.ofSession({ plateId }),
    kind: !isOurs ? "session" : questions === undefined ? "approval" : "question",
    who: agent ?? `the session in ${cwd ?? "an unknown folder"}`,
    text: detail,
    details: [...choicesOf(questions ?? []), ...(plate.arguments === undefined ? [] : shownArguments(plate.arguments))],
    since,
    commands: isOurs
      ? answers(id, questions)
      : agent === null
        ? [run("it asks in its terminal", "focus", id)]
        : [run("see what it does", "attach", agent)]
  })
}

const asked = (given: Given): ReadonlyArray<Row> => {
  const calls = given.calls.filter(({ state }) => state === "awaiting_approval")
  // the requests of a run with turns are the agent's calls: only programs of the backend `command` ask for approval
  // themselves
  const turning = given.agents.filter(({ backend }) => backend !== "command")
  const telling = new Set([...given.calls, ...turning].map(({ agent, project }) => `${project}/${agent}`))
  const plates = given.plates.filter(
    (plate) => plate.approval !== null || (isAsking(plate) && (plate.agent === null || !telling.has(plate.agent)))
  )
  const short = shorten([...given.calls.map(({ callId }) => callId), ...given.plates.map(({ plateId }) => plateId)])
  return [
    ...calls.map((call) => ofCall(call, short(call.callId))),
    ...plates.map((plate) => ofPlate(plate, short(plate.plateId)))
  ]
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

const ofDropped = (backlog: BacklogInfo, named: Named): ReadonlyArray<Row> => {
  const { agent, dropped, more, project } = backlog
  const newest = dropped.at(-1)
  if (newest === undefined) return []
  const name = `${named(backlog)}/${agent}`
  const left = dropped.length - MAX_NAMED
  return [
    matter({
      id: `dropped/${backlog.conversation}/${agent}/${newest.messageId}`,
      of: BoardRow.ofAgent(backlog),
      kind: newest.errorType === "circle" ? "bound" : "dropped",
      who: `${project}/${agent}`,
      text:
        newest.errorType === "circle"
          ? `${counted(dropped.length + more, "message")} not delivered: ${newest.reason}`
          : `${counted(dropped.length + more, "message")} ended without an answer: ${newest.errorType}`,
      details: [
        ...dropped
          .slice(-MAX_NAMED)
          .toReversed()
          .map(({ errorType, from, messageId, reason, text }) =>
            cut(`${messageId}  from ${from}: “${cut(text, 80)}” (${errorType}: ${reason})`)
          ),
        ...(left <= 0 ? [] : [`… and ${left} earlier ones`]),
        ...(more === 0 ? [] : [`… and ${more} older ones, which are only counted`])
      ],
      since: dropped[0]!.since,
      commands: [run("retry it", "retry", name), run("discard it", "dismiss", name)]
    })
  ]
}

const ofQuestions = (backlog: BacklogInfo, named: Named): ReadonlyArray<Row> =>
  (backlog.questions ?? []).map(({ eventId, question, since }) => {
    const name = `${named(backlog)}/${backlog.agent}`
    return matter({
      id: `asked/${backlog.conversation}/${eventId}`,
      of: BoardRow.ofAgent(backlog),
      kind: "question",
      who: `${backlog.project}/${backlog.agent}`,
      text: "asks you",
      details: [cut(question, ARGUMENTS)],
      since,
      commands: [run("answer it, in words of yours", "send", name, "…"), run("let it go", "dismiss", name)]
    })
  })

const ofBounds = (backlog: BacklogInfo, named: Named): ReadonlyArray<Row> =>
  (backlog.bounds ?? []).map(({ eventId, holds = false, since, text }) => {
    const name = `${named(backlog)}/${backlog.agent}`
    return matter({
      id: `bound/${backlog.conversation}/${eventId}`,
      of: BoardRow.ofAgent(backlog),
      kind: "bound",
      who: `${backlog.project}/${backlog.agent}`,
      text: cut(text),
      since,
      commands: holds
        ? [run("resume it", "retry", name), run("stop it", "stop", name), run("see why", "why", name)]
        : [run("dismiss it", "dismiss", name), run("see why", "why", name)]
    })
  })

/** Facts about the agents and conversations for which messages are queued. */
interface Places {
  /** Agents by row id. */
  readonly agents: ReadonlyMap<string, AgentInfo>
  readonly homes: ReadonlyMap<string, ConversationInfo>
  /** Conversations of projects that were stopped as a whole. */
  readonly still: ReadonlySet<string>
}

const placesOf = ({ agents, backlog, conversations, projects }: Given): Places => ({
  agents: new Map(backlog.length === 0 ? [] : agents.map((agent) => [BoardRow.ofAgent(agent), agent])),
  homes: new Map(conversations.map((one) => [one.conversation, one])),
  still: new Set(projects.flatMap(({ conversation, stopped }) => (stopped === undefined ? [] : [conversation])))
})

/** Queued messages of an agent that is stopped or over its budget, or whose conversation accepts no work. */
const ofHeld = ({ agents, homes, still }: Places, backlog: BacklogInfo, named: Named): ReadonlyArray<Row> => {
  const { agent, conversation, held, heldSince, project } = backlog
  if (held === 0) return []
  const row = agents.get(BoardRow.ofAgent(backlog))
  const home = homes.get(conversation)
  const isBarred = home !== undefined && HELD.has(home.state)
  const isSpent = row?.spent === true
  if (row === undefined || (row.state !== "Stopped" && !isBarred && !isSpent)) return []
  const name = `${named(backlog)}/${agent}`
  const lets = isBarred
    ? run("resume its conversation", "project", "resume", conversation)
    : still.has(conversation)
      ? run("start its project", "project", "start", named(backlog))
      : isSpent
        ? run("see what it was spent for", "cost", "--by", "agent,model")
        : run("start it", "start", name)
  return [
    matter({
      id: `held/${conversation}/${agent}`,
      of: BoardRow.ofAgent(backlog),
      kind: "held",
      who: `${project}/${agent}`,
      text: `has ${counted(held, "queued message")}: ${isBarred ? `its conversation is ${home.state}` : cut(putRight(row.detail))}`,
      since: heldSince ?? 0,
      until: isSpent ? row.nextAt : null,
      commands: [lets, run("discard them", "dismiss", name, "--held")]
    })
  ]
}

/** The row of an agent that has stopped permanently, or whose exceeded budget prevents its next run. */
const ofAgent = (agent: AgentInfo, named: Named): ReadonlyArray<Row> => {
  const name = `${named(agent)}/${agent.agent}`
  if (agent.spent === true && agent.nextAt === null && agent.inbox === 0)
    return [
      matter({
        id: `spent/${agent.conversation}/${agent.agent}/${agent.restsOn}`,
        of: BoardRow.ofAgent(agent),
        kind: "bound",
        who: `${agent.project}/${agent.agent}`,
        text: cut(agent.detail),
        since: agent.since,
        commands: [run("see what it was spent for", "cost", "--by", "agent,model"), run("stop it", "stop", name)]
      })
    ]
  if (agent.failed !== true) return []
  return [
    matter({
      id: `agent/${agent.conversation}/${agent.agent}/${agent.restsOn}`,
      of: BoardRow.ofAgent(agent),
      kind: "agent",
      who: `${agent.project}/${agent.agent}`,
      text: cut(causeFirst(agent.detail)),
      since: agent.since,
      commands: [run("see why", "why", name), run("start it again", "start", name)]
    })
  ]
}

/** The row of a damaged log. The project's name is in that log, so the commands use the conversation's id. */
const ofDamage = ({ conversation, damage, name }: ProjectInfo): ReadonlyArray<Row> =>
  damage === undefined
    ? []
    : [
        matter({
          id: `damage/${conversation}`,
          kind: "damage",
          who: name,
          text: `is set apart, and nothing in it runs: its log is damaged: ${cut(damage)}`,
          commands: [
            run("repair it when the daemon is stopped; shows first what is lost", "repair", conversation),
            run("close it; then a new one can be started", "project", "close", conversation)
          ]
        })
      ]

const ofConversation = ({ conversation, detail, restsOn, since, state }: ConversationInfo): ReadonlyArray<Row> =>
  HELD.has(state)
    ? [
        matter({
          id: `conversation/${conversation}/${restsOn}`,
          of: BoardRow.ofProject({ conversation }),
          kind: "conversation",
          who: conversation,
          text: `is ${detail.startsWith(state) ? cut(detail) : `${state}${detail === "" ? "" : `: ${cut(detail)}`}`}`,
          since,
          commands: [run("resume it", "project", "resume", conversation)]
        })
      ]
    : []

const ofProject = (project: ProjectInfo, named: Named): ReadonlyArray<Row> => {
  const { config, conversation, name, problems, since = 0, waits } = project
  const called = named({ conversation, project: name })
  if (waits !== undefined) {
    const often = waits.changes === undefined || waits.changes < 2 ? "" : ` ${waits.changes} times`
    return [
      matter({
        id: `config/${conversation}/${waits.hash}`,
        kind: "config",
        who: name,
        text: `agentd.jsonc of ${name} has changed${often} and waits for you; ${inForce(project)}`,
        since: waits.since,
        commands: [run("review and approve it", "trust", called)]
      })
    ]
  }
  if (problems.length === 0) return []
  const isGone = problems.some((problem) => problem.endsWith(GONE))
  return [
    matter({
      id: `project/${conversation}`,
      kind: "project",
      who: name,
      text: isGone
        ? `the folder of the project ${name} does not exist any more: restore it, or end the project`
        : `agentd.jsonc of ${name} cannot be used; ${inForce(project)}`,
      details: [config, ...problems.slice(0, MAX_NAMED).map((problem) => cut(problem))],
      since,
      commands: isGone
        ? [run("end the project; its log is kept", "project", "remove", called)]
        : [run("see what is wrong", "status")]
    })
  ]
}

/** Whether the goal is blocked by an agent's repository. A goal whose agent asks is shown in the agent's row. */
const isStuck = ({ behind, state, word }: GoalInfo): boolean =>
  state === "executing" && word === "needs you" && behind === undefined

/** Whether the goal has a complete plan that waits for approval. */
const isAskedFor = ({ behind, state, word }: GoalInfo): boolean =>
  state === "planning" && word === "needs you" && behind === undefined

const ofGoal = (goal: GoalInfo, named: Named): ReadonlyArray<Row> => {
  const { conversation, detail, goalId, project, restsOn, since, state } = goal
  const name = `${named(goal)}/${goalId}`
  const commands =
    state === "blocked"
      ? [run("retry it", "goal", "retry", name), run("end it", "goal", "cancel", name)]
      : isAskedFor(goal)
        ? [run("review and approve it", "goal", "approve", name), run("reject it", "goal", "reject", name)]
        : isStuck(goal)
          ? [run("see what is done", "goal", "show", name), run("end it", "goal", "cancel", name)]
          : []
  if (commands.length === 0) return []
  const isBlocked = state === "blocked"
  const why = isBlocked ? `is blocked: ${goal.reason ?? detail}` : `waits for you: ${detail}`
  return [
    matter({
      id: `goal/${conversation}/${goalId}/${restsOn}`,
      of: BoardRow.ofGoal(goal),
      kind: "goal",
      who: `${project}/${goalId}`,
      text: cut(isAskedFor(goal) ? "has a plan that waits for approval" : why),
      details: [cut(goal.goal)],
      since,
      commands
    })
  ]
}

/** The beginning of the text, without the commands that follow it. */
const matterOf = (text: string): string => text.split(": agentd ")[0]!

const ofChannel = (channel: ChannelInfo, named: Named): ReadonlyArray<Row> => {
  const { closed, conversation, paused, project, restsOn, seats, since = 0, waits } = channel
  if (closed || (waits === null && !paused)) return []
  const name = `${named(channel)}/${channel.name}`
  const [seat] = seats
  const isStranded = waits !== null && waits.includes("channel assign")
  const commands = !isStranded
    ? [run("resume it", "channel", "resume", name)]
    : seat === undefined
      ? [run("see it", "channel", "show", name)]
      : [run("give it a turn", "channel", "assign", name, seat.agent)]
  return [
    matter({
      id: `channel/${conversation}/${channel.name}/${isStranded ? restsOn : "rests"}`,
      of: BoardRow.ofChannel(channel),
      kind: "channel",
      who: `#${channel.name} of ${project}`,
      text: paused ? "is paused: nobody gets the floor" : cut(matterOf(waits!)),
      since,
      commands
    })
  ]
}

const ofMail = ({ failed, failsSince = 0, lastError, waiting }: Given["outbox"]): ReadonlyArray<Row> =>
  lastError === null || failed + waiting === 0
    ? []
    : [
        matter({
          id: "mail",
          kind: "mail",
          who: "mail",
          text: `${failed > 0 ? `${counted(failed, "mail")} could not be sent` : `${counted(waiting, "mail")} cannot be sent for now`}: ${cut(lastError)}`,
          since: failsSince,
          commands: [run("send a test", "alert", "test"), run("see how it is set up", "status")]
        })
      ]

const ofDisk = (log: Given["log"]): ReadonlyArray<Row> => {
  if (!DiskRoom.isShort(log)) return []
  const lasts = DiskRoom.lasts(log)
  return [
    matter({
      id: "disk",
      kind: "disk",
      who: "disk",
      text: `is nearly full: ${shown(log.free ?? 0)} are free${lasts === undefined ? "" : `, which lasts ${lasts}`}; agentd stops when it is full`,
      commands: [run("see how large the log is", "status")]
    })
  ]
}

const ofPort = ({ http }: Given): ReadonlyArray<Row> => {
  const { port = null, problem = null } = http ?? {}
  if (port === null || problem === null) return []
  return [
    matter({
      id: `port/${port}`,
      kind: "damage",
      who: "agentd",
      text: `the page's port ${port} cannot be used: ${cut(problem.message)}`,
      details: ["The page is not served until the port is free, and agentd uses no other port. Open pages say so."],
      since: problem.since ?? 0,
      commands: [run("see which program uses it", "doctor")]
    })
  ]
}

const ofProgram = ({ replaced }: Given): ReadonlyArray<Row> =>
  replaced === true
    ? [
        matter({
          id: "program",
          kind: "program",
          who: "agentd",
          text: "the daemon runs an older agentd than the one that is installed",
          commands: [run("restart with the new version; runs continue if possible", "restart")]
        })
      ]
    : []

const ofOwnConfig = ({ ownConfig }: Given): ReadonlyArray<Row> =>
  ownConfig === undefined
    ? []
    : [
        matter({
          id: `own-config/${ownConfig.since}`,
          kind: "config",
          who: "agentd",
          text: "your own config.jsonc cannot be used; the last usable version stays in force",
          details: [
            ownConfig.path,
            ...ownConfig.problem
              .split("\n")
              .slice(0, MAX_NAMED)
              .map((one) => cut(one))
          ],
          since: ownConfig.since,
          commands: [run("see what is wrong", "doctor")]
        })
      ]

const ofZone = ({ doubt, startedAt = 0 }: Given): ReadonlyArray<Row> =>
  doubt === undefined || doubt === null
    ? []
    : [
        matter({
          id: "zone",
          kind: "program",
          who: "agentd",
          text: doubt,
          details: ['Set TZ to a name such as "Europe/Berlin", or give each schedule its "timeZone".'],
          since: startedAt,
          commands: [run("then restart the daemon", "restart")]
        })
      ]

/** The row for the problems that a check of the whole log found. Each damaged conversation also has its own row. */
const ofCheck = ({ log: { checked } }: Given): ReadonlyArray<Row> =>
  checked === undefined || checked === null || checked.problems === 0
    ? []
    : [
        matter({
          id: `checked/${checked.at}`,
          kind: "damage",
          who: "log",
          text: `has ${counted(checked.problems, "problem")}, found by a check of the whole log: ${cut(checked.first ?? "")}`,
          details: ["Undamaged parts keep working. This row stays until a check finds no problem, or until a repair."],
          since: checked.at,
          commands: [
            run("see all of them; if there are none, this row goes away", "verify"),
            run("see what a repair would lose", "repair", "--dry-run")
          ]
        })
      ]

/** Rows for left-out parts of a stream, such as one channel. A damaged conversation has one row of its own instead. */
const ofAside = ({ aside = [], projects }: Given): ReadonlyArray<Row> => {
  const apart = new Set(projects.flatMap(({ conversation, damage }) => (damage === undefined ? [] : [conversation])))
  return aside
    .filter(({ stream }) => !apart.has(stream))
    .map(({ message, part, stream }) =>
      matter({
        id: `aside/${stream}/${part}`,
        kind: "damage",
        who: stream,
        text: `${part} is left out: ${cut(message)}`,
        details: ["The rest of it continues."],
        commands: [
          run("see what a repair would lose", "repair", stream, "--dry-run"),
          run("repair it when the daemon is stopped", "repair", stream)
        ]
      })
    )
}

const ofLog = ({ archives, behind, startedAt: since = 0 }: Given): ReadonlyArray<Row> => {
  const of = { kind: "damage", who: "log", since } as const
  const lost = matter({
    ...of,
    id: "log",
    text: `has lost acknowledged runes: ${cut(behind ?? "")}`,
    details: ["A backup may contain them. The daemon continues with the rest. This row stays until a restart."],
    commands: [run("see what remains", "verify")]
  })
  const unread = (archives?.split("\n") ?? []).map((line) => {
    const [who = ""] = line.split(": ", 1)
    return matter({
      ...of,
      who,
      id: `archives/${who}`,
      text: "lacks runes that an older agentd had archived, which could not be restored",
      details: [
        line.slice(who.length + 2),
        "The file stays. Until it is restored, agentd log does not show the content of these runes."
      ],
      commands: [run("when that is fixed, restart the daemon", "restart")]
    })
  })
  return [...(behind === undefined ? [] : [lost]), ...unread]
}

const ofKeeper = ({ keeper }: Given): ReadonlyArray<Row> =>
  keeper === undefined
    ? []
    : [
        {
          id: `keeper/${keeper.since}`,
          kind: "damage",
          who: "keeper",
          text: `cannot be reached, so that no run can start: ${cut(keeper.message)}`,
          details: ["Runs continue, but their output is not read. agentd keeps trying to start another keeper."],
          since: keeper.since,
          until: null,
          commands: [run("see what is wrong", "doctor"), run("restart the daemon; runs continue", "restart")]
        }
      ]

/** The row of a login that the user must renew. Outages end by themselves, and are only on the board. */
const ofLogin = (standing: Standing): Row => ({
  id: `provider/${standing.provider}/${standing.account}/${standing.since}`,
  kind: "provider",
  who: nameOf(standing),
  text: `${troubles[standing.state]}: ${cut(standing.message)}`,
  details: ["Its agents wait, and continue by themselves after the login."],
  since: standing.since,
  until: standing.until,
  commands: [run("see its history", "log", "--kind", "provider.moved")]
})

export const listOf = (given: Given): WaitingReply => {
  const named = namesOf(given)
  const places = placesOf(given)
  const questions = given.backlog.flatMap((one) => ofQuestions(one, named))
  const rest = [
    ...given.backlog.flatMap((one) => [
      ...ofDropped(one, named),
      ...ofBounds(one, named),
      ...ofHeld(places, one, named)
    ]),
    ...given.agents.flatMap((one) => ofAgent(one, named)),
    ...given.conversations.flatMap(ofConversation),
    ...given.projects.flatMap((one) => ofProject(one, named)),
    ...given.goals.flatMap((one) => ofGoal(one, named)),
    ...given.channels.flatMap((one) => ofChannel(one, named)),
    ...ofDisk(given.log),
    ...ofMail(given.outbox),
    ...given.outages.filter(({ state }) => state === "LoginNeeded").map(ofLogin),
    ...ofOwnConfig(given),
    ...ofPort(given),
    ...ofProgram(given),
    ...ofZone(given)
  ]
  const damage = [
    ...ofKeeper(given),
    ...ofLog(given),
    ...ofCheck(given),
    ...ofAside(given),
    ...given.projects.flatMap(ofDamage)
  ]
  const asking = fairly([...asked(given), ...questions])
  const others = fairly(rest)
  const rows = [...damage, ...asking.first, ...others.first, ...asking.further, ...others.further]
  return { rows: rows.slice(0, MAX_ROWS), more: Math.max(0, rows.length - MAX_ROWS) }
}
