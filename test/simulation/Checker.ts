/**
 * Checker: what agentd promises, held against what happens. It knows the durable runes,
 * what agents were given and said, and what people were answered; of the code it knows
 * nothing but the names of runes.
 *
 * A promise that is broken is said once, at the step at which it broke.
 */
import type { RunEvent } from "../../src/runs/Backend.ts"
import type { Rune } from "../../src/core/event-log/Rune.ts"
import type { Seen, Witness } from "./world/Processes.ts"
import type { VerifyEvent, WhyReply } from "../../src/board/DaemonMessages.ts"
import type { AgentInfo } from "../../src/domain/Messages.ts"
import { compare } from "./checks/Agreement.ts"
import { Alerts } from "./checks/Alerts.ts"
import { type Budget, Budgets } from "./checks/Budgets.ts"
import { Contract } from "./checks/Contract.ts"
import { Channels } from "./checks/Channels.ts"
import { Fallbacks, type Moving } from "./checks/Fallbacks.ts"
import { ModelTalks } from "./checks/ModelTalks.ts"
import { Goals } from "./checks/Goals.ts"
import type { Check, Verdicts } from "./checks/Check.ts"
import { Chronicle } from "./checks/Chronicle.ts"
import { Limits, type Settings } from "./checks/Limits.ts"
import { Plates } from "./checks/Plates.ts"
import { Readers } from "./checks/Readers.ts"
import { Ends } from "./checks/Ends.ts"
import { Reports } from "./checks/Reports.ts"
import { Schedules } from "./checks/Schedules.ts"
import { Snapshots } from "./checks/Snapshots.ts"
import { Tables } from "./checks/Tables.ts"
import { Truth } from "./checks/Truth.ts"
import type { Letter } from "./world/Mail.ts"
import type { Universe } from "./Universe.ts"

type Json = { readonly [field: string]: any }

interface Message {
  readonly token: string
  readonly agent: string
  messageId?: string
  acked: boolean
  /** Why it need not be done any more. */
  over?: {
    readonly how: "done" | "dropped"
    readonly why: string
    readonly eventId: number
    readonly turnId?: string
  }
}

interface Counted {
  total: number
  consecutive: number
  state: string
}

export interface Violation {
  readonly promise: string
  readonly at: number
  readonly step: number
  readonly detail: string
}

const tokensOf = (text: string): ReadonlyArray<string> => [...text.matchAll(/\[(m\d+)\]/g)].map((match) => match[1]!)

/** The intended nature of the world. */
export interface Surroundings {
  /** Whether clock, disk and file are such that waits can be measured. */
  readonly keepsTime: boolean
  /** Until when things may go wrong, ms. */
  readonly stormy: number
  readonly lives: () => number
  /** The file's settings of an agent. */
  readonly settingsOf: (agent: string) => (Settings & { readonly budget?: Budget }) | undefined
  /** Undefined for an agent that has no account but its own. */
  readonly fallbacksOf: (agent: string) => Moving | undefined
}

/** From a decision to its rune where the disk is slow, ms. */
const STEPPED = 100

export class Checker implements Witness {
  readonly violations: Array<Violation> = []
  readonly reached = new Map<string, number>()
  readonly messages = new Map<string, Message>()
  readonly tables: Tables
  readonly channels: Channels
  readonly goals: Goals
  readonly plates: Plates
  readonly snapshots: Snapshots
  readonly models: ModelTalks
  readonly fallbacks: Fallbacks
  readonly readers: Readers
  readonly contract: Contract
  private readonly truth: Truth
  private readonly verdicts: Verdicts
  private readonly checks: Array<Check>
  private readonly byId = new Map<string, Message>()
  private readonly turns = new Map<string, ReadonlyArray<string>>()
  private readonly givenTurns = new Set<string>()
  /** Turns that runs have begun by themselves. */
  private readonly own = new Set<string>()
  /** Turns that were steered away while their input was on its way, by the rune that did. */
  private readonly steered = new Map<string, number>()
  private readonly completedByAgent = new Set<string>()
  private readonly refusedByAgent = new Set<string>()
  private readonly living = new Map<string, Set<Seen>>()
  private readonly counted = new Map<string, Counted>()
  /** Agents whose stop was answered and whose start nobody has asked for since: when, ms since the world began. */
  readonly stopped = new Map<string, number>()
  /** Interrupts of whole runs that are under way, by agent; those of a life that ended stay. */
  readonly interrupting = new Map<string, number>()
  private readonly universe: Universe
  /** Whether clock and disk are such that waits can be measured. */
  private readonly keepsTime: boolean
  private readonly settingsOf: Surroundings["settingsOf"]
  /** Agents that have ended, and have not begun again. */
  private readonly ended = new Set<string>()
  /** When the daemon was there again. */
  upAt = 0
  private readonly cooling = new Map<
    string,
    { readonly since: number; readonly least: number; readonly most: number }
  >()
  /** Failures of an agent since the last of its runs that has answered. */
  private readonly failures = new Map<string, { readonly least: number; readonly most: number }>()
  /** Agents whose present run has answered; a run that is lost, or is not seen to end, tells nothing. */
  private readonly haveAnswered = new Set<string>()
  /** Agents whose present run says so, of a turn that may be another. */
  private readonly haveSpoken = new Set<string>()
  private readonly runOfTurn = new Map<string, string>()
  /** Runs in which a turn was interrupted or steered away. */
  /** Runs that were begun for a goal, which may end before they have heard of it. */
  private readonly goalRuns = new Set<string>()
  private readonly interruptedRuns = new Set<string>()
  /** Runs whose work somebody dropped as a whole. */
  private readonly droppedRuns = new Set<string>()
  head = 0

