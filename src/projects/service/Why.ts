/**
 * Why: explains how an agent reached its current state, in plain sentences, newest last.
 *
 * Pure: equal runes give equal sentences, in the terminal and in a mail. The explanation covers the events since the
 * last success or start, the last turn, budgets, and requests to the user. It omits transitions without information. If
 * the explanation is too long, its oldest sentences are omitted, and a line says so.
 */
import { ENDINGS } from "../../domain/EndReasons.ts"
import { counted, isNear, warning } from "../../domain/ErrorLimit.ts"
import type { AgentInfo, WhyLine } from "../../domain/Messages.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import { checkedReader, type RuneOf } from "../../core/event-log/EventKinds.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { workerKinds } from "../../agents/machines/AgentKinds.ts"
import * as WorkerMachine from "../../agents/machines/WorkerMachine.ts"
import { inboxName, lifeName, turnName, workerName } from "../../agents/machines/AgentStates.ts"
import { QUEUED } from "../../agents/run/AgentView.ts"
import * as WhyCalls from "./WhyCalls.ts"
import * as WhyLimits from "./WhyLimits.ts"
import * as WhyTurn from "./WhyTurn.ts"
import * as ProjectStop from "../../agents/machines/ProjectStop.ts"

/** Maximum number of sentences in an explanation. */
const LONGEST = 24

export const kinds: ReadonlyArray<string> = [
  ...Object.keys(workerKinds),
  ...WhyTurn.kinds,
  ...Object.keys(WhyLimits.boundKinds)
]
export const actorsOf = (agent: string): ReadonlyArray<string> => [
  workerName(agent),
  turnName(agent),
  lifeName(agent),
  inboxName(agent)
]

export interface Why {
  readonly lines: ReadonlyArray<WhyLine>
  /** The recommended next step for the user; null if there is none. */
  readonly advice: string | null
}

/** Skips runes that only a newer version of agentd can read. Their states are still shown. */
const readWorker = checkedReader(workerKinds)
type Worker = RuneOf<typeof workerKinds>

/** The payload of a worker's transition; undefined for other runes. */
const movedOf = (rune: Rune): Extract<Worker, { readonly kind: "worker.moved" }>["payload"] | undefined => {
  const known = readWorker(rune)
  return known?.kind === "worker.moved" ? known.payload : undefined
}
/** The worker's event in a rune: a transition of the worker, or a turn that starts or ends together with its run. */
const eventOf = (rune: Rune): WorkerMachine.Event | undefined => WorkerMachine.joins(rune) ?? movedOf(rune)?.event

const asSentence = (words: string): string =>
  `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`

const ordinal = (n: number): string => {
  const tail = n % 100
  const suffix = tail > 10 && tail < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")
  return `${n}${suffix}`
}

/** A duration in its two largest units, for example "4 s", "1 min 30 s" or "2 h 5 min". */
export const span = (millis: number): string => {
  const seconds = Math.max(0, Math.round(millis / 1000))
  if (millis < 1000) return `${Math.max(0, Math.round(millis))} ms`
  const units = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"]
  ] as const
  const first = units.findIndex(([count]) => count > 0)
  return units
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ")
}

const errorCount = (rune: Rune, agent: AgentInfo): string => {
  const { consecutiveErrors: row, totalErrors: all } = movedOf(rune) ?? {}
  if (row === undefined || all === undefined) return ""
  return ` (${ordinal(row)} error in a row of ${agent.maxConsecutiveErrors}, ${all} of ${agent.maxTotalErrors} in total)`
}

/** The name of a run on the board. After a failed run, the next run has the same number. */
const runOf = (rune: Rune): string => {
  const seq = WorkerMachine.seqIn(rune) ?? movedOf(rune)?.sessionSeq ?? 0
  return seq > 0 ? `run ${seq}` : "its run"
}

const ended = (run: string, outcome: Outcome, rune: Rune, agent: AgentInfo): string => {
  switch (outcome._tag) {
    case "Success":
      return `${run} ended well`
    case "Error": {
      const how = /^(exit code|signal|killed by)\b/.test(outcome.detail)
        ? `ended with ${outcome.detail}`
        : `failed: ${outcome.detail}`
      return `${run} ${how}${errorCount(rune, agent)}`
    }
    case "Timeout":
      return `${run} took longer than its time limit and was ended${errorCount(rune, agent)}`
    case "Uncounted":
      return `${run} ended: ${ENDINGS[outcome.reason]} (not counted as an error)`
    case "Fatal":
      return `${run} cannot succeed: ${outcome.detail}`
  }
}

const startedBy = (rune: Rune): string | undefined => {
  const known = readWorker(rune)
  return known?.kind === "worker.started" ? known.payload.by : undefined
}

