/**
 * ModelTalks: what a model's API is sent is what was said: each input of a turn, each answer and
 * each call's result once, in order; nothing that was answered is lost or said again, in the next
 * run neither; and nothing is asked where no turn is.
 */
import type { RunEvent, RunSpec, TurnInput } from "../../../src/runs/Backend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { KEYS, type Request } from "../world/ModelApi.ts"
import { ModelRun } from "../world/Models.ts"
import type { Answer, Entry } from "../world/ModelWire.ts"
import type { Seen } from "../world/Processes.ts"
import type { Check, Verdicts } from "./Check.ts"

/** The words that agentd adds to a conversation. */
const INTERRUPTED = "(The turn was interrupted here.)"
const SILENT = "(You answered this with nothing.)"

/** A conversation as its file holds it. */
interface Session {
  readonly id: string
  /** All up to the last turn that was completed. */
  kept: ReadonlyArray<Entry>
  /** Inputs of turns that were not completed. */
  readonly open: Set<string>
  isClosed: boolean
}

interface Result {
  readonly sent?: string
  readonly told?: string
}

interface Talk {
  readonly run: ModelRun
  readonly session: Session
  input: TurnInput
  hasAsked: boolean
  interruptedAt: number | undefined
  /** Exactly what the next request carries; undefined where that depends on what came through. */
  expected: ReadonlyArray<Entry> | undefined
  /** The same, before the input that was given last. */
  before: ReadonlyArray<Entry> | undefined
  /** The history at the turn's begin, where it is known. */
  begin: ReadonlyArray<Entry> | undefined
  last: Request | undefined
  /** Of calls: what was sent to the API and what agentd was told, until both are there. */
  readonly results: Map<string, Result>
  readonly worked: Set<string>
  told: number
  /** Of requests that are over. */
  spent: number
}

const plain = (text: string): string => (text.trim() === "" ? "(an empty message)" : text)

const shown = (entry: Entry | undefined): string =>
  entry === undefined ? "nothing" : JSON.stringify(entry).slice(0, 160)

const argumentsOf = (json: string): unknown => {
  try {
    const value: unknown = JSON.parse(json === "" ? "{}" : json)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}
  } catch {
    return {}
  }
}

/** Ids may be others: they are unique in the whole conversation. */
const alike = (one: Entry, other: Entry | undefined): boolean => {
  if (one.role === "user") return other?.role === "user" && plain(one.text) === plain(other.text)
  if (one.role === "result") return other?.role === "result" && one.id === other.id && one.text === other.text
  return (
    other?.role === "assistant" &&
    one.text.trim() === other.text.trim() &&
    one.calls.length === other.calls.length &&
    one.calls.every(
      ({ json }, at) => JSON.stringify(argumentsOf(json)) === JSON.stringify(argumentsOf(other.calls[at]!.json))
    )
  )
}

/** Answers in a row are one: that is how an API takes them. */
const joined = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  const all: Array<Entry> = []
  for (const entry of entries) {
    const last = all.at(-1)
    if (entry.role === "assistant" && last?.role === "assistant")
      all[all.length - 1] = { ...entry, text: last.text + entry.text, calls: [...last.calls, ...entry.calls] }
    else all.push(entry)
  }
  return all
}

const entryOf = ({ calls, text }: Answer): ReadonlyArray<Entry> =>
  text.trim() === "" && calls.length === 0 ? [] : [{ role: "assistant", text, calls }]

/** How the question for a summary begins, and how what stands for the older part. */
const SUMS_UP = "The conversation so far:"
const ROOM = "(agentd made room:"

const ONCE = "an API is sent what was said, once and in order"

export class ModelTalks implements Check {
  private readonly verdicts: Verdicts
  private readonly sessions = new Map<string, Session>()
  /** By agent. */
  private readonly talks = new Map<string, Talk>()
  private readonly states = new Map<string, string>()
  private readonly toldOf = new Map<string, number>()
  private readonly logged = new Map<string, number>()
  private readonly agents = new Set<string>()
  /** Sub-agents whose parents were of several kinds. */
  private readonly mixed = new Set<string>()

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune({ actor, eventId, kind, payload, to }: Rune): void {
    const agent = actor.slice(actor.indexOf("/") + 1)
    if (kind === "worker.moved" && to !== null) this.states.set(agent, to)
    if (!this.agents.has(agent)) return
    if (JSON.stringify(payload).includes(KEYS))
      this.verdicts.broken("no key is in the log", `${agent}: rune ${eventId}`)
    if (kind !== "agent.usage" || this.mixed.has(agent)) return
    const sum = (this.logged.get(agent) ?? 0) + Number(payload["tokens"])
    this.logged.set(agent, sum)
    const said = this.toldOf.get(agent) ?? 0
    if (sum > said)
      this.verdicts.broken("what is spent is counted once", `${agent}: ${sum} of ${said}, rune ${eventId}`)
  }

  spawned(seen: Seen): void {
    if (!(seen instanceof ModelRun)) this.mixed.add(seen.agent)
  }