  constructor(universe: Universe, { fallbacksOf, keepsTime, lives, settingsOf, stormy }: Surroundings) {
    this.universe = universe
    this.keepsTime = keepsTime
    this.settingsOf = settingsOf
    this.verdicts = {
      get now() {
        return universe.now
      },
      broken: (promise, detail) => this.broken(promise, detail),
      sometimes: (what) => this.sometimes(what)
    }
    this.tables = new Tables(this.verdicts)
    this.channels = new Channels(this.verdicts, {
      head: () => this.head,
      upAt: () => this.upAt,
      keepsTime,
      // what was decided before may become durable after
      isStopped: (agent) => this.universe.now - (this.stopped.get(agent) ?? Infinity) > STEPPED
    })
    this.goals = new Goals(this.verdicts, () => this.head, this.tables.cells.goal)
    this.plates = new Plates(this.verdicts, this.tables.cells.plate, () => this.upAt)
    this.snapshots = new Snapshots(this.verdicts)
    this.models = new ModelTalks(this.verdicts)
    this.fallbacks = new Fallbacks(this.verdicts, fallbacksOf)
    const log = new Chronicle()
    this.readers = new Readers(this.verdicts, log)
    this.truth = new Truth(this.verdicts, log)
    this.contract = new Contract(this.verdicts, (runId) => this.isAlive(runId))
    const { channels, contract, goals, plates, snapshots, tables, truth, verdicts } = this
    const areMeant = () => keepsTime && universe.now < stormy
    const others = [
      new Alerts(verdicts),
      new Budgets(verdicts, (agent) => settingsOf(agent)?.budget),
      new Limits(verdicts, { settingsOf, lives, areMeant }),
      new Reports(verdicts),
      new Schedules(verdicts),
      new Ends(verdicts)
    ]
    this.checks = [log, tables, ...others, snapshots, truth, channels, goals, plates, contract, this.models]
  }

  broken(promise: string, detail: string): void {
    if (this.violations.some((known) => known.promise === promise && known.detail === detail)) return
    this.violations.push({ promise, at: this.universe.now, step: this.universe.steps, detail })
    this.universe.note(`BROKEN ${promise}: ${detail}`)
  }

  /** Runs a check: its throw would be taken for a failure of the daemon's disk. */
  private guarded(check: () => void): void {
    try {
      check()
    } catch (error) {
      this.broken("no check throws", error instanceof Error ? (error.stack ?? error.message) : String(error))
    }
  }

  /** Records a thing that was seen at least once: a thing that no seed ever sees is not tested. */
  sometimes(what: string): void {
    this.reached.set(what, (this.reached.get(what) ?? 0) + 1)
  }

  readonly letters: Array<Letter> = []

  // People.

  sending(token: string, agent: string): void {
    this.messages.set(token, { token, agent, acked: false })
  }

  acked(token: string, eventId: number): void {
    const message = this.messages.get(token)!
    message.acked = true
    if (eventId > this.head)
      this.broken(
        "what is acknowledged is durable",
        `${token} was acknowledged by rune ${eventId}, the disk ends with ${this.head}`
      )
    if (message.messageId === undefined)
      this.broken("what is acknowledged is durable", `${token} is in no durable rune`)
  }

  /** Checks an answer of any command: the runes that it names are on the disk. */
  answered(what: string, value: unknown): void {
    const { eventId } = (value ?? {}) as Json
    if (typeof eventId === "number" && eventId > this.head)
      this.broken("what is acknowledged is durable", `${what}: rune ${eventId}, the disk ends with ${this.head}`)
  }