const portsIn = (ports: WorkerMachine.PortBlock | undefined): string => {
  if (ports === undefined) return ""
  const { count, first } = ports
  return count === 1 ? ` with the port ${first}` : ` with the ports ${first} to ${first + count - 1}`
}

/**
 * The sentence for a rune; undefined for a transition without information. `known`: names of the runs that have started
 * before, to which the rune's run is added.
 */
const sentence = (rune: Rune, agent: AgentInfo, last: boolean, known: Set<string>): string | undefined => {
  const event = eventOf(rune)
  switch (event?._tag) {
    case "WorktreeReady":
      return rune.from === "Initializing" || last
        ? `works in ${event.cwd}${event.branch === undefined ? "" : ` on branch ${event.branch}`}${portsIn(event.ports)}`
        : undefined
    case "PortsGiven":
      return `continues${portsIn(event.ports)}`
    case "PromptReady": {
      const { because, index } = event.fallback ?? {}
      if (because !== undefined)
        return index === 0 ? `goes back to its own backend: ${because}` : `moves to fallback ${index}: ${because}`
      const count = event.messageIds.length
      const carries = count === 0 ? "its configured prompt" : `${count} ${count === 1 ? "message" : "messages"}`
      return last ? `a run is being started with ${carries}` : undefined
    }
    case "SessionStarted": {
      const run = runOf(rune)
      const again = known.has(run) ? " again" : ""
      known.add(run)
      return `${run} started${again}${event.pid === undefined ? "" : ` (pid ${event.pid})`}`
    }
    case "SessionExited":
      return rune.from === "Interrupting"
        ? `${runOf(rune)} ended after the interrupt (not counted as an error)`
        : ended(runOf(rune), event.outcome, rune, agent)
    case "UrgentMessage":
      return event.messageId === null
        ? "a user interrupted the run; its work is dropped"
        : "an urgent message arrived: the run is interrupted, and the next run gets the message"
    case "GraceExceeded":
      return `${runOf(rune)} did not end within its grace period and was killed`
    case "BackoffElapsed":
      return last ? "the wait after its run is over" : undefined
    case "WorkArrived":
      return last ? "a message arrived" : undefined
    case "OperatorStop":
      return `stopped by ${event.by}${event.reason === undefined ? "" : `: ${event.reason}`}`
    case "FatalError":
      return `cannot continue: ${event.message}`
    case undefined:
      if (rune.kind === "worker.started") return `started by ${startedBy(rune) ?? "agentd"}`
      return `${rune.kind}: ${rune.from ?? "?"} → ${rune.to ?? "?"}${rune.trigger === null ? "" : ` by ${rune.trigger}`}`
  }
}

/** Describes the wait or the stop that follows from the new state; undefined if there is none. */
const consequence = (rune: Rune, next: Rune | undefined, agent: AgentInfo): string | undefined => {
  if (rune.from === rune.to) return undefined
  if (rune.to === "CoolingDown") {
    const { outcome } = eventOf(rune) as { readonly outcome?: Outcome }
    // a wait for a limit or an outage is not counted as a retry
    const waits = outcome?._tag === "Uncounted"
    // after the cooldown, the agent may still wait for its provider
    const isCool = next !== undefined && !waits && eventOf(next)?._tag === "BackoffElapsed"
    const until = next === undefined ? agent.nextAt : isCool ? next.at : null
    if (until === null) return waits ? "waiting" : "retrying"
    return `${waits ? "waiting for" : "retrying in"} ${span(until - rune.at)}`
  }
  if (rune.to === "Stopped" && eventOf(rune)?._tag === "SessionExited") {
    const { consecutiveErrors: row = 0, totalErrors: all = 0 } = movedOf(rune) ?? {}
    if (row >= agent.maxConsecutiveErrors) return `stopped permanently: ${counted(row, "error")} in a row`
    return all >= agent.maxTotalErrors
      ? `stopped permanently: ${counted(all, "error")} in total`
      : "stopped permanently"
  }
  return undefined
}

/** Index of the first rune to explain: that of the last successful run or of the last start. */
const beginning = (runes: ReadonlyArray<Rune>): number => {
  for (let index = runes.length - 1; index > 0; index--) {
    const rune = runes[index]!
    const event = eventOf(rune)
    if (event?._tag === "SessionExited" && event.outcome._tag === "Success") return index
    if (rune.kind === "worker.started") return index
  }
  return 0
}

/** The remedy and the command that starts the agent. If the remedy already contains the command, it is not repeated. */
const remedied = (remedy: string | undefined, start: string): string => {
  if (remedy === undefined) return start
  const sentence = asSentence(remedy.replace(/[,.]? then start (it|the agent) again\.?$/i, ""))
  return sentence.includes("agentd start ") ? sentence.replace(/\.$/, "") : `${sentence} ${start}`
}