  readonly begun = (run: ModelRun, { prompt, resume, turnId }: RunSpec, keeps: boolean): void => {
    this.agents.add(run.agent)
    const before = keeps && resume !== undefined ? this.sessions.get(resume.sessionId) : undefined
    const goesOn = before !== undefined && !before.isClosed
    const id = goesOn && resume?.fork !== true ? before.id : run.runId
    const session: Session =
      goesOn && id === before.id
        ? before
        : { id, kept: goesOn ? before.kept : [], open: new Set(goesOn ? before.open : []), isClosed: false }
    if (goesOn) this.verdicts.sometimes("a conversation with a model goes on")
    this.sessions.set(id, session)
    this.talks.set(run.agent, {
      run,
      session,
      input: { turnId, text: prompt },
      hasAsked: false,
      interruptedAt: undefined,
      expected: undefined,
      before: undefined,
      begin: undefined,
      last: undefined,
      results: new Map(),
      worked: new Set(),
      told: 0,
      spent: 0
    })
    session.open.add(plain(prompt))
  }

  readonly next = ({ agent }: ModelRun, input: TurnInput): void => {
    const talk = this.talks.get(agent)
    if (talk === undefined) return
    this.settleUsage(talk)
    talk.input = input
    talk.hasAsked = false
    talk.interruptedAt = undefined
    talk.last = undefined
    talk.session.open.add(plain(input.text))
    talk.before = talk.expected
    if (talk.expected !== undefined) talk.expected = joined([...talk.expected, { role: "user", text: input.text }])
  }

  readonly notTaken = ({ agent }: ModelRun, input: TurnInput): void => {
    const talk = this.talks.get(agent)
    if (talk === undefined) return
    talk.expected = talk.before
    talk.session.open.delete(plain(input.text))
  }

  readonly interrupted = ({ agent }: ModelRun): void => {
    const talk = this.talks.get(agent)
    if (talk !== undefined) talk.interruptedAt ??= this.verdicts.now
  }

  readonly asked = (request: Request): void => {
    const { agent } = request
    const talk = this.talks.get(agent)
    const { broken, now } = this.verdicts
    if (talk?.run.alive !== true) return broken("nothing is asked where no run is", agent)
    this.verdicts.sometimes(`an API is asked: ${request.mood}`)
    const state = this.states.get(agent)
    if (state === undefined || ["CoolingDown", "Stopped", "SessionComplete", "Initializing"].includes(state))
      broken("nothing is asked while its agent rests", `${agent} is ${state}`)
    if (talk.run.turnId === undefined)
      broken("nothing is asked where no turn is", `${agent}: request ${request.number}`)
    if (talk.interruptedAt !== undefined && now > talk.interruptedAt + 1)
      broken("nothing is asked after an interrupt", `${agent}: ${(now - talk.interruptedAt).toFixed(0)} ms after it`)
    this.settleUsage(talk)
    const entries = joined(request.entries)
    const [first] = entries
    // a conversation that is too long is summed up, and goes on with that
    if (first?.role === "user" && first.text.startsWith(SUMS_UP)) {
      talk.session.kept = []
      talk.expected = undefined
      talk.last = request
      this.verdicts.sometimes("a conversation with a model is compacted")
      return
    }
    if (
      first?.role === "user" &&
      first.text.startsWith(ROOM) &&
      !alike(first, (talk.expected ?? talk.session.kept)[0])
    ) {
      talk.session.kept = []
      talk.begin = []
      talk.hasAsked = true
      talk.expected = entries
      talk.last = request
      return
    }
    if (talk.expected !== undefined) this.equal(agent, talk, entries)
    else this.goesOn(agent, talk, entries)
    if (!talk.hasAsked) talk.begin = entries.slice(0, -1)
    talk.hasAsked = true
    talk.expected = entries
    talk.last = request
  }

  /** Word for word. */
  private equal(agent: string, talk: Talk, entries: ReadonlyArray<Entry>): void {
    const expected = talk.expected!
    let at = 0
    for (const entry of expected) {
      const found = entries[at]
      if (!alike(entry, found))
        return this.verdicts.broken(ONCE, `${agent}: ${shown(found)} stands where ${shown(entry)} is expected`)
      at += 1
    }
    const end = entries[at - 1]
    if (end?.role === "assistant")
      for (const { id } of end.calls) {
        const found = entries[at]
        if (found?.role !== "result" || found.id !== id)
          return this.verdicts.broken(ONCE, `${agent}: ${shown(found)} stands where the result of ${id} is expected`)
        this.result(talk, id, { sent: found.text })
        at += 1
      }
    if (at !== entries.length) this.verdicts.broken(ONCE, `${agent}: ${shown(entries[at])} follows`)
  }