  readonly mailed = (letter: Letter): void => {
    this.sometimes("a mail is taken")
    this.letters.push(letter)
    for (const check of this.checks) check.mailed?.(letter)
  }

  /** The rows of all agents. */
  shown(rows: ReadonlyArray<AgentInfo>, isQuiet: boolean): void {
    compare(rows, this.tables, this.verdicts, isQuiet)
    if (!isQuiet) return
    this.truth.isQuiet(rows, (agent) => this.isLiving(agent))
    this.readers.isQuiet()
  }

  explained(why: WhyReply): void {
    this.shown([why.agent], false)
    this.truth.why(why)
  }

  verified(events: Iterable<VerifyEvent>): void {
    for (const event of events) {
      if (event._tag !== "Verdict") continue
      for (const { eventId, message, rule } of event.problems)
        this.broken("the log is whole", `${rule} at ${eventId}: ${message}`)
    }
  }

  // The disk.

  readonly durable = (rune: Rune): void => {
    this.head = rune.eventId
    const payload = rune.payload as Json
    for (const check of this.checks) this.guarded(() => check.rune?.(rune))
    const event = (payload["event"] ?? {}) as Json
    const agent = rune.actor.slice(rune.actor.indexOf("/") + 1)
    if (rune.from !== null && rune.trigger !== null)
      this.sometimes(`${rune.actor.split("/")[0]}: ${rune.from} --${rune.trigger}--> ${rune.to}`)
    else this.sometimes(rune.kind)
    switch (rune.kind) {
      case "inbox.received": {
        const { messageId, text } = event["message"] as Json
        const message = this.messages.get(tokensOf(text)[0] ?? "")
        if (message === undefined) return
        if (message.messageId !== undefined) this.broken("a message is received once", message.token)
        message.messageId = messageId
        this.byId.set(messageId, message)
        return
      }
      case "turn.started":
        if (this.turns.has(event["turnId"])) this.broken("a turn begins once", event["turnId"])
        this.turns.set(event["turnId"], event["messageIds"] ?? [])
        if (event["source"] === "own") this.own.add(event["turnId"])
        return
      case "turn.completed":
        this.haveAnswered.add(agent)
        if (rune.moves.includes(`worker/${agent}`)) this.ran(agent, true)
        // one that nobody asked for may be over when nothing is heard of it any more
        if (!this.completedByAgent.has(event["turnId"]) && !this.own.has(event["turnId"]))
          this.broken("a turn is done only if its agent said so", event["turnId"])
        return this.over(event["turnId"], "done", "its turn was completed", rune.eventId)
      case "turn.interrupted": {
        this.interruptedRuns.add(this.runOfTurn.get(payload["turn_id"]) ?? payload["turn_id"])
        if (event["_tag"] === "steer") {
          // an agent that never had it cannot be steered away from it
          if (this.givenTurns.has(payload["turn_id"]))
            this.over(payload["turn_id"], "dropped", "steered away", rune.eventId)
          else {
            this.steered.set(payload["turn_id"], rune.eventId)
            this.sometimes("a turn is steered away before its agent had it")
          }
          return
        }
        if (event["keep"] === true) return
        const by = String(event["by"])
        if (by === "ada") return this.over(payload["turn_id"], "dropped", "interrupted by a person", rune.eventId)
        // the first turn of a run has the run's name
        if (by === "worker" && this.droppedRuns.has(this.runOfTurn.get(payload["turn_id"]) ?? payload["turn_id"])) {
          return this.over(payload["turn_id"], "dropped", "its run was interrupted by a person", rune.eventId)
        }
        if (by === "the agent")
          return this.over(payload["turn_id"], "dropped", "its agent ended the turn", rune.eventId)
        return
      }
      case "turn.error":
        if (event["retry"] === true) return
        // nothing came before it that could be left out: asked again it is as long
        if (
          event["errorType"] === "overflow" &&
          (this.runOfTurn.get(payload["turn_id"]) ?? payload["turn_id"]) === payload["turn_id"]
        )
          return this.over(payload["turn_id"], "dropped", "it is too long for its agent", rune.eventId)
        // a person is told of it, and says what becomes of it
        if (["no_answer", "refused"].includes(event["errorType"]) && this.completedByAgent.has(payload["turn_id"])) {
          this.sometimes("a turn that its agent called done has answered nothing")
          return this.over(payload["turn_id"], "dropped", "it came to no answer", rune.eventId)
        }
        if (!this.refusedByAgent.has(payload["turn_id"])) {
          // an exit in the midst of a turn is offered again to those who asked
          return
        }
        return this.over(payload["turn_id"], "dropped", "its agent refused it", rune.eventId)
      case "worker.started":
        return void this.failures.delete(agent)
      case "session.created":
        // all of its agents are new
        return this.stopped.clear()
      case "session.closed":
        for (const message of this.messages.values())
          message.over ??= { how: "dropped", why: "the conversation is closed", eventId: rune.eventId }
        return
      case "agent.spawning":
        return void this.ended.delete(agent)
      case "agent.failed":
      case "agent.terminated":
        return void this.ended.add(agent)
      case "worker.moved":
        return this.moved(agent, rune, event)
      case "invariant.violated":
        return this.broken("no invariant is violated", JSON.stringify(payload))
      case "actor.dead_letter":
        this.sometimes(`dead letter: ${payload["reason"]}`)
        if (["poison", "illegal", "postponed-limit"].includes(payload["reason"])) {
          this.broken(
            "no message is lost by an actor's fault",
            `${payload["address"]} ${payload["reason"]} ${payload["tag"]}`
          )
        }
    }
  }