const adviceOf = (last: Rune | undefined, agent: AgentInfo, now: WhyTurn.Now, expired: boolean): string | null => {
  const name = `${agent.project}/${agent.agent}`
  if (agent.detail === QUEUED) return null
  if (agent.state === "Stopped") {
    const event = last === undefined ? undefined : eventOf(last)
    const remedy =
      event?._tag === "FatalError"
        ? event.remedy
        : event?._tag === "SessionExited" && event.outcome._tag === "Fatal"
          ? event.outcome.remedy
          : event?._tag === "SessionExited"
            ? "Fix the last error."
            : undefined
    return remedied(
      remedy,
      `Start it again: ${ProjectStop.startOf(name, event?._tag === "OperatorStop" ? event.by : null)}`
    )
  }
  if (agent.spent === true)
    return 'Wait, or raise the limit: "budget" in its config. See the usage: agentd cost --by agent,model'
  const present = WhyTurn.advice(now)
  if (present !== undefined) return present
  if (expired) return `Let it try again: agentd send ${name} "…"   or dismiss it: agentd dismiss ${name}`
  if ((agent.dropped ?? 0) > 0)
    return `Let it try again: agentd retry ${name}   or discard the messages: agentd dismiss ${name}`
  if (agent.state === "BuildingPrompt" && agent.mode === "inbox" && agent.inbox === 0 && agent.reason === null) {
    return `Give it something to do: agentd send ${name} "…"`
  }
  return null
}

/** `runes`: the newest runes of the agent's actors, oldest first: all of them, or the newest few hundred. */
export const why = (runes: ReadonlyArray<Rune>, agent: AgentInfo, now: WhyTurn.Now = {}): Why => {
  const isCall = ({ kind }: Rune): boolean => WhyCalls.kinds.some((other) => other === kind)
  const isTurns = ({ kind }: Rune): boolean => WhyTurn.kinds.some((other) => other === kind)
  const bounds = runes.filter(({ kind }) => Object.hasOwn(WhyLimits.boundKinds, kind))
  // a turn that starts or ends together with its run also moves the worker
  const moves = runes
    .filter((rune) => rune.kind !== "run.notice" && !isCall(rune))
    .filter((rune) => !bounds.includes(rune))
    .filter((rune) => !isTurns(rune) || rune.moves.includes(workerName(agent.agent)))
    .toSorted((a, b) => a.eventId - b.eventId)
  const chain = moves.slice(beginning(moves))
  const start = moves.findLast(({ kind }) => kind === "worker.started")?.eventId ?? 0
  const lines: Array<WhyLine> = [
    ...WhyTurn.past(runes.filter(isTurns), agent, start, WhyLimits.expiredIn(bounds)),
    ...WhyLimits.past(bounds.filter(({ eventId }) => eventId >= start)),
    ...WhyCalls.past(
      runes.filter(isCall),
      Math.max(start, runes.findLast(({ kind }) => kind === "turn.started")?.eventId ?? 0)
    )
  ]
  const known = new Set<string>()
  for (const [index, rune] of chain.entries()) {
    const next = chain[index + 1]
    const texts = [sentence(rune, agent, next === undefined, known), consequence(rune, next, agent)]
    for (const text of texts) if (text !== undefined) lines.push({ eventId: rune.eventId, at: rune.at, text })
  }
  const ends = new Map(
    chain.flatMap((rune) => {
      const event = eventOf(rune)
      return event?._tag === "SessionExited" ? [[event.runId, rune.eventId] as const] : []
    })
  )
  lines.push(...WhyTurn.said(runes, agent, chain.at(0)?.eventId ?? 0, ends))
  lines.sort((a, b) => a.eventId - b.eventId)
  const told = lines.slice(-LONGEST)
  const left = lines.length - told.length
  if (left > 0)
    told.unshift({ eventId: 0, at: told[0]!.at, text: `… ${left} earlier steps: agentd log --agent ${agent.agent}` })
  const near = agent.state !== "Stopped" && isNear(agent)
  if (near) told.push({ eventId: agent.restsOn, at: told.at(-1)?.at ?? agent.since, text: warning(agent) })
  const present = agent.state === "Stopped" ? [] : WhyTurn.present(now)
  told.push(...present)
  const isTold = agent.state === "Stopped" ? agent.detail !== QUEUED : agent.state === "CoolingDown"
  if (present.length === 0 && !isTold && agent.detail !== "") {
    // the current state may have started earlier than the events in the other lines
    const at = Math.max(agent.since, told.at(-1)?.at ?? 0)
    told.push({ eventId: 0, at, text: `now: ${agent.detail}` })
  }
  // an expired call is settled by any later action of the user
  const isOpen = WhyLimits.expiredIn(bounds).at(-1) === bounds.at(-1) && bounds.length > 0
  return { lines: told, advice: adviceOf(chain.at(-1), agent, now, isOpen) }
}