  /** All that was completed, then what was begun; last the turn's own input. */
  private goesOn(agent: string, { input, session, hasAsked }: Talk, entries: ReadonlyArray<Entry>): void {
    const { broken } = this.verdicts
    for (const [at, entry] of session.kept.entries())
      if (!alike(entry, entries[at]))
        return broken(
          "what a model answered is neither lost nor said again",
          `${agent}: ${shown(entries[at])} stands where ${shown(entry)} was`
        )
    const added = entries.slice(session.kept.length)
    for (const entry of added)
      if (entry.role === "user" && ![INTERRUPTED, SILENT].includes(entry.text) && !session.open.has(plain(entry.text)))
        broken(ONCE, `${agent}: ${shown(entry)} was not asked, or is answered`)
    for (const [at, entry] of added.entries())
      if (entry.role === "user" && at > 0 && alike(entry, added[at - 1]))
        broken(ONCE, `${agent}: ${shown(entry)} twice`)
    const last = added.at(-1)
    if (!hasAsked && (last?.role !== "user" || plain(last.text) !== plain(input.text)))
      broken(ONCE, `${agent}: ${shown(last)} ends what is asked, and not ${input.text.slice(0, 100)}`)
  }

  readonly answered = ({ agent, answer }: Request): void => {
    const talk = this.talks.get(agent)
    if (talk === undefined || answer === undefined) return
    const { expected } = talk
    if (talk.interruptedAt !== undefined || expected === undefined) return
    const isHeld = answer.stop === "refusal" || answer.stop === "filter"
    const isNothing = answer.stop === "length" && answer.calls.length === 0 && answer.text.trim() === ""
    if (isHeld) talk.expected = talk.begin
    else if (isNothing) talk.expected = undefined
    else talk.expected = joined([...expected, ...entryOf(answer)])
  }

  readonly worked = ({ agent }: ModelRun, callId: string): void => {
    const talk = this.talks.get(agent)
    if (talk?.worked.has(callId) === true) this.verdicts.broken("a call is run once", `${agent}: ${callId}`)
    talk?.worked.add(callId)
  }

  readonly heard = ({ agent }: ModelRun, event: RunEvent): void => {
    const talk = this.talks.get(agent)
    if (talk === undefined) return
    const { broken } = this.verdicts
    switch (event._tag) {
      case "Usage": {
        const tokens = event.inputTokens + event.outputTokens
        talk.told += tokens
        this.toldOf.set(agent, (this.toldOf.get(agent) ?? 0) + tokens)
        const spent = talk.spent + spentOf(talk.last)
        if (talk.told > spent) broken("what is spent is counted once", `${agent}: ${talk.told} told of ${spent}`)
        return
      }
      case "ToolResult": {
        const { output } = event
        return this.result(talk, event.callId, { told: output === "" ? "(no output)" : String(output) })
      }
      case "TurnCompleted":
        return this.completed(agent, talk, event.output)
      case "TurnInterrupted":
        talk.expected = undefined
        return
      case "TurnError":
        if (event.errorType !== "refusal" && event.errorType !== "content_filter") talk.expected = undefined
        this.verdicts.sometimes(`a model's turn fails: ${event.errorType}`)
        return
      case "Exited":
        return this.exited(agent, talk)
    }
  }

  private result(talk: Talk, callId: string, half: Result): void {
    const { sent, told } = { ...talk.results.get(callId), ...half }
    if (sent === undefined || told === undefined) return void talk.results.set(callId, { ...half })
    talk.results.delete(callId)
    // one of the formats has a word for no output, and the other none
    if (sent !== told && !(sent === "" && told === "(no output)"))
      this.verdicts.broken(
        "a model is told a call's result as it is",
        `${talk.run.agent}: ${callId}: ${sent.slice(0, 100)}`
      )
  }

  private completed(agent: string, talk: Talk, output: string): void {
    const { last, session } = talk
    const { broken } = this.verdicts
    if (last?.isRead !== true || last.answer?.calls.length !== 0 || last.answer.text !== output)
      broken("a turn is done as its model said", `${agent}: "${output.slice(0, 80)}"`)
    if (talk.expected === undefined) return
    if (talk.expected.at(-1)?.role === "user") talk.expected = [...talk.expected, { role: "user", text: SILENT }]
    session.kept = talk.expected
    session.open.clear()
    this.verdicts.sometimes("a model's turn is completed")
  }

  private exited(agent: string, talk: Talk): void {
    const spent = talk.spent + spentOf(talk.last)
    if (talk.interruptedAt === undefined && talk.run.turnId === undefined && talk.told !== spent)
      this.verdicts.broken("what is spent is counted once", `${agent}: ${talk.told} told of ${spent}, at the end`)
    for (const [callId, { sent }] of talk.results)
      if (sent !== undefined) this.verdicts.broken("a model is told a call's result as it is", `${agent}: ${callId}`)
  }

  private settleUsage(talk: Talk): void {
    talk.spent += spentOf(talk.last)
    talk.last = undefined
  }

  readonly over = (_: ModelRun, isKilled: boolean): void => {
    if (isKilled) this.verdicts.sometimes("a model's run dies with its daemon")
  }

  readonly refused = (agent: string, why: string): void =>
    this.verdicts.broken("an API takes what it is sent", `${agent}: ${why}`)

  readonly outlasted = (agent: string, ms: number): void =>
    this.verdicts.broken("a silent API is given up", `${agent}: ${ms} ms`)
}

const spentOf = (request: Request | undefined): number =>
  request === undefined ? 0 : request.spent.input + request.spent.output