  /** A message that waits for nobody: its sub-agent has ended, and comes back only if somebody starts it. */
  private isLeft({ acked, agent, over }: Message): boolean {
    return !acked || over !== undefined || (this.ended.has(agent) && this.settingsOf(agent) === undefined)
  }

  private over(turnId: string, how: "done" | "dropped", why: string, eventId: number): void {
    for (const messageId of this.turns.get(turnId) ?? []) {
      const message = this.byId.get(messageId)
      if (message !== undefined) message.over ??= { how, why, eventId, turnId }
    }
  }

  private moved(agent: string, rune: Rune, event: Json): void {
    const payload = rune.payload as Json
    const { consecutiveErrors, totalErrors } = payload
    const before = this.counted.get(agent) ?? { total: 0, consecutive: 0, state: "" }
    const fresh = rune.from === "Initializing"
    const outcome = event["outcome"]?._tag as string | undefined
    const counts = rune.trigger === "SessionExited" && (rune.from === "Spawning" || rune.from === "Running")
    const expected = counts && (outcome === "Error" || outcome === "Timeout") ? 1 : 0
    const most = counts && outcome === "Uncounted" ? 1 : expected
    if (!fresh && (totalErrors < before.total + expected || totalErrors > before.total + most)) {
      this.broken(
        "a failed run counts once",
        `${agent}: ${before.total} → ${totalErrors} by ${rune.trigger} ${outcome ?? ""}`
      )
    }
    const carries: unknown = rune.trigger === "PromptReady" ? event["messageIds"] : []
    if (Array.isArray(carries) && carries.some((id) => String(id).startsWith("plan/"))) this.goalRuns.add(payload.runId)
    if (rune.trigger === "UrgentMessage" && event["messageId"] === null && rune.to === "Interrupting") {
      const { runId } = payload
      const isOfGoal = this.goals.asked.has(agent) || this.goalRuns.has(runId)
      const isOver = this.interruptedRuns.has(runId) || this.channels.recalled.has(agent) || isOfGoal
      if ((this.interrupting.get(agent) ?? 0) > 0 || isOver) this.droppedRuns.add(runId)
      else {
        this.broken("a run is dropped only if somebody interrupted it", `${agent}: run ${runId}, rune ${rune.eventId}`)
      }
    }
    if (rune.trigger === "SessionExited" || rune.trigger === "GraceExceeded") {
      // of a run that went with its daemon is known what the log has of it: that it answered, or nothing
      const isSeen = event["worked"] === true || !["lost", "taken"].includes(event["outcome"]?.reason)
      this.ran(agent, rune.trigger === "SessionExited" && isSeen)
    }
    const hasFailed = counts && (expected === 1 || event["outcome"]?.reason === "unavailable")
    const { least, most: greatest } = this.failures.get(agent) ?? { least: 0, most: 0 }
    if (hasFailed) this.failures.set(agent, { least: least + 1, most: greatest + 1 })
    this.cooled(agent, rune, outcome)
    this.counted.set(agent, { total: totalErrors, consecutive: consecutiveErrors, state: rune.to ?? "" })
  }

  /** A run of the agent's has ended, and was seen to. */
  private ran(agent: string, isSeen: boolean): void {
    const failures = this.failures.get(agent)
    if (isSeen && this.haveAnswered.has(agent)) this.failures.delete(agent)
    else if (isSeen && failures !== undefined && this.haveSpoken.has(agent))
      this.failures.set(agent, { ...failures, least: 0 })
    this.haveAnswered.delete(agent)
    this.haveSpoken.delete(agent)
  }

  /** After the n-th failure since its last answer 2, 4, 8 … 60 seconds; a restart of the daemon neither shortens the wait nor begins it again. */
  private cooled(agent: string, rune: Rune, outcome: string | undefined): void {
    const { now } = this.universe
    if (rune.to === "CoolingDown" && (outcome === "Error" || outcome === "Timeout")) {
      const { least, most } = this.failures.get(agent) ?? { least: 0, most: 0 }
      const wait = (failures: number): number => Math.min(60_000, 2_000 * 2 ** Math.max(0, failures - 1))
      this.cooling.set(agent, { since: now, least: wait(least), most: wait(most) })
      return
    }
    const cooling = this.cooling.get(agent)
    this.cooling.delete(agent)
    if (rune.trigger !== "BackoffElapsed" || cooling === undefined || !this.keepsTime) return
    const waited = now - cooling.since
    const late = Math.max(cooling.since + cooling.most, this.upAt) + 1_000
    if (waited < cooling.least - 20 || now > late) {
      this.broken(
        "a wait is neither shortened nor begun again",
        `${agent}: ${cooling.least} to ${cooling.most} ms, waited ${waited.toFixed(0)}; rune ${rune.eventId}`
      )
    }
  }

  // The agents.

  /** A person was told that it is stopped. */
  stops(agent: string): void {
    this.stopped.set(agent, this.universe.now)
  }

  readonly spawned = (process: Seen): void => {
    for (const check of this.checks) check.spawned?.(process)
    const { agent, runId } = process
    const living = this.living.get(agent) ?? new Set()
    if (living.size > 0)
      this.broken(
        "one run of an agent at a time",
        `${agent}: ${runId} beside ${[...living].map((one) => one.runId).join()}`
      )
    if (this.stopped.has(agent)) this.broken("what was stopped stays stopped", `${agent}: ${runId}`)
    this.living.set(agent, living.add(process))
    this.universe.note(`spawned ${agent} ${runId}`)
  }

  readonly given = (process: Seen, turnId: string, text: string): void => {
    for (const check of this.checks) check.given?.(process, turnId, text)
    const { agent, runId } = process
    this.runOfTurn.set(turnId, runId)
    if (this.givenTurns.has(turnId)) this.broken("a turn is given once", turnId)
    this.givenTurns.add(turnId)
    const steered = this.steered.get(turnId)
    if (steered !== undefined) this.over(turnId, "dropped", "steered away", steered)
    this.universe.note(`given ${agent} ${turnId} ${tokensOf(text).join()}`)
    for (const token of tokensOf(text)) {
      const message = this.messages.get(token)
      // what is dropped may be on its way
      if (message?.over === undefined || (message.over.how === "dropped" && message.over.turnId === turnId)) continue
      this.broken(
        message.over.how === "done" ? "what is done is not done again" : "what was dropped does not come back",
        `${token} (${message.over.why}, rune ${message.over.eventId}) in turn ${turnId}`
      )
    }
  }

  readonly said = (process: Seen, event: RunEvent): void => {
    for (const check of this.checks) check.said?.(process, event)
    if (event._tag === "TurnCompleted") {
      this.completedByAgent.add(event.turnId)
      this.haveSpoken.add(process.agent)
    }
    if (event._tag === "TurnError" && !event.retry) this.refusedByAgent.add(event.turnId)
  }

  readonly garbled = (runId: string, text: string): void =>
    this.broken("a program reads what its run was given", `${runId}: ${text}`)

  readonly gone = (process: Seen): void => {
    for (const check of this.checks) check.gone?.(process)
    this.living.get(process.agent)?.delete(process)
    this.universe.note(`gone ${process.agent} ${process.runId}`)
  }

  isLiving(agent: string): boolean {
    return (this.living.get(agent)?.size ?? 0) > 0
  }

  isAlive(runId: string): boolean {
    return [...this.living.values()].some((living) => [...living].some((process) => process.runId === runId))
  }

  /** Faults are over and everybody had time: what was acknowledged is done, or somebody ended it. */
  atRest(): void {
    for (const check of this.checks) check.atRest?.()
    for (const message of this.messages.values()) {
      const { agent, token } = message
      if (!this.isLeft(message)) this.broken("what is acknowledged is done in the end", `${token} of ${agent}`)
    }
  }

  /** Count of the work that is left. */
  get open(): number {
    let count = this.checks.filter((check) => check.isDone?.() === false).length
    for (const message of this.messages.values()) if (!this.isLeft(message)) count += 1
    return count
  }
}
